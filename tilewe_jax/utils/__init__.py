"""Helpers that know neither games nor positions."""
