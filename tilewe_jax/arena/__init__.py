"""The arena: batched matches between agents of any kind, with ratings."""

from tilewe_jax.arena.match import Match, play_match
from tilewe_jax.arena.ratings import Ratings, Sprt, plackett_luce
from tilewe_jax.arena.results import Batch, Results

__all__ = [
    "Batch",
    "Match",
    "Ratings",
    "Results",
    "Sprt",
    "plackett_luce",
    "play_match",
]
