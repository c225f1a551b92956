"""The progress of a command, on standard error: a line that changes on a terminal, a line every few seconds elsewhere."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tilewe_jax.utils.words import counted

SECONDS_BETWEEN_LINES = 5.0
"""Seconds between two lines where standard error is no terminal, in the first minutes. The first line comes after one second,
and one with the first result at once."""
_PATIENCE = 120.0
"""Seconds without compilation after which there are fewer lines, one in every ``_SLOWLY`` seconds."""
_SLOWLY = 30.0
COMPILING = "compiling programs that are not cached"
"""The phase in which JAX compiles, or loads programs that were compiled before."""


_shown: "Progress | None" = None


def is_compiling() -> bool:
    """Whether a command shows that it compiles."""
    shown = _shown
    return shown is not None and shown.is_compiling


def stop() -> None:
    """Show nothing more, from any thread, and give the terminal back as it was."""
    if _shown:
        _shown.__exit__(None, None, None)


class Progress:
    """A context in which it is shown what a command is doing, for how long, how far it is, and what it has measured so far.

    A thread shows it, so that the clock goes on while JAX compiles.

    Args:
        phase: what the command is doing first.
        total: what is to be done in all; ``None`` where that is not known.
        unit: what is counted; empty where nothing is.
        console: where it is shown; ``None`` shows nothing.
    """

    def __init__(
        self, phase: str = COMPILING, total: int | None = None, unit: str = "games", *, console: Console | None
    ) -> None:
        self._total, self._unit, self._console = total, unit, console
        self._done = 0
        self._note: Callable[[], str] = lambda: ""
        self._stopped = False
        self._line_is_due = threading.Event()
        self._live: Live | None = None
        self._thread: threading.Thread | None = None
        self._spinner = Spinner("dots")
        self.phase(phase)

    def __enter__(self) -> Self:
        global _shown  # noqa: PLW0603
        _shown = self
        if self._console and self._console.is_terminal:
            self._live = Live(console=self._console, get_renderable=self._render, transient=True, refresh_per_second=8)
            self._live.start()
        elif self._console:
            self._thread = threading.Thread(target=self._print_lines, args=(self._console,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        global _shown  # noqa: PLW0603
        _shown = None
        self._stopped = True
        self._line_is_due.set()
        if self._live:
            self._live.stop()
        if self._thread:
            self._thread.join()

    @property
    def is_compiling(self) -> bool:
        """Whether JAX compiles, and nothing would be lost if the command ended."""
        return self._phase == COMPILING

    def phase(self, phase: str) -> None:
        """Begin another phase, whose clock starts at zero."""
        self._phase, self._started, self._noted = phase, time.monotonic(), ("", float("-inf"))

    def update(self, done: int, note: Callable[[], str] = lambda: "", phase: str | None = None) -> None:
        """Say how far the work is.

        Args:
            done: what has been done so far, of ``total``.
            note: gives what was measured so far, in a few words; called only when it is shown.
            phase: what the command is doing, where that may have changed.
        """
        is_first = done > self._done == 0
        self._done, self._note = done, note
        if phase is not None and phase != self._phase:
            self.phase(phase)
        if is_first:
            self._noted = ("", float("-inf"))
            self._line_is_due.set()

    def line(self) -> str:
        """What is shown now, as text."""
        done = f"{self._done:,} of {counted(self._total, self._unit)}" if self._total else counted(self._done, self._unit)
        parts = [f"{self._phase}: {_clock(time.monotonic() - self._started)}"]
        if self._unit and (self._done or not self.is_compiling):
            parts.append(done)
        if note := self._current_note():
            parts.append(note)
        return ", ".join(parts)

    def _current_note(self) -> str:
        """The note, which may take a while to make, not more than once in a second."""
        text, made = self._noted
        if time.monotonic() - made > 1.0:
            text = self._note()
            self._noted = text, time.monotonic()
        return text

    def _render(self) -> RenderableType:
        line = Table.grid(padding=(0, 1))
        bar = [ProgressBar(self._total, self._done, width=20)] if self._total and not self.is_compiling else []
        line.add_row(self._spinner, *bar, Text(self.line()))
        return line

    def _print_lines(self, console: Console) -> None:
        begun, seconds = time.monotonic(), min(1.0, SECONDS_BETWEEN_LINES)
        while True:
            if self.is_compiling:
                begun = time.monotonic()
            self._line_is_due.wait(seconds)
            if self._stopped:
                return
            self._line_is_due.clear()
            seconds = SECONDS_BETWEEN_LINES if time.monotonic() - begun < _PATIENCE else _SLOWLY
            try:
                console.print(self.line(), markup=False, highlight=False, soft_wrap=True)
            except OSError:  # nobody reads it
                return


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"
