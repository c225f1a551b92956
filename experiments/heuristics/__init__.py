"""Experiment: heuristics."""
