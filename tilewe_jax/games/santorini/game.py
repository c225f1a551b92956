"""Santorini as a ``Game``."""

from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, PRNGKeyArray, UInt8
from numpy.typing import NDArray

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.chance import Chance
from tilewe_jax.game import Action, ActionLike, Game, Policy, as_action, check_state
from tilewe_jax.games.santorini import heuristics, host_heuristics, lookahead, observation, policies, rules, symmetry
from tilewe_jax.games.santorini.chance import RandomWorkers
from tilewe_jax.games.santorini.config import VERSION, Cell, Config
from tilewe_jax.games.santorini.host import SYMBOLS, Move, SantoriniBoard
from tilewe_jax.games.santorini.rules import State
from tilewe_jax.games.santorini.setup import checked, position_format
from tilewe_jax.host import HostDraws, PositionFormat, is_position, uniform_below
from tilewe_jax.lanes import random_words, rule_per_lane

_state_of = jax.jit(rules.state_of, static_argnums=0)


@dataclass(frozen=True)
class SantoriniGame(Game[State]):
    """Santorini on n x n cells.

    A turn has the action id ``64 * worker + 8 * move + build``: worker 0 or 1 of the player to move, and two directions NW, N,
    NE, W, E, SW, S, SE, the build relative to the new cell of the worker. With ``placement="chosen"``, the action ``128 + row *
    size + column`` places a worker. Cells are (row, column) from the top left.

    >>> import jax
    >>> game = SantoriniGame(Config(size=5))
    >>> state = game.init(jax.random.key(0))
    >>> int(game.num_legal(state))
    68
    >>> action = game.action_of_name("c4-d4*e3", state)
    >>> game.action_of((1, 2), (1, 3), (2, 4), state=state) == action
    True
    >>> print(game.text(game.step(state, action)))  # doctest: +NORMALIZE_WHITESPACE
     5  .   .   .   .   .
     4  .   .   .   O   .
     3  .   X   .   Y   .1
     2  .   .   U   .   .
     1  .   .   .   .   .
        a   b   c   d   e
    player 2 (X Y) to move
    """

    config: Config
    """The settings."""

    version = VERSION

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
        return rules.init(self.config, key)

    def apply(self, state: State, action: Action) -> State:
        check_state(self, state)
        # Without materialization, XLA would recompute the action and half of the rest for each word of the turns.
        return rule_per_lane(rules.apply, self.config, materialized=True)(state, as_action(action))

    def is_legal(self, state: State, action: ActionLike) -> Bool[Array, ""]:
        check_state(self, state)
        return rules.is_legal(self.config, state, as_action(action))

    def legal_action_mask(self, state: State) -> Bool[Array, "num_actions"]:
        check_state(self, state)
        return rules.legal_action_mask(self.config, state)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        return rules.sample_action(self.config, state, random_words(key, 1)[0])

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        sample = rule_per_lane(rules.sample_actions, self.config, materialized=True, count=k)
        return sample(state, random_words(key, 1)[0])

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Weighted sums of ``heuristics.LOGIT_FEATURES``."""
        logit = rule_per_lane(heuristics.heuristic_logits, self.config, materialized=True)
        return jax.vmap(logit, in_axes=(None, 0))(state, actions)

    def heuristic_features(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k features"]:
        """The features of ``heuristic_logits``, see ``heuristics``."""

        def features(state: State, action: Action) -> Float32[Array, "features"]:
            return jnp.stack(heuristics.logit_features(self.config, rules.apply(self.config, state, action)))

        return jax.vmap(features, in_axes=(None, 0))(state, actions)

    @property
    def heuristic_weights(self) -> dict[str, tuple[float, ...]]:
        """The weights of ``heuristic_features`` by name."""
        return {name: (weight,) for name, weight in host_heuristics.LOGIT_WEIGHTS.items()}

    def heuristic_value(self, state: State) -> Float32[Array, "2"]:
        """Value from heights, mobility and threats, see ``heuristics``."""
        return heuristics.heuristic_value(self.config, state)

    def chance(self) -> Chance:
        return Chance(self) if self.fixed_start else RandomWorkers(self)

    @property
    def has_lookahead(self) -> bool:
        return True

    def outcomes_of_actions(self, state: State, actions: Int32[Array, "k"]) -> Int32[Array, "k"]:
        """Proven wins and losses within three turns after an action, see ``lookahead``."""
        outcome = rule_per_lane(lookahead.outcome_of_action, self.config, materialized=True)
        return jax.vmap(outcome, in_axes=(None, 0))(state, actions)

    def policies(self) -> dict[str, Policy]:
        """The players ``random``, ``greedy`` and ``one_ply``, see ``policies``."""
        return {**super().policies(), **policies.policies(self.config)}

    @property
    def quick_policy(self) -> str:
        return "one_ply"

    def characters(self, state: State) -> UInt8[Array, "cells"]:
        """Digits: the height of a cell, or 5 and 6 for the workers of the two players."""
        pieces, heights = rules.board_of(self.config, state)
        player = jnp.where(pieces > 0, state.current_player, 1 - state.current_player)
        digits = jnp.where(pieces != 0, 5 + player, heights.astype(jnp.int32))
        return (ord("0") + digits).astype(jnp.uint8)[::-1].ravel()

    def current_player(self, state: State) -> Int32[Array, ""]:
        return state.current_player

    def is_terminal(self, state: State) -> Bool[Array, ""]:
        return rules.is_terminal(self.config, state)

    def scores(self, state: State) -> Int32[Array, "2"]:
        """1 for the winner, otherwise 0. At the end the player to move has lost."""
        return ((jnp.arange(2, dtype=jnp.int32) != state.current_player) & self.is_terminal(state)).astype(jnp.int32)

    def returns(self, state: State) -> Float32[Array, "2"]:
        return self.scores(state).astype(jnp.float32)

    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
        """Binary planes ``[channel, row, column]`` from the perspective of ``player``, see ``channel_names``."""
        check_state(self, state)
        return observation.observe(self.config, state, jnp.asarray(player, jnp.int32))

    def encode(self, state: State) -> Float32[Array, "planes size size"]:
        """Binary planes for networks, including the possible moves of both players, see ``observation.ENCODED_PLANES``."""
        return observation.encode(self.config, state)

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Names of the planes of ``observe``."""
        return observation.CHANNEL_NAMES

    def board_of(self, state: State) -> Int8[Array, "2 size size"]:
        """Pieces and heights. The workers of the first player are 1 and 2, those of the second player -1 and -2."""
        pieces, heights = rules.board_of(self.config, state)
        return jnp.stack([jnp.where(state.current_player == 0, pieces, -pieces), heights])

    def canonical_board_of(self, state: State) -> Int8[Array, "2 size size"]:
        """Like ``board_of``, with 1 and 2 for the player to move, -1 and -2 for the opponent."""
        return rules.board_of(self.config, state)

    def state_of(self, board: SantoriniBoard | Any, player: int = 1) -> State:
        """The state of a board, the inverse of ``board_of`` and of ``host``. Runs on the host.

        Args:
          board: a ``SantoriniBoard``, or an integer array of shape ``(2, n, n)`` as returned by ``board_of``.
          player: the player to move, 1 or -1; only used with an array.

        Raises ``ValueError`` for a position that is invalid or impossible in this game.
        """
        if not isinstance(board, SantoriniBoard):
            board = SantoriniBoard.from_array(board, player)
        array = checked(self.config, board).to_array()
        array[0] *= board.player
        state: State = _state_of(self.config, jnp.asarray(array), jnp.int32(0 if board.player == 1 else 1))
        return state

    @property
    def host_draws(self) -> HostDraws:
        return HostDraws(_sample, _sample, lambda key: random_words(key, 1)[0])

    @property
    def positions(self) -> PositionFormat:
        return position_format(self.config)

    def host(self, state: State) -> SantoriniBoard:
        """Convert a state to a ``SantoriniBoard``."""
        check_state(self, state)
        state = jax.device_get(state)
        player = 1 - 2 * int(state.current_player)
        levels = [sum(int(word) << WORD_BITS * i for i, word in enumerate(level.words)) for level in state.levels]
        size, bit = self.config.size, self.config.bit
        heights = tuple(tuple(sum(level >> bit((r, c)) & 1 for level in levels) for c in range(size)) for r in range(size))
        first, second, third, fourth = (
            self._cell(int(worker)) for worker in (state.workers if player == 1 else state.workers[2:] + state.workers[:2])
        )
        return SantoriniBoard(heights, (first, second, third, fourth), player)

    def action_of(self, start: Cell, to: Cell | None = None, build: Cell | None = None, *, state: State) -> int:
        """The action id of a legal move given by its cells. Runs on the host.

        Args:
          start: the cell of the worker that moves; as the only cell, the cell of a placement.
          to: the cell to move to.
          build: the cell to build on.
          state: the position.

        Raises ``IllegalActionError``.
        """
        return self.host(state).action([cell for cell in (start, to, build) if cell is not None])

    def describe(self, state: State, action: int) -> Move:
        """The cells of a legal action, ``Turn(start, to, build)`` or ``Place(cell)``. Raises ``IllegalActionError``."""
        return self.host(state).move(int(action))

    def action_name(self, action: int, state: State) -> str:
        """The name of a legal action, such as ``c3-b2*b3``, see ``SantoriniBoard.name``. Raises ``IllegalActionError``."""
        return self.host(state).action_name(int(action))

    def action_of_name(self, name: str, state: State) -> int:
        """The inverse of ``action_name``. Raises ``IllegalActionError`` for an illegal action or an invalid name."""
        return self.host(state).action_of_name(name)

    @property
    def num_symmetries(self) -> int:
        """Number of symmetries, see ``symmetry``."""
        return symmetry.num_symmetries(self.config)

    def transform(self, state: State, index: Int32[Array, ""] | int) -> State:
        """Apply symmetry ``index``, see ``symmetry``."""
        return symmetry.transform(self.config, state, jnp.asarray(index, jnp.int32))

    @property
    def action_symmetries(self) -> NDArray[np.int32]:
        return symmetry.action_symmetries(self.config)

    def text(self, state: State, color: bool = False, symbols: str = SYMBOLS) -> str:
        """The position as text, see ``SantoriniBoard.text``."""
        return self.host(state).text(color, symbols)

    def svg(self, state: State) -> str:
        return self.host(state).svg()

    def deal(self, state: State) -> Any:
        """The cells of the workers, ``[[row, column], ...]``, for a random placement; otherwise ``None``."""
        if self.config.placement != "random":
            return None
        return [list(cell) for worker in state.workers if (cell := self._cell(int(worker)))]

    def init_from_deal(self, deal: Any) -> State:
        if self.config.placement != "random" or is_position(deal):
            return super().init_from_deal(deal)
        return self.state_of(SantoriniBoard.from_deal(self.config, deal))

    def _cell(self, worker: int) -> Cell | None:
        row, column = divmod(worker, self.config.stride)
        return (row, column) if row >= 0 else None


def _sample(position: SantoriniBoard, word: int) -> int:
    """``rules.sample_action`` of a host position."""
    legal = position.legal_actions()
    return legal[uniform_below(word, len(legal))] if legal else -1


@wraps(Config, updated=())
def _make(**options: Any) -> SantoriniGame:
    return SantoriniGame(Config(**options))


GAMES = {"santorini": _make}
"""Factories of games by id."""
