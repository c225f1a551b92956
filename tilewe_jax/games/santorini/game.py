"""Santorini as a ``Game``."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.game import Action, Game, Policy, as_action
from tilewe_jax.games.santorini import observation, policies, rules, symmetry
from tilewe_jax.games.santorini.config import Cell, Config, Placement
from tilewe_jax.games.santorini.host import SYMBOLS, Move, SantoriniBoard
from tilewe_jax.games.santorini.rules import State
from tilewe_jax.lanes import materialize, per_lane, random_words
from tilewe_jax.render.svg import grid

_HEIGHTS = ("#f4f2ee", "#d9d2c4", "#b8ab93", "#92815f", "#2f5f9e")
_DISCS = ("#d9443f", "#f0c02c")
_state_of = jax.jit(rules.state_of, static_argnums=0)


@dataclass(frozen=True)
class SantoriniGame(Game[State]):
    """Santorini on n x n cells, by ``config``.

    Actions are turns, ``64 * worker + 8 * move + build``: worker 0 or 1 of the player to move, and directions NW, N, NE, W, E,
    SW, S, SE, that of the build counted from the cell moved to; and, where workers are placed by the players, cells,
    ``128 + row * size + column``. Cells are (row, column) from the top left.
    """

    config: Config

    version = 1

    @property
    def id(self) -> str:
        return "santorini"

    @property
    def options(self) -> dict[str, Any]:
        given = {"size": self.config.size, "placement": self.config.placement}
        return {name: value for name, value in given.items() if value != getattr(Config, name)}

    @property
    def num_players(self) -> int:
        return 2

    @property
    def num_actions(self) -> int:
        return self.config.num_actions

    @property
    def max_steps(self) -> int:
        return self.config.max_steps

    @property
    def fixed_start(self) -> bool:
        return self.config.placement != "random"

    def init(self, key: PRNGKeyArray) -> State:
        return rules.initial(self.config, key)

    def apply(self, state: State, action: Action) -> State:
        # Materialized, or the action and half of the rest would be computed again for each word of the turns.
        return per_lane(partial(materialize, partial(rules.apply, self.config)))(state, as_action(action))

    def is_legal(self, state: State, action: Action) -> Bool[Array, ""]:
        return rules.is_legal(self.config, state, as_action(action))

    def legal_actions(self, state: State) -> Bool[Array, "num_actions"]:
        return rules.legal_actions(self.config, state)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        return rules.sample(self.config, state, random_words(key, 1)[0])

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        several = partial(materialize, partial(rules.several, self.config, count=k))
        return per_lane(several)(state, random_words(key, 1)[0])

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """A win first, a loss in one last, and else as ``one_ply`` has it."""
        look = per_lane(partial(materialize, partial(policies.heuristic_logits, self.config)))
        return jax.vmap(look, in_axes=(None, 0))(state, actions)

    def heuristic_value(self, state: State) -> Float32[Array, "2"]:
        """By the levels under the workers, and by who can win at once."""
        return policies.heuristic_value(self.config, state)

    def policies(self) -> dict[str, Policy]:
        """``random``, ``greedy`` and ``one_ply``, see ``policies``."""
        return {**super().policies(), **policies.policies(self.config)}

    def current_player(self, state: State) -> Int32[Array, ""]:
        return state.current_player

    def is_terminal(self, state: State) -> Bool[Array, ""]:
        return rules.is_over(self.config, state)

    def scores(self, state: State) -> Int32[Array, "2"]:
        """1 for the winner, else 0. At the end the player to move has lost."""
        return ((jnp.arange(2) != state.current_player) & self.is_terminal(state)).astype(jnp.int32)

    def returns(self, state: State) -> Float32[Array, "2"]:
        return self.scores(state).astype(jnp.float32)

    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
        """Binary planes from the seat of ``player``; ``channel_names`` tells what each shows."""
        return observation.observe(self.config, state, jnp.asarray(player, jnp.int32))

    @property
    def channel_names(self) -> tuple[str, ...]:
        """What each plane of ``observe`` shows."""
        return observation.CHANNEL_NAMES

    def board_of(self, state: State) -> Int8[Array, "2 size size"]:
        """Pieces and heights. The first player's workers are 1 and 2, the second's -1 and -2."""
        pieces, heights = rules.board_of(self.config, state)
        return jnp.stack([jnp.where(state.current_player == 0, pieces, -pieces), heights])

    def canonical_board_of(self, state: State) -> Int8[Array, "2 size size"]:
        """Pieces and heights. The workers of the player to move are 1 and 2, the other's -1 and -2."""
        return rules.board_of(self.config, state)

    def state_of(self, board: SantoriniBoard | Any, player: int = 1) -> State:
        """The state with this board, as ``board_of`` gives it, and 1 or -1 to move; on the host.

        Raises ``ValueError`` where that is no position of this game.
        """
        if not isinstance(board, SantoriniBoard):
            board = SantoriniBoard.from_array(board, player)
        if board.size != self.config.size:
            raise ValueError(f"this game has a board of {self.config.size} x {self.config.size}, not {board.size}")
        if board.placing and self.config.placement != "chosen":
            raise ValueError(f"a position of this game has four workers, not {4 - board.workers.count(None)}")
        array = board.to_array()
        array[0] *= board.player
        state: State = _state_of(self.config, jnp.asarray(array), jnp.int32(0 if board.player == 1 else 1))
        return state

    def host(self, state: State) -> SantoriniBoard:
        """The same position for Python; on the host."""
        player = 1 - 2 * int(state.current_player)
        levels = [sum(int(word) << WORD_BITS * i for i, word in enumerate(level.words)) for level in state.levels]
        size, bit = self.config.size, self.config.bit
        heights = tuple(tuple(sum(level >> bit((r, c)) & 1 for level in levels) for c in range(size)) for r in range(size))
        first, second, third, fourth = map(self._cell, state.workers if player == 1 else state.workers[2:] + state.workers[:2])
        return SantoriniBoard(heights, (first, second, third, fourth), player)

    def action_of(self, start: Cell, to: Cell | None = None, build: Cell | None = None, *, state: State) -> int:
        """The action of the worker on ``start`` that moves and builds, or of placing a worker on ``start``; on the host.

        Raises ``IllegalMoveError``, a ``ValueError``, where that is illegal, and says what rule it is against.
        """
        return self.host(state).action([cell for cell in (start, to, build) if cell is not None])

    def describe(self, state: State, action: int) -> Move:
        """The cells of a legal action, ``Turn(start, to, build)`` or ``Place(cell)``; on the host.

        Raises ``ValueError`` where it is illegal.
        """
        return self.host(state).move(int(action))

    def action_name(self, action: int, state: State) -> str:
        """A legal action for people: ``c3-b2*b3`` goes from c3 to b2 and builds on b3, ``c3`` places a worker; on the host.

        Columns are letters from the left, rows numbers from the bottom. Raises ``ValueError`` where it is illegal.
        """
        board = self.host(state)
        return board.name(board.move(int(action)))

    def action_of_name(self, name: str, state: State) -> int:
        """The inverse of ``action_name``. Raises ``IllegalMoveError`` where it is illegal, or no name."""
        return self.host(state).action(name)

    @property
    def num_symmetries(self) -> int:
        """Number of symmetries, see ``symmetry``; those that exchange workers are none while workers are being placed."""
        return symmetry.OF_BOARD if self.config.placement == "chosen" else symmetry.COUNT

    def transform(self, state: State, index: Int32[Array, ""] | int) -> State:
        """The state seen through a symmetry."""
        return symmetry.transform(self.config, state, jnp.asarray(index, jnp.int32))

    @property
    def action_symmetries(self) -> NDArray[np.int32]:
        """``int32[32, num_actions]``: what each action becomes when the state is transformed."""
        return symmetry.actions(self.config)[: self.num_symmetries]

    def text(self, state: State, color: bool = False, symbols: str = SYMBOLS) -> str:
        """The position for people; ``symbols`` stand for workers 1 and 2 of the first player, then of the second."""
        return self.host(state).text(symbols, color)

    def svg(self, state: State) -> str:
        board = self.host(state)
        last = board.size - 1
        cells = {(x, y): _HEIGHTS[board.height((last - y, x))] for x in range(board.size) for y in range(board.size)}
        discs = {
            (cell[1], last - cell[0]): (_DISCS[index // 2], str(index % 2 + 1))
            for index, cell in enumerate(board.workers)
            if cell is not None
        }
        legend = [(color, f"player {index + 1}") for index, color in enumerate(_DISCS)]
        legend += [(color, "dome" if level == 4 else f"level {level}") for level, color in enumerate(_HEIGHTS) if level]
        return grid(board.size, cells, [chr(ord("a") + x) for x in range(board.size)], legend, discs)

    def deal(self, state: State) -> Any:
        """The cells of the workers where chance placed them, ``[[row, column], ...]``."""
        if self.config.placement != "random":
            return None
        return [list(cell) for worker in state.workers if (cell := self._cell(worker))]

    def init_from_deal(self, deal: Any) -> State:
        if self.config.placement != "random":
            return super().init_from_deal(deal)
        empty = ((0,) * self.config.size,) * self.config.size
        try:
            first, second, third, fourth = ((int(row), int(column)) for row, column in deal)
        except (TypeError, ValueError):
            raise ValueError(f"a deal is the cells of four workers, [[row, column], ...], not {deal!r}") from None
        return self.state_of(SantoriniBoard(empty, (first, second, third, fourth)))

    def _cell(self, worker: Int32[Array, ""]) -> Cell | None:
        row, column = divmod(int(worker), self.config.stride)
        return (row, column) if row >= 0 else None


def _make(size: int = 5, placement: Placement = "default") -> SantoriniGame:
    """Santorini on n x n cells: workers move and build, and win on level 3."""
    return SantoriniGame(Config(size, placement))


GAMES = {"santorini": _make}
"""What makes the game, by name."""
