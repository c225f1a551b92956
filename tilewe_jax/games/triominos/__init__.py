"""Triominos: triangular tiles with three numbers, see README.md; and the validator of placements, which needs no JAX."""

from tilewe_jax.games.triominos.figure import explain, validate

__all__ = ["explain", "validate"]
