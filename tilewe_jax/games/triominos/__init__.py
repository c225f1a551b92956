"""Triominos, triangular tiles with three numbers, see README.md. The validator of placements does not import JAX."""

from tilewe_jax.games.triominos.figure import explain, validate

__all__ = ["explain", "validate"]
