"""Experiment: sweep."""
