"""Ctrl-C: interrupts compilation by XLA immediately, and ends the process without a crash."""

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

from tilewe_jax.utils import progress

SECONDS_TO_REACT = 1.0
"""Seconds after which a signal ends a process that compiles, because Python cannot handle it."""
_CALLBACKS = {weakref.__file__, weakref.WeakSet.__init__.__code__.co_filename}
"""Files with callbacks of weak references, which ``threading`` uses for every thread."""
_ending = threading.Lock()
at_end: list[Callable[[], None]] = []
"""Functions to call before ``leave`` ends the process."""
is_shared = False
"""The process trains with others, and ends during compilation only after a second signal."""


def signals() -> list[int]:
    """Return the signals that end a command: SIGINT and SIGTERM, and unless they are ignored SIGHUP and SIGUSR1.

    ``nohup`` ignores SIGHUP. Schedulers send SIGUSR1 before the time of a job is over.
    """
    others = [number for name in ("SIGHUP", "SIGUSR1") if (number := getattr(signal, name, None)) is not None]
    heard = [number for number in others if signal.getsignal(number) is not signal.SIG_IGN]
    return [int(number) for number in (signal.SIGINT, signal.SIGTERM, *heard)]


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``, after the end of garbage collection and of imports.

    Python prints errors in hooks of the garbage collector, such as a hook of JAX, and in callbacks of weak references, instead
    of raising them. An interrupted import of a module like NumPy may crash.
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


@contextlib.contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle ``signals()`` inside of a block. Does nothing outside of the main thread, where Python allows no handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in signals()}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def watch() -> None:
    """Start a thread that ends the process after one of ``signals()`` during compilation, which may take minutes.

    The main thread handles signals only after XLA returns. The thread learns of them through a pair of sockets, because
    Windows does not support pipes for this. Outside of compilation the handler of the signal is called as usual.
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
            for descriptor in terminals:  # the terminal is gone, and writing to it would raise errors
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        time.sleep(SECONDS_TO_REACT)
        if progress.is_compiling() and (count > 1 or not is_shared):
            end()


def end() -> NoReturn:
    """Report the interrupt, and end the process with exit code 130, from any thread.

    The interpreter is not finalized: after Ctrl-C during compilation with JAX 0.10.1, destructors crashed (SIGSEGV) at the end
    of the interpreter.
    """
    if not _ending.acquire(blocking=False):
        threading.Event().wait()  # the other thread ends the process
    progress.stop()
    with contextlib.suppress(OSError):
        print("tilewe-jax: interrupted", file=sys.stderr)
    leave(130)


def leave(code: int) -> NoReturn:
    """End the process with an exit code, without finalizing the interpreter."""
    for function in at_end:
        function()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader has gone
            stream.flush()
    os._exit(code)
