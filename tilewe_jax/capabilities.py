"""What a game may offer beyond its rules. ``Game`` has all of it with neutral defaults; a game overrides what it knows better.

- ``Heuristics``: how good actions and positions look without lookahead, for the priors and values of searches that have no
  network.
- ``Lookahead``: which actions provably win or lose soon, for searches that need not find that out.
- ``Symmetries``: transformations of a position that leave the game the same, for augmentation of training data and averaging of
  networks.
- ``HiddenInformation``: resampling of what a player cannot see, for searches of games with hidden information.
- ``Recordable``: what a file of recorded games has to hold, so that it can be replayed.
- ``Rendered``: texts, pictures and names for people, and the position in plain Python.
- ``PolicyHead``: how the logits of a network map to actions.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax.draw.pictures import draw
from tilewe_jax.host import HostPosition, IllegalActionError, common_view, require_no_deal
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import action_id, out_of_range

if TYPE_CHECKING:
    from tilewe_jax.game import Game

State = TypeVar("State")


class Sized(ABC):
    """The name and the sizes of a game, which everything else builds on."""

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


class Heuristics(Sized, Generic[State]):
    """Static heuristics: action logits and position values without lookahead. By default all actions and seats are equal."""

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


class Lookahead(Sized, Generic[State]):
    """Outcomes that a short exact lookahead proves, cheaply and without search. By default none.

    Only for games of two players with open information, in which the one wins what the other loses.
    """

    @property
    def has_lookahead(self) -> bool:
        """Whether anything is ever proven: whether the game has an ``outcomes_of_actions`` of its own."""
        return type(self).outcomes_of_actions is not Lookahead.outcomes_of_actions

    def outcomes_of_actions(self, state: State, actions: Int32[Array, "k"]) -> Int32[Array, "k"]:
        """What legal actions provably lead to under best play: 1 a win of the player to move, -1 a loss, 0 what is not known.

        Args:
          state: a position.
          actions: ids of legal actions; -1, for none, gets 0.
        """
        del state
        return jnp.zeros(actions.shape, jnp.int32)


class Symmetries(Sized, Generic[State]):
    """The symmetries of a game. By default the identity alone."""

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


class HiddenInformation(Sized, Generic[State]):
    """What players cannot see. By default everything is open."""

    @property
    def has_hidden_information(self) -> bool:
        """Whether there is anything that a player cannot see: whether the game has a ``determinize`` of its own."""
        return type(self).determinize is not HiddenInformation.determinize

    def determinize(self, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
        """Resample all that ``player`` cannot see, consistently with what that player has seen.

        Args:
          state: a position.
          player: the observer.
          key: PRNG key, consumed.
        """
        del player, key
        return state


class Recordable(Sized, Generic[State]):
    """What a record of a game holds beside its actions. By default nothing: no options, and a start without chance."""

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

    @abstractmethod
    def init(self, key: PRNGKeyArray) -> State:
        """See ``Game.init``."""


class Rendered(Sized, Generic[State]):
    """Texts and pictures, made on the host. By default the arrays of the state, and actions by number."""

    def text(self, state: State, color: bool = False) -> str:
        """The position for people; with ANSI colours where ``color``."""
        del color
        leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
        return "\n".join(f"{jax.tree_util.keystr(path).lstrip('.')}: {leaf}" for path, leaf in leaves)

    def svg(self, state: State) -> str:
        """The position as a picture: the text of an SVG file."""
        return draw({"kind": "text", "text": self.text(state)})

    def action_name(self, action: int, state: State) -> str:
        """The name of an action that is legal in ``state``."""
        del state
        return str(action)

    def host(self, state: State) -> HostPosition:
        """The same position in plain Python, see ``tilewe_jax.host``."""
        return _DevicePosition(self, state)  # type: ignore[arg-type]


class PolicyHead(Sized, Generic[State]):
    """How the logits of a network map to actions. By default one to one, in the order of the action ids."""

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


@dataclass(frozen=True)
class _DevicePosition:
    """A position of any game on the host, by asking its functions on the device."""

    game: "Game[Any]"
    state: Any

    @cached_property
    def _facts(self) -> "_Facts":
        require_backend()
        facts, _ = _compiled(self.game)
        values: _Facts = jax.device_get(facts(self.state))
        return values

    @property
    def current_player(self) -> int:
        return int(self._facts.current_player)

    @property
    def is_terminal(self) -> bool:
        return bool(self._facts.is_terminal)

    def scores(self) -> tuple[int, ...]:
        return tuple(self._facts.scores.tolist())

    def legal_actions(self) -> list[int]:
        return [int(action) for action in np.flatnonzero(self._facts.legal_action_mask)]

    def explain(self, action: int) -> str | None:
        action = action_id(action)
        if self.is_terminal:
            return "the game is over"
        if not 0 <= action < self.game.num_actions:
            return out_of_range(self.game.num_actions)
        legal = self.legal_actions()
        return None if action in legal else f"it is not one of the {len(legal)} legal actions"

    def after(self, action: int) -> "_DevicePosition":
        action = action_id(action)
        if rule := self.explain(action):
            raise IllegalActionError(f"action {action} is illegal: {rule}")
        _, apply = _compiled(self.game)
        return _DevicePosition(self.game, apply(self.state, jnp.int32(action)))

    def action_name(self, action: int) -> str:
        return self.game.action_name(action_id(action), self.state)

    def action_of_name(self, name: str) -> int:
        names = {self.action_name(action): action for action in self.legal_actions()}
        if name not in names:
            raise ValueError(f"{name!r} is none of the {len(names)} legal moves: {', '.join(list(names)[:3])} and so on")
        return names[name]

    def text(self, color: bool = False, *, last_action: int | None = None, seat: int | None = None, open: bool = True) -> str:
        del last_action, seat  # what the action has changed, and what of its text whom to show, only the game knows
        if open or self.is_terminal or not self.game.has_hidden_information:
            return self.game.text(self.state, color)
        return f"{self.game.id} hides information from its players until its end"

    def svg(self, *, last_action: int | None = None) -> str:
        del last_action
        return self.game.svg(self.state)

    def _repr_svg_(self) -> str:
        return self.svg()

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        view = common_view(self, "text", seat)
        view["text"] = self.text(seat=seat, open=open)
        return view

    def action_view(self, action: int) -> dict[str, Any]:
        action = action_id(action)
        if rule := self.explain(action):
            raise IllegalActionError(f"action {action} is illegal: {rule}")
        return {"id": action, "name": self.action_name(action), "kind": "other"}


class _Facts(NamedTuple):
    """The results of the rules for a position, as NumPy arrays."""

    legal_action_mask: NDArray[np.bool_]
    current_player: NDArray[np.int32]
    is_terminal: NDArray[np.bool_]
    scores: NDArray[np.int32]


@lru_cache(maxsize=8)
def _compiled(game: "Game[Any]") -> tuple[Any, Any]:
    """Compiled functions of a game: one that computes ``_Facts``, and ``apply``.

    Outside of ``jax.jit`` every loop in the rules would be compiled again at every call.
    """

    def facts(state: Any) -> _Facts:
        values: Any = (game.legal_action_mask(state), game.current_player(state), game.is_terminal(state), game.scores(state))
        return _Facts(*values)

    return jax.jit(facts), jax.jit(game.apply)
