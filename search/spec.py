"""Agents as values: an ``AgentSpec`` is parsed once from a text, like ``puct:num_simulations=64``, and printed back to it."""

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from tilewe_jax.game import Action, Game, Policy
from tilewe_jax.search import memory
from tilewe_jax.search.determinization import Determinized
from tilewe_jax.search.evaluators import EvaluatorSettings
from tilewe_jax.search.exported import Network, as_tree, load, network_interface
from tilewe_jax.search.gumbel import GumbelRule
from tilewe_jax.search.ismcts import InformationSetSearch
from tilewe_jax.search.mcts import Search
from tilewe_jax.search.puct import PuctRule
from tilewe_jax.search.reuse import SubtreeReuse
from tilewe_jax.search.rules import SelectionRule
from tilewe_jax.search.settings import DEFAULT_CANDIDATE_POOL, SearchSettings
from tilewe_jax.search.tree import Tree
from tilewe_jax.settings import setting, validate
from tilewe_jax.utils.words import did_you_mean

Rule = PuctRule | GumbelRule
LoadNetwork = Callable[[Game[Any], str], Network]
"""Finds the network that a name stands for, for a game; raises ``ValueError`` where there is none."""

RULES: dict[str, type[Rule]] = {"puct": PuctRule, "gumbel": GumbelRule}
"""The selection rules by the kind of agent that uses them."""

# What a search without a network takes for settings that are left to the evaluator.
_POOL_WITHOUT_NETWORK = 128
_SCORE_WEIGHT_WITHOUT_NETWORK = 0.3


@dataclass(frozen=True)
class AgentSpec:
    """An agent: a policy of a game by name, or a search with its settings.

    As text, the settings are the fields of ``search``, ``rule`` and ``evaluator`` and those below, whatever they belong to. The
    defaults are for playing as well as possible; exploration, as self-play needs it, has to be asked for (``gumbel_scale``,
    ``dirichlet_alpha``, ``temperature``).

    >>> spec = AgentSpec.parse("gumbel:num_simulations=32,network=santorini")
    >>> spec.search.num_simulations, spec.rule.max_num_considered_actions
    (32, 16)
    >>> str(spec)
    'gumbel:num_simulations=32,network=santorini'

    Raises ``ValueError`` for settings out of range.
    """

    kind: str = "puct"
    """``puct``, ``gumbel``, or the name of a policy of the game, which has no settings."""
    search: SearchSettings = field(default_factory=lambda: SearchSettings(stop_early=True, exact_endings=True))
    rule: Rule | None = None
    """The selection rule; ``None`` is that of the kind, with its defaults."""
    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    num_determinizations: int = setting(4, 0)
    """In games with hidden information: determinizations, each searched separately with all simulations; 0 is one
    information-set search, with another determinization in each simulation."""
    reuse_subtree: bool = True
    """Whether players that play a whole game go on in the subtree of what has been played, see ``build_subtree_reuse``. A
    policy, which sees one position, never does, nor does any search where information is hidden."""

    def __post_init__(self) -> None:
        validate(self)
        if self.kind not in RULES:
            if replace(self, kind="puct") != AgentSpec():
                raise ValueError(f"{self.kind} has no settings; only {' and '.join(RULES)} have")
            return
        if self.rule is None:
            object.__setattr__(self, "rule", RULES[self.kind]())
        if not isinstance(self.rule, RULES[self.kind]):
            raise ValueError(f"the rule of {self.kind} is a {RULES[self.kind].__name__}, not {self.rule!r}")

    @classmethod
    def parse(cls, text: str) -> "AgentSpec":
        """The agent of a text, ``kind`` or ``kind:name=value,...``. Raises ``ValueError``, which says what there is."""
        kind, colon, rest = text.partition(":")
        if kind not in RULES:
            if colon:
                hint = did_you_mean(kind, RULES)
                raise ValueError(f"{kind!r} has no settings{hint}; agents with settings are {'; '.join(search_agents())}")
            return cls(kind)
        spec, texts = cls(kind), dict[str, str]()
        for item in rest.split(",") if rest else []:
            name, equals, value = item.partition("=")
            if not equals or (not value and spec.defaults().get(name)):
                raise ValueError(spec._no_value(name) if name in spec.defaults() else spec._no_setting(item))
            if name in texts:
                raise ValueError(f"{kind}: {name} is given twice")
            texts[name] = value
        return spec.with_settings(texts)

    def with_settings(self, texts: Mapping[str, str]) -> "AgentSpec":
        """The agent with some settings changed, given as text by name. Raises ``ValueError``, which says what there is."""
        owners = {item.name: (part, item.type) for part, owner in _parts(self) for item in _plain_fields(owner)}
        values: dict[str, dict[str, Any]] = {}
        for name, text in texts.items():
            if name not in owners:
                raise ValueError(self._no_setting(f"{name}={text}"))
            part, annotation = owners[name]
            values.setdefault(part, {})[name] = _parsed(f"{self.kind}: {name}", annotation, text)
        try:
            nested = {part: replace(getattr(self, part), **given) for part, given in values.items() if part}
            return replace(self, **nested, **values.get("", {}))
        except ValueError as error:
            raise ValueError(f"{self.kind}: {error}") from None

    def defaults(self) -> dict[str, str]:
        """The settings of an agent of this kind by name, with their defaults as text."""
        defaults = type(self)(self.kind)
        return {
            item.name: _printed(getattr(owner, item.name)) for _, owner in _parts(defaults) for item in _plain_fields(owner)
        }

    def _no_value(self, name: str) -> str:
        return f"{self.kind}: {name} needs a value, such as {name}={self.defaults()[name] or '...'}"

    def _no_setting(self, item: str) -> str:
        if not item:
            return f"{self.kind}: a setting is missing before or after a comma"
        name = item.partition("=")[0]
        others = [kind for kind in RULES if name in type(self)(kind).defaults()]
        hint = f" ({others[0]} has)" if others else did_you_mean(name, self.defaults())
        return f"{self.kind} has no setting {item!r}{hint}; it has {_describe(type(self)(self.kind), everything=True)}"

    def __str__(self) -> str:
        """The text that parses to this agent: its kind, and the settings that differ from the defaults."""
        settings = _describe(self) if self.is_search else ""
        return f"{self.kind}:{settings}" if settings else self.kind

    @property
    def settings(self) -> dict[str, str]:
        """All settings of a search by name, as text; none for another agent."""
        items = _describe(self, everything=True).split(",") if self.is_search else []
        return dict(item.split("=", 1) for item in items)

    @property
    def is_search(self) -> bool:
        """Whether the agent searches."""
        return self.kind in RULES

    def num_trees(self, game: Game[Any]) -> int:
        """Trees that are searched for a decision; 0 for an agent that does not search."""
        if not self.is_search:
            return 0
        return max(1, self.num_determinizations) if game.has_hidden_information else 1

    def num_simulations(self, game: Game[Any]) -> int:
        """Simulations of a decision in all trees, at most; 0 for an agent that does not search."""
        return self.search.num_simulations * self.num_trees(game)


def build(spec: AgentSpec, game: Game[Any], load_network: LoadNetwork = load) -> Policy:
    """The policy of an agent, a function of a state and a key.

    With a network it is a ``jax.tree_util.Partial`` with the weights, which are an argument of what is compiled then.

    Args:
        spec: the agent.
        game: the game that it plays.
        load_network: finds the network; see ``search.exported.load``.

    Raises:
        ValueError: the game has no such policy, or the settings do not fit it.
    """
    if not spec.is_search:
        return _policy_of(game, spec.kind)
    if not spec.evaluator.network:
        search = build_search(spec, game)
        return partial(_searched_action, search)
    network = load_network(game, spec.evaluator.network)
    build_search(spec, game, network)  # for errors, before it is compiled
    return jax.tree_util.Partial(partial(_searched_with, spec, game), as_tree(network))


def _searched_action(search: Any, state: Any, key: PRNGKeyArray) -> Action:
    action: Action = search(state, key).action
    return action


def _searched_with(spec: AgentSpec, game: Game[Any], network: Network, state: Any, key: PRNGKeyArray) -> Action:
    return _searched_action(build_search(spec, game, network), state, key)


def build_search(
    spec: AgentSpec, game: Game[Any], network: Network | None = None
) -> Search[Any] | Determinized[Any] | InformationSetSearch[Any]:
    """The search of an agent, for games with hidden information one that sees no more than the mover.

    Args:
        spec: the agent, one that searches.
        game: the game that it plays.
        network: what ``spec.evaluator.network`` stands for, already loaded; ``None`` where that is empty.

    Raises:
        ValueError: the agent does not search, or its settings do not fit the game.
    """
    if spec.rule is None:
        raise ValueError(f"{spec.kind} does not search")
    if network is None:
        settings = spec.search.resolve(_POOL_WITHOUT_NETWORK, DEFAULT_CANDIDATE_POOL, _SCORE_WEIGHT_WITHOUT_NETWORK)
    else:
        # Logits of an interface of its own are computed action by action, as those of the heuristics are.
        pool = DEFAULT_CANDIDATE_POOL if network_interface(game, network) is game else _POOL_WITHOUT_NETWORK
        settings = spec.search.resolve(pool, DEFAULT_CANDIDATE_POOL, getattr(network, "score_weight", 0.0))
    evaluator = spec.evaluator.build(game, settings.score_weight or 0.0, network)
    rule: SelectionRule = spec.rule
    if not game.has_hidden_information:
        return Search(game, evaluator, rule, settings)
    if not spec.num_determinizations:
        return InformationSetSearch(game, evaluator, rule, settings)
    return Determinized(Search(game, evaluator, rule, settings), spec.num_determinizations)


def build_subtree_reuse(spec: AgentSpec, game: Game[Any], network: Network | None = None) -> SubtreeReuse[Any] | None:
    """The agent as a player of whole games that searches on in its tree; ``None`` where it has none to keep.

    That is where it does not search, ``reuse_subtree`` is off, or the game has hidden information. Arguments and errors are
    those of ``build_search``.
    """
    if not spec.is_search or not spec.reuse_subtree:
        return None
    search = build_search(spec, game, network)
    return SubtreeReuse(search) if isinstance(search, Search) else None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TreePlayer:
    """An agent as a player of whole games that keeps its tree from move to move: ``SubtreeReuse`` as a pytree of its weights.

    All methods are pure functions of one game, and can be mapped.
    """

    network: Any
    """The network with its weights, ``None`` for none."""
    spec: AgentSpec = field(metadata={"static": True})
    game: Game[Any] = field(metadata={"static": True})

    @property
    def _reuse(self) -> SubtreeReuse[Any]:
        reuse = build_subtree_reuse(self.spec, self.game, self.network)
        assert reuse
        return reuse

    def init(self, state: Any) -> Tree[Any]:
        """The memory at the beginning of a game."""
        return self._reuse.init(state)

    def act(self, memory: Tree[Any], state: Any, key: PRNGKeyArray) -> tuple[Action, Tree[Any]]:
        """The action in a position, and the memory after it; ``key`` is consumed."""
        output, memory = self._reuse.act(memory, state, key)
        return output.action, memory

    def advance(self, memory: Tree[Any], action: Action) -> Tree[Any]:
        """The memory after an action of any player."""
        return self._reuse.advance(memory, action)


def build_player(spec: AgentSpec, game: Game[Any], load_network: LoadNetwork = load) -> Policy | TreePlayer:
    """The agent as a player of whole games: a ``TreePlayer`` where it has a tree to keep, else its policy, see ``build``.

    Arguments and errors are those of ``build``.
    """
    if not spec.is_search or not spec.reuse_subtree or game.has_hidden_information:
        return build(spec, game, load_network)
    network = as_tree(load_network(game, spec.evaluator.network)) if spec.evaluator.network else None
    build_search(spec, game, network)  # for errors, before it is compiled
    return TreePlayer(network, spec, game)


def check_memory(spec: AgentSpec, game: Game[Any], batch: int, keeps_tree: bool = False) -> None:
    """Raise ``MemoryError`` where an agent's trees for ``batch`` games do not fit into memory, see ``memory.check_memory``.

    ``keeps_tree`` says whether it is a ``TreePlayer``, whose trees have room for twice as many nodes.
    """
    if spec.is_search:
        settings = spec.search
        num_nodes = (2 if keeps_tree else 1) * settings.num_simulations + 1
        memory.check_memory(game, num_nodes, settings.num_candidates, batch * spec.num_trees(game))


def search_agents() -> list[str]:
    """The kinds of agents that search, as texts with all their settings and the defaults of these."""
    return [f"{kind}:{_describe(AgentSpec(kind), everything=True)}" for kind in RULES]


def _policy_of(game: Game[Any], name: str) -> Policy:
    policies = game.policies()
    if name not in policies:
        known = [*policies, *RULES]
        raise ValueError(f"{game.id} has no agent {name!r}{did_you_mean(name, known)}; it has {', '.join(known)}")
    return policies[name]


def _parts(spec: AgentSpec) -> list[tuple[str, Any]]:
    """The dataclasses whose fields are settings, by the field of the agent that holds them; the agent itself comes last."""
    return [("search", spec.search), ("rule", spec.rule), ("evaluator", spec.evaluator), ("", spec)]


def _plain_fields(owner: Any) -> list[Any]:
    nested = ("kind", "search", "rule", "evaluator") if isinstance(owner, AgentSpec) else ()
    return [item for item in fields(owner) if item.name not in nested]


def _describe(spec: AgentSpec, everything: bool = False) -> str:
    """The settings of an agent as text: those that differ from the defaults, or all."""
    items = []
    for (_, owner), (_, defaults) in zip(_parts(spec), _parts(AgentSpec(spec.kind)), strict=True):
        for item in _plain_fields(owner):
            value = getattr(owner, item.name)
            if everything or value != getattr(defaults, item.name):
                items.append(f"{item.name}={_printed(value)}")
    return ",".join(items)


def _printed(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _parsed(name: str, annotation: Any, text: str) -> Any:
    """The value of a setting. Raises ``ValueError``."""
    kinds = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    if type(None) in kinds and text == "none":
        return None
    if bool in kinds:
        if text not in _BOOLEANS:
            raise ValueError(f"{name} must be true or false, not {text!r}")
        return _BOOLEANS[text]
    for kind, wanted in ((int, "an integer"), (float, "a number")):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                raise ValueError(f"{name} must be {wanted}, not {text!r}") from None
    return text


_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
