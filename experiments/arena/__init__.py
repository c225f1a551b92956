"""The arena: players of any kind against each other, thousands of games at a time, with ratings."""

from experiments.arena.match import Match, play_match
from experiments.arena.players import ForfeitError, HostGame, HostPlayer, Player, player
from experiments.arena.ratings import Ratings, Sprt, plackett_luce
from experiments.arena.results import Batch, Results

__all__ = [
    "Batch",
    "ForfeitError",
    "HostGame",
    "HostPlayer",
    "Match",
    "Player",
    "Ratings",
    "Results",
    "Sprt",
    "plackett_luce",
    "play_match",
    "player",
]
