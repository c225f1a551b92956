"""Questions to engines, and the interface of engines."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

State = Literal["off", "starting", "ready", "failed"]


class EngineError(Exception):
    """A question without an answer; the message is the reason."""


class UnavailableError(EngineError):
    """No engine is available now; the question may be asked again later."""


@dataclass(frozen=True)
class Question:
    """A position to search."""

    game: str
    options: Mapping[str, Any]
    deal: Any
    actions: Sequence[int]
    agent: str
    max_seconds: float | None = None
    """Time limit, for agents that support one."""
    num_simulations: int | None = None
    """Overrides the number of simulations of the agent."""
    seed: int = 0
    """Random seed of the agent."""
    max_candidates: int = 10
    is_analysis: bool = False
    """Whether the question is an analysis or a hint, and no game waits for its answer."""
    turns: Sequence[int] | None = None
    """Positions to search in one batch, by the number of actions before them; ``None`` for the last one."""
    solve_nodes: int | None = None
    """Maximum number of positions visited to prove the result of a position; ``None`` proves none."""
    score_weight: float | None = None
    """Overrides the weight of the score in the values of the agent."""
    follow: Callable[[int], None] = field(default=lambda count: None, compare=False)
    """Called with the number of positions that were searched."""

    @property
    def num_answers(self) -> int:
        """Number of positions to search."""
        return 1 if self.turns is None else len(self.turns)

    @functools.cached_property
    def key(self) -> str:
        """Identifies the compiled search: positions with equal keys are searched in one batch."""
        return json.dumps([self.game, dict(self.options), self._settings], sort_keys=True)

    @property
    def _settings(self) -> dict[str, Any]:
        names = ("max_seconds", "num_simulations", "score_weight")
        settings = {name: getattr(self, name) for name in names}
        return {"agent": self.agent, **{name: value for name, value in settings.items() if value is not None}}

    def request(self, request_id: int) -> dict[str, Any]:
        """Return the request for ``tilewe-jax analyze``."""
        return {
            "id": request_id,
            "game": self.game,
            "options": dict(self.options),
            "deal": self.deal,
            "moves": list(self.actions),
            "agent": self._settings,
            "seed": self.seed,
            "max_candidates": self.max_candidates,
            **({} if self.turns is None else {"analyze_turns": list(self.turns)}),
            **({} if self.solve_nodes is None else {"solve_nodes": self.solve_nodes}),
        }


class Engines(Protocol):
    """The engines of a server: processes in ``engines.EnginePool``, players in plain Python in a browser."""

    @property
    def state(self) -> State:
        """State of the best engine that makes moves."""

    @property
    def reason(self) -> str | None:
        """Reason of the failure, if an engine has failed."""

    def listen(self, listener: Callable[[], None]) -> None:
        """Add a function to call when the state of an engine changes."""

    def is_warm(self, question: Question) -> bool:
        """Return whether the search for a question is compiled."""

    def estimate(self, question: Question) -> float | None:
        """Return the estimated seconds until the first answer to a question, or ``None`` if nothing similar was measured."""

    def num_waiting_with(self, question: Question) -> int:
        """Return the number of questions that wait for the same engine."""

    async def ask(self, question: Question) -> list[dict[str, Any]]:
        """Return the answers, one a position, as from ``tilewe-jax analyze``, by the number of actions.

        Raises ``EngineError``; cancelling withdraws the question.
        """
