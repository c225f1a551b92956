"""Santorini on n x n cells."""
