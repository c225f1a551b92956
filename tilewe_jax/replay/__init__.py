"""Recorded games as pages, animations and pictures."""

from tilewe_jax.replay.states import grid, picture

__all__ = ["grid", "picture"]
