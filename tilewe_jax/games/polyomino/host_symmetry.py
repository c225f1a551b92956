"""The symmetries of the square board in plain Python: for games on the host, and for the tables of ``symmetry``."""

from collections.abc import Callable, Hashable, Iterable
from functools import cache, partial
from operator import itemgetter
from typing import Any

from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.notation import cells_of
from tilewe_jax.games.polyomino.pieces import ORIENTATION_OF_CELLS, ROTATION_NAMES, Cell, normalize
from tilewe_jax.host import Symmetries


@cache
def symmetries(config: Config) -> tuple[int, ...]:
    """Return the symmetries of a variant, as indices into ``ROTATION_NAMES``; the identity first."""
    starts = [frozenset(cells) for cells in config.start_cells]
    return tuple(
        rotation
        for rotation in range(len(ROTATION_NAMES))
        if all(frozenset(images(config, start, rotation)) == start for start in starts)
    )


def images(config: Config, cells: Iterable[Cell], rotation: int) -> list[Cell]:
    """Rotate cells with the board, as ``pieces.rotate`` rotates pieces."""
    last = config.size - 1
    turned = list(cells)
    for _ in range(rotation % 4):
        turned = [(y, last - x) for x, y in turned]
    return [(last - x, y) for x, y in turned] if rotation >= 4 else turned


def host_symmetries(config: Config) -> Symmetries:
    """Return the symmetries of a variant for ``HostGame.symmetries``."""
    return Symmetries(partial(_positions, config), partial(_moves, config))


def _positions(config: Config, position: Any) -> list[Hashable]:
    rules = position.position
    cells = ["."] * config.cells
    for color in range(config.colors):
        for cell in position.cells(color):
            cells[config.bit(cell)] = str(color)
    rest = (tuple(rules.hands), tuple(rules.monomino_last), rules.out, rules.color)
    return [("".join(read(cells)), *rest) for read in _readers(config)]


def _moves(config: Config, position: Any, action: int) -> list[Hashable]:
    del position
    return list(action_images(config, action))


@cache
def _readers(config: Config) -> list[Callable[[list[str]], tuple[str, ...]]]:
    """Return a function for each symmetry, which reads the cells of a board in the order of its image."""
    cells = [(x, y) for y in range(config.size) for x in range(config.size)]
    readers: list[Callable[[list[str]], tuple[str, ...]]] = []
    for rotation in symmetries(config):
        sources = [0] * config.cells
        for cell, image in zip(cells, images(config, cells, rotation), strict=True):
            sources[config.bit(image)] = config.bit(cell)
        readers.append(itemgetter(*sources))
    return readers


@cache
def action_images(config: Config, action: int) -> tuple[int, ...]:
    """Return the id of an action on the board after each symmetry."""
    if not config.is_placement(action):
        return (action,) * len(symmetries(config))
    result = []
    for rotation in symmetries(config):
        cells = images(config, cells_of(config, action), rotation)
        anchor = min(x for x, _ in cells), min(y for _, y in cells)
        result.append(ORIENTATION_OF_CELLS[normalize(cells)] * config.cells + config.bit(anchor))
    return tuple(result)
