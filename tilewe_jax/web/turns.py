"""Fair access to the engines: the questions of one address cannot block other games."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tilewe_jax.web.limits import Buckets, Limits
from tilewe_jax.web.questions import Engines, Question

_POLL_SECONDS = 0.5
_IDLE_POLLS = 10
"""Number of polls with an idle engine after which an address above its rate of compilations may compile."""
_MAX_ANSWERED = 10_000
"""Maximum number of remembered keys."""


@dataclass
class _Share:
    """The questions of one address."""

    asking: asyncio.Semaphore
    compiling: str | None = None
    """Key of the questions whose search is being compiled."""
    num_compiling: int = 0
    """Number of these questions."""
    is_allowed: bool = False
    """Whether the engine may compile their search."""
    is_free: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when ``compiling`` becomes ``None``."""
    warming: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while one search of the address waits to be compiled ahead."""
    users: int = 0


class Turns:
    """Schedules the questions to engines by address.

    The first question with new options or another agent makes the engine compile a search. This takes up to a minute, during
    which it does nothing else. An address has one search compiled at a time. Above its rate of compilations it waits until
    the engine is idle.

    Args:
      engines: the engines.
      limits: the limits.
    """

    def __init__(self, engines: Engines, limits: Limits) -> None:
        self._engines, self._limits = engines, limits
        self._shares: dict[str, _Share] = {}
        self._compilations = Buckets(limits.compilation_rate, limits.compilation_burst)
        self._warming = asyncio.Lock()
        self._answered: set[str] = set()
        """Keys of answered questions, whose searches are compiled, except for other sizes of a batch."""

    async def ask(self, question: Question, address: str) -> list[dict[str, Any]]:
        """Return the answers to a question of an address. Raises ``EngineError``."""
        async with self._share(address) as share, share.asking:
            while not self.is_warm(question) and share.compiling not in (None, question.key):
                await share.is_free.wait()
            if self.is_warm(question):
                return await self._answer(question)
            share.compiling = question.key
            share.num_compiling += 1
            share.is_free.clear()
            try:
                await self._may_compile(share, question, address)
                return await self._answer(question)
            finally:
                share.num_compiling -= 1
                if not share.num_compiling:
                    share.compiling, share.is_allowed = None, False
                    share.is_free.set()

    async def warm_up(self, question: Question, address: str) -> None:
        """Compile the search of a question once no game waits for the engine. Raises ``EngineError``."""
        if self.is_warm(question):
            return
        # One search at a time over all games. Of each address one search waits for its turn, so that addresses alternate.
        async with self._share(address) as share, share.warming, self._warming:
            while self._engines.state != "ready" or self._engines.num_waiting_with(question):
                await asyncio.sleep(_POLL_SECONDS)
            if not self.is_warm(question) and self._compilations.take(address):
                await self._answer(question)

    def is_warm(self, question: Question) -> bool:
        """Return whether the search of a question is compiled, at least for a batch of another size."""
        return question.key in self._answered or self._engines.is_warm(question)

    async def _answer(self, question: Question) -> list[dict[str, Any]]:
        answers = await self._engines.ask(question)
        if len(self._answered) >= _MAX_ANSWERED:
            self._answered.clear()
        self._answered.add(question.key)
        return answers

    async def _may_compile(self, share: _Share, question: Question, address: str) -> None:
        idle = 0
        while not (share.is_allowed or self.is_warm(question) or self._compilations.take(address)) and idle < _IDLE_POLLS:
            await asyncio.sleep(_POLL_SECONDS)
            idle = 0 if self._engines.num_waiting_with(question) else idle + 1
        share.is_allowed = True

    @contextlib.asynccontextmanager
    async def _share(self, address: str) -> AsyncIterator[_Share]:
        share = self._shares.setdefault(address, _Share(asyncio.Semaphore(self._limits.questions_per_address)))
        share.users += 1
        try:
            yield share
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[address]
