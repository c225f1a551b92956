"""Self-play games for spectators: one process plays, and every spectator receives its output."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from tilewe_jax.web.engines import running

log = logging.getLogger("tilewe_jax.web")

LINE_LIMIT = 1 << 24
"""Maximum size of a line, in bytes."""
SECONDS_AFTER_LAST = 10.0
"""Time without spectators after which the process ends."""
NICENESS = 10


class Live:
    """A process that plays while somebody watches.

    Args:
      command: its command line; each line of its output is a message for clients.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._task: asyncio.Task[None] | None = None
        self._watching = 0
        self._last = ""
        self._news = asyncio.Condition()

    async def watch(self, send: Callable[[str], Awaitable[None]], send_seconds: float) -> None:
        """Send lines until sending fails. Lines that arrive during a transmission are skipped."""
        self._watching += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            last = ""
            while True:
                async with self._news:
                    await self._news.wait_for(lambda last=last: self._last is not last)  # type: ignore[misc]
                    last = self._last
                async with asyncio.timeout(send_seconds):
                    await send(last)
        finally:
            self._watching -= 1

    async def stop(self) -> None:
        """End the process."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        null = asyncio.subprocess.DEVNULL
        idle = 0.0
        loop = asyncio.get_running_loop()
        async with running(self._command, NICENESS, LINE_LIMIT, stdin=null, stderr=null) as process:
            assert process.stdout
            while line := await process.stdout.readline():
                idle = 0.0 if self._watching else idle or loop.time()
                if idle and loop.time() - idle > SECONDS_AFTER_LAST:
                    return
                async with self._news:
                    self._last = line.decode().rstrip("\n")
                    self._news.notify_all()
            log.warning("the process of live games has ended")
