"""Agents: what plays a game, by text or from a value; ``agent`` makes them all."""

import re
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import jax
from jaxtyping import PRNGKeyArray

from tilewe_jax.agents.host_player import HostPlayer
from tilewe_jax.agents.levels import is_name, level_names
from tilewe_jax.agents.spec import RULES, AgentSpec, AnySearch
from tilewe_jax.game import Action, Game, Policy
from tilewe_jax.networks import weights
from tilewe_jax.search import Determinized, InformationSetSearch, Network, PolicyOutput, Search, SubtreeReuse
from tilewe_jax.search.exported import as_tree
from tilewe_jax.utils import factories
from tilewe_jax.utils.trust import trusting
from tilewe_jax.utils.words import did_you_mean

if TYPE_CHECKING:
    from tilewe_jax.agents.host_agent import HostAgent


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Agent:
    """What plays a game: a policy, a search, or a player on the host; see ``agent``. A pytree of its weights.

    ``act`` and ``search`` are pure functions of one position, for ``jit`` and ``vmap``; ``host`` plays whole games, and so do
    ``init``, ``play`` and ``advance``, which are pure and carry a memory: the search tree of an agent that keeps one.
    """

    weights: Any
    """The network of a search, ``None`` for none; otherwise the policy, as a pytree."""
    game: Game[Any] = field(metadata={"static": True})
    name: str = field(metadata={"static": True})
    spec: AgentSpec | None = field(default=None, metadata={"static": True})
    """The settings, where the agent has a text that says them."""
    player: HostPlayer | None = field(default=None, metadata={"static": True})
    """Who decides on the host; ``None`` for an agent of the device."""

    @property
    def is_search(self) -> bool:
        """Whether the agent searches on the device."""
        return self.spec is not None and self.spec.is_search

    @property
    def keeps_tree(self) -> bool:
        """Whether the agent goes on in its tree from move to move of a game."""
        return self.spec is not None and self.spec.keeps_tree(self.game)

    @property
    def note(self) -> str | None:
        """Something that people should know, like weights that were trained for other options of the game."""
        return getattr(self.weights, "note", None)

    def act(self, state: Any, key: PRNGKeyArray) -> Action:
        """The action in a position, by a search that begins anew; ``key`` is consumed."""
        if self.is_search:
            return self.search(state, key).action
        if self.player:
            raise ValueError(f"{self.name} decides on the host; Agent.host plays its games")
        action: Action = self.weights(state, key)
        return action

    def search(self, state: Any, key: PRNGKeyArray) -> PolicyOutput:
        """The search of a position: a ``SearchOutput``, or where information is hidden a ``PolicyOutput``; ``key`` is consumed.

        Raises ``ValueError`` for an agent that does not search.
        """
        if self.spec and self.spec.seconds is not None:
            raise ValueError(f"{self.name} keeps to a time, which its host form can: Agent.host")
        output: PolicyOutput = self.built()(state, key)
        return output

    def built(self) -> AnySearch:
        """The search with its settings. Raises ``ValueError`` for an agent that does not search."""
        if self.spec is None:
            raise ValueError(f"{self.name} does not search")
        return self.spec.build(self.game, self.weights if self.spec.is_search else None)

    @property
    def _reuse(self) -> SubtreeReuse[Any]:
        search = self.built()
        assert isinstance(search, Search)
        return SubtreeReuse(search)

    def init(self, state: Any) -> Any:
        """The memory at the beginning of a game; ``None`` for an agent that keeps none."""
        return self._reuse.init(state) if self.keeps_tree else None

    def play(self, memory: Any, state: Any, key: PRNGKeyArray) -> tuple[Action, Any]:
        """The action in a position of a game, and the memory after it; ``key`` is consumed."""
        if not self.keeps_tree:
            return self.act(state, key), memory
        output, memory = self._reuse.act(memory, state, key)
        return output.action, memory

    def begin(self, memory: Any, state: Any, key: PRNGKeyArray) -> Any:
        """A search in a position of a game before its first round, see ``Search.begin``; ``key`` is consumed."""
        search = self.built()
        assert not isinstance(search, InformationSetSearch)
        if isinstance(search, Determinized):
            return search.begin(state, key)
        if self.keeps_tree:
            return self._reuse.search.begin(self._reuse.recall(memory, state), key)
        return search.begin(search.init(state), key)

    def proceed(self, progress: Any, rounds: Any) -> Any:
        """The search after so many more rounds."""
        search: Any = self._reuse.search if self.keeps_tree else self.built()
        return search.advance(progress, rounds=rounds)

    def finish(self, progress: Any) -> tuple[Action, Any]:
        """The action of a search, and the memory after it."""
        search: Any = self._reuse.search if self.keeps_tree else self.built()
        return search.finish(progress).action, progress.tree if self.keeps_tree else None

    def advance(self, memory: Any, action: Action) -> Any:
        """The memory after an action of any player."""
        return self._reuse.advance(memory, action) if self.keeps_tree else memory

    def without_tree(self) -> "Agent":
        """The agent that searches every position anew, also where it plays whole games."""
        return replace(self, spec=replace(self.spec, reuse_subtree=False)) if self.spec and self.keeps_tree else self

    def host(self, seed: int = 0, deal: Any = None, ponders: bool = False) -> "HostAgent":
        """The agent as a player of whole games on the host, see ``HostAgent``."""
        from tilewe_jax.agents.host_agent import HostAgent

        return HostAgent(self, seed, deal, ponders)


def agent(
    what: str | AgentSpec | Policy | HostPlayer,
    game: Game[Any],
    *,
    name: str = "",
    network: Network | None = None,
    trust: bool = False,
) -> Agent:
    """The agent that a text or a value stands for.

    >>> import jax, tilewe_jax
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> agent = tilewe_jax.agent("puct:num_simulations=8,num_playouts=0", game)
    >>> states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 4))
    >>> jax.jit(jax.vmap(agent.act))(states, jax.random.split(jax.random.key(1), 4)).shape
    (4,)

    Args:
        what: ``best``, the strongest search that is shipped for the game; ``level:N``, from beginner to strongest; a search
            ``puct:...`` or ``gumbel:...`` with its settings, see ``AgentSpec``; a policy of the game, like ``random``;
            ``gtp:command="..."``, the command line of an engine that speaks GTP; ``module:factory``, which is called without
            arguments and gives a policy or a player on the host. ``NAME=...`` gives it another name. Or a value: settings, a
            policy, or a player on the host.
        game: the game to be played.
        name: the name of the agent, by default the text.
        network: the network of a search, in place of the one that its settings name.
        trust: whether the file of a network may name code; the text itself, which the caller gives, always may.

    Raises ``ValueError`` where there is no such agent, or where it does not play this game.
    """
    if isinstance(what, AgentSpec):
        return _by_settings(what, game, name or str(what), network, trust)
    if not isinstance(what, str):
        return _by_value(what, game, name or getattr(what, "name", "") or getattr(what, "__name__", "policy"))
    given, text = _without_name(what)
    name, (head, colon, factory) = name or given, text.partition(":")
    if not colon or head in RULES or is_name(text):
        spec = AgentSpec.parse(text, game)
        if not spec.is_search and spec.kind not in game.policies():
            raise ValueError(_no_agent(game, given, text))
        return _by_settings(spec, game, name or text, network, trust)
    _check_head(game, text)
    if head == "gtp":
        from tilewe_jax.agents.gtp_player import gtp_player

        return Agent(None, game, name or text, player=gtp_player(game, text))
    value = factories.call(f"agent {text!r}", factories.find("agent", text))
    try:
        return _by_value(value, game, name or getattr(value, "name", factory))
    except ValueError as error:
        raise ValueError(f"agent {text!r} {error}") from None


def _by_settings(spec: AgentSpec, game: Game[Any], name: str, network: Network | None, trust: bool) -> Agent:
    if not spec.is_search:
        return Agent(as_tree(game.policies()[spec.kind]), game, name, spec)
    if network is None and spec.evaluator.network:
        with trusting(trust):
            network = weights.load(game, spec.evaluator.network)
    made = Agent(None if network is None else as_tree(network), game, name, spec)
    if isinstance(made.built(), InformationSetSearch) and spec.seconds is not None:  # for all errors, before it is compiled
        raise ValueError("seconds cannot be kept by a search of information sets")
    return made


def _by_value(value: Any, game: Game[Any], name: str) -> Agent:
    """The agent of a policy, a player on the host, or a value that has an adapter. Raises ``ValueError`` for others."""
    from tilewe_jax.agents.host_players import ADAPTERS

    value = next((adapter(game, value) for kind, adapter in ADAPTERS.items() if isinstance(value, kind)), value)
    if isinstance(value, HostPlayer):
        return Agent(None, game, name, player=value)
    if not callable(value):
        raise ValueError(f"gave {value!r}, which is neither a policy nor a player on the host")
    return Agent(as_tree(value), game, name)


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


def _no_agent(game: Game[Any], name: str, text: str) -> str:
    """The message for a text that is not an agent, with the probable meaning."""
    levels = level_names(game)
    if any(name in AgentSpec(kind).settings for kind in RULES):
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
