"""Searches as text: ``puct:num_simulations=64,network=duo`` and the settings that it stands for."""

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from tilewe_jax.agents.levels import agent_of
from tilewe_jax.game import Game
from tilewe_jax.search import memory
from tilewe_jax.search.determinization import Determinized
from tilewe_jax.search.evaluators import EvaluatorSettings
from tilewe_jax.search.exported import Network, network_interface
from tilewe_jax.search.gumbel import GumbelRule
from tilewe_jax.search.ismcts import InformationSetSearch
from tilewe_jax.search.mcts import Search
from tilewe_jax.search.puct import PuctRule
from tilewe_jax.search.settings import DEFAULT_CANDIDATE_POOL, SearchSettings, check_settings, setting
from tilewe_jax.utils.words import did_you_mean

if TYPE_CHECKING:
    from tilewe_jax.host import HostGame

AnySearch = Search[Any] | Determinized[Any] | InformationSetSearch[Any]
RULES: dict[str, type[Any]] = {"puct": PuctRule, "gumbel": GumbelRule}
"""The selection rules by the kind of agent that uses them."""

# What a search without a network takes for settings that are left to the evaluator.
_POOL_WITHOUT_NETWORK = 128
_SCORE_WEIGHT_WITHOUT_NETWORK = 0.3
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True)
class AgentSpec:
    """An agent of the device as text: a policy of a game by name, or a search with its settings.

    The settings are the fields of ``search``, ``rule`` and ``evaluator`` and those below, whatever they belong to. The defaults
    are for playing as well as possible; exploration, as self-play needs it, has to be asked for (``gumbel_scale``,
    ``dirichlet_alpha``, ``temperature``).

    >>> spec = AgentSpec.parse("gumbel:num_simulations=32,network=santorini")
    >>> spec.search.num_simulations, spec.rule.max_num_considered_actions
    (32, 16)
    >>> str(spec)
    'gumbel:num_simulations=32,network=santorini'

    Raises ``ValueError`` for settings out of range.
    """

    kind: str = "puct"
    """A name in ``RULES``, or the name of a policy of the game, which has no settings."""
    search: SearchSettings = field(default_factory=lambda: SearchSettings(stop_early=True, exact_endings=True))
    rule: Any = None
    """The selection rule; ``None`` is the rule of the kind, with its defaults."""
    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    num_determinizations: int = setting(4, 0)
    """In games with hidden information: determinizations, each searched separately with all simulations; 0 is one
    information-set search, with another determinization in each simulation."""
    reuse_subtree: bool = True
    """Whether the agent searches on in the subtree of what has been played, where it plays a whole game and no information is
    hidden. ``Agent.act``, which sees one position, never does."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.kind not in RULES:
            if replace(self, kind="puct") != AgentSpec():
                raise ValueError(f"{self.kind} has no settings; only {' and '.join(RULES)} have")
            return
        if self.rule is None:
            object.__setattr__(self, "rule", RULES[self.kind]())
        if not isinstance(self.rule, RULES[self.kind]):
            raise ValueError(f"the rule of {self.kind} is a {RULES[self.kind].__name__}, not {self.rule!r}")

    @classmethod
    def parse(cls, text: str, game: "Game[Any] | HostGame | None" = None) -> "AgentSpec":
        """The agent of a text: ``kind`` or ``kind:name=value,...``, and for a ``game`` also ``best`` and ``level:N``.

        Raises ``ValueError``, which says what there is.
        """
        kind, colon, rest = (text if game is None else agent_of(game, text)).partition(":")
        if kind not in RULES:
            if colon:
                searches = "; ".join(search_agents())
                raise ValueError(f"{kind!r} has no settings{did_you_mean(kind, RULES)}; agents with settings are {searches}")
            return cls(kind)
        spec, texts = cls(kind), dict[str, str]()
        for item in rest.split(",") if rest else []:
            name, equals, value = item.partition("=")
            default = spec.settings.get(name)
            if default is None or not equals:
                raise ValueError(spec._no_setting(item) if default is None else spec._no_value(name, default))
            if not value and default:
                raise ValueError(spec._no_value(name, default))
            if name in texts:
                raise ValueError(f"{kind}: {name} is given twice")
            texts[name] = value
        return spec.with_settings(texts)

    def with_settings(self, texts: Mapping[str, str]) -> "AgentSpec":
        """The agent with some settings changed, given as text by name. Raises ``ValueError``, which says what there is."""
        owners = {item.name: (part, item.type) for part, item in self._fields()}
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

    def __str__(self) -> str:
        """The text that parses to this agent: its kind, and the settings that differ from the defaults."""
        defaults = type(self)(self.kind).settings
        changed = [f"{name}={text}" for name, text in self.settings.items() if text != defaults[name]]
        return f"{self.kind}:{','.join(changed)}" if changed else self.kind

    @property
    def settings(self) -> dict[str, str]:
        """All settings of a search by name, as text; none for another agent."""
        values = ((item.name, getattr(getattr(self, part) if part else self, item.name)) for part, item in self._fields())
        return {name: str(value).lower() if value is None or isinstance(value, bool) else str(value) for name, value in values}

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

    def keeps_tree(self, game: Game[Any]) -> bool:
        """Whether the agent has a tree to keep from move to move of a game."""
        return self.is_search and self.reuse_subtree and not game.has_hidden_information

    def check_memory(self, game: Game[Any], batch: int, keeps_tree: bool = False) -> None:
        """Raise ``MemoryError`` where the trees for ``batch`` games do not fit into memory; kept ones have twice the room."""
        if self.is_search:
            num_nodes = (2 if keeps_tree else 1) * self.search.num_simulations + 1
            memory.check_memory(game, num_nodes, self.search.num_candidates, batch * self.num_trees(game))

    def build(self, game: Game[Any], network: Network | None = None) -> AnySearch:
        """The search, for games with hidden information one that sees no more than the mover.

        Args:
            game: the game that it plays.
            network: what ``evaluator.network`` stands for, already loaded; ``None`` where that is empty.

        Raises ``ValueError`` where the agent does not search, or its settings do not fit the game.
        """
        if not self.is_search:
            raise ValueError(f"{self.kind} does not search")
        pool, score_weight = _POOL_WITHOUT_NETWORK, _SCORE_WEIGHT_WITHOUT_NETWORK
        if network is not None:
            # Logits of an interface of its own are computed action by action, as those of the heuristics are.
            pool = DEFAULT_CANDIDATE_POOL if network_interface(game, network) is game else pool
            score_weight = getattr(network, "score_weight", 0.0)
        settings = self.search.resolve(pool, DEFAULT_CANDIDATE_POOL, score_weight)
        evaluator = self.evaluator.build(game, settings.score_weight or 0.0, network)
        if game.has_hidden_information and not self.num_determinizations:
            return InformationSetSearch(game, evaluator, self.rule, settings)
        search = Search(game, evaluator, self.rule, settings)
        return Determinized(search, self.num_determinizations) if game.has_hidden_information else search

    def _fields(self) -> list[tuple[str, Any]]:
        """The fields that are settings, each with the field of the agent that holds it, "" for the agent itself."""
        if not self.is_search:
            return []
        parts = ("search", "rule", "evaluator")
        nested = [(part, item) for part in parts for item in fields(getattr(self, part))]
        return nested + [("", item) for item in fields(self) if item.name not in ("kind", *parts)]

    def _no_value(self, name: str, default: str) -> str:
        return f"{self.kind}: {name} needs a value, such as {name}={default or '...'}"

    def _no_setting(self, item: str) -> str:
        if not item:
            return f"{self.kind}: a setting is missing before or after a comma"
        name = item.partition("=")[0]
        defaults = type(self)(self.kind).settings
        others = [kind for kind in RULES if name in type(self)(kind).settings]
        hint = f" ({others[0]} has)" if others else did_you_mean(name, defaults)
        known = ",".join(f"{name}={text}" for name, text in defaults.items())
        return f"{self.kind} has no setting {item!r}{hint}; it has {known}"


def search_agents() -> list[str]:
    """The kinds of agents that search, as texts with all their settings and the defaults of these."""
    return [f"{kind}:" + ",".join(f"{name}={text}" for name, text in AgentSpec(kind).settings.items()) for kind in RULES]


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
