"""The Game contract: what every game must define, and what follows from it for all of them."""

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
from tilewe_jax.host import HostPosition, require_no_deal
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
"""A function of one state and a key that chooses an action. It is called only where somebody can move, or at the end."""
IndexedPolicy = Callable[[Int32[Array, ""], Any, PRNGKeyArray], Action]
"""Several policies as one function of the index of the one that decides, a state, and a key."""


@runtime_checkable
class SharingPolicy(Protocol):
    """A policy that shares most of its program with others of its class, so that several are compiled in the time of one."""

    def __call__(self, state: Any, key: PRNGKeyArray) -> Action:
        """The action."""
        ...

    @staticmethod
    def together(policies: Sequence[Any]) -> IndexedPolicy:
        """These policies, all of this class and for the same game, as one function."""
        ...


def as_action(action: ActionLike) -> Action:
    """One action id as an int32 scalar; -1 for an integer outside of the range of int32, where no game has an action.

    Raises ``TypeError`` for other values than integers, ``ValueError`` for more than one.
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
    """The action of a policy of a user, as ``as_action`` gives it. Its errors name the policy."""
    action = policy(state, key)
    try:
        return as_action(action)
    except (TypeError, ValueError) as error:
        raise type(error)(f"result of the policy {name_of(policy)}: {error}") from None


def as_action_ids(actions: Array) -> Array:
    """Integers of any dtype as int32; -1 for those outside of the range of int32, where a cast alone would wrap."""
    if jnp.iinfo(actions.dtype).max > _MAX_ACTION:
        is_inside = actions <= actions.dtype.type(_MAX_ACTION)
        if jnp.issubdtype(actions.dtype, jnp.signedinteger):
            is_inside = is_inside & (actions >= actions.dtype.type(-1))
        actions = jnp.where(is_inside, actions.astype(jnp.int32), -1)
    return actions.astype(jnp.int32)


_MAX_ACTION = 2**31 - 1
_shaping: set[Any] = set()
"""The games whose states are being traced by ``check_state``."""


def state_shapes(game: Any) -> Any:
    """Shapes and dtypes of a state of a game (``jax.ShapeDtypeStruct``), without making one."""
    return jax.eval_shape(game.init, jax.eval_shape(lambda: jax.random.key(0)))


def check_state(game: Any, state: Any, batch: tuple[int, ...] = ()) -> None:
    """Check that a state, or a batch of states, can be one of a game: its pytree, shapes and dtypes.

    Looks at nothing else, so that traced states are checked while a function is compiled, and the program stays the same.

    Args:
      game: the game.
      state: a state, whose leaves have these batch axes first.
      batch: the batch axes.

    Raises ``TypeError`` for another pytree or dtype, ``ValueError`` for other shapes.
    """
    if game in _shaping:  # ``init`` plays actions while it is traced for its shapes
        return
    x64: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    check_tree(f"state of {game.id} with these options", state, _state_shapes(game, x64), batch)


@lru_cache(maxsize=64)
def _state_shapes(game: Any, x64: bool) -> Any:
    """``state_shapes``, computed once. ``x64`` is the mode, which may decide the dtypes."""
    del x64
    _shaping.add(game)
    try:
        return state_shapes(game)
    finally:
        _shaping.discard(game)


@lru_cache(maxsize=64)
def check_own_game(game: Any) -> None:
    """Check once what the functions of a game of a user give that every loop calls, as ``check_contract`` does."""
    if isinstance(game, Game) and not type(game).__module__.startswith("tilewe_jax."):
        _check_required(game)


def _check_required(game: Any) -> None:
    _check_function(game, "current_player", array(jnp.int32))
    _check_function(game, "is_terminal", array(jnp.bool_))
    _check_function(game, "legal_action_mask", array(jnp.bool_, game.num_actions))
    _check_function(game, "returns", array(jnp.float32, game.num_players))
    _check_function(game, "apply", state_shapes(game), array(jnp.int32))


def check_contract(game: Any) -> None:
    """Check the shapes and dtypes of what all functions of a game give.

    Raises ``TypeError`` or ``ValueError`` that names the function, and any error of a function that is traced.
    """
    _check_required(game)
    state, scalar, flag = state_shapes(game), array(jnp.int32), array(jnp.bool_)
    observation, ownership = jax.eval_shape(game.observe, state, scalar), jax.eval_shape(game.ownership, state)
    _check_function(game, "observe", array(jnp.float32, *observation.shape), scalar)
    _check_function(game, "is_legal", flag, scalar)
    _check_function(game, "sample_action", scalar, jax.eval_shape(lambda: jax.random.key(0)))
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
    """The shape of an observation, ``Game.observe``."""
    shape: tuple[int, ...] = jax.eval_shape(lambda state: game.observe(state, jnp.int32(0)), state_shapes(game)).shape
    return shape


def num_owned_cells(game: Any) -> int:
    """Number of cells of ``Game.ownership``; 0 in games in which cells have no owners."""
    return int(jax.eval_shape(game.ownership, state_shapes(game)).size)


def state_bytes(game: Any) -> int:
    """Size of a state of a game in bytes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state_shapes(game)))


class Game(ABC, Generic[State]):
    """The rules of one game as pure functions of one position; ``jax.vmap`` makes them functions of thousands.

    A game is a frozen, hashable value: it may be a static argument of ``jax.jit``, and two games made alike are equal (a
    frozen dataclass has all that). States are pytrees of arrays that hold what the rules need; observations and legal actions
    are functions of them. Players may be passed over and may move twice in a row. Values are vectors over the players, in
    absolute seats.

    To write a game, define the four properties and seven methods of the first part. The second part may be overridden by
    faster or better forms; the third part, the capabilities, tells what searches, training, records and people may use beyond
    the rules, with neutral defaults; the fourth part follows from the rest and is final.
    ``tilewe_jax.conformance.check`` tells whether a game keeps the contract, ``tilewe_jax.register`` makes it known by name.
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
        """Number of action ids. A spatial block comes first, extras like a pass after it."""

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """Upper bound of the number of actions of a game."""

    @abstractmethod
    def init(self, key: PRNGKeyArray) -> State:
        """The initial state of a new game. All that chance decides at the start is drawn from ``key`` and kept in the state."""

    @abstractmethod
    def apply(self, state: State, action: Action) -> State:
        """The state after ``action``, which is trusted to be legal; after -1, the same state."""

    @abstractmethod
    def legal_action_mask(self, state: State) -> Bool[Array, "num_actions"]:
        """Mask of the legal actions; all false at the end, and only there."""

    @abstractmethod
    def current_player(self, state: State) -> Int32[Array, ""]:
        """The player to move, from 0."""

    @abstractmethod
    def is_terminal(self, state: State) -> Bool[Array, ""]:
        """Whether the game is over, truncated or not."""

    @abstractmethod
    def returns(self, state: State) -> Float32[Array, "num_players"]:
        """The outcome by seat: zero until the end, then shares of one win, which ties split, so that they sum to 1.

        In a game for one player: the score as a fraction of the best possible one.
        """

    @abstractmethod
    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "..."]:
        """The observation of ``player``: only what that player may know, from that player's seat."""

    # ---- Part 2, optional: correct as they stand; a game may do better.

    def scores(self, state: State) -> Int32[Array, "num_players"]:
        """The points of the game by seat, at any time. By default 1 for whoever has won alone."""
        return (self.returns(state) == 1).astype(jnp.int32)

    def ownership(self, state: State) -> Int32[Array, "cells"]:
        """The seat to which each cell of the board belongs, -1 for nobody; of length 0 in games in which cells have no owners.

        Training may learn it at the end of a game as an auxiliary target, see ``loss.ownership_loss_weight``.
        """
        del state
        return jnp.zeros(0, jnp.int32)

    @property
    def fixed_start(self) -> bool:
        """Whether chance decides nothing at the start: ``init`` gives the same for every key. That makes resets cheaper."""
        return False

    def is_truncated(self, state: State) -> Bool[Array, ""]:
        """Whether a documented cap ended the game and not its rules."""
        del state
        return jnp.asarray(False)

    def is_legal(self, state: State, action: ActionLike) -> Bool[Array, ""]:
        """Whether ``action``, any integer, is legal; never at the end. May be cheaper than the mask of all actions."""
        action = as_action(action)
        inside = (action >= 0) & (action < self.num_actions)
        return inside & self.legal_action_mask(state)[jnp.clip(action, 0, self.num_actions - 1)]

    def num_legal(self, state: State) -> Int32[Array, ""]:
        """Number of legal actions."""
        return jnp.sum(self.legal_action_mask(state), dtype=jnp.int32)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        """A legal action drawn uniformly; -1 at the end."""
        legal = self.legal_action_mask(state)
        # The largest of independent uniform numbers is equally likely to be any of them.
        noise = jax.random.bits(key, legal.shape, jnp.uint32)
        return jnp.where(
            jnp.any(legal), jnp.argmax(jnp.where(legal, (noise >> 1).astype(jnp.int32), -1)).astype(jnp.int32), -1
        ).astype(jnp.int32)

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        """``k`` different legal actions, each equally likely; all of them where they fit, and -1 in the places left over.

        Unlike ``sample_action`` this may be asked of states with deferred passes, see ``apply_deferred``.
        """
        legal = self.legal_action_mask(state)
        bits = random_words(key, 1)[0]
        rank = systematic_sample(bits, jnp.sum(legal, dtype=jnp.int32), k)
        return jnp.where(rank >= 0, jnp.searchsorted(jnp.cumsum(legal, dtype=jnp.int32), rank + 1), -1).astype(jnp.int32)

    def apply_deferred(self, state: State, action: Action) -> State:
        """Like ``apply``, but forced passes are deferred: the player to move may be blocked. ``resolve_passes`` completes it.

        For loops over many games, where an idle step now and then is cheaper than asking on until every game has found the
        player to move: there ``sample_action`` gives -1 before the end, and ``apply_deferred`` with -1 makes one forced pass.
        """
        return self.apply(state, action)

    def resolve_passes(self, state: State) -> State:
        """The state that ``apply`` would have given where ``apply_deferred`` has deferred passes."""
        return state

    def policies(self) -> dict[str, Policy]:
        """Built-in policies by name; "random" is among them."""
        return {"random": self.sample_action}

    @property
    def quick_policy(self) -> str:
        """The built-in policy that plays well for its time, by name."""
        return "random"

    # ---- Part 3, capabilities: neutral as they stand; a game overrides what it knows better.

    # ---- Heuristics: how good actions and positions look without lookahead, for searches without a network. By default all
    # actions and seats are equal.

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Logits of legal actions, by how good each looks without being played.

        Args:
          state: a position.
          actions: ids of legal actions; -1, for none, gets any finite logit.
        """
        del state
        return jnp.zeros(actions.shape, jnp.float32)

    def heuristic_value(self, state: State) -> Float32[Array, "num_players"]:
        """Expected outcome by seat, by the look of a position; non-negative, sums to 1.

        At the end too, where it says by how much a game is won and ``Game.returns`` who won it.
        """
        del state
        return jnp.full(self.num_players, 1 / self.num_players, jnp.float32)

    # ---- Lookahead: outcomes that a short exact lookahead proves, cheaply and without search. Only for games of two players
    # with open information, in which the one wins what the other loses.

    @property
    def has_lookahead(self) -> bool:
        """Whether anything is ever proven. A game that overrides ``outcomes_of_actions`` says so here."""
        return False

    def outcomes_of_actions(self, state: State, actions: Int32[Array, "k"]) -> Int32[Array, "k"]:
        """What legal actions provably lead to under best play: 1 a win of the player to move, -1 a loss, 0 what is not known.

        Args:
          state: a position.
          actions: ids of legal actions; -1, for none, gets 0.
        """
        del state
        return jnp.zeros(actions.shape, jnp.int32)

    # ---- Symmetries, for augmentation of training data and averaging of networks. By default the identity alone.

    @property
    def num_symmetries(self) -> int:
        """Number of symmetries; number 0 is the identity."""
        return 1

    def transform(self, state: State, index: Int32[Array, ""] | int) -> State:
        """The position seen through symmetry ``index``."""
        del index
        return state

    @property
    def action_symmetries(self) -> NDArray[np.int32]:
        """``int32[num_symmetries, num_actions]``: the id that each action has after each symmetry."""
        return np.arange(self.num_actions, dtype=np.int32)[None]

    # ---- Hidden information: what players cannot see. By default everything is open.

    @property
    def has_hidden_information(self) -> bool:
        """Whether there is anything that a player cannot see. A game that overrides ``determinize`` says so here."""
        return False

    def determinize(self, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
        """Resample all that ``player`` cannot see, consistently with what that player has seen.

        Args:
          state: a position.
          player: the observer.
          key: PRNG key, consumed.
        """
        del player, key
        return state

    # ---- Chance, for packages that walk trees of games. By default a game whose chance decides something has no list of it.

    def chance(self) -> Chance:
        """The outcomes of chance one by one. Raises ``ValueError`` for a game whose chance cannot be told so."""
        if self.fixed_start and not self.has_hidden_information:
            return Chance(self)
        raise ValueError(f"{self.id}: the outcomes of its chance cannot be listed, as it has no list of them")

    # ---- Records: what a file of recorded games holds beside the actions. By default no options, and a start without chance.

    version: int = 1
    """Version of the rules, raised whenever the same actions would lead elsewhere than before; kept in records, weights and
    checkpoints."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from the defaults, as JSON values, such that ``make(game.id, **game.options) == game``."""
        return {}

    def deal(self, state: State) -> Any:
        """What chance decided in an initial state, as a JSON value, such that ``init_from_deal`` gives the state back."""
        del state
        return None

    def init_from_deal(self, deal: Any) -> State:
        """The initial state of a deal. Raises ``ValueError`` for what is no deal of this game."""
        require_no_deal(self.id, deal)
        return self.init(jax.random.key(0))

    # ---- Texts and pictures, made on the host. By default the arrays of the state, and actions by number.

    def text(self, state: State, color: bool = False) -> str:
        """The position for people; with ANSI colours where ``color``."""
        del color
        leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
        return "\n".join(f"{jax.tree_util.keystr(path).lstrip('.')}: {leaf}" for path, leaf in leaves)

    def svg(self, state: State) -> str:
        """The position as a picture: the text of an SVG file."""
        return draw({"kind": "text", "text": self.text(state)})

    def characters(self, state: State) -> UInt8[Array, "cells"]:
        """A square board as ASCII codes, a character a cell with the bottom row first, for pages with many boards at once.

        Of length 0 in games without such a board.
        """
        del state
        return jnp.zeros(0, jnp.uint8)

    def action_name(self, action: int, state: State) -> str:
        """The name of an action that is legal in ``state``."""
        del state
        return str(action)

    def host(self, state: State) -> HostPosition:
        """The same position in plain Python, see ``tilewe_jax.host``."""
        return DevicePosition(self, state)

    # ---- Policy head: how the logits of a network map to actions. By default one to one.

    @property
    def num_logits(self) -> int:
        """Number of policy logits that a network gives for a position."""
        return self.num_actions

    def gather_logits(
        self, state: State, logits: Float32[Array, "num_logits"], actions: Int32[Array, "k"]
    ) -> Float32[Array, "k"]:
        """The logits of legal actions, from all that a network gives for a position.

        A game in which a network sees fewer than all action ids at a time says here which logit belongs to which action.

        Args:
          state: the position.
          logits: all logits of the network.
          actions: ids of legal actions; -1, for none, gets any logit.
        """
        del state
        return jnp.take(logits, actions, mode="clip")

    # ---- Part 4, derived: never overridden.

    @final
    def step(self, state: State, action: ActionLike) -> State:
        """The state after ``action``. An illegal action, and any action at the end, leaves the state as it is.

        Raises ``TypeError`` or ``ValueError`` for other values than one integer, and for a state of another game.
        """
        require_backend()
        check_state(self, state)
        action = as_action(action)
        return self.apply(state, jnp.where(self.is_legal(state, action), action, -1))

    @final
    def playout(self, state: State, key: PRNGKeyArray) -> Float32[Array, "num_players"]:
        """The returns of a game played from here uniformly at random. Raises as ``step`` does for a state of another game."""
        check_state(self, state)

        def play(carry: tuple[State, PRNGKeyArray]) -> tuple[State, PRNGKeyArray]:
            state, key = carry
            key, action_key = jax.random.split(key)
            return self.apply_deferred(state, self.sample_action(state, action_key)), key

        state, _ = while_loop(lambda carry: ~self.is_terminal(carry[0]), play, (state, key))
        return self.returns(state)
