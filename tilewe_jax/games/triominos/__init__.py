"""Triominos: triangular tiles, three numbers each. So far the validator of placements; the game itself is to come."""

from tilewe_jax.games.triominos.figure import explain, validate

__all__ = ["explain", "validate"]
