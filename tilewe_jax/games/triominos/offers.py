"""Triominos as it is offered to people. Needs no JAX."""

from tilewe_jax.games.triominos.config import SETS, TRAYS, triominos
from tilewe_jax.games.triominos.host import host_game
from tilewe_jax.host import Offer

OFFERS = {
    "triominos": Offer(
        "Triominos",
        (min(TRAYS), max(TRAYS)),
        "Triangles, numbers, a little luck.",
        (
            "Place a tile beside another so that both numbers along the edge are the same. Its three numbers are your points.",
            "Closing a hexagon and building a bridge are worth more.",
            "If nothing fits, draw: each tile costs 5 points, at most three in a turn. After that you pass for 10.",
            "Whoever has placed all tiles gets 25 points, and what the others have left.",
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
        triominos,
        host_game,
    )
}
"""By id."""
