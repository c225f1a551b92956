"""Reports of internal errors: one line for the user, and a file with the traceback for developers.

The development mode of Python prints the traceback to standard error: ``python -X dev -m tilewe_jax ...``.
"""

import contextlib
import os
import platform
import shlex
import tempfile
import traceback

CODE = 70
"""Exit code after an internal error, ``EX_SOFTWARE`` of BSD."""


def report(error: BaseException, arguments: list[str], versions: str) -> str:
    """Write the traceback of an error, the command line and the versions to a file; return a message. Never raises."""
    what, details = type(error).__name__, ""
    with contextlib.suppress(Exception):
        what = "".join(traceback.format_exception_only(error))
    with contextlib.suppress(Exception):
        details = "".join(traceback.format_exception(error))
    command = ""
    with contextlib.suppress(Exception):
        command = shlex.join(["tilewe-jax", *arguments])
    path = _written("\n".join((versions, platform.platform(), command, "", details)))
    where = f"the traceback is in {path}" if path else f"no file for the traceback could be written; raised{_place(error)}"
    return f"internal error: {' '.join(what.split())[:500]}; please report it; {where}"


def _written(text: str) -> str | None:
    """Write a new file in the folder of temporary files or the current one; return ``None`` if both are read-only."""
    for folder in (None, os.curdir):
        with contextlib.suppress(Exception):
            descriptor, path = tempfile.mkstemp(".txt", "tilewe-jax-error-", folder, text=True)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return os.path.abspath(path)
    return None


def _place(error: BaseException) -> str:
    """Describe the line of code that raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
