"""Tile-placing board games in JAX, thousands of games at once."""

from tilewe_jax import env
from tilewe_jax.game import Game
from tilewe_jax.registry import games, make

__all__ = ["Game", "env", "games", "make"]
