"""Experiment: imitation."""
