"""Background computation in interruptible steps, for pondering on the opponent's time."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor


class Pondering:
    """A worker thread that runs one computation at a time; a computation can be stopped between its steps."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="pondering")
        self._futures: list[Future[None]] = []
        self._stopped = threading.Event()

    @property
    def is_busy(self) -> bool:
        """True if a computation is running."""
        return not all(future.done() for future in self._futures)

    def start(self, steps: Callable[[], Iterator[None]]) -> None:
        """Stop the running computation, and start another one once it has ended; returns immediately.

        Args:
            steps: called in the thread; the computation can be stopped wherever the iterator yields.
        """
        self.stop()
        stopped = self._stopped = threading.Event()

        def run() -> None:
            for _ in steps():
                if stopped.is_set():
                    break

        self._futures.append(self._executor.submit(run))

    def stop(self) -> None:
        """Stop the running computation after its current step; returns immediately."""
        self._stopped.set()

    def wait(self) -> None:
        """Stop the running computation and wait for its end. Raises the first exception since the last call."""
        self.stop()
        futures, self._futures = self._futures, []
        for future in futures:
            future.result()
