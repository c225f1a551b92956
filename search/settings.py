"""The settings that all searches share."""

from dataclasses import dataclass, replace

from tilewe_jax.settings import setting, validate

DEFAULT_CANDIDATE_POOL = 1024
"""Default of ``candidate_pool``."""


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search except its rule and evaluator. Raises ``ValueError`` for numbers out of range."""

    num_simulations: int = setting(64, 1)
    """Number of simulations; each evaluates one position. The evaluation of the root is not counted."""
    num_candidates: int = setting(64, 1)
    """Number of candidate actions of a node, K."""
    candidate_pool: int | None = setting(None, 1)
    """At most this many legal actions are scored per node; beyond that, a uniform sample of them. ``None`` means 128 for agents
    without a network, otherwise 1,024."""
    max_depth: int = setting(32, 1)
    """Maximum depth of a simulation below the root."""
    score_weight: float | None = setting(None, 0, 1)
    """Weight of the score utility ``Game.heuristic_value`` against win or loss in the value of finished games. ``None`` means,
    for agents, the weight that the network was trained with, or 0.3 without a network; otherwise 0."""
    stop_early: bool = False
    """Stop the search of a game once the remaining simulations cannot change the action."""
    root_candidate_pool: int | None = setting(None, 1)
    """At most this many legal actions are scored at the root, or ``candidate_pool`` if that is more. ``None`` means 1,024 for
    agents, otherwise ``candidate_pool``."""
    widen_visits: int | None = setting(None, 0)
    """A node with this many visits is widened: it is evaluated once more, keeps the candidates that were visited, and gets its
    other candidates from ``root_candidate_pool``. The root of a reused tree is always widened; with 0, no other node is.
    ``None`` means 1/32 of ``num_simulations``, at least 16. Only one round of simulations in eight widens nodes."""
    leaves: int | None = setting(None, 1)
    """Number of leaves per tree that are evaluated in one batch. They are selected one after the other; earlier ones count as
    visits under way. ``None`` means, for agents, one for each 500 simulations, at least 1 and at most 8; otherwise 1."""
    virtual_loss: float = setting(0.0, 0)
    """Subtracted from the mean value of a candidate for each visit under way, with several leaves: 0 counts the visits only
    (WU-UCT, Liu et al. 2020), 1 counts them as losses."""
    exact_endings: bool = False
    """Propagate proven values up the tree and stop once the root is proven (MCTS-Solver, Winands et al. 2008, for
    any number of players)."""
    solve_nodes: int = setting(0, 0)
    """With ``exact_endings``, solve the root before the search, visiting at most this many positions, if few legal actions
    are left (see ``solve``). A solved root is proven, and the best action is played without simulations. 0 solves nothing.
    Only for two players without hidden information."""
    lookahead: bool = False
    """Use the game's exact lookahead, ``Game.outcomes_of_actions``, at each node: only proven wins are candidates if
    there are any, proven losses only if there is nothing else. The node takes a proven outcome as its value; with
    ``exact_endings`` it is not searched further."""

    def __post_init__(self) -> None:
        validate(self)

    @property
    def has_wide_nodes(self) -> bool:
        """True if roots have a larger pool than other nodes."""
        return (self.root_candidate_pool or 0) > (self.candidate_pool or DEFAULT_CANDIDATE_POOL)

    @property
    def visits_to_widen(self) -> int:
        """Number of visits at which a node is widened; 0 if no node is."""
        if not self.has_wide_nodes:
            return 0
        return max(16, self.num_simulations // 32) if self.widen_visits is None else self.widen_visits

    def resolve(self, candidate_pool: int, root_candidate_pool: int, score_weight: float) -> "SearchSettings":
        """Return the settings of an agent, with each ``None`` replaced: by its own defaults, or by the given value."""
        return replace(
            self,
            candidate_pool=candidate_pool if self.candidate_pool is None else self.candidate_pool,
            root_candidate_pool=root_candidate_pool if self.root_candidate_pool is None else self.root_candidate_pool,
            score_weight=score_weight if self.score_weight is None else self.score_weight,
            leaves=min(8, max(1, self.num_simulations // 500)) if self.leaves is None else self.leaves,
        )
