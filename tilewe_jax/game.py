"""The ``Game`` contract: the functions that every game defines, and the functions derived from them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar, final, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt8
from numpy.typing import NDArray

from tilewe_jax.bits import systematic_sample
from tilewe_jax.chance import Chance
from tilewe_jax.device_position import DevicePosition
from tilewe_jax.draw.pictures import draw
from tilewe_jax.endings import Endings, GameEndings
from tilewe_jax.host import POSITION, HostDraws, HostPosition, PositionFormat, is_position, require_no_deal
from tilewe_jax.lanes import random_words
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.boundaries import array, check_result, check_tree, name_of
from tilewe_jax.utils.checks import action_id
from tilewe_jax.utils.loops import while_loop

State = TypeVar("State")
Action = Int32[Array, ""]
"""An action id."""
ActionLike = Action | int
"""An action id, also as a Python integer."""
Policy = Callable[[Any, PRNGKeyArray], Action]
"""A function ``(state, key) -> action``. Never called with deferred passes (``Game.apply_deferred``)."""
IndexedPolicy = Callable[[Int32[Array, ""], Any, PRNGKeyArray], Action]
"""Several policies as one function ``(policy_index, state, key) -> action``."""


@runtime_checkable
class SharingPolicy(Protocol):
    """A policy whose class can combine several policies into one program, so that they are compiled in the time of one."""

    def __call__(self, state: Any, key: PRNGKeyArray) -> Action:
        """Choose an action."""
        ...

    @staticmethod
    def together(policies: Sequence[Any]) -> IndexedPolicy:
        """Combine policies of this class, all for the same game, into one function."""
        ...


def as_action(action: ActionLike) -> Action:
    """Convert one action id to an int32 scalar; integers outside of the range of int32 become -1, which is never legal.

    Raises ``TypeError`` for values that are not integers, ``ValueError`` for arrays that are not scalars.
    """
    if not isinstance(action, jax.Array) and np.shape(action) == ():
        number = action_id(action)
        return jnp.asarray(number if -1 <= number <= _MAX_ACTION else -1, jnp.int32)
    array: Any = action if isinstance(action, jax.Array) else np.asarray(action)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"an action must be one integer, got {array.dtype}{list(array.shape)}")
    if array.shape != ():
        raise ValueError(f"an action must be one integer, got the shape {array.shape}; jax.vmap takes many actions")
    return as_action_ids(array)


def chosen_by(policy: Policy, state: Any, key: PRNGKeyArray) -> Action:
    """Call a user-supplied policy and convert its action with ``as_action``. Error messages name the policy."""
    action = policy(state, key)
    try:
        return as_action(action)
    except (TypeError, ValueError) as error:
        raise type(error)(f"result of the policy {name_of(policy)}: {error}") from None


def as_action_ids(actions: Array) -> Array:
    """Convert integers of any dtype to int32. Values outside of the range of int32 become -1 instead of wrapping around."""
    if jnp.iinfo(actions.dtype).max > _MAX_ACTION:
        is_inside = actions <= actions.dtype.type(_MAX_ACTION)
        if jnp.issubdtype(actions.dtype, jnp.signedinteger):
            is_inside = is_inside & (actions >= actions.dtype.type(-1))
        actions = jnp.where(is_inside, actions.astype(jnp.int32), -1)
    return actions.astype(jnp.int32)


_MAX_ACTION = 2**31 - 1
_shaping: set[Any] = set()
"""Games whose ``init`` is being traced by ``check_state``."""


def state_shapes(game: Any) -> Any:
    """Shapes and dtypes of a state of a game, as a pytree of ``jax.ShapeDtypeStruct``."""
    return jax.eval_shape(game.init, jax.eval_shape(lambda: jax.random.key(0)))


def check_state(game: Any, state: Any, batch: tuple[int, ...] = ()) -> None:
    """Check that a state, or a batch of states, has the pytree, shapes and dtypes of a game.

    Values are not checked, so the check also works on traced states and adds nothing to the compiled program.

    Args:
      game: the game.
      state: a state whose leaves have the axes ``batch`` first.
      batch: shape of the batch axes.

    Raises ``TypeError`` for another pytree or dtype, ``ValueError`` for other shapes.
    """
    if game in _shaping:  # ``init`` plays actions while it is traced for its shapes
        return
    x64: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    check_tree(f"state of {game.id} with these options", state, _state_shapes(game, x64), batch)


@lru_cache(maxsize=64)
def _state_shapes(game: Any, x64: bool) -> Any:
    """Cached ``state_shapes``. ``x64`` is part of the cache key because it may change the dtypes."""
    del x64
    _shaping.add(game)
    try:
        return state_shapes(game)
    finally:
        _shaping.discard(game)


@lru_cache(maxsize=64)
def check_own_game(game: Any) -> None:
    """Check once the results of the required functions of a user-supplied game, as ``check_contract`` does."""
    if isinstance(game, Game) and not type(game).__module__.startswith("tilewe_jax."):
        _check_required(game)


def _check_required(game: Any) -> None:
    _check_function(game, "current_player", array(jnp.int32))
    _check_function(game, "is_terminal", array(jnp.bool_))
    _check_function(game, "legal_action_mask", array(jnp.bool_, game.num_actions))
    _check_function(game, "returns", array(jnp.float32, game.num_players))
    _check_function(game, "apply", state_shapes(game), array(jnp.int32))


def check_contract(game: Any) -> None:
    """Check the shapes and dtypes of the results of all functions of a game.

    Raises ``TypeError`` or ``ValueError`` that names the function, and any error that a function raises while it is traced.
    """
    _check_required(game)
    state, scalar, flag = state_shapes(game), array(jnp.int32), array(jnp.bool_)
    key = jax.eval_shape(lambda: jax.random.key(0))
    observation, ownership = jax.eval_shape(game.observe, state, scalar), jax.eval_shape(game.ownership, state)
    _check_function(game, "observe", array(jnp.float32, *observation.shape), scalar)
    _check_function(game, "is_legal", flag, scalar)
    _check_function(game, "sample_action", scalar, key)
    _check_function(game, "playout_action", scalar, key)
    _check_function(game, "apply_in_playout", state, scalar)
    _check_function(game, "is_truncated", flag)
    _check_function(game, "num_legal", scalar)
    _check_function(game, "scores", array(jnp.int32, game.num_players))
    _check_function(game, "heuristic_value", array(jnp.float32, game.num_players))
    _check_function(game, "ownership", array(jnp.int32, *ownership.shape[:1]))


def _check_function(game: Any, name: str, expected: Any, *arguments: Any) -> None:
    function = getattr(game, name)
    check_result("game function", function, jax.eval_shape(function, state_shapes(game), *arguments), expected)


@lru_cache(maxsize=64)
def observation_shape(game: Any) -> tuple[int, ...]:
    """Shape of an observation, ``Game.observe``."""
    shape: tuple[int, ...] = jax.eval_shape(lambda state: game.observe(state, jnp.int32(0)), state_shapes(game)).shape
    return shape


def num_owned_cells(game: Any) -> int:
    """Length of ``Game.ownership``; 0 in games without owned cells."""
    return int(jax.eval_shape(game.ownership, state_shapes(game)).size)


def state_bytes(game: Any) -> int:
    """Size of a state of a game in bytes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state_shapes(game)))


class Game(ABC, Generic[State]):
    """The rules of a game as pure functions of one position; batch them with ``jax.vmap``.

    A game is a frozen, hashable value, such as a frozen dataclass: it may be a static argument of ``jax.jit``, and two games
    with the same settings are equal. States are pytrees of arrays; observations and legal actions are functions of a state.
    Players may be passed over and may move twice in a row. Values are vectors over the players, in absolute seats.

    To write a game, define the four properties and seven methods of part 1. Override methods of part 2 with faster or better
    forms, and methods of part 3 to offer capabilities to search, training, records and people. Part 4 is final.
    ``tilewe_jax.conformance.check`` checks the contract, ``tilewe_jax.register`` makes the game known by name.
    """

    # ---- Part 1, required.

    @property
    @abstractmethod
    def id(self) -> str:
        """The name under which ``make`` knows the game."""

    @property
    @abstractmethod
    def num_players(self) -> int:
        """Number of players (seats)."""

    @property
    @abstractmethod
    def num_actions(self) -> int:
        """Number of action ids. Placements come first, then extra actions such as a pass."""

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """Upper bound of the number of actions of a game."""

    @abstractmethod
    def init(self, key: PRNGKeyArray) -> State:
        """The initial state of a new game. All randomness of the game is drawn from ``key`` and stored in the state."""

    @abstractmethod
    def apply(self, state: State, action: Action) -> State:
        """The state after a legal ``action``, which is not checked. -1 returns the state unchanged."""

    @abstractmethod
    def legal_action_mask(self, state: State) -> Bool[Array, "num_actions"]:
        """Mask of the legal actions; all false exactly if the game is over."""

    @abstractmethod
    def current_player(self, state: State) -> Int32[Array, ""]:
        """The player to move, from 0."""

    @abstractmethod
    def is_terminal(self, state: State) -> Bool[Array, ""]:
        """Return whether the game is over, truncated or not."""

    @abstractmethod
    def returns(self, state: State) -> Float32[Array, "num_players"]:
        """Outcome by seat: zero until the end, then shares of one win, which sum to 1. Tied winners share equally.

        In a game for one player, the score as a fraction of the best possible score.
        """

    @abstractmethod
    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "..."]:
        """The observation of ``player``, from that player's seat and without hidden information."""

    # ---- Part 2, optional: the defaults are correct, a game may provide faster or better forms.

    def scores(self, state: State) -> Int32[Array, "num_players"]:
        """Current points by seat. By default 1 for a sole winner, 0 for all other players."""
        return (self.returns(state) == 1).astype(jnp.int32)

    def ownership(self, state: State) -> Int32[Array, "cells"]:
        """The seat that owns each cell of the board, -1 for no owner; empty in games without owned cells.

        Training can use the final ownership as an auxiliary target, see ``loss.ownership_loss_weight``.
        """
        del state
        return jnp.zeros(0, jnp.int32)

    @property
    def fixed_start(self) -> bool:
        """True if ``init`` returns the same state for every key, which makes resets cheaper."""
        return False

    def is_truncated(self, state: State) -> Bool[Array, ""]:
        """Return whether a cap on the length, rather than the rules, ended the game."""
        del state
        return jnp.asarray(False)

    def is_legal(self, state: State, action: ActionLike) -> Bool[Array, ""]:
        """Return whether ``action``, any integer, is legal; false at the end. May be cheaper than ``legal_action_mask``."""
        action = as_action(action)
        inside = (action >= 0) & (action < self.num_actions)
        return inside & self.legal_action_mask(state)[jnp.clip(action, 0, self.num_actions - 1)]

    def num_legal(self, state: State) -> Int32[Array, ""]:
        """Number of legal actions."""
        return jnp.sum(self.legal_action_mask(state), dtype=jnp.int32)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        """Draw a legal action uniformly; -1 at the end."""
        legal = self.legal_action_mask(state)
        # The largest of independent uniform numbers is equally likely to be any of them.
        noise = jax.random.bits(key, legal.shape, jnp.uint32)
        return jnp.where(
            jnp.any(legal), jnp.argmax(jnp.where(legal, (noise >> 1).astype(jnp.int32), -1)).astype(jnp.int32), -1
        ).astype(jnp.int32)

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        """Draw ``k`` different legal actions, all equally likely; with fewer than ``k`` legal actions, all of them, then -1.

        Unlike ``sample_action``, it accepts states with deferred passes, see ``apply_deferred``.
        """
        return self.nth_legal(state, systematic_sample(random_words(key, 1)[0], self.num_legal(state), k))

    def nth_legal(self, state: State, ranks: Int32[Array, "k"]) -> Int32[Array, "k"]:
        """Return the legal actions of the given ranks, in an order of the game; -1 for the rank -1.

        Like ``sample_actions``, it accepts states with deferred passes.

        Args:
          state: a position.
          ranks: -1, or from 0 and below ``num_legal``.
        """
        ends = jnp.cumsum(self.legal_action_mask(state), dtype=jnp.int32)
        return jnp.where(ranks >= 0, jnp.searchsorted(ends, ranks + 1), -1).astype(jnp.int32)

    def best_sampled(self, state: State, key: PRNGKeyArray, k: int) -> Action:
        """Choose the best of ``k`` random legal actions by ``heuristic_logits``; -1 for a blocked player and at the end."""
        return self.best_action(state, self.sample_actions(state, key, k))

    def best_action(self, state: State, actions: Int32[Array, "k"]) -> Action:
        """Return the best of some legal actions by ``heuristic_logits``. Entries of -1 are ignored; -1 if there is no other."""
        return actions[jnp.argmax(jnp.where(actions >= 0, self.heuristic_logits(state, actions), -jnp.inf))]

    def playout_action(self, state: State, key: PRNGKeyArray) -> Action:
        """Choose a plausible action for a playout at random and at low cost; -1 for a blocked player and at the end.

        By default ``best_sampled`` with 16 actions. Like ``sample_actions``, it accepts states with deferred passes, and also
        states from ``apply_in_playout``.
        """
        return self.best_sampled(state, key, 16)

    def apply_deferred(self, state: State, action: Action) -> State:
        """Like ``apply``, but forced passes are deferred: the player to move may be blocked. ``resolve_passes`` completes it.

        In loops over many games an idle step of one game is cheaper than a loop that skips all blocked players of all games.
        For a blocked player ``sample_action`` returns -1, and ``apply_deferred`` with -1 makes one forced pass.
        """
        return self.apply(state, action)

    def apply_in_playout(self, state: State, action: Action) -> State:
        """Like ``apply_deferred``, between the moves of a playout by ``playout_action``; a game may make it cheaper.

        The result supports only ``playout_action``, ``apply_in_playout``, ``current_player``, ``is_terminal``, ``scores``,
        ``returns`` and ``heuristic_value``.
        """
        return self.apply_deferred(state, action)

    def resolve_passes(self, state: State) -> State:
        """Make all passes that ``apply_deferred`` has deferred; the result is the state that ``apply`` returns."""
        return state

    def policies(self) -> dict[str, Policy]:
        """Built-in policies by name, including "random"."""
        return {"random": self.sample_action}

    @property
    def quick_policy(self) -> str:
        """Name of the built-in policy with the best balance of strength and speed."""
        return "random"

    # ---- Part 3, capabilities: the defaults are neutral.

    # ---- Heuristics: estimates without lookahead, for searches without a network. By default all actions and seats are equal.

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Heuristic logits of legal actions, without lookahead.

        Args:
          state: a position.
          actions: ids of legal actions; -1 gets an arbitrary finite logit.
        """
        del state
        return jnp.zeros(actions.shape, jnp.float32)

    def heuristic_value(self, state: State) -> Float32[Array, "num_players"]:
        """Heuristic value: expected outcome by seat, non-negative, sums to 1.

        Also defined at the end, where it measures the margin of victory, while ``returns`` only names the winners.
        """
        del state
        return jnp.full(self.num_players, 1 / self.num_players, jnp.float32)

    # ---- Lookahead: outcomes proven by a short exact lookahead, without search. Only for two-player zero-sum games with
    # perfect information.

    @property
    def has_lookahead(self) -> bool:
        """True if the game overrides ``outcomes_of_actions``."""
        return False

    def outcomes_of_actions(self, state: State, actions: Int32[Array, "k"]) -> Int32[Array, "k"]:
        """Proven outcomes of legal actions for the player to move under best play: 1 win, -1 loss, 0 unknown.

        Args:
          state: a position.
          actions: ids of legal actions; -1 gets 0.
        """
        del state
        return jnp.zeros(actions.shape, jnp.int32)

    def endings(self, max_moves: int) -> Endings[Any, Any]:
        """The form of the game in which ``tilewe_jax.search.solve`` searches a position. Only for two players.

        Args:
          max_moves: maximum number of moves of the form, for games that list them.
        """
        del max_moves
        return GameEndings(self)

    # ---- Symmetries, for augmentation of training data and averaging of networks. By default only the identity.

    @property
    def num_symmetries(self) -> int:
        """Number of symmetries, including the identity, which has index 0."""
        return 1

    def transform(self, state: State, index: Int32[Array, ""] | int) -> State:
        """Apply symmetry ``index`` to a position."""
        del index
        return state

    @property
    def action_symmetries(self) -> NDArray[np.int32]:
        """The id of each action after each symmetry, ``int32[num_symmetries, num_actions]``."""
        return np.arange(self.num_actions, dtype=np.int32)[None]

    # ---- Hidden information. By default a game has perfect information.

    @property
    def has_hidden_information(self) -> bool:
        """True if players have hidden information, so that the game overrides ``determinize``."""
        return False

    def determinize(self, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
        """Resample the information hidden from ``player``, consistently with the player's observations.

        Args:
          state: a position.
          player: the observer.
          key: PRNG key, consumed.
        """
        del player, key
        return state

    # ---- Chance events, for packages that walk game trees, such as OpenSpiel. By default only for games without chance.

    def chance(self) -> Chance:
        """The chance events of the game. Raises ``ValueError`` for a game that does not list them."""
        if self.fixed_start and not self.has_hidden_information:
            return Chance(self)
        raise ValueError(f"{self.id} does not list its chance outcomes")

    # ---- Records: the data that a file of recorded games stores besides the actions. By default no options and no deal.

    version: int = 1
    """Version of the rules, increased whenever the same actions lead to another result; stored in records, weights and
    checkpoints."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from the defaults, as JSON values, such that ``make(game.id, **game.options) == game``."""
        return {}

    def deal(self, state: State) -> Any:
        """The random part of an initial state as a JSON value, from which ``init_from_deal`` restores the state."""
        del state
        return None

    def init_from_deal(self, deal: Any) -> State:
        """The initial state of a deal, or the state of ``{"position": facts}``. Raises ``ValueError`` for an invalid deal."""
        if is_position(deal):
            if self.positions is None:
                raise ValueError(f"{self.id} does not start from positions")
            return self.state_of(self.positions.read(deal[POSITION]))
        require_no_deal(self.id, deal)
        return self.init(jax.random.key(0))

    # ---- Positions from which games start. By default none.

    @property
    def positions(self) -> PositionFormat | None:
        """Reads and writes the facts of host positions; ``None`` for a game that starts from deals only."""
        return None

    def state_of(self, position: Any) -> State:
        """The state of a host position, the inverse of ``host``. Runs on the host."""
        raise ValueError(f"{self.id} does not convert positions to states")

    @property
    def host_draws(self) -> HostDraws | None:
        """Random decisions in plain Python, for matches of few games that are played on the host.

        Only for games whose ``state_of`` restores each state exactly, bit by bit.
        """
        return None

    # ---- Texts and pictures, made on the host. By default the arrays of the state and the numbers of actions.

    def text(self, state: State, color: bool = False) -> str:
        """The position as text, with ANSI colours if ``color``."""
        del color
        leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
        return "\n".join(f"{jax.tree_util.keystr(path).lstrip('.')}: {leaf}" for path, leaf in leaves)

    def svg(self, state: State) -> str:
        """The position as an SVG document."""
        return draw({"kind": "text", "text": self.text(state)})

    def characters(self, state: State) -> UInt8[Array, "cells"]:
        """A square board as ASCII codes, one per cell, bottom row first, for pages that show many boards.

        The array is empty in games without a square board.
        """
        del state
        return jnp.zeros(0, jnp.uint8)

    def action_name(self, action: int, state: State) -> str:
        """The name of a legal action."""
        del state
        return str(action)

    def host(self, state: State) -> HostPosition:
        """Convert a state to its host form, see ``tilewe_jax.host``."""
        return DevicePosition(self, state)

    # ---- Policy head: the mapping of network logits to actions. By default one logit per action.

    @property
    def num_logits(self) -> int:
        """Number of policy logits of a network."""
        return self.num_actions

    def gather_logits(
        self, state: State, logits: Float32[Array, "num_logits"], actions: Int32[Array, "k"]
    ) -> Float32[Array, "k"]:
        """Select the logits of legal actions from the policy logits of a network.

        Args:
          state: the position.
          logits: all logits of the network.
          actions: ids of legal actions; -1 gets an arbitrary logit.
        """
        del state
        return jnp.take(logits, actions, mode="clip")

    # ---- Part 4, derived from the rest: not to be overridden.

    @final
    def step(self, state: State, action: ActionLike) -> State:
        """The state after ``action``. An illegal action, and any action at the end, returns the state unchanged.

        Raises ``TypeError`` or ``ValueError`` for an action that is not one integer, and for a state of another game.
        """
        require_backend()
        check_state(self, state)
        action = as_action(action)
        return self.apply(state, jnp.where(self.is_legal(state, action), action, -1))

    @final
    def playout(self, state: State, key: PRNGKeyArray) -> Float32[Array, "num_players"]:
        """Play uniformly random moves to the end and return the outcome. Raises like ``step`` for a state of another game."""
        check_state(self, state)

        def play(carry: tuple[State, PRNGKeyArray]) -> tuple[State, PRNGKeyArray]:
            state, key = carry
            key, action_key = jax.random.split(key)
            return self.apply_deferred(state, self.sample_action(state, action_key)), key

        state, _ = while_loop(lambda carry: ~self.is_terminal(carry[0]), play, (state, key))
        return self.returns(state)
