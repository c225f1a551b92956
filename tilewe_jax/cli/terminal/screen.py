"""Full-screen terminal: reads single keys and draws lines. Not on Windows."""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TextIO

assert sys.platform != "win32", "terminals of Windows have other settings and signals"
import termios  # noqa: E402


def _draw_again(number: int, frame: FrameType | None) -> None:
    """Handle a signal after which only the screen is drawn again."""
    del number, frame


class Terminal:
    """Context manager: a terminal without line editing and echo, on its alternate screen."""

    def __init__(self, source: TextIO, target: TextIO) -> None:
        self._source, self._target = source.fileno(), target
        self._before = termios.tcgetattr(self._source)
        # Each signal writes to a pipe, since a signal just before `select` would not end it.
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._handlers: dict[int, Callable[[int, FrameType | None], None]] = {
            signal.SIGWINCH: _draw_again,
            signal.SIGTSTP: self._stop,
            signal.SIGCONT: _draw_again,
        }

    def __enter__(self) -> "Terminal":
        self._wakeup_fd_before = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._replaced = {number: signal.signal(number, handler) for number, handler in self._handlers.items()}
        try:
            self._open()
        except BaseException:  # Ctrl-C too
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_fd_before)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _open(self) -> None:
        settings = termios.tcgetattr(self._source)
        settings[3] &= ~(termios.ICANON | termios.ECHO)  # Ctrl-C and Ctrl-Z stay signals
        settings[6][termios.VMIN], settings[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._source, termios.TCSADRAIN, settings)
        self._target.write("\x1b[?1049h\x1b[?25l")  # the alternate screen, no cursor
        self._target.flush()

    def _close(self) -> None:
        with contextlib.suppress(OSError, termios.error):  # the terminal may be gone
            self._target.write("\x1b[0m\x1b[?25h\x1b[?1049l")
            self._target.flush()
            termios.tcsetattr(self._source, termios.TCSADRAIN, self._before)

    def draw(self, lines: Sequence[str]) -> None:
        """Replace the lines on the screen."""
        self._target.write("\x1b[H" + "\x1b[0m\x1b[K\n".join(lines) + "\x1b[0m\x1b[K\x1b[J")
        self._target.flush()

    def read(self, other: int | None = None, seconds: float | None = None) -> str:
        """Wait for keys; empty after a signal, after ``seconds``, or if the file descriptor ``other`` is readable.

        The end of the input reads as Ctrl-D.
        """
        sources = [self._source, self._wake_read, *([] if other is None else [other])]
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._wake_read in ready:
            os.read(self._wake_read, 1024)
            return ""
        if self._source not in ready:
            return ""
        try:
            data = os.read(self._source, 1024)
            if data == b"\x1b" and select.select([self._source], [], [], 0.05)[0]:  # the rest of a key is on its way
                data += os.read(self._source, 1024)
        except OSError:  # the terminal is gone
            data = b""
        return data.decode(errors="replace") or "\x04"

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-Z: restore the terminal, stop, and take it again when the process continues."""
        del frame
        self._close()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._stop)
        self._open()
