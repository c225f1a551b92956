"""Trust in files: text in a file that names code is rejected, unless the caller trusts the file.

Code is named by ``module:factory`` (a game, an agent, a network, an architecture), by ``gtp:command="..."``, and by the file of
an exported network. On the command line such text is always trusted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_trusting: ContextVar[bool] = ContextVar("trusting", default=False)


class UntrustedError(ValueError):
    """Text in a file names code, and the file is not trusted."""


@contextmanager
def trusting(trust: bool = True) -> Iterator[None]:
    """Context manager in which files may name code, if ``trust``; ``--trust`` applies it to a whole command."""
    token = _trusting.set(trust or _trusting.get())
    try:
        yield
    finally:
        _trusting.reset(token)


def check(file: str | Path, field: str, code: str) -> None:
    """Raise ``UntrustedError`` unless files are trusted.

    Args:
        file: the file.
        field: the field of the file.
        code: the text that names code.
    """
    if not _trusting.get():
        shown = code if len(code) <= _SHOWN else f"{code[:_SHOWN]}..."
        raise UntrustedError(
            f"{file}: {field} names code, {shown!r}; if you trust the file, allow it with --trust (trust=True in Python)"
        )


_SHOWN = 200
"""Maximum length of a text in a message."""
