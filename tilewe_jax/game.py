"""The Game protocol: what every game offers, and what follows from it for all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax.bits import systematic_sample
from tilewe_jax.lanes import random_words

State = TypeVar("State")
Action = Int32[Array, ""]
Policy = Callable[[Any, PRNGKeyArray], Action]
"""What chooses an action, given a state and a key, for one game; asked only where somebody can move, or at the end."""


def as_action(action: Action | int) -> Action:
    """One action id as an int32 scalar. Raises ``TypeError`` for other than integers, ``ValueError`` for more than one."""
    array = jnp.asarray(action)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"an action is an integer (int32), not {array.dtype}")
    if array.shape != ():
        raise ValueError(f"this takes one action, of shape (), not of {array.shape}; jax.vmap makes it take many")
    return array.astype(jnp.int32)


def shapes(game: Any) -> Any:
    """Shapes and dtypes of a state of a game, without making one."""
    return jax.eval_shape(game.init, jax.eval_shape(lambda: jax.random.key(0)))


def state_bytes(game: Any) -> int:
    """Bytes that a state of a game takes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes(game)))


class Game(ABC, Generic[State]):
    """The rules of one game as pure functions of one position; ``jax.vmap`` makes them functions of thousands.

    A game is a frozen, hashable value: it may be a static argument of ``jax.jit``, and two games made alike are equal.
    States are pytrees of arrays that hold what the rules need; observations and masks are functions of them. Players may be
    passed over and may move twice in a row. Values are vectors over the players, in absolute seats.

    A game says what is legal (``is_legal``) and what a legal action does (``apply``); that anything else leaves the state as
    it is follows here, once (``step``).
    """

    version: int
    """Raised whenever the same actions would lead elsewhere than before; kept in records and checkpoints."""

    @property
    @abstractmethod
    def id(self) -> str:
        """The name under which ``make`` knows the game."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The options that differ from the defaults, as JSON; ``make(game.id, **game.options) == game``."""

    @property
    @abstractmethod
    def num_players(self) -> int:
        """Number of players."""

    @property
    @abstractmethod
    def num_actions(self) -> int:
        """Number of action ids; a spatial block first, extras like a pass after it."""

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """No game has more actions than this."""

    @property
    def fixed_start(self) -> bool:
        """Whether chance decides nothing at the start: ``init`` gives the same for every key."""
        return False

    @abstractmethod
    def init(self, key: PRNGKeyArray) -> State:
        """A new game. All that chance decides at the start is drawn from ``key`` and stands in the state."""

    @abstractmethod
    def apply(self, state: State, action: Action) -> State:
        """The position after ``action``, which is trusted to be legal; after -1, the same position."""

    @abstractmethod
    def is_legal(self, state: State, action: Action) -> Bool[Array, ""]:
        """Whether ``action``, any integer, is legal; never at the end. Cheaper than all legal actions."""

    @abstractmethod
    def legal_actions(self, state: State) -> Bool[Array, "num_actions"]:
        """Which actions are legal; none at the end."""

    @abstractmethod
    def current_player(self, state: State) -> Int32[Array, ""]:
        """Whose turn it is."""

    @abstractmethod
    def is_terminal(self, state: State) -> Bool[Array, ""]:
        """Whether the game is over, truncated or not."""

    @abstractmethod
    def scores(self, state: State) -> Int32[Array, "num_players"]:
        """The game's own points, at any time."""

    @abstractmethod
    def returns(self, state: State) -> Float32[Array, "num_players"]:
        """Zero until the end. Then the share of the win: ties split it, it sums to 1. Alone: score / best possible."""

    @abstractmethod
    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "..."]:
        """What ``player`` may know, seen from that player's seat."""

    @abstractmethod
    def text(self, state: State, color: bool = False) -> str:
        """The position for people, on the host; with ANSI colours where ``color``."""

    @abstractmethod
    def svg(self, state: State) -> str:
        """The position as a picture, on the host: the text of an SVG file."""

    @abstractmethod
    def action_name(self, action: int, state: State) -> str:
        """An action that is legal in ``state`` for people, on the host."""

    def apply_deferred(self, state: State, action: Action) -> State:
        """``apply`` for loops over many games: the state may still owe a chain of forced skips.

        There ``sample_action`` gives -1 before the end, and ``apply_deferred`` with -1 works off one link of the chain. Nobody
        but such a loop sees these states: ``resolve_passes`` ends the chain.
        """
        return self.apply(state, action)

    def resolve_passes(self, state: State) -> State:
        """The state that ``apply`` would have given where ``apply_deferred`` has left one behind."""
        return state

    def is_truncated(self, state: State) -> Bool[Array, ""]:
        """Whether a documented cap ended the game and not its rules."""
        del state
        return jnp.asarray(False)

    def determinize(self, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
        """The state with all that ``player`` cannot see drawn anew, consistently with what that player has seen."""
        del player, key
        return state

    def deal(self, state: State) -> Any:
        """What chance decided in a new game, as JSON, such that ``init_from_deal`` gives it back; for records."""
        del state
        return None

    def init_from_deal(self, deal: Any) -> State:
        """The new game with this deal. Raises ``ValueError`` where it is none."""
        if deal is not None:
            raise ValueError(f"{self.id} starts without a deal, so a record must give null for it, not {deal!r}")
        return self.init(jax.random.key(0))

    def step(self, state: State, action: Action) -> State:
        """The position after ``action``. An illegal action, and any action at the end, leaves the state as it is."""
        action = as_action(action)
        return self.apply(state, jnp.where(self.is_legal(state, action), action, -1))

    def num_legal(self, state: State) -> Int32[Array, ""]:
        """Number of legal actions."""
        return jnp.sum(self.legal_actions(state), dtype=jnp.int32)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        """A legal action drawn uniformly; -1 at the end."""
        legal = self.legal_actions(state)
        # The largest of independent uniform numbers is equally likely to be any of them.
        noise = jax.random.bits(key, legal.shape)
        return jnp.where(jnp.any(legal), jnp.argmax(jnp.where(legal, (noise >> 1).astype(jnp.int32), -1)), -1).astype(jnp.int32)

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        """``k`` different legal actions, each as likely as any other; all of them where they fit. -1 in places left over.

        ``sample_action`` for several at once, also where a state still owes forced skips, see ``apply_deferred``.
        """
        legal = self.legal_actions(state)
        bits = random_words(key, 1)[0]
        rank = systematic_sample(bits, jnp.sum(legal, dtype=jnp.int32), k)
        return jnp.where(rank >= 0, jnp.searchsorted(jnp.cumsum(legal), rank + 1), -1).astype(jnp.int32)

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """How good legal actions look, without following any of them, as logits; 0 for all, unless a game knows better."""
        del state
        return jnp.zeros(actions.shape, jnp.float32)

    def heuristic_value(self, state: State) -> Float32[Array, "num_players"]:
        """The share of the win that each may expect by the look of a position, at the end too; sums to 1.

        Equal shares, unless a game knows better. ``returns`` tells who has won; this, where it knows better, by how much.
        """
        del state
        return jnp.full(self.num_players, 1 / self.num_players, jnp.float32)

    @property
    def num_symmetries(self) -> int:
        """Number of ways to look at a position that leave the game the same; 0 is as it is."""
        return 1

    def transform(self, state: State, index: Int32[Array, ""] | int) -> State:
        """The state seen through a symmetry."""
        del index
        return state

    @property
    def action_symmetries(self) -> NDArray[np.int32]:
        """``int32[num_symmetries, num_actions]``: what each action becomes when the state is transformed."""
        return np.arange(self.num_actions, dtype=np.int32)[None]

    @property
    def num_logits(self) -> int:
        """Number of logits that a network gives for a position."""
        return self.num_actions

    def gather_logits(
        self, state: State, logits: Float32[Array, "num_logits"], actions: Int32[Array, "k"]
    ) -> Float32[Array, "k"]:
        """Those of legal actions among what a network gives for a position: it has one for each action, in their order.

        A game in which a network sees fewer than all action ids at a time says here which is which.
        """
        del state
        return jnp.take(logits, actions, mode="clip")

    def policies(self) -> dict[str, Policy]:
        """Ready-made players by name; "random" is among them."""
        return {"random": self.sample_action}

    def playout(self, state: State, key: PRNGKeyArray) -> Float32[Array, "num_players"]:
        """The returns of a game played from here at random."""

        def play(carry: tuple[State, PRNGKeyArray]) -> tuple[State, PRNGKeyArray]:
            state, key = carry
            key, now = jax.random.split(key)
            return self.apply_deferred(state, self.sample_action(state, now)), key

        state, _ = jax.lax.while_loop(lambda carry: ~self.is_terminal(carry[0]), play, (state, key))
        return self.returns(state)
