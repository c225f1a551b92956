"""Measurements: play, search, training."""
