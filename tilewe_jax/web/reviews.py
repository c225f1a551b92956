"""Reviews of finished games and studies: one engine values all positions, see ``tilewe_jax.agents.review``."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewe_jax.agents.review import RecordedGame, review_of
from tilewe_jax.host import HostGame
from tilewe_jax.interop.analysis_requests import GameSpec, Request
from tilewe_jax.web.limits import Buckets
from tilewe_jax.web.questions import EngineError, Question
from tilewe_jax.web.room import analysis_of, result_of
from tilewe_jax.web.rooms import Rooms
from tilewe_jax.web.session import RefusedError, Session

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

REVIEW_SECONDS = 180.0
"""Time for the review by the strongest agent. After it, or after its failure, the agent of the analyses reviews the game."""
SOLVE_NODES = 20_000
"""Maximum number of positions visited to prove the result of a position."""
POLL_SECONDS = 1.0
"""Time that a request waits for a review that is not finished."""
MAX_REVIEWS = 64
"""Maximum number of reviews in memory."""


@dataclass(eq=False)
class _Job:
    """A review in progress, or finished."""

    num_positions: int
    num_searched: int = 0
    task: "asyncio.Task[Json] | None" = None

    def follow(self, count: int) -> None:
        """Note the number of positions that were searched."""
        self.num_searched = count


class Reviews:
    """Reviews of games, each computed once while it is in memory.

    Args:
      rooms: the engines and limits.
      analyses: limits of the analyses by address.
    """

    def __init__(self, rooms: Rooms, analyses: Buckets) -> None:
        self._rooms, self._analyses = rooms, analyses
        self._jobs: dict[str, _Job] = {}

    async def of_game(self, session: Session, address: str = "") -> Json:
        """Return the review of a finished game, with the ``opinions`` of the engines that played it, see ``get``.

        An opinion is the ``agent`` and its ``value`` by seat before its move; there is one for each move, or ``None``.
        """
        if not session.over:
            raise RefusedError("a game can be reviewed after its end", status=409)
        review = await self.get(session.setup.host, session.setup.deal, session.actions, address)
        opinions = [
            None if move.analysis is None else {name: move.analysis[name] for name in ("agent", "value")}
            for move in session.moves
        ]
        return {**review, "opinions": opinions}

    async def get(self, host: HostGame, deal: Any, actions: Sequence[int], address: str = "") -> Json:
        """Return a review, or after ``POLL_SECONDS`` the numbers of positions searched and to search, ``done`` and ``all``.

        Raises ``RefusedError``.
        """
        key = json.dumps([host.id, host.options, deal, list(actions)], sort_keys=True)
        job = self._jobs.pop(key, None)
        if job is None:
            if not self._rooms.turns:
                raise RefusedError("this server has no engines", status=503)
            if not self._analyses.take(address):
                raise RefusedError("too many analyses; wait for some of them", status=429)
            job = _Job(len(actions) + 1)
            job.task = self._rooms.spawn(self._review(host, deal, actions, address, job))
        self._jobs[key] = job  # most recently used last
        for old in list(self._jobs)[:-MAX_REVIEWS]:
            del self._jobs[old]
        assert job.task
        await asyncio.wait({job.task}, timeout=POLL_SECONDS)
        if not job.task.done():
            return {"done": job.num_searched, "all": job.num_positions}
        try:
            return job.task.result()
        except BaseException:
            self._jobs.pop(key, None)
            raise

    async def _review(self, host: HostGame, deal: Any, actions: Sequence[int], address: str, job: _Job) -> Json:
        request = await asyncio.to_thread(RecordedGame(1, GameSpec(host, host.options), deal, tuple(actions), ()).request)
        turns = [turn for turn, position in enumerate(request.positions) if not position.is_terminal]
        agent, simulations = self._rooms.reviewer
        if host.has_hidden_information:  # its best player knows one determinization, whose values are not those of the position
            agent = self._rooms.analysis_agent(host.id)
        question = Question(
            game=host.id,
            options=host.options,
            deal=deal,
            actions=actions,
            agent=agent,
            num_simulations=simulations,
            score_weight=0.0,  # so that values are win probabilities
            is_analysis=True,
            turns=turns,
            solve_nodes=SOLVE_NODES,
            follow=job.follow,
        )
        question, answers = await self._answers(question, address)
        return await asyncio.to_thread(_described, request, question, answers)

    async def _answers(self, question: Question, address: str) -> tuple[Question, list[Json]]:
        """Ask the strongest agent that answers in time; return the question with its agent, and the answers."""
        turns = self._rooms.turns
        assert turns
        try:
            async with asyncio.timeout(REVIEW_SECONDS):
                return question, await turns.ask(question, address)
        except (EngineError, TimeoutError) as error:
            log.warning("%s did not review a game of %s: %s", question.agent, question.game, error or "it took too long")
        question = replace(question, agent=self._rooms.analysis_agent(question.game))
        try:
            return question, await turns.ask(question, address)
        except EngineError as error:
            raise RefusedError(f"the engine could not review this game: {error}", status=503) from None


def _described(request: Request, question: Question, answers: Sequence[Json]) -> Json:
    """Return a review with the analyses of all positions for a client."""
    host, agent = request.game.host, question.agent
    analyses = [analysis_of(request.positions[turn], answer, agent) for turn, answer in enumerate(answers)]
    analyses += [result_of(host, position, agent) for position in request.positions[len(answers) :]]
    return {"agent": agent, "simulations": question.num_simulations, "analyses": analyses, **review_of(request, answers)}
