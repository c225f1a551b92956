"""Ctrl-C in a process: an end at once while XLA compiles, and an exit that does not crash."""

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from tilewe_jax.utils import progress

SECONDS_TO_REACT = 1.0
"""Seconds after which a signal that Python could not handle, since XLA compiles, ends the process."""
_CALLBACKS = {weakref.__file__, weakref.WeakSet.__init__.__code__.co_filename}
"""Where the callbacks of weak references are. ``threading`` keeps every thread in a ``WeakSet``."""
_ending = threading.Lock()
at_end: list[Callable[[], None]] = []
"""Functions to call before a process ends without the interpreter's own end."""
is_shared = False
"""True in a process that trains with others: while it compiles, it ends after a second signal, not after the first."""


def signals() -> list[int]:
    """Return the signals that end a command: SIGINT, SIGTERM, and SIGHUP, unless it is ignored, as ``nohup`` makes it."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        numbers.append(hangup)
    return [int(number) for number in numbers]


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``, but later where the garbage collector is at work, or a module is imported.

    The garbage collector calls hooks, like one of JAX's, and callbacks of weak references, and prints what they raise
    instead. Modules like NumPy fail in many ways, or crash, where their import is interrupted.
    """
    hooks = [getattr(hook, "__code__", None) for hook in gc.callbacks]
    while frame:
        code = frame.f_code
        collects = code in hooks or code.co_name == "__del__" or code.co_filename in _CALLBACKS
        if collects or code.co_filename.startswith("<frozen importlib"):
            threading.Timer(0.01, signal.raise_signal, [number]).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def watch() -> None:
    """End the process after one of ``signals()`` while a command compiles, which takes up to minutes and cannot be interrupted.

    Python handles a signal in its main thread once XLA returns to it. Another thread, which this function starts, learns of it
    through a pair of sockets, since Windows takes no pipes for that. Whatever else a command does goes on until the signal's
    handler is called.
    """
    terminals = [descriptor for descriptor in (1, 2) if _is_terminal(descriptor)]
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, terminals), daemon=True).start()


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _watch(reader: socket.socket, terminals: list[int]) -> None:
    count = 0
    while received := reader.recv(64):
        count += len(received)
        if getattr(signal, "SIGHUP", None) in tuple(received):
            for descriptor in terminals:  # which are gone: writing to them would raise errors
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        time.sleep(SECONDS_TO_REACT)
        if progress.is_compiling() and (count > 1 or not is_shared):
            end()


def end() -> NoReturn:
    """Say that the command was interrupted, and end the process with exit code 130, from any thread.

    The interpreter is not finalized: after Ctrl-C while JAX compiled, ``train`` crashed (SIGSEGV) in the destructors that run
    after the interpreter has ended, with JAX 0.10.1, even where exception and traceback were freed before.
    """
    if not _ending.acquire(blocking=False):
        threading.Event().wait()  # the other thread ends the process
    progress.stop()
    with contextlib.suppress(OSError):
        print("tilewe-jax: interrupted", file=sys.stderr)
    leave(130)


def leave(code: int) -> NoReturn:
    """End the process with an exit code, without the interpreter's own end."""
    for function in at_end:
        function()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader has gone
            stream.flush()
    os._exit(code)
