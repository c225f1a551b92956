"""The variants by name: what ``make`` calls, and which options each takes."""

from collections.abc import Callable, Sequence
from typing import Any

from tilewe_jax.games.polyomino.config import Config, piece_indices
from tilewe_jax.games.polyomino.pieces import PIECE_NAMES, Cell

Pieces = Sequence[str] | None
Starts = Sequence[Sequence[Cell]] | None


def tilewe(
    players: int = 4, size: int = 20, pieces: Pieces = None, start_cells: Starts = None, movegen: str = "bitboard"
) -> Config:
    """Tilewe, 1 to 4 players: each starts in whichever board corner is left. Points are cells placed."""
    last = size - 1
    corners = ((0, 0), (last, 0), (0, last), (last, last))
    return _config("tilewe", size, players, [corners] * players, pieces, start_cells, movegen)


def duo(
    size: int = 14,
    pieces: Pieces = None,
    start_cells: Starts = None,
    voluntary_pass: bool = False,
    movegen: str = "bitboard",
) -> Config:
    """The modified Duo: two corners of the own side, open for the whole game. Points are cells placed."""
    last = size - 1
    starts = [((0, last), (last, last)), ((0, 0), (last, 0))]
    return _config("duo", size, 2, starts, pieces, start_cells, movegen, starts_stay_open=True, voluntary_pass=voluntary_pass)


def duo_official(size: int = 14, pieces: Pieces = None, start_cells: Starts = None, movegen: str = "bitboard") -> Config:
    """Blokus Duo by the book: one start cell each, inside the board. 15 points for all pieces, 5 more for O1 last."""
    near = size * 4 // 14
    far = size - 1 - near
    starts = [((near, far),), ((far, near),)]
    return _config("duo_official", size, 2, starts, pieces, start_cells, movegen, bonus_all=15, bonus_monomino_last=5)


def classic(size: int = 20, pieces: Pieces = None, start_cells: Starts = None, movegen: str = "bitboard") -> Config:
    """The four-colour game by the book: one corner each, clockwise from the top left. Bonuses as in the official Duo."""
    last = size - 1
    starts = [((0, last),), ((last, last),), ((last, 0),), ((0, 0),)]
    return _config("classic", size, 4, starts, pieces, start_cells, movegen, bonus_all=15, bonus_monomino_last=5)


VARIANTS: dict[str, Callable[..., Config]] = {
    "tilewe": tilewe,
    "duo": duo,
    "duo_official": duo_official,
    "classic": classic,
}


def options_of(config: Config) -> dict[str, Any]:
    """The options that give this configuration and differ from the variant's defaults, as JSON."""
    variant = VARIANTS[config.name]
    default = variant()
    given: dict[str, Any] = {
        name: getattr(config, name)
        for name in ("players", "size", "voluntary_pass", "movegen")
        if getattr(config, name) != getattr(default, name)
    }
    if config.pieces != default.pieces:
        given["pieces"] = [PIECE_NAMES[piece] for piece in config.pieces]
    if config.start_cells != variant(**given).start_cells:
        given["start_cells"] = [[list(cell) for cell in cells] for cells in config.start_cells]
    return given


def _config(
    name: str,
    size: int,
    players: int,
    starts: Sequence[Sequence[Cell]],
    pieces: Pieces,
    start_cells: Starts,
    movegen: str,
    **rules: Any,
) -> Config:
    try:
        cells = tuple(tuple((int(x), int(y)) for x, y in player) for player in start_cells or starts)
    except (TypeError, ValueError):
        raise ValueError(f"start_cells must be a list of (x, y) for each player, not {start_cells!r}") from None
    return Config(
        name=name,
        size=size,
        players=players,
        start_cells=cells,
        pieces=piece_indices(pieces),
        movegen=movegen,
        **rules,
    )
