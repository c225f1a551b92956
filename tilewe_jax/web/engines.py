"""Engines in processes of their own, so that no search holds up the server, and a crash loses nothing but its time.

A process speaks the protocol of ``tilewe-jax analyze`` (docs/guides/analyze.md): JSON lines. It searches
all that wait for the same game and agent in one batch, so questions are handed over as they come; ``terminate`` takes back
those that nobody waits for any more.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tilewe_jax.interop.analysis import block_size
from tilewe_jax.utils import processes

log = logging.getLogger("tilewe_jax.web")

State = Literal["off", "starting", "ready", "failed"]

NICENESS = 5
"""Engines yield to the server and to whatever else people do on the machine."""
LINE_LIMIT = 1 << 22
"""Maximum size of an answer, in bytes."""
START_DELAY = 0.2
"""Seconds until the first process is started, so that it does not compete with the first page."""
MAX_WAITING = 1024
"""Questions that wait for one process; a further one is refused."""
MAX_FAILED_STARTS = 3
"""After so many starts in a row without an answer, questions are refused until one succeeds."""
_LAST_LINES = 20


class EngineError(Exception):
    """A question that gets no answer; the message says why."""


class UnavailableError(EngineError):
    """No engine takes the question now, whatever the question is; it may be asked again later."""


@dataclass(frozen=True)
class Question:
    """A position that is to be searched."""

    game: str
    options: Mapping[str, Any]
    deal: Any
    actions: Sequence[int]
    agent: str
    max_seconds: float | None = None
    """Limit of the time, for agents that can keep one."""
    num_simulations: int | None = None
    """Other than those of the agent."""
    seed: int = 0
    """Seed of the agent's random numbers."""
    max_candidates: int = 10
    is_analysis: bool = False
    """Whether it is asked for an analysis or a hint, and no game waits for the answer."""

    @property
    def key(self) -> str:
        """What must be equal for positions to be searched together, and is compiled once."""
        return json.dumps([self.game, dict(self.options), self._settings], sort_keys=True)

    @property
    def _settings(self) -> dict[str, Any]:
        settings = {"max_seconds": self.max_seconds, "num_simulations": self.num_simulations}
        return {"agent": self.agent, **{name: value for name, value in settings.items() if value is not None}}

    def request(self, request_id: int) -> dict[str, Any]:
        """The request, as ``tilewe-jax analyze`` reads it."""
        return {
            "id": request_id,
            "game": self.game,
            "options": dict(self.options),
            "deal": self.deal,
            "moves": list(self.actions),
            "agent": self._settings,
            "seed": self.seed,
            "max_candidates": self.max_candidates,
        }


@dataclass(eq=False)
class _Pending:
    """A question that waits for its answer."""

    id: int
    question: Question
    answer: "asyncio.Future[dict[str, Any]]"
    is_sent: bool = False
    deaths: int = 0
    """Number of times that the process died while it had this question."""


@dataclass(eq=False)
class _Process:
    """One process, which is started again when it dies."""

    command: Sequence[str]
    on_change: Callable[[], None]
    first_delay: float
    hang_seconds: float
    is_lazy: bool = False
    """Whether the process is started with the first question."""
    state: State = "starting"
    reason: str | None = None
    """The last words of a process that failed."""
    warm: set[tuple[str, int]] = field(default_factory=set)
    """The searches that have run in this process, by the key of their questions and the size of their block."""
    _pending: dict[int, _Pending] = field(default_factory=dict)
    _suspects: deque[_Pending] = field(default_factory=deque)
    """Questions that a process had when it died. They are asked one at a time, so that the guilty one is found."""
    _process: asyncio.subprocess.Process | None = None
    _task: "asyncio.Task[None] | None" = None
    _last_id: int = 0
    _last_words: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    _last_heard: float = 0.0
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first question."""
    _was_ready: bool = False
    """Whether the process of now has said that it is ready."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the process, and refuse what waits."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._refuse_all("the server ends")

    @property
    def num_waiting(self) -> int:
        return len(self._pending)

    async def ask(self, question: Question) -> dict[str, Any]:
        """The answer to a question. Raises ``EngineError``; when cancelled, it takes the question back."""
        if self.state == "failed":
            raise UnavailableError(f"the engine does not start: {self.reason}")
        if len(self._pending) >= MAX_WAITING:
            raise UnavailableError("the engine has too much to do; try again later")
        self._last_id += 1
        pending = _Pending(self._last_id, question, asyncio.get_running_loop().create_future())
        self._pending[pending.id] = pending
        self._asked.set()
        self._send_waiting()
        try:
            return await pending.answer
        except asyncio.CancelledError:
            if pending.is_sent:
                self._write({"id": 0, "action": "terminate", "terminate_id": pending.id})
            raise
        finally:
            self._pending.pop(pending.id, None)
            if pending in self._suspects:
                self._suspects.remove(pending)
                self._send_waiting()

    # ---- Lines

    def _write(self, row: dict[str, Any]) -> None:
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps(row).encode() + b"\n")

    def _send_waiting(self) -> None:
        """Send what may be sent: suspects one at a time, and while there are some, nothing else."""
        if self.state != "ready":
            return
        for pending in list(self._suspects)[:1] or list(self._pending.values()):
            if not pending.is_sent:
                if self._num_sent() == 0:
                    self._last_heard = time.monotonic()
                pending.is_sent = True
                self._write(pending.question.request(pending.id))

    def _num_sent(self) -> int:
        return sum(pending.is_sent for pending in self._pending.values())

    def _receive(self, line: bytes) -> None:
        try:
            row = json.loads(line)
            request_id = row["id"]
        except (ValueError, TypeError, KeyError):
            log.warning("an engine wrote what is no answer: %.200r", line)
            return
        self._last_heard = time.monotonic()
        if row.get("action") == "query_version":
            self.state, self.reason, self._was_ready = "ready", None, True
            self.on_change()
            self._send_waiting()
            return
        pending = self._pending.get(request_id) if type(request_id) is int else None
        if pending is None or "warning" in row or pending.answer.done():
            return
        if "error" in row:
            pending.answer.set_exception(EngineError(str(row["error"])))
        else:
            self._note_search(pending.question, row)
            pending.answer.set_result(row)

    def _note_search(self, question: Question, row: dict[str, Any]) -> None:
        """Note that the search of a question is compiled, if the answer shows that it has run.

        A forced move needs no search, so an answer with one candidate shows nothing.
        """
        batch, simulations, candidates = (row.get(name) for name in ("batch", "num_simulations", "candidates"))
        if type(batch) is not int or not simulations or not isinstance(candidates, list) or len(candidates) < 2:
            return
        search = question.key, block_size(batch)
        if search not in self.warm:
            self.warm.add(search)
            self.on_change()

    def is_warm(self, question: Question) -> bool:
        """Return whether the search for a question, in one block with the equal ones that wait, is compiled."""
        waiting = sum(pending.question.key == question.key for pending in self._pending.values())
        return (question.key, block_size(waiting)) in self.warm

    # ---- The life of processes

    async def _run(self) -> None:
        delay, failed_starts = self.first_delay, 0
        await asyncio.sleep(START_DELAY)
        if self.is_lazy:
            await self._asked.wait()
        while True:
            self.state = "starting" if failed_starts < MAX_FAILED_STARTS else "failed"
            self._was_ready = False
            begun = time.monotonic()
            try:
                await self._live()
            except Exception as error:  # it cannot be started, or writes what nobody expects: another one is tried
                self._last_words.append(str(error))
            was_ready = self._was_ready
            self.warm.clear()
            self._bury()
            if was_ready:
                failed_starts = 0
                if time.monotonic() - begun > 60 * self.first_delay:
                    delay = self.first_delay
            else:
                failed_starts += 1
            self.reason = self._last_words[-1][:500] if self._last_words else "it said nothing"
            log.warning("an engine has ended and is started again in %.3g seconds: %s", delay, self.reason)
            if failed_starts >= MAX_FAILED_STARTS:
                self.state = "failed"
                self._refuse_all(f"the engine does not start: {self.reason}")
            else:
                self.state = "starting"
            self.on_change()
            await asyncio.sleep(delay)
            delay = min(2 * delay, 60 * self.first_delay)

    async def _live(self) -> None:
        """Start the process and read its answers until it ends; it has ended when this returns or raises."""
        self._last_words.clear()
        pipe = asyncio.subprocess.PIPE
        process = self._process = await asyncio.create_subprocess_exec(
            # In a session of its own, so that Ctrl-C in a terminal reaches the server alone.
            *self.command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=LINE_LIMIT,
            start_new_session=True,
        )
        processes.lower_priority(process.pid, NICENESS)
        assert process.stdout
        assert process.stderr
        listening = asyncio.create_task(self._listen(process.stderr))
        watching = asyncio.create_task(self._watch())
        try:
            self._write({"id": 0, "action": "query_version"})
            while line := await process.stdout.readline():
                self._receive(line)
            await asyncio.wait({listening}, timeout=1)
        except ValueError:
            self._last_words.append("it wrote an answer that is too long")
        finally:
            self._process = None
            for task in (listening, watching):
                task.cancel()
            processes.kill(process.pid)  # and what the engine has started, such as a compiler
            # Not cancelled half-way, or a process would be left that nobody has waited for.
            await asyncio.shield(process.wait())

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        """Remember the last lines that a process writes for people."""
        while text := await stream.read(1 << 14):
            lines = text.decode("utf-8", "replace").splitlines()
            self._last_words.extend(line.strip() for line in lines if line.strip())

    async def _watch(self) -> None:
        """Kill a process that has questions and has not answered any for too long."""
        while True:
            await asyncio.sleep(min(self.hang_seconds, 5.0))
            if self._num_sent() and time.monotonic() - self._last_heard > self.hang_seconds and self._process:
                self._last_words.append(f"no answer for {self.hang_seconds:g} seconds")
                self._process.kill()

    def _bury(self) -> None:
        """After a death: who is suspected, and who is guilty."""
        sent = [pending for pending in self._pending.values() if pending.is_sent]
        for pending in sent:
            pending.is_sent = False
            pending.deaths += 1
            if pending.deaths > 1 and not pending.answer.done():
                pending.answer.set_exception(EngineError("the engine has failed twice at this position"))
        self._suspects = deque(pending for pending in self._pending.values() if pending.deaths == 1)

    def _refuse_all(self, why: str) -> None:
        for pending in list(self._pending.values()):
            if not pending.answer.done():
                pending.answer.set_exception(UnavailableError(why))


class EnginePool:
    """The processes of the engines; questions of the same game and agent go to the same one.

    Where there are several, one of them answers all analyses, so that no game waits for what they have to compile.

    Args:
      command: the command line of a process.
      processes: number of processes.
      first_delay: seconds until a process that has died is started again; each time twice as many, up to 60 times as many.
      hang_seconds: a process that has not answered for so long is killed.
    """

    def __init__(
        self, command: Sequence[str], processes: int = 1, *, first_delay: float = 1.0, hang_seconds: float = 300.0
    ) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._processes = [_Process(command, self._changed, first_delay, hang_seconds) for _ in range(max(1, processes - 1))]
        self._analyst = self._processes[0]
        if processes > 1:
            self._analyst = _Process(command, self._changed, first_delay, hang_seconds, is_lazy=True)
            self._processes.append(self._analyst)
        self._players = self._processes[: max(1, processes - 1)]

    def start(self) -> None:
        """Start the processes, in the running event loop."""
        for process in self._processes:
            process.start()

    async def stop(self) -> None:
        """End the processes."""
        await asyncio.gather(*(process.stop() for process in self._processes))

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called whenever the state of an engine changes."""
        self._listeners.append(listener)

    @property
    def state(self) -> State:
        """Ready once one process is."""
        states = {process.state for process in self._players}
        return next((state for state in ("ready", "starting", "failed") if state in states), "off")

    @property
    def reason(self) -> str | None:
        """Why engines have failed, where they have."""
        return next((process.reason for process in self._processes if process.state == "failed"), None)

    @property
    def num_waiting(self) -> int:
        """Number of questions without an answer."""
        return sum(process.num_waiting for process in self._processes)

    def is_warm(self, question: Question) -> bool:
        """Return whether the search for a question has run before, so that it needs no compilation."""
        return self._process_of(question).is_warm(question)

    def num_waiting_with(self, question: Question) -> int:
        """Number of questions without an answer in the process that a question goes to."""
        return self._process_of(question).num_waiting

    async def ask(self, question: Question) -> dict[str, Any]:
        """The answer of ``tilewe-jax analyze`` to a question. Raises ``EngineError``."""
        return await self._process_of(question).ask(question)

    def _process_of(self, question: Question) -> _Process:
        if question.is_analysis:
            return self._analyst
        return self._players[sum(question.key.encode()) % len(self._players)]

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
