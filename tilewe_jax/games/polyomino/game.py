"""The polyomino placing games as a ``Game``, and the variants."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, wraps
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt32
from numpy.typing import NDArray

from tilewe_jax.bits import popcount, unpack_words
from tilewe_jax.game import Action, Game, Policy, as_action
from tilewe_jax.games.polyomino import heuristics, observation, rules, symmetry
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import (
    ORIENTATION_OF_CELLS,
    ORIENTATIONS,
    PIECE_CELLS,
    PIECE_NAMES,
    ROTATION_NAMES,
    Cell,
    normalize,
    rotate,
)
from tilewe_jax.games.polyomino.policies import engines
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.games.polyomino.variants import VARIANTS, options_of
from tilewe_jax.lanes import per_lane, random_words
from tilewe_jax.render.svg import grid

T = TypeVar("T")

COLORS = ("blue", "yellow", "red", "green")
_ANSI = ("94", "93", "91", "92")
_FILL = ("#3b6fd4", "#f0c02c", "#d9443f", "#3fa45b")
_NAME = re.compile(r"([A-Z]\d)([nesw]f?)-([a-z]+)(\d+)([a-z]+)(\d+)")


@dataclass(frozen=True)
class PolyominoGame(Game[State]):
    """A polyomino placing game: Tilewe, the Duos, and the classic game, by ``config``.

    Actions are placements, ``(orientation * size + y) * size + x`` with (x, y) the bottom left of the piece's bounding box
    and (0, 0) the bottom left of the board; and, with ``voluntary_pass``, the pass ``num_actions - 1``.
    """

    config: Config

    version = 1

    @property
    def id(self) -> str:
        return self.config.name

    @property
    def options(self) -> dict[str, Any]:
        return options_of(self.config)

    @property
    def num_players(self) -> int:
        return self.config.players

    @property
    def num_actions(self) -> int:
        return self.config.num_placements + self.config.voluntary_pass

    @property
    def max_steps(self) -> int:
        return self.config.players * (len(self.config.pieces) + self.config.voluntary_pass)

    @property
    def fixed_start(self) -> bool:
        return True

    @cached_property
    def _initial(self) -> dict[str, np.ndarray]:
        return rules.initial(self.config)

    def init(self, key: PRNGKeyArray) -> State:
        del key
        return State(**{name: jnp.asarray(value) for name, value in self._initial.items()})

    def apply(self, state: State, action: Action) -> State:
        return _lanes(rules.apply, self.config)(state, as_action(action))

    def apply_deferred(self, state: State, action: Action) -> State:
        return _lanes(rules.apply_deferred, self.config)(state, as_action(action))

    def resolve_passes(self, state: State) -> State:
        return _lanes(rules.resolve_passes, self.config)(state)

    def is_legal(self, state: State, action: Action) -> Bool[Array, ""]:
        return _lanes(rules.legal, self.config)(state, as_action(action))

    def placements(self, state: State) -> UInt32[Array, "orientations words"]:
        """The legal placements, packed: for each of the 91 orientations the board of its anchors, bit ``y * size + x``."""
        return _lanes(rules.placements, self.config)(state)

    def legal_actions(self, state: State) -> Bool[Array, "num_actions"]:
        anchors = jax.vmap(lambda words: unpack_words(words, self.config.cells))(self.placements(state)).ravel()
        if not self.config.voluntary_pass:
            return anchors
        return jnp.append(anchors, ~self.is_terminal(state))

    def num_legal(self, state: State) -> Int32[Array, ""]:
        placements = jnp.sum(state.legal_counts, dtype=jnp.int32)
        return placements + (self.config.voluntary_pass & (placements > 0)).astype(jnp.int32)

    def legal_list(self, state: State, size: int) -> Int32[Array, "size"]:
        """The legal actions ascending, then -1; the highest ones are missing where there are more than ``size``."""
        return jnp.flatnonzero(self.legal_actions(state), size=size, fill_value=-1).astype(jnp.int32)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        return _lanes(rules.sample, self.config)(state, random_words(key, 1)[0])

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        return _lanes(rules.several, self.config, count=k)(state, random_words(key, 1)[0])

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """By the signs of ``heuristics``."""
        return _lanes(heuristics.heuristic_logits, self.config)(state, actions)

    def heuristic_value(self, state: State) -> Float32[Array, "players"]:
        """By the scores."""
        return heuristics.heuristic_value(self.scores(state))

    @property
    def num_symmetries(self) -> int:
        """Those of the board that leave start cells where they are, see ``symmetry``."""
        return len(symmetry.symmetries(self.config))

    def transform(self, state: State, index: Int32[Array, ""] | int) -> State:
        occupied = symmetry.turned(self.config, state.occupied, jnp.asarray(index, jnp.int32))
        counts = _lanes(rules.legal_counts, self.config)(occupied, state.hands, state.current_player, state.out)
        return replace(state, occupied=occupied, legal_counts=counts)

    @property
    def action_symmetries(self) -> NDArray[np.int32]:
        return symmetry.actions(self.config)

    def policies(self) -> dict[str, Policy]:
        """The engines of the package ``tilewe``, see ``engines``."""
        return engines(self.config)

    def current_player(self, state: State) -> Int32[Array, ""]:
        return state.current_player

    def is_terminal(self, state: State) -> Bool[Array, ""]:
        return jnp.all(state.out)

    def scores(self, state: State) -> Int32[Array, "players"]:
        """Cells placed, and the bonuses where the variant has them."""
        cells = rules.cells_placed(self.config, state.hands)
        bonus = self.config.bonus_all + self.config.bonus_monomino_last * state.monomino_last.astype(jnp.int32)
        return cells + jnp.where(state.hands == 0, bonus, 0)

    def returns(self, state: State) -> Float32[Array, "players"]:
        scores = self.scores(state)
        if self.num_players == 1:
            share = scores.astype(jnp.float32) / self.config.max_score
        else:
            best = scores == jnp.max(scores)
            share = best.astype(jnp.float32) / jnp.sum(best, dtype=jnp.int32).astype(jnp.float32)
        return jnp.where(self.is_terminal(state), share, 0.0)

    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
        """Binary planes from the seat of ``player``; ``channel_names`` tells what each shows."""
        return observation.observe(self.config, state, jnp.asarray(player, jnp.int32))

    @property
    def channel_names(self) -> tuple[str, ...]:
        """What each plane of ``observe`` shows."""
        return observation.channel_names(self.config)

    def void_tiles(self, state: State, player: int | Int32[Array, ""]) -> Int32[Array, ""]:
        """Number of empty cells with an edge in common with a cell of ``player`` (a figure of the Duo visualizer)."""
        own = self._dense(state)[player]
        beside = jnp.zeros_like(own).at[1:].set(own[:-1])
        beside = beside.at[:-1].set(beside[:-1] | own[1:])
        beside = beside.at[:, 1:].set(beside[:, 1:] | own[:, :-1])
        beside = beside.at[:, :-1].set(beside[:, :-1] | own[:, 1:])
        return jnp.sum(beside & ~jnp.any(self._dense(state), axis=0), dtype=jnp.int32)

    def empty_tiles(self, state: State) -> Int32[Array, ""]:
        """Number of cells that nobody has covered."""
        return self.config.cells - jnp.sum(popcount(state.occupied), dtype=jnp.int32)

    def remaining_pieces(self, state: State, player: int) -> list[str]:
        """Names of the pieces that ``player`` has not placed; on the host."""
        hand = int(state.hands[player])
        return [name for piece, name in enumerate(PIECE_NAMES) if hand >> piece & 1]

    def _dense(self, state: State) -> Bool[Array, "players y x"]:
        cells = jax.vmap(lambda words: unpack_words(words, self.config.cells))(state.occupied)
        return cells.reshape(-1, self.config.size, self.config.size)

    def action_of(self, cells: Iterable[Cell]) -> int:
        """The placement that covers these (x, y) cells; on the host.

        Raises ``ValueError`` where they are no piece of the game, or not on the board.
        """
        cells = list(cells)
        orientation = ORIENTATION_OF_CELLS.get(normalize(cells)) if cells else None
        if orientation is None or orientation not in self.config.orientations or len(set(cells)) != len(cells):
            raise ValueError(f"{cells} is not the shape of a piece; the pieces are {' '.join(self._piece_names)}")
        x, y = min(x for x, _ in cells), min(y for _, y in cells)
        return self._placement(orientation, (x, y))

    def cells_of(self, action: int) -> tuple[Cell, ...]:
        """The (x, y) cells that a placement covers, row by row from the bottom; on the host. Raises ``ValueError``."""
        orientation, (x, y) = self._split(action)
        return tuple((x + dx, y + dy) for dx, dy in ORIENTATIONS[orientation].cells)

    def piece_of(self, action: int) -> str:
        """The name of the piece that a placement uses; on the host. Raises ``ValueError``."""
        return PIECE_NAMES[ORIENTATIONS[self._split(action)[0]].piece]

    def action_names(self, action: int) -> tuple[str, ...]:
        """The names of an action, one a contact of the piece, the canonical first; on the host. Raises ``ValueError``.

        A name is piece, rotation, dash, contact, cell: ``W5n-a1c3`` lays W5 north so that its cell a1 comes to lie on c3.
        """
        if self._is_pass(action):
            return ("pass",)
        index, (x, y) = self._split(action)
        orientation = ORIENTATIONS[index]
        return tuple(
            f"{orientation.name}-{cell_name((dx, dy))}{cell_name((x + dx, y + dy))}" for dx, dy in orientation.contacts
        )

    def action_name(self, action: int, state: State | None = None) -> str:
        """The canonical name of an action, ``W5n-a1c3``, the same in every state; on the host. Raises ``ValueError``."""
        return self.action_names(action)[0]

    def action_of_name(self, name: str) -> int:
        """The action of this name; any rotation and any cell of the piece will do. Raises ``ValueError``."""
        if name == "pass" and self.config.voluntary_pass:
            return self.num_actions - 1
        match = _NAME.fullmatch(name)
        if not match or match[1] not in PIECE_NAMES:
            raise ValueError(f"{name!r} is no move; moves are written like W5n-a1c3 (piece, rotation, contact, cell)")
        piece = PIECE_NAMES.index(match[1])
        cells = rotate(PIECE_CELLS[piece], ROTATION_NAMES.index(match[2]))
        contact, to = parse_cell(match[3] + match[4]), parse_cell(match[5] + match[6])
        orientation = ORIENTATION_OF_CELLS[cells]
        if contact not in cells or orientation not in self.config.orientations:
            raise ValueError(f"{name!r}: {match[1]}{match[2]} has no cell {match[3]}{match[4]} or is not in this game")
        return self._placement(orientation, (to[0] - contact[0], to[1] - contact[1]))

    def text(self, state: State, color: bool = False) -> str:
        board = [["."] * self.config.size for _ in range(self.config.size)]
        for player, dense in enumerate(np.asarray(self._dense(state))):
            for y, x in np.argwhere(dense):
                board[y][x] = _mark(player, color)
        rows = [f"{y + 1:2d} {' '.join(board[y])}" for y in reversed(range(self.config.size))]
        rows.append("   " + " ".join(self._column(x)[-1] for x in range(self.config.size)))
        scores = self.scores(state)
        for player in range(self.num_players):
            rows.append(f"{_mark(player, color)} {int(scores[player]):3d} {' '.join(self.remaining_pieces(state, player))}")
        over = bool(self.is_terminal(state))
        rows.append("game over" if over else f"{COLORS[int(state.current_player)]} to move")
        return "\n".join(rows)

    def svg(self, state: State) -> str:
        cells = {
            (int(x), int(y)): _FILL[player]
            for player, dense in enumerate(np.asarray(self._dense(state)))
            for y, x in np.argwhere(dense)
        }
        scores = self.scores(state)
        legend = [
            (_FILL[player], f"{COLORS[player]} {int(scores[player])}, left: {' '.join(self.remaining_pieces(state, player))}")
            for player in range(self.num_players)
        ]
        return grid(self.config.size, cells, [self._column(x) for x in range(self.config.size)], legend)

    def _column(self, x: int) -> str:
        return cell_name((x, 0)).rstrip("1")

    @property
    def _piece_names(self) -> Sequence[str]:
        return [PIECE_NAMES[piece] for piece in self.config.pieces]

    def _is_pass(self, action: int) -> bool:
        return self.config.voluntary_pass and action == self.num_actions - 1

    def _split(self, action: int) -> tuple[int, Cell]:
        if not 0 <= action < self.config.num_placements:
            raise ValueError(f"{action} is not a placement; placements are 0 to {self.config.num_placements - 1}")
        orientation, cell = divmod(int(action), self.config.cells)
        anchor = (cell % self.config.size, cell // self.config.size)
        if orientation not in self.config.orientations or not self.config.fits(ORIENTATIONS[orientation], anchor):
            raise ValueError(f"{action} ({ORIENTATIONS[orientation].name} at {cell_name(anchor)}) does not lie on the board")
        return orientation, anchor

    def _placement(self, orientation: int, anchor: Cell) -> int:
        if not self.config.fits(ORIENTATIONS[orientation], anchor):
            raise ValueError(
                f"{ORIENTATIONS[orientation].name} with its corner at {anchor} does not lie on the board"
                f" of {self.config.size} x {self.config.size}"
            )
        return orientation * self.config.cells + self.config.bit(anchor)


def _lanes(rule: Callable[..., T], config: Config, **settings: int) -> Callable[..., T]:
    """A rule for lanes as a function of one game."""
    return cast(Callable[..., T], _cached(rule, config, **settings))


@cache
def _cached(rule: Callable[..., Any], config: Config, **settings: int) -> Callable[..., Any]:
    # The same function each time, so that JAX traces it once for each shape.
    return per_lane(partial(rule, config, **settings))


def cell_name(cell: Cell) -> str:
    """(0, 0) as ``a1``; columns after z are aa, ab, and so on."""
    x, y = cell
    letters = chr(ord("a") + x % 26)
    return ("a" * (x // 26)) + letters + str(y + 1)


def parse_cell(name: str) -> Cell:
    """The inverse of ``cell_name``."""
    letters, digits = name.rstrip("0123456789"), name.lstrip("abcdefghijklmnopqrstuvwxyz")
    return 26 * (len(letters) - 1) + ord(letters[-1]) - ord("a"), int(digits) - 1


def _mark(player: int, color: bool) -> str:
    letter = COLORS[player][0].upper()
    return f"\x1b[{_ANSI[player]}m{letter}\x1b[0m" if color else letter


def _maker(variant: Callable[..., Config]) -> Callable[..., PolyominoGame]:
    @wraps(variant)
    def make(**options: Any) -> PolyominoGame:
        return PolyominoGame(variant(**options))

    return make


GAMES = {name: _maker(variant) for name, variant in VARIANTS.items()}
"""For each variant what makes it; options and documentation are those of the variant."""
