"""Stand-ins for the settings of ``search`` under the names that are agreed; the search package's own take their place."""

from dataclasses import dataclass

from experiments.settings import setting


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a tree search, whatever rule selects its actions."""

    num_simulations: int = setting(64, minimum=1)
    """Number of simulations of a search."""
    num_candidates: int = setting(64, minimum=1)
    """Number of candidate actions per node."""
    candidate_pool: int = setting(1024, minimum=1)
    """At most this many legal actions are scored per node; beyond that, a uniform sample of them."""
    max_depth: int = setting(32, minimum=1)
    """Maximum depth of a simulation."""
    score_weight: float = setting(0.0, minimum=0, maximum=1)
    """Weight of the score (``Game.heuristic_value`` at the end), against the outcome, in values."""
    stop_early: bool = setting(False)
    """Whether a search stops once its remaining simulations cannot change the action."""


@dataclass(frozen=True)
class PuctRule:
    """Settings of action selection by PUCT."""

    c_init: float = setting(1.25, minimum=0)
    """Exploration constant: the weight of priors against values."""
    c_base: float = setting(19_652.0, positive=True)
    """Number of visits after which exploration has grown by log(2)."""
    fpu_reduction: float = setting(0.1, minimum=0)
    """First-play urgency reduction: what an unvisited action's value is below that of its node."""
    fpu_value: float | None = setting(None)
    """Value of an unvisited action; by default that of its node less the reduction."""
    dirichlet_alpha: float = setting(0.0, minimum=0)
    """Parameter of the Dirichlet noise in the priors of the root; 0 draws none."""
    dirichlet_fraction: float = setting(0.25, minimum=0, maximum=1)
    """Weight of the noise in the priors."""
    forced_playouts: float = setting(0.0, minimum=0)
    """The constant k of forced playouts (KataGo); 0 forces none."""
    temperature: float = setting(0.0, minimum=0)
    """Temperature at which the action is drawn from the visits; 0 takes the most visited one."""


@dataclass(frozen=True)
class GumbelRule:
    """Settings of action selection by Gumbel AlphaZero."""

    max_num_considered_actions: int = setting(16, minimum=1)
    """Number of candidates with which sequential halving begins at the root."""
    gumbel_scale: float = setting(0.0, minimum=0)
    """Scale of the Gumbel noise at the root; 0 draws none."""
    value_scale: float = setting(0.1, minimum=0)
    """Weight of completed values against logits."""
    maxvisit_init: float = setting(50.0, minimum=0)
    """Constant added to the largest visit count in the weight of values."""
