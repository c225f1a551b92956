"""Engines in separate processes, so that searches do not block the server and a crash costs only time.

A process speaks the JSON lines protocol of ``tilewe-jax analyze`` (docs/guides/analyze.md). It searches all waiting positions
of the same game and agent in one batch, so the server sends questions as they arrive and withdraws them with ``terminate``.
"""

import asyncio
import contextlib
import json
import logging
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewe_jax.interop.analysis import block_size
from tilewe_jax.utils import processes
from tilewe_jax.web.questions import EngineError, Question, State, UnavailableError

log = logging.getLogger("tilewe_jax.web")

NICENESS = 5
"""Niceness of engine processes: they yield to the server and to interactive programs."""
LINE_LIMIT = 1 << 22
"""Maximum size of an answer, in bytes."""
START_DELAY = 0.2
"""Seconds until the first process starts, so that it does not compete with the first page."""
MAX_WAITING = 1024
"""Maximum number of questions that wait for one process."""
MAX_FAILED_STARTS = 3
"""Number of consecutive failed starts after which questions are refused until a start succeeds."""
MAX_MEASURED = 1_000
"""Maximum number of remembered times of compilations."""
_LAST_LINES = 20


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str], niceness: int, limit: int, **streams: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process with low priority in this context, and kill it with its children at the end.

    Args:
      command: its command line.
      niceness: its niceness.
      limit: maximum size of a line of its output, in bytes.
      streams: its ``stdin`` and ``stderr``.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        limit=limit,
        start_new_session=True,  # Ctrl-C in a terminal must reach only the server
        **streams,  # type: ignore[arg-type]
    )
    processes.lower_priority(process.pid, niceness)
    try:
        yield process
    finally:
        processes.kill(process.pid)
        # Shielded, because a cancelled wait would leave a zombie process.
        await asyncio.shield(process.wait())


@dataclass(eq=False)
class _Pending:
    """A question without an answer yet."""

    id: int
    question: Question
    answer: "asyncio.Future[list[dict[str, Any]]]"
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The answers so far, by the number of actions of their positions."""
    is_sent: bool = False
    sent: float = 0.0
    """Monotonic time at which it was sent."""
    crashes: int = 0
    """Number of crashes of the process while it had this question."""


class _Process:
    """An engine process, which restarts after a crash; ``EnginePool`` documents the arguments."""

    def __init__(
        self, command: Sequence[str], on_change: Callable[[], None], first_delay: float, hang_seconds: float, is_lazy: bool
    ) -> None:
        self._command, self._on_change = command, on_change
        self._first_delay, self._hang_seconds = first_delay, hang_seconds
        self._is_lazy = is_lazy
        """Whether the process starts with the first question."""
        self.state: State = "starting"
        self.reason: str | None = None
        """Last line on standard error of a process that ended."""
        self.warm: set[tuple[str, int]] = set()
        """Compiled searches of this process, by the key of their questions and the size of their block."""
        self.measured: dict[str, tuple[str, float]] = {}
        """Game and seconds of the last compilation of a search, by the key of its questions. A restart keeps them."""
        self._pending: dict[int, _Pending] = {}
        self._suspects: deque[_Pending] = deque()
        """Questions of a process that crashed. They are asked one at a time, to isolate the one that causes the crash."""
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._last_id = 0
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._last_answer = 0.0
        self._is_needed = asyncio.Event()
        self.num_ends = 0
        """Number of times that the process has ended unexpectedly."""
        self._was_ready = False
        """Whether the current process has reported that it is ready."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the process and refuse the waiting questions."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._refuse_all("the server is shutting down")

    @property
    def num_waiting(self) -> int:
        return len(self._pending)

    async def ask(self, question: Question) -> list[dict[str, Any]]:
        """Return the answers to a question. Raises ``EngineError``; cancelling withdraws the question."""
        if self.state == "failed":
            raise UnavailableError(f"the engine does not start: {self.reason}")
        if len(self._pending) >= MAX_WAITING:
            raise UnavailableError("the engine has too many questions; try again later")
        self._last_id += 1
        pending = _Pending(self._last_id, question, asyncio.get_running_loop().create_future())
        self._pending[pending.id] = pending
        self._is_needed.set()
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

    # ---- Messages

    def _write(self, row: dict[str, Any]) -> None:
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps(row).encode() + b"\n")

    def _send_waiting(self) -> None:
        """Send all questions, or only the first suspect while there are suspects."""
        if self.state != "ready":
            return
        for pending in list(self._suspects)[:1] or list(self._pending.values()):
            if not pending.is_sent:
                if self._num_sent() == 0:
                    self._last_answer = time.monotonic()
                pending.is_sent, pending.sent = True, time.monotonic()
                self._write(pending.question.request(pending.id))

    def _num_sent(self) -> int:
        return sum(pending.is_sent for pending in self._pending.values())

    def _receive(self, line: bytes) -> None:
        try:
            row = json.loads(line)
            request_id = row["id"]
        except (ValueError, TypeError, KeyError):
            log.warning("an engine wrote a line that is not an answer: %.200r", line)
            return
        before, self._last_answer = self._last_answer, time.monotonic()
        if row.get("action") == "query_version":
            self.state, self.reason, self._was_ready = "ready", None, True
            self._on_change()
            self._send_waiting()
            return
        pending = self._pending.get(request_id) if type(request_id) is int else None
        if pending is None or "warning" in row or pending.answer.done():
            return
        if "error" in row:
            pending.answer.set_exception(EngineError(str(row["error"])))
        else:
            # The process searches the positions of one key at a time, so this search started after the answer before.
            self._note_search(pending.question, row, time.monotonic() - max(pending.sent, before))
            pending.rows[row.get("turn", 0)] = row
            pending.question.follow(len(pending.rows))
            if len(pending.rows) == pending.question.num_answers:
                pending.answer.set_result([pending.rows[turn] for turn in sorted(pending.rows)])

    def _note_search(self, question: Question, row: dict[str, Any], seconds: float) -> None:
        """Note that the search of a question is compiled, if the answer shows that it ran.

        A forced move and a position in an opening book need no search, so an answer with one candidate or from a book shows
        nothing.
        """
        batch, simulations, candidates = (row.get(name) for name in ("batch", "num_simulations", "candidates"))
        if (
            row.get("is_book")
            or type(batch) is not int
            or not simulations
            or not isinstance(candidates, list)
            or len(candidates) < 2
        ):
            return
        search = question.key, block_size(batch)
        if search not in self.warm:
            if not any(key == question.key for key, _ in self.warm):
                if len(self.measured) >= MAX_MEASURED:
                    self.measured.clear()
                self.measured[question.key] = question.game, seconds
            self.warm.add(search)
            self._on_change()

    def is_warm(self, question: Question) -> bool:
        """Return whether the search for a question, batched with the equal ones that wait, is compiled."""
        waiting = sum(pending.question.key == question.key for pending in self._pending.values())
        return (question.key, block_size(waiting)) in self.warm

    def estimate(self, question: Question) -> float | None:
        """Return the estimated seconds until the first answer to a question, or ``None`` if it is unknown.

        This is the time of its compilation, and of the other compilations for which it waits.
        """
        needed = {} if self.is_warm(question) else {question.key: question.game}
        compiled = {key for key, _ in self.warm}
        needed |= {
            pending.question.key: pending.question.game
            for pending in self._pending.values()
            if pending.is_sent and pending.question.key not in compiled
        }
        seconds = [self._compilation(key, game) for key, game in needed.items()]
        if None in seconds:
            return None
        total = sum(each for each in seconds if each is not None)
        return max(0.0, total - (time.monotonic() - self._last_answer)) if self._num_sent() else total

    def _compilation(self, key: str, game: str) -> float | None:
        """Estimated seconds of a compilation: as measured before, else the median of the same game, else of all games."""
        if key in self.measured:
            return self.measured[key][1]
        similar = [seconds for other, seconds in self.measured.values() if other == game]
        known = similar or [seconds for _, seconds in self.measured.values()]
        return statistics.median(known) if known else None

    # ---- Life cycle

    async def _run(self) -> None:
        delay, failed_starts = self._first_delay, 0
        await asyncio.sleep(START_DELAY)
        if self._is_lazy:
            await self._is_needed.wait()
        while True:
            self._was_ready = False
            started = time.monotonic()
            try:
                await self._live()
            except Exception as error:  # any failure leads to a restart
                self._last_lines.append(str(error))
            self.num_ends += 1
            self.warm.clear()
            self._bury()
            if self._was_ready:
                failed_starts = 0
                if time.monotonic() - started > 60 * self._first_delay:
                    delay = self._first_delay
            else:
                failed_starts += 1
            self.reason = self._last_lines[-1][:500] if self._last_lines else "it wrote no error message"
            log.warning("an engine has ended and restarts in %.3g seconds: %s", delay, self.reason)
            if failed_starts >= MAX_FAILED_STARTS:
                self.state = "failed"
                self._refuse_all(f"the engine does not start: {self.reason}")
            else:
                self.state = "starting"
            self._on_change()
            await asyncio.sleep(delay)
            delay = min(2 * delay, 60 * self._first_delay)

    async def _live(self) -> None:
        """Start the process and read its answers until it ends; the process has ended when this returns or raises."""
        self._last_lines.clear()
        pipe = asyncio.subprocess.PIPE
        async with running(self._command, NICENESS, LINE_LIMIT, stdin=pipe, stderr=pipe) as process:
            self._process = process
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
                self._last_lines.append(f"it wrote an answer of more than {LINE_LIMIT:,} bytes")
            finally:
                self._process = None
                for task in (listening, watching):
                    task.cancel()

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        """Store the last lines on standard error."""
        while text := await stream.read(1 << 14):
            lines = text.decode("utf-8", "replace").splitlines()
            self._last_lines.extend(line.strip() for line in lines if line.strip())

    async def _watch(self) -> None:
        """Kill a process that has questions and has not answered for ``hang_seconds``."""
        while True:
            await asyncio.sleep(min(self._hang_seconds, 5.0))
            if self._num_sent() and time.monotonic() - self._last_answer > self._hang_seconds and self._process:
                self._last_lines.append(f"no answer for {self._hang_seconds:g} seconds")
                self._process.kill()

    def _bury(self) -> None:
        """After a crash, suspect its questions, and refuse those with a second crash."""
        for pending in self._pending.values():
            if pending.is_sent:
                pending.is_sent = False
                pending.rows.clear()
                pending.crashes += 1
                if pending.crashes > 1 and not pending.answer.done():
                    pending.answer.set_exception(EngineError("the engine crashed twice at this position"))
        self._suspects = deque(pending for pending in self._pending.values() if pending.crashes == 1)

    def _refuse_all(self, reason: str) -> None:
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(UnavailableError(reason))


class EnginePool:
    """Engine processes. Questions of the same game and agent go to the same process.

    With several processes one is reserved for analyses and starts with the first of them, so that no game waits for the
    compilation of an analysis.

    Args:
      command: command line of a process.
      processes: number of processes.
      first_delay: seconds before a restart; doubled for each further restart, up to 60 times this value.
      hang_seconds: time without an answer after which a process is killed.
    """

    def __init__(
        self, command: Sequence[str], processes: int = 1, *, first_delay: float = 1.0, hang_seconds: float = 300.0
    ) -> None:
        self._listeners: list[Callable[[], None]] = []

        def process(is_lazy: bool) -> _Process:
            return _Process(command, self._changed, first_delay, hang_seconds, is_lazy)

        self._players = [process(False) for _ in range(max(1, processes - 1))]
        self._analyst = process(True) if processes > 1 else self._players[0]
        self._processes = [*self._players, self._analyst] if processes > 1 else self._players

    @property
    def processes(self) -> dict[str, _Process]:
        """The processes by name: ``moves-0`` and up, and ``analyses`` if it is a separate process."""
        named = {f"moves-{number}": process for number, process in enumerate(self._players)}
        return named if self._analyst in self._players else {**named, "analyses": self._analyst}

    def start(self) -> None:
        """Start the processes in the running event loop."""
        for process in self._processes:
            process.start()

    async def stop(self) -> None:
        """End the processes."""
        await asyncio.gather(*(process.stop() for process in self._processes))

    def listen(self, listener: Callable[[], None]) -> None:
        """Add a function to call when the state of an engine changes."""
        self._listeners.append(listener)

    @property
    def state(self) -> State:
        """State of the best process that makes moves."""
        states = {process.state for process in self._players}
        return next((state for state in ("ready", "starting", "failed") if state in states), "off")

    @property
    def reason(self) -> str | None:
        """Reason of the failure, if a process has failed."""
        return next((process.reason for process in self._processes if process.state == "failed"), None)

    @property
    def num_waiting(self) -> int:
        """Number of questions without an answer."""
        return sum(process.num_waiting for process in self._processes)

    def is_warm(self, question: Question) -> bool:
        """Return whether the search for a question is compiled."""
        return self._process_of(question).is_warm(question)

    def estimate(self, question: Question) -> float | None:
        """Return the estimated seconds until the first answer to a question, or ``None`` if nothing was measured yet."""
        return self._process_of(question).estimate(question)

    def num_waiting_with(self, question: Question) -> int:
        """Return the number of questions that wait for the same process."""
        return self._process_of(question).num_waiting

    async def ask(self, question: Question) -> list[dict[str, Any]]:
        """Return the answers of ``tilewe-jax analyze``. Raises ``EngineError``."""
        return await self._process_of(question).ask(question)

    def _process_of(self, question: Question) -> _Process:
        if question.is_analysis:
            return self._analyst
        return self._players[sum(question.key.encode()) % len(self._players)]

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
