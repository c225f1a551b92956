"""Presentation of Santorini on the page and in the terminal. Imports no JAX."""

from tilewe_jax.games.santorini.coach import facts, reasons
from tilewe_jax.games.santorini.config import SIZES, Config
from tilewe_jax.games.santorini.host import host_game
from tilewe_jax.games.santorini.host_heuristics import heuristic_logits, heuristic_value
from tilewe_jax.games.santorini.setup import position_format
from tilewe_jax.host import Coach, Heuristics, Offer

OFFERS = {
    "santorini": Offer(
        "Santorini",
        (2, 2),
        "Move, build, and be first on the third level.",
        (
            "In each turn you move one of your two workers to a neighbouring cell, at most one level up, and then build a level"
            " beside it.",
            "A fourth level is a dome: nobody can stand on it.",
            "A player who steps up to the third level wins. A player who cannot move loses.",
        ),
        "c3-b2*b3 moves the worker on c3 to b2 and builds on b3; c3 places a worker there.",
        {"size": {"range": [SIZES[0], SIZES[-1]]}, "placement": {"choices": ["default", "random", "chosen"]}},
        False,
        Config,
        host_game,
        position_format,
        Heuristics(heuristic_logits, heuristic_value),
        Coach(facts, reasons),
    )
}
"""Offers by game id."""
