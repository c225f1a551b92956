"""Presentation of Triominos on the page and in the terminal. Imports no JAX."""

from tilewe_jax.games.triominos.coach import facts, reasons
from tilewe_jax.games.triominos.config import SETS, TRAYS, Config
from tilewe_jax.games.triominos.host import host_game
from tilewe_jax.games.triominos.host_heuristics import determinize, heuristic_logits, heuristic_value
from tilewe_jax.games.triominos.setup import position_format
from tilewe_jax.host import Coach, Heuristics, Offer

OFFERS = {
    "triominos": Offer(
        "Triominos",
        (min(TRAYS), max(TRAYS)),
        "Triangles, numbers, a little luck.",
        (
            "Place a tile beside another so that both numbers along the edge are the same. Its three numbers are your points.",
            "Hexagons and bridges score extra points.",
            "If no tile fits, draw up to three tiles for 5 points each. If you still cannot place a tile, pass for 10 points.",
            "The player who places their last tile gets 25 points plus the numbers on all remaining tiles of the others.",
        ),
        "125-CAB@2,-1 places the tile 125 in the orientation CAB on the cell 2,-1; draw and pass are moves too.",
        {
            "players": {"range": [min(TRAYS), max(TRAYS)]},
            "tiles": {"choices": sorted(SETS)},
            "start": {"choices": ["random", "highest", "winner"]},
            "game": {"choices": ["single", "target"]},
            "target": {"range": [1, 10_000]},
            "max_rounds": {"range": [1, 100]},
        },
        True,
        Config,
        host_game,
        position_format,
        Heuristics(heuristic_logits, heuristic_value, determinize),
        Coach(facts, reasons),
    )
}
"""Offers by game id."""
