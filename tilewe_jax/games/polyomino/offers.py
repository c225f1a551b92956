"""Titles, rules and options of the polyomino games, for players. Needs no JAX."""

from typing import Any

from tilewe_jax.games.polyomino.coach import facts, reasons
from tilewe_jax.games.polyomino.config import MAX_SIZE, MIN_SIZE, VARIANTS
from tilewe_jax.games.polyomino.host_heuristics import heuristic_logits, room_value
from tilewe_jax.games.polyomino.position import host_game
from tilewe_jax.games.polyomino.setup import position_format
from tilewe_jax.host import Coach, Heuristics, Offer

_SIDE = {"range": [MIN_SIZE, MAX_SIZE]}
_TOUCH = (
    "Each new piece must touch a piece of its own colour at a corner, and never along an edge. Other colours may be touched.",
    "A player who cannot place a piece is out; the others play on.",
)
_NOTATION = "W5n-a1c3 lays the piece W5, turned north (n e s w, f: flipped), with its own cell a1 on c3."
_CELLS = "Every cell that you cover is a point. The most points win."
_BONUS = "Every cell that you cover is a point; placing all pieces gives 15 more, and 5 more if the single cell came last."


def _offer(name: str, seats: tuple[int, int], title: str, tagline: str, /, *rules: str, **options: Any) -> Offer:
    return Offer(
        title,
        seats,
        tagline,
        rules,
        _NOTATION,
        {**options, "size": _SIDE},
        settings=VARIANTS[name],
        host_game=host_game,
        positions=position_format,
        heuristics=Heuristics(heuristic_logits, room_value),
        coach=Coach(facts, reasons),
    )


OFFERS = {
    "duo_official": _offer(
        "duo_official",
        (2, 2),
        "Duo, official",
        "The two-player classic on 14 \N{MULTIPLICATION SIGN} 14.",
        "Your first piece covers your start cell, marked on the board.",
        *_TOUCH,
        _BONUS,
    ),
    "duo": _offer(
        "duo",
        (2, 2),
        "Duo, modified",
        "Two corners each, and they stay open.",
        "Your first piece covers one of the two corners on your side; both stay open to you for the whole game.",
        *_TOUCH,
        _CELLS,
        voluntary_pass={"choices": [False, True]},
    ),
    "classic": _offer(
        "classic",
        (4, 4),
        "Classic",
        "Four colours, four corners, one board.",
        "Your first piece covers your corner of the board.",
        *_TOUCH,
        _BONUS,
    ),
    "classic_2": _offer(
        "classic_2",
        (2, 2),
        "Classic for two",
        "Two players with two colours each.",
        "You play two colours in turn, which help each other; their points add up.",
        "The first piece of a colour covers its corner of the board.",
        *_TOUCH,
    ),
    "tilewe": _offer(
        "tilewe",
        (1, 4),
        "Tilewe",
        "Corner to corner, on a board for one to four.",
        "The first piece covers any corner of the board.",
        *_TOUCH,
        _CELLS,
        players={"range": [1, 4]},
    ),
}
"""The offers by id of the game."""
