"""Files run nothing: text in a file that names code is refused, unless the caller trusts the file.

Code is named by ``module:factory`` (a game, an agent, a network, an architecture), by ``gtp:command="..."``, and by the file of
an exported network. Users who type this text want the code to run; the author of a file may be anybody.
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
    """Context in which files that are read may name code, if ``trust``; ``--trust`` puts a whole command into it."""
    token = _trusting.set(trust or _trusting.get())
    try:
        yield
    finally:
        _trusting.reset(token)


def check(file: str | Path, field: str, code: str) -> None:
    """Raise ``UntrustedError`` unless files are trusted.

    Args:
        file: the file that is read.
        field: the place in it.
        code: the text that names code.
    """
    if not _trusting.get():
        shown = code if len(code) <= _SHOWN else f"{code[:_SHOWN]}..."
        raise UntrustedError(
            f"{file}: {field} names code, {shown!r}, and code that a file names is not run;"
            " --trust allows it (trust=True in Python), if you trust the file"
        )


_SHOWN = 200
"""Maximum number of characters of a text in a message."""
