"""Experiment: ppo."""
