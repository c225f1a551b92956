"""Games as Python games of OpenSpiel. Needs the extra ``[interop]``.

    import pyspiel
    from tilewe_jax.interop import open_spiel

    game = open_spiel.load_game("triominos", tiles=4, tray=1)
    game = pyspiel.load_game("tilewe_jax_triominos", {"tiles": 4, "tray": 1})

Importing this module registers all games. Deals and draws are explicit chance nodes. Games whose chance outcomes cannot be
enumerated raise ``ValueError``: games of Triominos to a target, and third-party games with chance.
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
"""Prefix of the short names of the games in OpenSpiel."""


def load_game(game: Game[Any] | str, /, **given: Any) -> Any:
    """Return a game as a ``pyspiel.Game``.

    Args:
      game: a game or its name.
      **given: options of a game given by name.

    Raises ``ValueError`` for a game whose chance outcomes cannot be enumerated.
    """
    value = single.as_game(game, given)
    return SpielGame(value, _parameters(value))


@dataclass(frozen=True)
class _Rules:
    """A game, its chance, and a cache of histories, which algorithms visit repeatedly."""

    game: Game[Any]
    chance: Chance
    known: dict[tuple[int, ...], "_At"] = field(default_factory=dict, compare=False)
    """Cached positions by the actions and chance outcomes before them."""

    def at(self, history: tuple[int, ...], make: "Callable[[], _At]") -> "_At":
        """Return the position after a history from the cache, or make it."""
        if history not in self.known:
            if len(self.known) * self.game.num_actions > _KNOWN_BYTES:
                self.known.clear()
            self.known[history] = make()
        return self.known[history]


_KNOWN_BYTES = 1 << 26
"""Maximum size of the cached masks of legal actions."""
_RULES: dict[str, _Rules] = {}
"""The rules of each game by ``str(game)``.

A ``pyspiel.Game`` loses its Python attributes when it passes through C++, for example when a state is deserialized.
"""


class SpielGame(GameBase):
    """A game of OpenSpiel; for utilities see ``batching.zero_sum``."""

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
        """Return the state before the first chance event or action."""
        return SpielState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return the maximum number of chance events in a game."""
        return _RULES[str(self)].chance.max_events

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> "Observer":
        """Return an ``Observer`` of states."""
        if params:
            raise ValueError(f"observers accept no parameters, got {params}")
        return Observer(_RULES[str(self)].game, bool(iig_obs_type and iig_obs_type.perfect_recall))


class SpielState(StateBase):
    """A state of a ``SpielGame``."""

    def __init__(self, game: SpielGame) -> None:
        super().__init__(game)
        rules = _RULES[str(game)]
        self._at = rules.at((), lambda: _start(rules, ()))

    def current_player(self) -> int:
        """Return the player to move, or a special player of OpenSpiel."""
        return self._at.player

    def _legal_actions(self, player: int) -> list[int]:
        del player
        assert self._at.position is not None
        legal: list[int] = np.flatnonzero(self._at.position.legal).tolist()
        return legal

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the outcomes of the current chance event, all equally likely."""
        at = self._at
        if at.position is None:
            outcomes = at.rules.chance.deal_outcomes(at.dealt)
        else:
            assert at.pending is not None
            outcomes = at.rules.chance.draw_outcomes(at.position.state, at.pending)
        return [(outcome, 1 / len(outcomes)) for outcome in outcomes]

    def apply_action(self, action: Any) -> None:
        """Play an action or a chance outcome.

        Raises ``TypeError`` for values other than one integer, which C++ would convert, and ``IllegalActionError``.
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
        self._at = self._at.rules.at(history, lambda: self._at.after(action))

    def _require_legal(self, action: int) -> None:
        """Raise ``IllegalActionError`` for an impossible action or chance outcome."""
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
        """Return whether the game is over."""
        return bool(self._at.player == pyspiel.PlayerId.TERMINAL)

    def returns(self) -> list[float]:
        """Return the outcome by seat; zero before the end."""
        players, position = self._at.rules.game.num_players, self._at.position
        rewards = np.zeros(players) if position is None else position.rewards.astype(np.float64)
        if players > 1:
            rewards -= rewards.mean()  # OpenSpiel requires a sum of 0 to nine digits, more than float32 has
        result: list[float] = rewards.tolist()
        return result

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> "SpielState":
        """Return a random state with the same information state of a player, and with a consistent history."""
        at = self._at
        if at.position is None or at.pending is not None:
            raise ValueError("cannot resample a chance node")
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
    """An immutable position in a game, shared by copies of a state."""

    rules: _Rules
    events: tuple[Event, ...] = ()
    position: single.Position | None = None
    """``None`` during the deal."""
    pending: int | None = None
    """Action whose chance event comes next."""
    replay: "tuple[int, _At] | None" = None
    """While a known history is replayed: the number of replayed events, and the final position."""

    def __deepcopy__(self, memo: Any) -> "_At":
        return self

    @property
    def dealt(self) -> list[int]:
        """Outcomes of the deal so far."""
        return [event.action for event in self.events]

    @property
    def player(self) -> int:
        """Return the player to move, or a special player of OpenSpiel."""
        if self.replay:
            played, target = self.replay
            event = target.events[played]
            return event.player if event.player >= 0 else pyspiel.PlayerId.CHANCE
        if self.position is None or self.pending is not None:
            return int(pyspiel.PlayerId.CHANCE)
        return int(pyspiel.PlayerId.TERMINAL) if self.position.is_terminal else self.position.current_player

    def after(self, action: int) -> "_At":
        """Return the position after an action or a chance outcome."""
        chance, position = self.rules.chance, self.position
        if position is None:
            return _start(self.rules, (*self.events, chance.deal_event(self.dealt, action)))
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
        """Return the position after the next replayed event."""
        assert self.replay
        played, target = self.replay
        return target if played + 1 == len(target.events) else _At(self.rules, replay=(played + 1, target))

    def information_state(self, player: int) -> str:
        """Return all actions and outcomes by number, with question marks for outcomes hidden from the player."""
        return f"{player}: " + " ".join(str(event.action) if event.seen_by in (None, player) else "?" for event in self.events)


def _start(rules: _Rules, events: tuple[Event, ...]) -> _At:
    """Return the position during the deal, or before the first action if the deal is complete."""
    dealt = [event.action for event in events]
    if rules.chance.deal_outcomes(dealt):
        return _At(rules, events)
    return _At(rules, events, single.of_state(rules.game, rules.chance.start(dealt)))


class Observer:
    """Observations of OpenSpiel: the observation of a player as a tensor, and the visible position as a text.

    With perfect recall, the text is the information state of the player, and no tensor is available.
    """

    def __init__(self, game: Game[Any], perfect_recall: bool) -> None:
        self._game = game
        self._perfect_recall = perfect_recall
        shape = observation_shape(game)
        self.tensor: NDArray[np.float32] | None = None if perfect_recall else np.zeros(int(np.prod(shape)), np.float32)
        self.dict = {} if self.tensor is None else {"observation": self.tensor.reshape(shape)}

    def set_from(self, state: SpielState, player: int) -> None:
        """Write the observation into ``tensor`` and ``dict``; zero during the deal."""
        position = state._at.position
        if self.tensor is not None:
            self.tensor[:] = 0 if position is None else single.observe(self._game, position.state, player).ravel()

    def string_from(self, state: SpielState, player: int) -> str:
        """Return the observation as a text."""
        position = state._at.position
        if self._perfect_recall or position is None:
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


# The type of an OpenSpiel parameter is the type of its default. Numbers and strings are passed unchanged, None becomes "" or
# -1, and other options become JSON with semicolons instead of commas, which separate parameters.


def _defaults(name: str) -> dict[str, Any]:
    if name not in available_games():
        return {"rules": ""}
    return {option: _parameter(parameter, parameter.default) for option, parameter in options(name).items()}


def _parameters(game: Game[Any]) -> dict[str, Any]:
    if game.id not in available_games():
        return {"rules": repr(game)}  # not loadable by name, but distinguishes games with the same name
    given = {option: _parameter(options(game.id)[option], value) for option, value in game.options.items()}
    return {**_defaults(game.id), **given}


def _parameter(option: inspect.Parameter, value: Any) -> Any:
    if isinstance(option.default, (int, str)):
        return value
    if option.annotation == int | None:
        return -1 if value is None else value
    return "" if value is None else json.dumps(value, separators=(";", ":"))


def _option(option: inspect.Parameter, value: Any) -> Any:
    """The inverse of ``_parameter``."""
    if isinstance(option.default, (int, str)):
        return value
    if option.annotation == int | None:
        return None if value == -1 else value
    return json.loads(value.replace(";", ",")) if value else None


def _registered(name: str) -> type:
    """Return the class of a game that OpenSpiel loads by name.

    A class instead of a function, because OpenSpiel releases it after the end of the interpreter, which fails for functions.
    """

    class Registered(SpielGame):
        def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
            known = options(name)
            given = {option: _option(known[option], value) for option, value in (parameters or {}).items()}
            super().__init__(single.as_game(name, given), parameters or {})

    return Registered


for _name in available_games():
    pyspiel.register_game(_game_type(single.as_game(_name, {})), _registered(_name))
