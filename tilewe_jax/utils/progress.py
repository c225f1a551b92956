"""Progress of a command on standard error: a live line on a terminal, otherwise a line every few seconds."""

import threading
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tilewe_jax.utils.words import counted

SECONDS_BETWEEN_LINES = 5.0
"""Seconds between two lines without a terminal, in the first minutes. The first line comes after one second, and the first
result immediately."""
_PATIENCE = 120.0
"""Seconds without compilation after which lines are rarer."""
_SLOWLY = 30.0
"""Seconds between two lines from then on."""
COMPILING = "compiling programs that are not cached"
"""Phase in which JAX compiles or loads cached programs."""

_shown: "Progress | None" = None


def is_compiling() -> bool:
    """Return whether a running command compiles."""
    shown = _shown
    return shown is not None and shown.is_compiling


def compiling(title: str, place: int, count: int) -> None:
    """Show which program of a running command is compiled: its title and its place; an empty title shows none."""
    if shown := _shown:
        of = f", {place} of {count}" if count > 1 else ""
        shown.program = f"compiling {title}{of}" if title else ""


def stop() -> None:
    """Stop the display from any thread, and restore the terminal."""
    if _shown:
        _shown.__exit__()


class Progress:
    """Context manager that shows a command's phase, elapsed time, progress and latest results.

    A thread updates it, so that the clock runs during compilation.

    Args:
        phase: initial phase.
        total: total number of units; ``None`` if unknown.
        unit: plural noun of the counted units; empty to count nothing.
        console: console of the output; ``None`` shows nothing.
    """

    def __init__(
        self, phase: str = COMPILING, total: int | None = None, unit: str = "games", *, console: Console | None
    ) -> None:
        self._total, self._unit, self._console = total, unit, console
        self._done = 0
        self.program = ""
        """What is compiled, shown instead of the phase ``COMPILING``."""
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

    def __exit__(self, *_: object) -> None:
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
        """JAX compiles, so that an end of the command loses no results."""
        return self._phase == COMPILING

    def phase(self, phase: str) -> None:
        """Start another phase, whose clock starts at zero."""
        self._phase, self._started, self._noted = phase, time.monotonic(), ("", float("-inf"))

    def update(self, done: int, note: Callable[[], str] = lambda: "", phase: str | None = None) -> None:
        """Update the progress.

        Args:
            done: number of units done.
            note: returns the latest results in a few words; called when they are shown.
            phase: current phase, if it may have changed.
        """
        is_first = done > self._done == 0
        self._done, self._note = done, note
        if phase is not None and phase != self._phase:
            self.phase(phase)
        if is_first:
            self._noted = ("", float("-inf"))
            self._line_is_due.set()

    def line(self) -> str:
        """Return the displayed text."""
        done = f"{self._done:,} of {counted(self._total, self._unit)}" if self._total else counted(self._done, self._unit)
        phase = self.program if self.is_compiling and self.program else self._phase
        parts = [f"{phase}: {_clock(time.monotonic() - self._started)}"]
        if self._unit and (self._done or not self.is_compiling):
            parts.append(done)
        if note := self._current_note():
            parts.append(note)
        return ", ".join(parts)

    def _current_note(self) -> str:
        """Return the note, which may take a while to compute, at most once per second."""
        text, created = self._noted
        if time.monotonic() - created > 1.0:
            text = self._note()
            self._noted = text, time.monotonic()
        return text

    def _render(self) -> RenderableType:
        line = Table.grid(padding=(0, 1))
        bar = [ProgressBar(self._total, self._done, width=20)] if self._total and not self.is_compiling else []
        line.add_row(self._spinner, *bar, Text(self.line()))
        return line

    def _print_lines(self, console: Console) -> None:
        started, seconds = time.monotonic(), min(1.0, SECONDS_BETWEEN_LINES)
        while True:
            if self.is_compiling:
                started = time.monotonic()
            self._line_is_due.wait(seconds)
            if self._stopped:
                return
            self._line_is_due.clear()
            seconds = SECONDS_BETWEEN_LINES if time.monotonic() - started < _PATIENCE else _SLOWLY
            try:
                console.print(self.line(), markup=False, highlight=False, soft_wrap=True)
            except OSError:  # the reader has gone
                return


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"
