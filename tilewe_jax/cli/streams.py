"""Standard output and standard error, with any encoding and after their reader has gone."""

import codecs
import contextlib
import io
import os
import sys
from typing import TextIO

from rich.console import Console

CODE_OF_BROKEN_PIPE = 141
"""Exit code of a command whose reader has gone: 128 + SIGPIPE."""
_HANDLER = "tilewe-jax"
_PLAIN = {"±": "+-", "−": "-", "–": "-", "—": "-", "…": "...", "×": "x", "’": "'"}
"""Replacements of characters that an encoding lacks. Other characters are escaped, like \\u2588."""


class Output(Console):
    """A console that prints text unchanged, without wrapping; ``BrokenPipeError`` is raised as by ``print``."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Raise the error; rich would end the process with exit code 1."""
        raise BrokenPipeError


def encode_everything() -> None:
    """Make standard output and standard error accept all characters in any encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _in_plain(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that cannot be encoded."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in text), error.end


codecs.register_error(_HANDLER, _in_plain)


def plain(text: str, encoding: str) -> str:
    """Return the printed form of a text in an encoding."""
    return text.encode(encoding, _HANDLER).decode(encoding)


def flush() -> None:
    """Flush standard output. Raises ``OSError``, for example if its reader has gone."""
    if sys.stdout is not None:
        sys.stdout.flush()


def discard() -> None:
    """Drop buffers that cannot be written. Otherwise the interpreter would fail at its end with another exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(message: str, stream: TextIO | None = None) -> None:
    """Print a line to standard error, and ignore a reader that has gone."""
    with contextlib.suppress(OSError):
        print(message, file=stream or sys.stderr, flush=True)
