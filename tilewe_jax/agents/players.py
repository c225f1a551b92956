"""Players of the arena: policies on the device, and players on the host, by name."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar, runtime_checkable

from tilewe_jax.agents.levels import agent_of, is_name, level_names
from tilewe_jax.game import Game, Policy
from tilewe_jax.host import HostPosition
from tilewe_jax.networks import weights
from tilewe_jax.search import AgentSpec, Network, TreePlayer, build_player
from tilewe_jax.search.spec import RULES
from tilewe_jax.utils import factories
from tilewe_jax.utils.trust import trusting
from tilewe_jax.utils.words import did_you_mean

View = TypeVar("View")


@dataclass
class HostGame:
    """A game under way, as players on the host see it."""

    game: Game[Any]
    """The rules."""
    start: Callable[[], Any]
    """Gives the state of the new game."""
    actions: list[int] = field(default_factory=list)
    """Ids of the actions played so far."""
    _views: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def view(self, name: str, begin: Callable[[], View], play: Callable[[View, int], View]) -> View:
        """The position in the form of some library, kept up to date and shared by all players that ask for it by ``name``.

        ``begin`` makes the starting position, and ``play`` gives the position after an action.
        """
        position, played = self._views.get(name) or (begin(), 0)
        for action in self.actions[played:]:
            position = play(position, action)
        self._views[name] = position, len(self.actions)
        return position

    @property
    def position(self) -> HostPosition:
        """The position in plain Python, see ``Game.host``."""

        def begin() -> HostPosition:
            return self.game.host(self.start())

        position: HostPosition = self.view("host", begin, lambda position, action: position.after(action))
        return position


@runtime_checkable
class HostPlayer(Protocol):
    """A player that decides on the host, one game at a time."""

    name: str

    def choose(self, game: HostGame, seconds: float, seed: str) -> int:
        """The id of the action to play. Raises ``ForfeitError`` where there is none, or none in time.

        Args:
            game: the game under way; the player must leave it as it is.
            seconds: time for the move.
            seed: differs for every move of every game, for players that draw random numbers.
        """
        ...


@runtime_checkable
class ParallelHostPlayer(HostPlayer, Protocol):
    """A player on the host that can decide in several games at once."""

    def choose_all(self, games: Sequence[HostGame], seconds: float, seeds: Sequence[str]) -> "list[int | ForfeitError]":
        """``choose`` in each of these games; where it would raise ``ForfeitError``, that error is the result."""
        ...


class ForfeitError(Exception):
    """Why a player lost the right to move."""


@dataclass(frozen=True)
class Player:
    """A player of the arena."""

    name: str
    agent: Policy | TreePlayer | HostPlayer
    spec: AgentSpec | None = None
    """The agent, where the player is one."""
    note: str | None = None
    """Something people should know about it, like weights that were trained for other options of the game."""


def _without_name(text: str) -> tuple[str, str]:
    """The name that a text gives its agent, "" for none, and the agent."""
    head, equals, tail = text.partition("=")
    return (head, tail) if equals and ":" not in head else ("", text)


def names_code(text: str) -> bool:
    """Whether the text of an agent names code.

    It does unless it names a policy of the game, a level, or a search without colons in its settings whose network is weights.
    """
    what = _without_name(text)[1]
    kind, colon, settings = what.partition(":")
    if not colon:
        return False
    if kind not in RULES and not is_name(what):
        return True
    given = [item.partition("=") for item in settings.split(",")]
    return ":" in settings or any(name == "network" and weights.find(value) is None for name, _, value in given)


def player(game: Game[Any], text: str, trust: bool = False) -> Player:
    """The player that a text stands for.

    Args:
        game: the game to be played.
        text: an agent (``search.AgentSpec``); ``best`` or ``level:N``, see ``tilewe_jax.agents.levels.agent_of``;
            ``gtp:command="..."``, the command line of an engine that speaks GTP; or ``module:factory``, which is called without
            arguments and gives a policy or a player on the host. ``name=...`` gives it another name.
        trust: whether the file of its network may name code; the text itself, which the caller gives, always may.

    Raises ``ValueError`` where there is no such player, or where it does not play this game.
    """
    name, what = _without_name(text)
    module, colon, factory = what.partition(":")
    if not colon or module in RULES or is_name(what):
        with trusting(trust):
            return agent_player(game, name or what, what)
    _check_head(game, what)
    if module == "gtp":
        from tilewe_jax.agents.gtp_player import gtp_player

        return Player(name or what, gtp_player(game, what))
    value = factories.call(f"agent {what!r}", factories.find("agent", what))
    try:
        adapted = adapt(game, value)
    except ValueError as error:
        raise ValueError(f"agent {what!r} {error}") from None
    if adapted is None:
        raise ValueError(f"agent {what!r} gave {value!r}, which is neither a policy nor a player on the host")
    return Player(name or getattr(value, "name", factory), adapted)


def _check_head(game: Game[Any], text: str) -> None:
    """Check that what stands before the colon of an agent is an engine or a module. Raises ``ValueError``."""
    name, _, rest = text.partition(":")
    if name in ("", "gtp") or ("=" not in rest and _has_module(name)):
        return
    policies = game.policies()
    if name in policies:
        raise ValueError(f"the agent {name!r} of {game.id} has no settings; only {' and '.join(RULES)} have")
    if re.fullmatch(_LEVEL, text):
        raise ValueError(_no_agent(game, "", text))
    known = [*RULES, "best", "level", "gtp"]
    kinds = ", ".join(f"{kind}:..." for kind in known)
    hint = did_you_mean(name, [*known, *policies])
    raise ValueError(f"there is no search and no module {name!r}{hint}; agents with a colon are {kinds} and module:factory")


_LEVEL = r"l\w{0,5}l?e?s?\W*(\d+)"
"""A level in another spelling, like "level 8" or "lvl:8"."""


def _has_module(name: str) -> bool:
    """Return whether a module exists. Only the packages around it are imported."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
    except (Exception, SystemExit):  # a package around it fails: importing it says how
        return True


def adapt(game: Game[Any], value: Any) -> Policy | HostPlayer | None:
    """A value as a policy or a player on the host: through an adapter for its class, or as it is; ``None`` where it is neither.

    Raises ``ValueError`` where an adapter says that it does not play this game.
    """
    from tilewe_jax.agents.host_players import ADAPTERS

    for kind, adapter in ADAPTERS.items():
        if isinstance(value, kind):
            return adapter(game, value)
    return value if isinstance(value, HostPlayer) or callable(value) else None


def _no_agent(game: Game[Any], name: str, text: str) -> str:
    """The message for a text that is not an agent, with the probable meaning."""
    levels = level_names(game)
    if any(name in AgentSpec(kind).defaults() for kind in RULES):
        return f"{name}={text} is a setting, not an agent; settings follow a search after a colon: puct:{name}={text}"
    if text.isdecimal() or re.fullmatch(_LEVEL, text):
        hint = f"a level is written level:N, from {levels[0]} to {levels[-1]}" if levels else "it has no levels"
        return f"{game.id} has no agent {text!r}; {hint}"
    if text == "gtp":
        return 'gtp needs the command line of an engine, as in gtp:command="program -option"'
    known = [*game.policies(), *RULES, "best"]
    hint = did_you_mean(text, [*known, *levels])
    others = "level:N or module:factory" if levels else "module:factory"
    return f"{game.id} has no agent {text!r}{hint}; it has {', '.join(known)}; or give {others}"


def agent_player(game: Game[Any], name: str, text: str) -> Player:
    """The player of an agent text, with networks as ``tilewe_jax.networks.weights`` finds them. Raises ``ValueError``."""
    return spec_player(game, name, AgentSpec.parse(agent_of(game, text)))


def spec_player(game: Game[Any], name: str, spec: AgentSpec) -> Player:
    """The player of an agent; see ``agent_player``."""
    notes: list[str] = []

    def load(game: Game[Any], network: str) -> Network:
        loaded = weights.load(game, network)
        if note := getattr(loaded, "note", None):
            notes.append(note)
        return loaded

    if not spec.is_search and spec.kind not in game.policies():
        raise ValueError(_no_agent(game, name, spec.kind))
    agent = build_player(spec, game, load)
    return Player(name, agent, spec, notes[0] if notes else None)
