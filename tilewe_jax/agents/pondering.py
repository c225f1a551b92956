"""Thinking on the opponent's time: a background thread that works in steps until it is told to stop."""

import threading
from collections.abc import Callable, Iterator


class Pondering:
    """At most one thought under way, in a thread of its own.

    The thread ends by itself once it is stopped, after the step under way, and Python waits for that before it exits.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._error: Exception | None = None

    def start(self, think: Callable[[], Iterator[None]]) -> None:
        """Stop what is under way and, once it has ended, think in steps; returns at once.

        Args:
            think: called in the thread; it may be stopped wherever it yields.
        """
        self.stop()
        previous, stopped = self._thread, threading.Event()

        def run() -> None:
            if previous:
                previous.join()
            try:
                for _ in think():
                    if stopped.is_set():
                        break
            except Exception as error:  # raised by ``wait``, where somebody hears of it
                self._error = error

        self._stopped, self._thread = stopped, threading.Thread(target=run, name="pondering")
        self._thread.start()

    def stop(self) -> None:
        """Let the thought end after its step under way; returns at once."""
        self._stopped.set()

    def wait(self) -> None:
        """Stop the thought and wait for its end. Raises the exception in which one has ended since the last call."""
        self.stop()
        if self._thread:
            self._thread.join()
        self._thread, error, self._error = None, self._error, None
        if error:
            raise error
