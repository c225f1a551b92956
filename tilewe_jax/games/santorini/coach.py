"""Facts that explain moves of Santorini: wins, levels, threats and the place of the workers. Imports no JAX."""

from typing import Any

from tilewe_jax.games.santorini.config import DOME, Cell
from tilewe_jax.games.santorini.host import Place, SantoriniBoard, Turn
from tilewe_jax.games.santorini.host_heuristics import Cells, workers_of
from tilewe_jax.host import Facts
from tilewe_jax.utils.words import counted, differences

NEAR = 2
"""A worker with neither a building nor an opponent within this distance in king moves is out of the fight."""
_TOP = DOME - 1
_DIFFERENCES = (
    (5.0, "threats", "cells", "It threatens to climb to level 3 on {p}; the better move on {b}."),
    (3.0, "level", "levels", "Its worker stands {p} high; with the better move {b}."),
    (-0.15, "opponent_turns", "turns", "It leaves the opponent {p}; the better move leaves {b}."),
    (0.1, "turns", "own turns", "It keeps {p}; the better move keeps {b}."),
)


def facts(board: SantoriniBoard, action: int) -> dict[str, Any]:
    """Return the facts of a legal action.

    Returns:
      ``level``, the height of the moved worker after the move, and ``climb``, the levels that it rose;
      ``wins_in``, the number of own turns in which the move certainly wins, 1 or 2, or 0 if neither is proven;
      ``loses_to``, the name of a turn with which the opponent wins immediately, or ``None``;
      ``threats``, the cells of level 3 to which an own worker could climb in its next turn;
      ``turns`` and ``opponent_turns``, the numbers of legal turns if the player were to move;
      ``gives``, the level of the built cell if a worker of the opponent can climb it, 0 otherwise, and ``gives_at``, its name;
      ``idle``, the cells of own workers that are out of the fight: without a building or an opponent within ``NEAR`` cells.
    """
    mover, move, after = board.player, board.move(action), board._made(board.move(action))
    own, opponents = workers_of(after, mover), workers_of(after, -mover)
    size = after.size
    heights = [height for row in after.heights for height in row]
    cells = Cells(size, heights, [*own, *opponents])
    won = after.winner == mover
    gives, loses_to = 0, None
    if isinstance(move, Turn) and not won:
        gives = _given(after, move.build, opponents)
        loses_to = next((after.name(reply) for reply in after.legal_moves if _wins(after, reply)), None)
    moved = move.cell if isinstance(move, Place) else move.to
    reach = cells.by_height[_TOP] & ~cells.taken
    climbable = 0
    for worker in own:
        climbable |= cells.near[worker] & reach if heights[worker] >= _TOP - 1 else 0
    return {
        "level": after.height(moved),
        "climb": 0 if isinstance(move, Place) else after.height(moved) - board.height(move.start),
        "wins_in": 1 if won else 2 if loses_to is None and climbable and _forces(after) else 0,
        "loses_to": loses_to,
        "threats": climbable.bit_count(),
        "turns": cells.turns(own)[0],
        "opponent_turns": cells.turns(opponents)[0],
        "gives": gives,
        "gives_at": _cell_name(size, move.build) if gives and isinstance(move, Turn) else None,
        "idle": [_cell_name(size, divmod(worker, size)) for worker in own if _is_idle(size, heights, worker, opponents)],
    }


def _wins(board: SantoriniBoard, move: Any) -> bool:
    """Return whether a legal move wins immediately."""
    return board._made(move).winner == board.player


def _forces(board: SantoriniBoard) -> bool:
    """Return whether the player who has just moved can climb to level 3 after every turn of the opponent."""
    replies = (board._made(reply) for reply in board.legal_moves)
    return all(any(reply.height(move.to) == _TOP for move in reply.legal_moves if isinstance(move, Turn)) for reply in replies)


def _given(board: SantoriniBoard, built: Cell, opponents: list[int]) -> int:
    """Return the height of a built cell if an opponent's worker beside it stands one level below it, otherwise 0."""
    height = board.height(built)
    near = board._neighbours(built)
    stands = [divmod(worker, board.size) for worker in opponents]
    climbs = any(cell in near and board.height(cell) + 1 == height for cell in stands)
    return height if climbs and height < DOME else 0


def _is_idle(size: int, heights: list[int], worker: int, opponents: list[int]) -> bool:
    row, column = divmod(worker, size)
    busy = {*opponents, *(cell for cell, height in enumerate(heights) if 0 < height < DOME)}
    return all(max(abs(row - cell // size), abs(column - cell % size)) > NEAR for cell in busy - {worker})


def _cell_name(size: int, cell: Cell) -> str:
    return f"{chr(ord('a') + cell[1])}{size - cell[0]}"


def reasons(played: Facts, better: Facts) -> list[tuple[float, str]]:
    """Return the differences of two moves as sentences with weights, see ``tilewe_jax.host.Coach``."""
    found: list[tuple[float, str]] = []
    wins = {1: "wins immediately", 2: "wins by force in two turns"}.get(better["wins_in"])
    if wins and (not played["wins_in"] or played["wins_in"] > better["wins_in"]):
        found.append((1000.0, f"The better move {wins}; this move misses it."))
    if played["loses_to"] and not better["loses_to"]:
        found.append((900.0, f"It lets the opponent win with {played['loses_to']}; the better move prevents it."))

    if played["gives"] > better["gives"]:
        sentence = f"It builds level {played['gives']} on {played['gives_at']}, which a worker of the opponent can climb."
        found.append((3.0 * played["gives"], sentence))
    idle = [cell for cell in played["idle"] if cell not in better["idle"]]
    if len(played["idle"]) > len(better["idle"]) and idle:
        cells = counted(NEAR, "cells")
        found.append(
            (4.0, f"It leaves the worker on {idle[0]} out of the fight, with no building and no opponent within {cells}.")
        )
    return found + differences(played, better, _DIFFERENCES)
