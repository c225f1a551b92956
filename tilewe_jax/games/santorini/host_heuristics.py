"""The heuristics of ``heuristics`` in plain Python, for players on host positions. Needs no JAX."""

import math
from collections.abc import Sequence
from functools import lru_cache

from tilewe_jax.games.santorini.config import DIRECTIONS, Cell
from tilewe_jax.games.santorini.host import SantoriniBoard

LOGIT_WEIGHTS = {
    "wins": 5.28,
    "loses": -8.13,
    "own_on_1": 2.61,
    "own_on_2": 2.61,
    "own_near_0": 0.03,
    "own_near_1": 0.44,
    "own_near_2": 1.43,
    "own_near_3": 1.41,
    "own_steps_up": 0.32,
    "own_threats": 2.88,
    "opponent_near_0": 1.29,
    "opponent_near_1": 0.13,
    "opponent_near_2": -1.76,
    "opponent_near_3": -2.7,
    "opponent_steps_up": -0.76,
    "replies": -2.68,
}
"""Weights learned and printed by ``experiments.heuristics``; not to be edited by hand."""
MAX_LOGIT = 8.0
THREAT, LEVEL, TURN = -1.2, 0.5, 0.012
"""Logits of winning for a threat of the opponent, a level, and a legal turn."""
MEAN_TURNS = 40

_W = LOGIT_WEIGHTS
_OWN_NEAR = [_W[f"own_near_{level}"] for level in range(4)]
_OPPONENT_NEAR = [_W[f"opponent_near_{level}"] for level in range(4)]


class Cells:
    """Cells of a position as sets of bits, bit ``size * row + column``, and counts of turns on them."""

    __slots__ = ("by_height", "near", "taken")

    def __init__(self, size: int, heights: Sequence[int], workers: Sequence[int]) -> None:
        self.near = _near(size)
        self.by_height = [0] * 5
        """The cells of each height."""
        for index, height in enumerate(heights):
            self.by_height[height] |= 1 << index
        self.taken = 0
        """The cells of the workers."""
        for worker in workers:
            self.taken |= 1 << worker

    def height(self, worker: int) -> int:
        return next(height for height, cells in enumerate(self.by_height) if cells >> worker & 1)

    def turns(self, workers: Sequence[int]) -> tuple[int, bool]:
        """Return the number of legal turns of the workers of a player, and whether one of them reaches level 3."""
        if len(workers) < 2:  # a player who must still place a worker
            return 0, False
        near, levels = self.near, self.by_height
        count, climbs = 0, False
        for worker in workers:
            reach = min(self.height(worker) + 1, 3)
            targets = near[worker] & ~self.taken & sum(levels[: reach + 1])
            buildable = ~(levels[4] | self.taken ^ 1 << worker)
            while targets:
                target = targets.bit_length() - 1
                targets ^= 1 << target
                builds = (near[target] & buildable).bit_count()
                count += builds
                climbs = climbs or bool(builds and levels[3] >> target & 1)
        return count, climbs

    def around(self, worker: int) -> tuple[int, list[int], int]:
        """Return the height of a worker, its free neighbours by height, and those one level above it."""
        height, free = self.height(worker), self.near[worker] & ~self.taken
        counts = [(free & cells).bit_count() for cells in self.by_height[:4]]
        return height, counts, counts[min(height + 1, 3)]


@lru_cache(maxsize=10)
def _near(size: int) -> list[int]:
    """Return the neighbours of each cell."""
    masks = []
    for row in range(size):
        for column in range(size):
            cells = [(row + rows, column + columns) for rows, columns in DIRECTIONS]
            masks.append(sum(1 << size * r + c for r, c in cells if 0 <= r < size and 0 <= c < size))
    return masks


def heuristic_logits(board: SantoriniBoard, actions: Sequence[int]) -> list[float]:
    """Return the logits of legal actions, as ``heuristics.heuristic_logits`` on the device."""
    if board.placing:
        return [_logit(board.after(action)) for action in actions]
    size = board.size
    heights = [height for row in board.heights for height in row]
    own, opponents = workers_of(board, board.player), workers_of(board, -board.player)
    offsets = [rows * size + columns for rows, columns in DIRECTIONS]
    logits = []
    for action in actions:
        moved = own.copy()
        moved[action // 64] += offsets[action // 8 % 8]
        built = moved[action // 64] + offsets[action % 8]
        heights[built] += 1
        logits.append(_logit_of(size, heights, moved, opponents))
        heights[built] -= 1
    return logits


def _logit(after: SantoriniBoard) -> float:
    """Return the logit of the placement that led to a board."""
    heights = [height for row in after.heights for height in row]
    return _logit_of(after.size, heights, workers_of(after, -after.player), workers_of(after, after.player), after.placing)


def _logit_of(size: int, heights: Sequence[int], own: Sequence[int], opponents: Sequence[int], placing: bool = False) -> float:
    """Return the logit of the action after which the workers stand on these cells, with the opponent to move."""
    cells = Cells(size, heights, [*own, *opponents])
    logit = 0.0
    has_won = False
    for worker in own:
        height, near, steps_up = cells.around(worker)
        has_won = has_won or height == 3
        logit += _W["own_on_1"] * (height >= 1) + _W["own_on_2"] * (height >= 2) + _W["own_steps_up"] * steps_up
        logit += sum(weight * count for weight, count in zip(_OWN_NEAR, near, strict=True))
        logit += _W["own_threats"] * near[3] * (height >= 2)
    for worker in opponents:
        _, near, steps_up = cells.around(worker)
        logit += _W["opponent_steps_up"] * steps_up
        logit += sum(weight * count for weight, count in zip(_OPPONENT_NEAR, near, strict=True))
    replies, loses = (0, False) if has_won else cells.turns(opponents)
    return logit + _W["wins"] * (not replies and not placing) + _W["loses"] * loses + _W["replies"] * replies / 10


def heuristic_value(board: SantoriniBoard) -> list[float]:
    """Estimate the outcome by seat, as ``heuristics.heuristic_value`` on the device."""
    heights = [height for row in board.heights for height in row]
    own, opponents = workers_of(board, board.player), workers_of(board, -board.player)
    cells = Cells(board.size, heights, [*own, *opponents])
    turns, climbs = cells.turns(own)
    logit = LEVEL * (sum(map(cells.height, own)) - sum(map(cells.height, opponents))) + TURN * (turns - MEAN_TURNS)
    logit += THREAT * cells.turns(opponents)[1]
    outcome = 1 / (1 + math.exp(-(MAX_LOGIT if climbs else logit)))
    return [outcome, 1 - outcome] if board.player == 1 else [1 - outcome, outcome]


def workers_of(board: SantoriniBoard, player: int) -> list[int]:
    """Return the placed workers of player 1 or -1 as numbers of their cells."""
    cells: Sequence[Cell | None] = board.workers[:2] if player == 1 else board.workers[2:]
    return [board.size * cell[0] + cell[1] for cell in cells if cell is not None]
