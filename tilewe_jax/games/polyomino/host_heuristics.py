"""The heuristics of ``heuristics`` in plain Python, for players on host positions. Needs no JAX."""

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.heuristic_weights import MULTICOLOR_WEIGHTS, TEAM_WEIGHTS, TWO_COLOR_WEIGHTS
from tilewe_jax.games.polyomino.host import Geometry, geometry
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import softmax

PASS_LOGIT = -20.0
POINTS_PER_LOGIT = 8.0
"""Lead in points that counts as one logit of the outcome."""
POINTS_PER_LOG, POINTS_PER_ROOT = 2.0, 2.0
"""Points of the logarithm of the number of placements, and of the root of the number of corners, in ``room_value``."""
AREA_STEPS = 3
"""Distance in king moves from open corners beyond which a new corner is in a new area."""
_FEATURES = [name for name in TWO_COLOR_WEIGHTS if name not in PIECE_NAMES]


class _Outline(NamedTuple):
    """Boards of an orientation whose bounding box starts at cell (1, 1), so that no neighbour has a negative bit."""

    piece: int
    cells: int
    edges: int
    diagonals: int


@lru_cache(maxsize=30)
def _outlines(size: int) -> list[_Outline]:
    boards = geometry(size)
    outlines = []
    for orientation in ORIENTATIONS:
        cells = boards.mask((x + 1, y + 1) for x, y in orientation.cells)
        edges, diagonals = boards.around(cells)
        outlines.append(_Outline(orientation.piece, cells, edges & ~cells, diagonals))
    return outlines


def weight_table(config: Config) -> dict[str, tuple[float, float]]:
    """Return the learned weights of a variant by name: the value at the start of a game, and its change until the end."""
    if config.colors_per_player > 1:
        return TEAM_WEIGHTS
    return TWO_COLOR_WEIGHTS if config.colors == 2 else MULTICOLOR_WEIGHTS


def heuristic_logits(position: PolyominoPosition, actions: Sequence[int]) -> list[float]:
    """Return the logits of legal actions, as ``heuristics.heuristic_logits`` on the device."""
    config, state, mover = position.config, position.position, position.current_color
    boards = state.geometry
    phase = (len(config.pieces) - state.hands[mover].bit_count()) / len(config.pieces)
    weights = {name: start + slope * phase for name, (start, slope) in weight_table(config).items()}
    by_feature = [weights[name] for name in _FEATURES]
    by_piece = [weights[name] for name in PIECE_NAMES]
    plies = sum(len(config.pieces) - hand.bit_count() for hand in state.hands)
    by_distance = by_feature.pop() * math.exp(-plies / (2 * config.colors))
    middle = (config.size - 1) / 2

    free, corners = state.free(mover), state.corners[mover]
    open_corners = free & corners
    opponents = [color for color in range(config.colors) if config.owner(color) != config.owner(mover)]
    opponent_corners = reduce(or_, (state.free(color) & state.corners[color] for color in opponents), 0)
    covered = reduce(or_, (state.occupied[color] for color in opponents), 0)
    beside_corners, beside_covered = boards.around(opponent_corners)[0], boards.around(covered)[0]
    near_corners = boards.around(beside_corners)[0] | beside_corners | opponent_corners
    one_free, two_free, three_free = _free_neighbours(boards, free)
    new_area = ~reduce(lambda area, _: area | or_(*boards.around(area)), range(AREA_STEPS), open_corners)
    openable, outlines, size, shift = free & ~corners, _outlines(config.size), config.size, boards.bit((1, 1))

    logits = []
    for action in actions:
        if action == config.num_placements:
            logits.append(PASS_LOGIT)
            continue
        orientation, cell = divmod(action, config.cells)
        y, x = divmod(cell, size)
        outline, anchor = outlines[orientation], boards.bit((x, y))
        cells, edges = outline.cells << anchor >> shift, outline.edges << anchor >> shift
        opened = (outline.diagonals << anchor >> shift) & openable & ~(cells | edges)
        counts = (
            (cells & opponent_corners).bit_count(),
            (cells & beside_corners).bit_count(),
            (cells & near_corners).bit_count(),
            (cells & beside_covered).bit_count(),
            (edges & covered).bit_count(),
            opened.bit_count(),
            (opened & one_free).bit_count(),
            (opened & two_free).bit_count(),
            (opened & three_free).bit_count(),
            (opened & new_area).bit_count(),
            (opened & beside_covered).bit_count(),
            (cells & open_corners).bit_count(),
            (edges & open_corners).bit_count(),
            (edges & free).bit_count(),
        )
        distance = max(abs(x + 1 - middle), abs(y + 1 - middle))
        weighted = sum(weight * count for weight, count in zip(by_feature, counts, strict=True))
        logits.append(weighted + by_piece[outline.piece] - by_distance * distance)
    return logits


def heuristic_value(position: PolyominoPosition) -> list[float]:
    """Estimate the outcome by seat, as ``heuristics.heuristic_value`` on the device."""
    return softmax([score / POINTS_PER_LOGIT for score in position.scores()])


def room_value(position: PolyominoPosition) -> list[float]:
    """Estimate the outcome by seat for a search: as ``heuristic_value``, with points for the room of each colour.

    The room of a colour counts its open corners with a legal placement, and the legal placements at them.
    """
    config, state = position.config, position.position
    points = [float(score) for score in position.scores()]
    for color, legal in enumerate(state.legal):
        if not state.out >> color & 1:
            placements = sum(fits.bit_count() for fits in legal.values())
            points[config.owner(color)] += POINTS_PER_LOG * math.log1p(placements) + POINTS_PER_ROOT * math.sqrt(len(legal))
    return softmax([each / POINTS_PER_LOGIT for each in points])


def _free_neighbours(boards: Geometry, free: int) -> tuple[int, int, int]:
    """Return the cells with at least one, two and three edge neighbours in a set of cells."""
    below, above, left, right = free << boards.stride, free >> boards.stride, free << 1, free >> 1
    vertical, horizontal = below & above, left & right
    either = below | above, left | right
    two = vertical | horizontal | either[0] & either[1]
    return either[0] | either[1], two, vertical & either[1] | horizontal & either[0]
