"""Settings as frozen dataclasses: the range of a field stands in its metadata and is checked when a value is made."""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

MAX_INT = 2**31 - 1
"""Largest integer of a setting: counters and sizes on devices are int32."""
DEFAULT_CANDIDATE_POOL = 1024
"""``candidate_pool`` where nothing else is given."""


def setting(default: Any, minimum: float | None = None, maximum: float | None = None) -> Any:
    """A dataclass field with a default and an inclusive range; ``check_settings`` enforces it.

    ``None`` is always allowed where it is the default.
    """
    return field(default=default, metadata={"minimum": minimum, "maximum": maximum})


def check_settings(settings: Any) -> None:
    """Raise ``ValueError`` where a number in a dataclass is not finite or lies outside the range of its field."""
    for item in fields(settings):
        value = getattr(settings, item.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            check_number(item.name, value, item.metadata.get("minimum"), item.metadata.get("maximum"))


def is_finite(value: float) -> bool:
    """Whether a number is finite, and where it is an integer, not larger than any float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def check_number(name: str, value: float, minimum: float | None = None, maximum: float | None = None) -> None:
    """Raise ``ValueError`` where a number is not finite or lies outside an inclusive range."""
    if not is_finite(value):
        raise ValueError(f"{name} must be a finite number, not {value}")
    if minimum is not None and maximum is not None and not minimum <= value <= maximum:
        raise ValueError(f"{name} must be between {minimum} and {maximum}, not {value}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {value}")
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise ValueError(f"{name} must be at most {MAX_INT}, not {value}")


@dataclass(frozen=True)
class SearchSettings:
    """The size of a search, whatever its rule and evaluator. Raises ``ValueError`` for numbers out of range."""

    num_simulations: int = setting(64, 1)
    """Simulations a search; each evaluates one position. The root is evaluated before them and not counted."""
    num_candidates: int = setting(64, 1)
    """K, the actions that a node keeps."""
    candidate_pool: int | None = setting(None, 1)
    """At most this many legal actions are scored per node; beyond that, a uniform sample of them. ``None`` leaves it to the
    evaluator: an agent without a network scores 128, everything else 1,024."""
    max_depth: int = setting(32, 1)
    """Simulations go no deeper than this below the root."""
    score_weight: float | None = setting(None, 0, 1)
    """Weight of the score utility ``Game.heuristic_value`` in the value of finished games, against win or loss. ``None`` leaves
    it to the evaluator: an agent with a network takes what that was trained for, one without 0.3; everything else takes 0."""
    stop_early: bool = False
    """Whether a game's search ends once its remaining simulations cannot change the action. The policy is then that of the
    simulations run."""
    root_candidate_pool: int | None = setting(None, 1)
    """At most this many legal actions are scored at the root, where what is left out is lost for good. ``None`` leaves it to
    the evaluator: an agent scores 1,024, everything else as many as in other nodes."""
    leaves: int = setting(1, 1)
    """Simulations of one tree that are evaluated together: that many leaves are selected one after the other, each as if the
    ones before it were under way, and go through the evaluator in one batch."""
    virtual_loss: float = setting(0.0, 0)
    """With several leaves: what is taken off the mean value of a candidate for each of its visits that is under way. 0 counts
    these visits alone (WU-UCT, Liu et al. 2020), 1 takes them for losses."""
    exact_endings: bool = False
    """Whether proven values travel up the tree, and end the search once the root is proven (MCTS-Solver, Winands et al. 2008,
    here for any number of players)."""
    lookahead: bool = False
    """Whether the exact lookahead of a game that has one, ``Game.outcomes_of_actions``, chooses among the actions of each node:
    those that provably lose are no candidates as long as there are others, and those that win are the only ones. A node whose
    outcome it proves is worth that outcome; with ``exact_endings`` it is searched no further."""

    def __post_init__(self) -> None:
        check_settings(self)

    def resolve(self, candidate_pool: int, root_candidate_pool: int, score_weight: float) -> "SearchSettings":
        """These settings with the numbers of an evaluator in place of ``None``."""
        return replace(
            self,
            candidate_pool=candidate_pool if self.candidate_pool is None else self.candidate_pool,
            root_candidate_pool=root_candidate_pool if self.root_candidate_pool is None else self.root_candidate_pool,
            score_weight=score_weight if self.score_weight is None else self.score_weight,
        )
