"""Positions of Santorini as facts: heights, cells of the workers, and the player to move. Plain Python.

The facts are ``heights``, one text of digits per row from the top of the board; ``workers``, the cells of the two workers of
each player, ``[["c4", "c2"], ["b3", "d3"]]``; and ``current_player``, 0 or 1. While the players choose the cells of their
workers, lists may have fewer cells. A position in which a worker of the opponent stands on level 3 is finished.

Instead of facts, ``read`` accepts the notation of the engines of https://github.com/JPricey/santorini-ai for players without
gods: ``4101202110011400102000100/2/mortal:A3,C3/mortal:E4,A1``. Its parts are the heights from the top left, row by row; the
player to move, 1 or 2; and the workers of the players, with a ``#`` after ``mortal`` for a winner.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilewe_jax.games.santorini.config import DOME, Cell, Config
from tilewe_jax.games.santorini.host import Place, SantoriniBoard
from tilewe_jax.host import PositionFormat, fields_of, integer_of, shown_names

_FIELDS = ("heights", "workers", "current_player")
_CELL = re.compile("([a-j])([1-9]|10)")
_NOTATION = re.compile("([0-9]+)/([12])/([a-z]+)(#?):([A-Za-z0-9,]*)/([a-z]+)(#?):([A-Za-z0-9,]*)")


def position_format(config: Config) -> PositionFormat:
    """Return the facts of positions of a game."""
    return PositionFormat(partial(read, config), write)


def read(config: Config, facts: Any) -> SantoriniBoard:
    """Return the position of facts, or of a text in the notation of engines.

    Raises ``ValueError`` for heights over 4, a worker on a dome, two workers on one cell, and other wrong facts.
    """
    if isinstance(facts, str):
        return _read_notation(config, facts)
    facts = fields_of(facts, _FIELDS)
    size, heights, workers = config.size, facts["heights"], facts["workers"]
    is_text = isinstance(heights, list) and all(isinstance(row, str) and len(row) == size for row in heights)
    if not is_text or len(heights) != size:
        raise ValueError(f"heights must be {size} rows of {size} digits, the top row first, got {str(heights)[:80]}")
    if wrong := [digit for row in heights for digit in row if digit not in "01234"]:
        raise ValueError(f"heights must be 0 to {DOME}, got {shown_names(wrong)}")
    is_list = isinstance(workers, list) and all(isinstance(cells, list) for cells in workers)
    if not is_list or [len(cells) > 2 for cells in workers] != [False, False]:
        raise ValueError(f"workers must be two lists of at most two cells, one for each player, got {str(workers)[:80]}")
    player = integer_of(facts, "current_player", 0, 1)
    first, second = ([_cell(size, name) for name in own] + [None] * (2 - len(own)) for own in workers)
    _check(config, heights, workers, first + second, player)
    board = SantoriniBoard(tuple(tuple(map(int, row)) for row in heights), (*first, *second), (1, -1)[player])  # type: ignore[arg-type]
    return checked(config, board)


def _check(
    config: Config, heights: Sequence[str], workers: Sequence[Sequence[str]], cells: Sequence[Cell | None], player: int
) -> None:
    """Raise ``ValueError`` for workers at wrong cells, in the words of the page."""
    for index, cell in enumerate(cells):
        seat, name = index // 2 + 1, workers[index // 2][index % 2] if cell else ""
        if cell is None:
            if config.placement != "chosen":
                raise ValueError(f"player {seat} must have two workers")
        elif cells.count(cell) > 1:
            raise ValueError(f"two workers stand on {name}")
        elif heights[cell[0]][cell[1]] == str(DOME):
            raise ValueError(f"a worker of player {seat} stands on a dome, at {name}")
        elif heights[cell[0]][cell[1]] == str(DOME - 1) and seat == player + 1:
            raise ValueError(f"player {seat} has a worker on level 3, at {name}, and has won; the other player must be to move")
    placed = [len(own) for own in workers]
    number = sum(placed)
    is_in_turn = placed == [(number + 1) // 2, number // 2] and player == number % 2
    if None in cells and not (is_in_turn and set("".join(heights)) == {"0"}):
        raise ValueError(
            "while workers are missing, all heights must be 0, and the players place their workers in turns, player 1 first"
        )


def checked(config: Config, board: SantoriniBoard) -> SantoriniBoard:
    """Return a board if it belongs to a game with these settings. Raises ``ValueError`` for another board."""
    if board.size != config.size:
        raise ValueError(f"the size of the board must be {config.size}, got {board.size}")
    if board.placing and config.placement != "chosen":
        raise ValueError(f"a position of this game must have four workers, got {4 - board.workers.count(None)}")
    return board


def write(board: SantoriniBoard) -> dict[str, Any]:
    """Return the facts of a position."""
    return {
        "heights": ["".join(map(str, row)) for row in board.heights],
        "workers": [[board.name(Place(cell)) for cell in own if cell] for own in (board.workers[:2], board.workers[2:])],
        "current_player": board.current_player,
    }


def notation(board: SantoriniBoard) -> str:
    """Return a position in the notation of engines, see ``read``."""
    facts = write(board)
    winner = 0 if board.winner is None else 1 if board.winner == 1 else 2
    players = [
        f"mortal{'#' * (winner == number)}:{','.join(cells).upper()}" for number, cells in enumerate(facts["workers"], 1)
    ]
    return "/".join(["".join(facts["heights"]), str(board.current_player + 1), *players])


def _read_notation(config: Config, text: str) -> SantoriniBoard:
    match = _NOTATION.fullmatch(text.strip())
    if not match:
        example = "0000000000000000000000000/1/mortal:C4,C2/mortal:B3,D3"
        raise ValueError(f"a position as text must be like {example}, got {text[:80]!r}")
    heights, player, god, won, workers, other_god, other_won, others = match.groups()
    if gods := [name for name in (god, other_god) if name != "mortal"]:
        raise ValueError(f"gods are not supported, got {shown_names(gods)}; the players must be mortal")
    if len(heights) != config.size**2:
        raise ValueError(f"the heights must be {config.size**2} digits, got {len(heights)}")
    cells = [[name for name in own.lower().split(",") if name] for own in (workers, others)]
    rows = [heights[start : start + config.size] for start in range(0, len(heights), config.size)]
    facts = {"heights": rows, "workers": cells, "current_player": int(player) - 1}
    board = read(config, facts)
    for number, is_winner in enumerate((won, other_won)):
        if is_winner and board.winner != (1, -1)[number]:
            raise ValueError(f"player {number + 1} is marked as the winner, but has not won")
    return board


def _cell(size: int, name: Any) -> Cell:
    match = _CELL.fullmatch(name) if isinstance(name, str) else None
    column, row = (ord(match[1]) - ord("a"), int(match[2])) if match else (size, 0)
    if column >= size or not 1 <= row <= size:
        raise ValueError(f"a worker must stand on a cell from a1 to {chr(ord('a') + size - 1)}{size}, got {str(name)[:40]!r}")
    return size - row, column
