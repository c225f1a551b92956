"""Games as Python games of OpenSpiel. Needs the extra ``[interop]``.

    import pyspiel
    from tilewe_jax.interop import open_spiel

    game = open_spiel.load_game("triominos", tiles=4, tray=1)
    game = pyspiel.load_game("tilewe_jax_triominos", {"tiles": 4, "tray": 1})

An import of this module registers all games. Chance is explicit: deals and draws are chance nodes. Games of Triominos to a
target and games of others with chance are refused with ``ValueError``, as their outcomes cannot be listed.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewe_jax.chance import Chance, Event
from tilewe_jax.game import Game, observation_shape
from tilewe_jax.host import IllegalActionError
from tilewe_jax.interop import single
from tilewe_jax.registry import available_games, describe, options
from tilewe_jax.utils.checks import action_id, checked_action
from tilewe_jax.utils.extras import optional_import

pyspiel = optional_import("pyspiel")
GameBase: Any = pyspiel.Game
StateBase: Any = pyspiel.State

PREFIX = "tilewe_jax_"
"""What the short names of the games begin with in OpenSpiel."""


def load_game(game: Game[Any] | str, /, **given: Any) -> Any:
    """A game as a ``pyspiel.Game``.

    Args:
      game: a game, or its name.
      **given: the options of the game, where it is given by name.

    Raises ``ValueError`` for a game whose chance cannot be listed.
    """
    value = single.as_game(game, given)
    return SpielGame(value, _parameters(value))


@dataclass(frozen=True)
class _Rules:
    """A game, its chance, and where games lately stood: algorithms visit the same histories again and again."""

    game: Game[Any]
    chance: Chance
    known: dict[tuple[int, ...], "_At"] = field(default_factory=dict, compare=False)
    """By the actions and outcomes that led there."""

    def remember(self, at: "_At", history: tuple[int, ...]) -> "_At":
        """Keep where a history leads; when there are too many, begin anew."""
        if len(self.known) * self.game.num_actions > _KNOWN_BYTES:
            self.known.clear()
        self.known[history] = at
        return at


_KNOWN_BYTES = 1 << 26
"""Size of the masks of legal actions that are kept for histories that may be visited again."""
_RULES: dict[str, _Rules] = {}
"""The rules of every game that was made, by its text in OpenSpiel.

A ``pyspiel.Game`` loses its Python attributes when it passes through C++, as it does where a state is read from a text.
"""


class SpielGame(GameBase):
    """A game for OpenSpiel; utilities are as in ``batching.zero_sum``."""

    def __init__(self, game: Game[Any], parameters: Mapping[str, Any]) -> None:
        rules = _Rules(game, game.chance())
        players = game.num_players
        info = pyspiel.GameInfo(
            num_distinct_actions=game.num_actions,
            max_chance_outcomes=rules.chance.max_outcomes,
            num_players=players,
            min_utility=-1.0 / (players - 1) if players > 1 else 0.0,
            max_utility=1.0,
            utility_sum=0.0 if players > 1 else None,
            max_game_length=game.max_steps,
        )
        super().__init__(_game_type(game), info, dict(parameters))
        _RULES[str(self)] = rules

    def new_initial_state(self) -> "SpielState":
        """A state before the first event of chance, or the first action."""
        return SpielState(self)

    def max_chance_nodes_in_history(self) -> int:
        """The largest number of events of chance in a game."""
        return _RULES[str(self)].chance.max_events

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> "Observer":
        """What observes states, see ``Observer``."""
        if params:
            raise ValueError(f"observers have no parameters, not {params}")
        return Observer(_RULES[str(self)].game, bool(iig_obs_type and iig_obs_type.perfect_recall))


class SpielState(StateBase):
    """A state of a ``SpielGame``."""

    def __init__(self, game: SpielGame) -> None:
        super().__init__(game)
        rules = _RULES[str(game)]
        self._at = rules.known.get(()) or rules.remember(_begun(rules, ()), ())

    def current_player(self) -> int:
        """The player to move, or one of the special players of OpenSpiel."""
        return self._at.player

    def _legal_actions(self, player: int) -> list[int]:
        del player
        assert self._at.position is not None
        legal: list[int] = np.flatnonzero(self._at.position.legal).tolist()
        return legal

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcomes of the event under way, all equally likely."""
        at = self._at
        if at.position is None:
            outcomes = at.rules.chance.deal_outcomes(at.dealt)
        else:
            assert at.pending is not None
            outcomes = at.rules.chance.draw_outcomes(at.position.state, at.pending)
        return [(outcome, 1 / len(outcomes)) for outcome in outcomes]

    def apply_action(self, action: Any) -> None:
        """Play an action or an outcome.

        Raises ``TypeError`` for other values than one integer, which C++ would convert, and ``IllegalActionError``.
        """
        number = action_id(action)
        if not self._at.replay:
            self._require_legal(number)
        super().apply_action(number)

    def _apply_action(self, action: int) -> None:
        if self._at.replay:
            self._at = self._at.replayed()
            return
        self._require_legal(action)
        history = *(event.action for event in self._at.events), action
        self._at = self._at.rules.known.get(history) or self._at.rules.remember(self._at.after(action), history)

    def _require_legal(self, action: int) -> None:
        """Raise ``IllegalActionError`` for an action, or an outcome of chance, that is not possible here."""
        at = self._at
        if at.player == pyspiel.PlayerId.TERMINAL:
            raise IllegalActionError(f"action {action} is illegal: the game is over")
        if at.player == pyspiel.PlayerId.CHANCE:
            if action not in (outcomes := [outcome for outcome, _ in self.chance_outcomes()]):
                raise IllegalActionError(f"outcome {action} is impossible: it is not one of the {len(outcomes)} outcomes")
            return
        assert at.position is not None
        number = checked_action(action, at.rules.game.num_actions)
        if not at.position.legal[number]:
            rule = at.rules.game.host(at.position.state).explain(number)
            raise IllegalActionError(f"action {number} is illegal: {rule}")

    def _action_to_string(self, player: int, action: int) -> str:
        at = self._at
        if player == pyspiel.PlayerId.CHANCE:
            if at.position is None:
                event = at.rules.chance.deal_event(at.dealt, action)
            else:
                event = at.rules.chance.draw_event(at.position.state, action)
            return at.rules.chance.name(event)
        assert at.position is not None
        return at.rules.game.action_name(action, at.position.state) if at.position.legal[action] else str(action)

    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return bool(self._at.player == pyspiel.PlayerId.TERMINAL)

    def returns(self) -> list[float]:
        """The outcome by seat; zero before the end."""
        players, position = self._at.rules.game.num_players, self._at.position
        rewards = np.zeros(players) if position is None else position.rewards.astype(np.float64)
        if players > 1:
            rewards -= rewards.mean()  # what float32 has rounded: OpenSpiel wants a sum of 0 to nine digits
        result: list[float] = rewards.tolist()
        return result

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> "SpielState":
        """A state that a player cannot tell from this one, with a history that leads to it."""
        at = self._at
        if at.position is None or at.pending is not None:
            raise ValueError("states are resampled where players move, not while chance does")
        state, events = at.rules.chance.resample(at.position.state, at.events, player, sampler)
        target = _At(at.rules, tuple(events), single.of_state(at.rules.game, state))
        resampled = SpielState(self.get_game())
        resampled._at = _At(at.rules, replay=(0, target)) if events else target
        for event in events:
            resampled.apply_action(event.action)
        return resampled

    def __str__(self) -> str:
        at = self._at
        if at.position is None:
            return "\n".join(map(at.rules.chance.name, at.events)) or "before the deal"
        text: str = at.rules.game.host(at.position.state).text()
        return text if at.pending is None else f"{text}\nabout to draw"


@dataclass(frozen=True)
class _At:
    """Where a game stands; immutable, and so shared by copies of a state."""

    rules: _Rules
    events: tuple[Event, ...] = ()
    position: single.Position | None = None
    """``None`` while the deal is under way."""
    pending: int | None = None
    """An action whose event of chance is under way."""
    replay: "tuple[int, _At] | None" = None
    """While a known history is replayed: how many of its events have been, and where it leads."""

    def __deepcopy__(self, memo: Any) -> "_At":
        return self

    @property
    def dealt(self) -> list[int]:
        """The outcomes of the deal, while it is under way."""
        return [event.action for event in self.events]

    @property
    def player(self) -> int:
        """The player to move, or one of the special players of OpenSpiel."""
        if self.replay:
            played, target = self.replay
            event = target.events[played]
            return event.player if event.player >= 0 else pyspiel.PlayerId.CHANCE
        if self.position is None or self.pending is not None:
            return int(pyspiel.PlayerId.CHANCE)
        return int(pyspiel.PlayerId.TERMINAL) if self.position.is_terminal else self.position.current_player

    def after(self, action: int) -> "_At":
        """One action or one outcome further."""
        chance, position = self.rules.chance, self.position
        if position is None:
            return _begun(self.rules, (*self.events, chance.deal_event(self.dealt, action)))
        player = position.current_player
        if self.pending is not None:
            event = chance.draw_event(position.state, action)
            after = single.apply(self.rules.game, chance.with_draw(position.state, action), self.pending)
            return _At(self.rules, (*self.events, event), after)
        if chance.draw_outcomes(position.state, action):
            return _At(self.rules, (*self.events, Event(player, action)), position, action)
        after = single.apply(self.rules.game, position.state, action)
        event = chance.action_event(player, action, position.state, after.state)
        return _At(self.rules, (*self.events, event), after)

    def replayed(self) -> "_At":
        """One event further."""
        assert self.replay
        played, target = self.replay
        return target if played + 1 == len(target.events) else _At(self.rules, replay=(played + 1, target))

    def information_state(self, player: int) -> str:
        """All that a player has seen: actions and outcomes by number, a question mark for those that are hidden."""
        hidden = (event.seen_by is not None and event.seen_by != player for event in self.events)
        return f"{player}: " + " ".join(
            "?" if is_hidden else str(event.action) for event, is_hidden in zip(self.events, hidden, strict=True)
        )


def _begun(rules: _Rules, events: tuple[Event, ...]) -> _At:
    """In the deal, or before the first action where it is complete."""
    dealt = [event.action for event in events]
    if rules.chance.deal_outcomes(dealt):
        return _At(rules, events)
    return _At(rules, events, single.of_state(rules.game, rules.chance.start(dealt)))


class Observer:
    """What a player sees of a state, for OpenSpiel: the observation as a tensor, and the position as a text.

    With perfect recall the text is all that the player has ever seen, which is the information state; there is no tensor of it.
    """

    def __init__(self, game: Game[Any], perfect_recall: bool) -> None:
        self._game = game
        self._perfect_recall = perfect_recall
        shape = observation_shape(game)
        self.tensor: NDArray[np.float32] | None = None if perfect_recall else np.zeros(int(np.prod(shape)), np.float32)
        self.dict = {} if self.tensor is None else {"observation": self.tensor.reshape(shape)}

    def set_from(self, state: SpielState, player: int) -> None:
        """Write the observation into ``tensor`` and ``dict``; zero while the deal is under way."""
        position = state._at.position
        if self.tensor is not None:
            self.tensor[:] = 0 if position is None else single.observe(self._game, position.state, player).ravel()

    def string_from(self, state: SpielState, player: int) -> str:
        """The same as a text."""
        if self._perfect_recall:
            return state._at.information_state(player)
        position = state._at.position
        if position is None:
            return state._at.information_state(player)
        text: str = self._game.host(position.state).text(seat=player, open=False)
        return text


def _game_type(game: Game[Any]) -> Any:
    has_chance = game.chance().max_outcomes > 0
    kinds = pyspiel.GameType
    return kinds(
        short_name=PREFIX + game.id,
        long_name=describe(game.id) if game.id in available_games() else game.id,
        dynamics=kinds.Dynamics.SEQUENTIAL,
        chance_mode=kinds.ChanceMode.EXPLICIT_STOCHASTIC if has_chance else kinds.ChanceMode.DETERMINISTIC,
        information=kinds.Information.IMPERFECT_INFORMATION
        if game.has_hidden_information
        else kinds.Information.PERFECT_INFORMATION,
        utility=kinds.Utility.ZERO_SUM if game.num_players > 1 else kinds.Utility.GENERAL_SUM,
        reward_model=kinds.RewardModel.TERMINAL,
        max_num_players=game.num_players,
        min_num_players=game.num_players,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification=_defaults(game.id),
    )


# Parameters of OpenSpiel are typed by their defaults. Options that are numbers and words stand as they are; "" or -1 stands for
# None, and other options are texts in JSON with semicolons for commas.


def _defaults(name: str) -> dict[str, Any]:
    if name not in available_games():
        return {"rules": ""}
    return {option: _parameter(parameter, parameter.default) for option, parameter in options(name).items()}


def _parameters(game: Game[Any]) -> dict[str, Any]:
    if game.id not in available_games():
        return {"rules": repr(game)}  # such a game cannot be loaded by its name, but is told from others of that name
    given = {option: _parameter(options(game.id)[option], value) for option, value in game.options.items()}
    return {**_defaults(game.id), **given}


def _parameter(option: inspect.Parameter, value: Any) -> Any:
    if isinstance(option.default, (int, str)):
        return value
    if option.annotation == int | None:
        return -1 if value is None else value
    return "" if value is None else json.dumps(value, separators=(";", ":"))  # commas separate parameters


def _option(option: inspect.Parameter, value: Any) -> Any:
    """The inverse of ``_parameter``."""
    if isinstance(option.default, (int, str)):
        return value
    if option.annotation == int | None:
        return None if value == -1 else value
    return json.loads(value.replace(";", ",")) if value else None


def _registered(name: str) -> type:
    """The class of a game that OpenSpiel loads by its name.

    A class and no function: OpenSpiel releases what it was given after the interpreter has ended, which only what is never
    freed survives.
    """

    class Registered(SpielGame):
        def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
            known = options(name)
            given = {option: _option(known[option], value) for option, value in (parameters or {}).items()}
            super().__init__(single.as_game(name, given), parameters or {})

    return Registered


for _name in available_games():
    pyspiel.register_game(_game_type(single.as_game(_name, {})), _registered(_name))
