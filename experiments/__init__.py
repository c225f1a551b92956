"""Rollouts, benchmarks and the command line: where everything is put together."""
