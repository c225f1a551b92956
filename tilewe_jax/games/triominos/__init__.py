"""Triominos: triangular tiles, three numbers each, and what can be asked of them without JAX."""

from tilewe_jax.games.triominos.figure import explain, validate

__all__ = ["explain", "validate"]
