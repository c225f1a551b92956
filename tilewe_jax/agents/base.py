"""The agent: a policy, a search, or a player on the host, created from text or from a value by ``agent``."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from tilewe_jax.agents.book import BookTable
from tilewe_jax.agents.book import load as load_book
from tilewe_jax.agents.endings import solver_of
from tilewe_jax.agents.host_player import HostPlayer
from tilewe_jax.agents.levels import is_name, level_names
from tilewe_jax.agents.spec import RULES, AgentSpec, AnySearch
from tilewe_jax.game import Action, Game, Policy
from tilewe_jax.lanes import any_lane
from tilewe_jax.networks import weights
from tilewe_jax.search import Determinized, InformationSetSearch, Network, PolicyOutput, Search, Solution, SubtreeReuse, solve
from tilewe_jax.search.evaluators import check_network
from tilewe_jax.search.exported import as_tree
from tilewe_jax.search.solve import DEFAULT_MAX_NODES
from tilewe_jax.utils import factories
from tilewe_jax.utils.loops import cond
from tilewe_jax.utils.trust import trusting
from tilewe_jax.utils.words import did_you_mean

if TYPE_CHECKING:
    from tilewe_jax.agents.host_agent import HostAgent

_BOOK_STREAM = 9
"""Folded into the key of a decision to draw a move of the book, so that searches draw the same numbers with and without one."""
_NETWORKS = "tilewe_jax.networks."
"""Prefix of the modules of the networks of this package."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Agent:
    """An agent that plays a game, see ``agent``. It is a pytree whose leaves are its weights.

    ``act``, ``search`` and ``solve`` are pure functions of one position, for ``jit`` and ``vmap``. ``init``, ``play`` and
    ``advance`` are pure functions that play whole games and carry a memory: the search tree of an agent that keeps its tree.
    ``host`` plays whole games on the host.
    """

    weights: Any
    """The network of a search, ``None`` for a search without a network; otherwise the policy, as a pytree."""
    game: Game[Any] = field(metadata={"static": True})
    name: str = field(metadata={"static": True})
    spec: AgentSpec | None = field(default=None, metadata={"static": True})
    """The settings; ``None`` for an agent created from a value."""
    player: HostPlayer | None = field(default=None, metadata={"static": True})
    """The player that decides on the host; ``None`` for an agent on the device."""
    book: BookTable | None = None
    """The opening book; ``None`` without one."""

    @property
    def is_search(self) -> bool:
        """True if the agent searches on the device."""
        return self.spec is not None and self.spec.is_search

    @property
    def keeps_tree(self) -> bool:
        """True if the agent reuses its tree between the moves of a game."""
        return self.spec is not None and self.spec.keeps_tree(self.game)

    @property
    def note(self) -> str | None:
        """Note for the user about the weights, for example that they were trained for other options of the game."""
        return getattr(self.weights, "note", None)

    @property
    def identity(self) -> str | None:
        """``utils.programs.Program.identity`` of functions of the agent; ``None`` if third-party code takes part."""
        game, networks = identity_of_game(self.game), (jax.tree.structure(self.weights),) if self.is_search else ()
        if game is None or self.spec is None or self.player or not all(map(_is_of_package, networks)):
            return None
        return repr((game, self.spec))

    def act(self, state: Any, key: PRNGKeyArray) -> Action:
        """Return the action in a position, without tree reuse; ``key`` is consumed."""
        if self.is_search:
            action, _ = self._by_book(state, key, lambda: (self.search(state, key).action, None), None)
            return action
        if self.player:
            raise ValueError(f"{self.name} decides on the host; use Agent.host")
        chosen: Action = self.weights(state, key)
        return chosen

    def book_move(self, state: Any, key: PRNGKeyArray) -> Action:
        """Return the move of the opening book; -1 without a book, and if the position is not in it."""
        return self.book.move(self.game, state, jax.random.fold_in(key, _BOOK_STREAM)) if self.book else jnp.int32(-1)

    def _by_book(
        self, state: Any, key: PRNGKeyArray, search: Callable[[], tuple[Action, Any]], memory: Any
    ) -> tuple[Action, Any]:
        """Return the move of the book and the unchanged memory, or the results of the search if the position is not in it.

        A batch is searched unless all its positions are in the book.
        """
        if self.book is None:
            return search()
        move = self.book_move(state, key)
        action, memory = cond(any_lane(move < 0), search, lambda: (move, memory))
        return jnp.where(move < 0, action, move), memory

    def search(self, state: Any, key: PRNGKeyArray) -> PolicyOutput:
        """Search a position: a ``SearchOutput``, or with hidden information a ``PolicyOutput``; ``key`` is consumed.

        The opening book is not used.

        Raises ``ValueError`` for an agent that does not search.
        """
        if self.spec and self.spec.seconds is not None:
            raise ValueError(f"{self.name} keeps to a time limit, which needs the host; use Agent.host")
        output: PolicyOutput = self.built()(state, key, self.weights)
        return output

    def solve(self, state: Any, *, max_nodes: int = DEFAULT_MAX_NODES, margin: bool = True) -> Solution:
        """Return the exact result of a position under best play, for games with two players and no hidden information.

        The result depends on the rules alone, and not on the settings of the agent. Outside of ``jit``, each game and bound
        compiles once. Inside, ``tilewe_jax.search.solve`` is called with its default ``max_moves``.

        >>> import jax, tilewe_jax
        >>> game = tilewe_jax.make("tilewe", players=2, size=4, pieces=["I2", "L3"])
        >>> solution = tilewe_jax.agent("random", game).solve(game.init(jax.random.key(0)), max_nodes=1_000)
        >>> bool(solution.is_exact), solution.returns.tolist(), int(solution.low), int(solution.high)
        (True, [0.5, 0.5], 0, 0)

        Args:
            state: the position.
            max_nodes: maximum number of positions to visit. If they do not suffice, ``Solution.is_exact`` is false, and the
                other fields hold the bounds that are proven.
            margin: whether to prove the margin too, and not only the outcome, which takes fewer positions.

        Raises like ``tilewe_jax.search.solve``.
        """
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(state)):
            return solve(self.game, state, max_nodes=max_nodes, margin=margin)
        solution: Solution = jax.device_put(solver_of(self.game, max_nodes, margin).solve(state))
        return solution

    def built(self) -> AnySearch:
        """Return the search, whose ``params`` are ``weights``. Raises ``ValueError`` for an agent that does not search."""
        if self.spec is None:
            raise ValueError(f"{self.name} does not search")
        return self.spec.build(self.game, self.weights if self.spec.is_search else None)

    @property
    def _reuse(self) -> SubtreeReuse[Any]:
        search = self.built()
        assert isinstance(search, Search)
        return SubtreeReuse(search)

    def init(self, state: Any) -> Any:
        """Return the memory at the start of a game; ``None`` for an agent without a tree."""
        return self._reuse.init(state) if self.keeps_tree else None

    def play(self, memory: Any, state: Any, key: PRNGKeyArray) -> tuple[Action, Any]:
        """Return the action in a position of a game, and the new memory; ``key`` is consumed."""
        if not self.keeps_tree:
            return self.act(state, key), memory

        def search() -> tuple[Action, Any]:
            output, after = self._reuse.act(memory, state, key, self.weights)
            return output.action, after

        return self._by_book(state, key, search, memory)

    def advance(self, memory: Any, action: Action) -> Any:
        """Return the memory after an action of any player."""
        return self._reuse.advance(memory, action) if self.keeps_tree else memory

    def start(self, memory: Any, state: Any, key: PRNGKeyArray) -> Any:
        """Start a search that runs in parts, see ``Search.start``; ``key`` is consumed."""
        search = self._in_parts
        if isinstance(search, Determinized):
            return search.start(state, key)
        return search.start(self._reuse.recall(memory, state) if self.keeps_tree else search.init(state), key)

    def proceed(self, progress: Any, rounds: Any) -> Any:
        """Run a number of rounds of a search."""
        return self._in_parts.advance(progress, self.weights, rounds)

    def finish(self, progress: Any) -> tuple[Action, Any]:
        """Return the action of a search, and the new memory."""
        return self._in_parts.finish(progress).action, progress.tree if self.keeps_tree else None

    @property
    def _in_parts(self) -> Search[Any] | Determinized[Any]:
        search = self._reuse.search if self.keeps_tree else self.built()
        assert not isinstance(search, InformationSetSearch)
        return search

    def without_tree(self) -> "Agent":
        """Return the agent with a separate search for every move."""
        return replace(self, spec=replace(self.spec, reuse_subtree=False)) if self.spec and self.keeps_tree else self

    def host(self, seed: int = 0, deal: Any = None, ponders: bool = False) -> "HostAgent":
        """Return the agent as a player of whole games on the host, see ``HostAgent``."""
        from tilewe_jax.agents.host_agent import HostAgent

        return HostAgent(self, seed, deal, ponders)


def identity_of_game(game: Game[Any]) -> str | None:
    """Return ``utils.programs.Program.identity`` of functions of a game; ``None`` for a third-party game."""
    return repr(game) if type(game).__module__.startswith("tilewe_jax.games.") else None


def _is_of_package(structure: Any) -> bool:
    """Return whether all nodes of a pytree are networks of this package or built-in containers."""
    node = structure.node_data()
    is_known = node is None or node[0].__module__.split(".")[0] == "builtins" or node[0].__module__.startswith(_NETWORKS)
    return is_known and all(map(_is_of_package, structure.children()))


def agent(
    what: str | AgentSpec | Policy | HostPlayer,
    game: Game[Any],
    *,
    name: str = "",
    network: Network | None = None,
    trust: bool = False,
) -> Agent:
    """Create an agent from text or from a value.

    >>> import jax, tilewe_jax
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> agent = tilewe_jax.agent("puct:num_simulations=8,num_playouts=0", game)
    >>> states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 4))
    >>> jax.jit(jax.vmap(agent.act))(states, jax.random.split(jax.random.key(1), 4)).shape
    (4,)

    Args:
        what: settings, a policy, a player on the host, or a text: ``best``, the strongest shipped search; ``level:N``, from
            beginner to strongest; ``puct:...`` or ``gumbel:...``, a search with settings, see ``AgentSpec``; a policy of the
            game, like ``random``; ``gtp:command="..."``, the command line of a GTP engine; ``module:factory``, a function
            without arguments that returns a policy or a player on the host. ``NAME=...`` names the agent.
        game: the game.
        name: name of the agent, by default the text.
        network: replaces the network that the settings name.
        trust: whether a network file may name code; the text itself always may.

    Raises ``ValueError`` for an unknown agent, or one that does not play this game.
    """
    if isinstance(what, AgentSpec):
        return _by_settings(what, game, name or str(what), network, trust)
    if not isinstance(what, str):
        return _by_value(what, game, name or getattr(what, "name", "") or getattr(what, "__name__", "policy"))
    given, text = split_name(what)
    name, (head, colon, factory) = name or given, text.partition(":")
    if not colon or head in RULES or is_name(text):
        spec = AgentSpec.parse(text, game)
        if not spec.is_search and spec.kind not in game.policies():
            raise ValueError(_unknown_agent(game, given, text))
        return _by_settings(spec, game, name or text, network, trust)
    if head == "gtp":
        from tilewe_jax.agents.gtp_player import gtp_player

        return Agent(None, game, name or text, player=gtp_player(game, text))
    if head and ("=" in factory or not _has_module(head)):
        raise ValueError(_unknown_agent(game, given, text))
    value = factories.call(f"agent {text!r}", factories.find("agent", text))
    try:
        return _by_value(value, game, name or getattr(value, "name", factory))
    except ValueError as error:
        raise ValueError(f"agent {text!r} {error}") from None


def _by_settings(spec: AgentSpec, game: Game[Any], name: str, network: Network | None, trust: bool) -> Agent:
    if not spec.is_search:
        return Agent(as_tree(game.policies()[spec.kind]), game, name, spec)
    is_checked = False
    if network is None and spec.evaluator.network:
        with trusting(trust):
            network = weights.load(game, spec.evaluator.network)
        # Weights fit the game if their arrays have the shapes of the architecture, which tracing would only repeat.
        is_checked = _is_of_package(jax.tree.structure(as_tree(network)))
    if network is not None and not is_checked:
        check_network(game, network)
    book = load_book(game, spec.book).table(spec.book_margin) if spec.book else None
    created = Agent(None if network is None else as_tree(network), game, name, spec, book=book)
    # Building the search here reports all errors before anything is compiled.
    if isinstance(created.built(), InformationSetSearch) and spec.seconds is not None:
        raise ValueError("seconds is not supported by information-set searches (num_determinizations=0)")
    return created


def _by_value(value: Any, game: Game[Any], name: str) -> Agent:
    """Create the agent of a policy, a player on the host, or a value with an adapter. Raises ``ValueError`` for others."""
    from tilewe_jax.agents.host_players import ADAPTERS

    value = next((adapter(game, value) for kind, adapter in ADAPTERS.items() if isinstance(value, kind)), value)
    if isinstance(value, HostPlayer):
        return Agent(None, game, name, player=value)
    if not callable(value):
        raise ValueError(f"must be a policy or a player on the host, got {value!r}")
    return Agent(as_tree(value), game, name)


def split_name(text: str) -> tuple[str, str]:
    """Split ``NAME=...`` into the name, empty without one, and the agent."""
    head, equals, tail = text.partition("=")
    return (head, tail) if equals and ":" not in head else ("", text)


def names_code(text: str) -> bool:
    """Return whether the text of an agent may name code.

    Texts without code are policies, levels, and searches without colons in their settings whose network is weights.
    """
    kind, colon, settings = split_name(text)[1].partition(":")
    if not colon:
        return False
    if kind not in RULES and not is_name(kind):
        return True
    given = [item.partition("=") for item in settings.split(",")]
    return ":" in settings or any(name == "network" and weights.find(value) is None for name, _, value in given)


def _has_module(name: str) -> bool:
    """Return whether a module exists; only its parent packages are imported."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
    except (Exception, SystemExit):  # a parent package fails; importing the module reports the error
        return True


def _unknown_agent(game: Game[Any], name: str, text: str) -> str:
    """Return the error message for a text that is not an agent, with the nearest valid texts."""
    levels, policies, head = level_names(game), game.policies(), text.partition(":")[0]
    if any(name in AgentSpec(kind).settings for kind in RULES):
        return f"{name}={text} is a setting, not an agent; settings follow a search after a colon: puct:{name}={text}"
    if text.isdecimal() or re.fullmatch(r"l\w{0,5}l?e?s?\W*(\d+)", text):  # like "8", "lvl:8" or "level 8"
        hint = f"a level is written level:N, from {levels[0]} to {levels[-1]}" if levels else "it has no levels"
        return f"{game.id} has no agent {text!r}; {hint}"
    if text == "gtp":
        return 'gtp needs the command line of an engine, as in gtp:command="program -option"'
    if head != text and head in policies:
        return f"the agent {head!r} of {game.id} has no settings; only {' and '.join(RULES)} have"
    hint = did_you_mean(head, [*policies, *RULES, "best", "level", "gtp", *levels])
    known = ", ".join([*policies, *RULES, "best", *(["level:N"] if levels else []), 'gtp:command="..."', "module:factory"])
    problem = f"{game.id} has no agent {text!r}" if head == text else f"there is no search and no module {head!r}"
    return f"{problem}{hint}; available: {known}"
