"""The settings of agents, and their text form, like ``puct:num_simulations=64,network=duo``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
from tilewe_jax.search.settings import DEFAULT_CANDIDATE_POOL, SearchSettings
from tilewe_jax.settings import leaves, parse, printed, setting, validate
from tilewe_jax.utils.words import did_you_mean

if TYPE_CHECKING:
    from tilewe_jax.host import HostGame

AnySearch = Search[Any] | Determinized[Any] | InformationSetSearch[Any]
RULES: dict[str, type[Any]] = {"puct": PuctRule, "gumbel": GumbelRule}
"""Selection rules by kind of agent."""

# Defaults of searches without a network.
_POOL_WITHOUT_NETWORK = 128
_SCORE_WEIGHT_WITHOUT_NETWORK = 0.3


@dataclass(frozen=True)
class AgentSpec:
    """The settings of an agent on the device: a policy of a game by name, or a search.

    The text form has the fields of ``search``, ``rule`` and ``evaluator`` and the fields below as one flat list. The defaults
    are for strong play; self-play enables exploration (``gumbel_scale``, ``dirichlet_alpha``, ``temperature``).

    >>> spec = AgentSpec.parse("gumbel:num_simulations=32,network=santorini")
    >>> spec.search.num_simulations, spec.rule.max_num_considered_actions
    (32, 16)
    >>> str(spec)
    'gumbel:num_simulations=32,network=santorini'

    Raises ``ValueError`` for settings out of range.
    """

    kind: str = "puct"
    """A key of ``RULES``, or the name of a policy of the game, which takes no settings."""
    search: SearchSettings = field(default_factory=lambda: SearchSettings(stop_early=True, exact_endings=True))
    rule: Any = None
    """The selection rule; ``None`` means the defaults of the kind."""
    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    num_determinizations: int = setting(4, 0)
    """Hidden information: number of determinizations, each searched with all simulations; 0 is one information-set search,
    which samples a new determinization in each simulation."""
    reuse_subtree: bool = True
    """Keep the subtree of the actions played in whole games without hidden information; ``Agent.act`` never does."""
    seconds: float | None = setting(None, 0)
    """Time limit per move in seconds, checked on the host between parts of the search; matches then play one game at a time.
    Information-set searches do not support it."""
    book: bool | str = False
    """Play the moves of an opening book while the position is in it, without a search: ``true`` for the shipped book of the
    game, or a file that ``tilewe-jax book`` wrote."""
    book_margin: float = setting(0.0, 0, 1)
    """Draw uniformly among the moves of the book whose value is at most this much below the value of its best move."""

    def __post_init__(self) -> None:
        validate(self)
        if self.kind not in RULES:
            if replace(self, kind="puct") != AgentSpec():
                raise ValueError(f"{self.kind!r} has no settings; only {' and '.join(RULES)} have")
            return
        if self.rule is None:
            object.__setattr__(self, "rule", RULES[self.kind]())
        if not isinstance(self.rule, RULES[self.kind]):
            raise ValueError(f"the rule of {self.kind} must be a {RULES[self.kind].__name__}, got {self.rule!r}")

    @classmethod
    def parse(cls, text: str, game: "Game[Any] | HostGame | None" = None) -> "AgentSpec":
        """Parse ``kind`` or ``kind:name=value,...``, and with a ``game`` also ``best`` and ``level:N``.

        Raises ``ValueError`` for an unknown setting or an invalid value.
        """
        kind, colon, rest = (text if game is None else agent_of(game, text)).partition(":")
        if kind not in RULES:
            if colon:
                raise ValueError(f"{kind!r} has no settings{did_you_mean(kind, RULES)}; only {' and '.join(RULES)} have")
            return cls(kind)
        spec, texts = cls(kind), dict[str, str]()
        for item in rest.split(",") if rest else []:
            name, _, value = item.partition("=")
            default = spec.settings.get(name)
            if default is None:
                raise ValueError(spec._no_setting(item))
            if (not value and default) or "=" not in item:
                raise ValueError(f"{kind}: {name} needs a value, such as {name}={default or '...'}")
            if name in texts:
                raise ValueError(f"{kind}: {name} is given twice")
            texts[name] = value
        return spec.with_settings(texts)

    def with_settings(self, texts: Mapping[str, str]) -> "AgentSpec":
        """Return the agent with some settings changed, given as texts. Raises ``ValueError`` like ``parse``."""
        owners = {name.rpartition(".")[2]: (name.rpartition(".")[0], kind) for name, _, kind, _ in leaves(self)}
        values: dict[str, dict[str, Any]] = {}
        for name, text in texts.items():
            if name not in self.settings:
                raise ValueError(self._no_setting(f"{name}={text}"))
            part, kind = owners[name]
            try:
                values.setdefault(part, {})[name] = parse(kind, text)
            except ValueError as error:
                raise ValueError(f"{self.kind}: {name} {error}") from None
        try:
            nested = {part: replace(getattr(self, part), **given) for part, given in values.items() if part}
            return replace(self, **nested, **values.get("", {}))
        except ValueError as error:
            raise ValueError(f"{self.kind}: {error}") from None

    def __str__(self) -> str:
        """Return the text that parses to this agent: its kind, and the settings that differ from the defaults."""
        defaults = type(self)(self.kind).settings
        changed = [f"{name}={text}" for name, text in self.settings.items() if text != defaults[name]]
        return f"{self.kind}:{','.join(changed)}" if changed else self.kind

    @property
    def settings(self) -> dict[str, str]:
        """All settings of a search by name, as texts; empty for a policy."""
        named = leaves(self) if self.is_search else ()
        return {name.rpartition(".")[2]: printed(value) for name, _, _, value in named if name != "kind"}

    @property
    def is_search(self) -> bool:
        """True if the agent searches."""
        return self.kind in RULES

    def num_trees(self, game: Game[Any]) -> int:
        """Return the number of trees of a decision; 0 for a policy."""
        if not self.is_search:
            return 0
        return max(1, self.num_determinizations) if game.has_hidden_information else 1

    def num_simulations(self, game: Game[Any]) -> int:
        """Return the maximum number of simulations of a decision in all trees; 0 for a policy."""
        return self.search.num_simulations * self.num_trees(game)

    def keeps_tree(self, game: Game[Any]) -> bool:
        """Return whether the agent reuses its tree between the moves of a game."""
        return self.is_search and self.reuse_subtree and not game.has_hidden_information

    def check_memory(self, game: Game[Any], batch: int, keeps_tree: bool = False) -> None:
        """Raise ``MemoryError`` if the trees of ``batch`` games do not fit into memory; kept trees have twice the capacity."""
        if self.is_search:
            num_nodes = (2 if keeps_tree else 1) * self.search.num_simulations + 1
            memory.check_memory(game, num_nodes, self.search.num_candidates, batch * self.num_trees(game))

    def build(self, game: Game[Any], network: Network | None = None) -> AnySearch:
        """Build the search; with hidden information it uses only the information of the player to move.

        Args:
            game: the game.
            network: the loaded network, to be passed to the search as ``params``; ``None`` without a network.

        Raises ``ValueError`` for a policy, or if the settings do not fit the game.
        """
        if not self.is_search:
            raise ValueError(f"{self.kind} does not search")
        pool, score_weight = _POOL_WITHOUT_NETWORK, _SCORE_WEIGHT_WITHOUT_NETWORK
        if network is not None:
            # The logits of a custom interface are computed per action, like heuristics.
            pool = DEFAULT_CANDIDATE_POOL if network_interface(game, network) is game else pool
            score_weight = getattr(network, "score_weight", 0.0)
        settings = self.search.resolve(pool, DEFAULT_CANDIDATE_POOL, score_weight)
        evaluator = self.evaluator.build(game, settings.score_weight or 0.0, network is not None)
        if game.has_hidden_information and not self.num_determinizations:
            return InformationSetSearch(game, evaluator, self.rule, replace(settings, leaves=self.search.leaves))
        search = Search(game, evaluator, self.rule, settings)
        return Determinized(search, self.num_determinizations) if game.has_hidden_information else search

    def _no_setting(self, item: str) -> str:
        if not item:
            return f"{self.kind}: a setting is missing before or after a comma"
        name = item.partition("=")[0]
        others = [kind for kind in RULES if name in type(self)(kind).settings]
        hint = f" ({others[0]} has)" if others else did_you_mean(name, self.settings)
        return f"{self.kind} has no setting {item!r}{hint}; tilewe-jax match --list shows all settings"


def search_agents() -> list[str]:
    """Return the text of each kind of search with all its settings and their defaults."""
    return [f"{kind}:" + ",".join(f"{name}={text}" for name, text in AgentSpec(kind).settings.items()) for kind in RULES]
