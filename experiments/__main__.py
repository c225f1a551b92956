"""The command line as a process: ``tilewe-jax``, and ``python -m experiments``."""

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends the process."""
    signal.signal(signal.SIGINT, _end)
    from experiments import cli

    try:
        cli.main()
    except SystemExit as end:
        if end.code == 1:
            # What went wrong has been said. Where a disk is full, say, threads and exit handlers of libraries would go on to
            # fail, each with a traceback.
            sys.stdout.flush()
            os._exit(1)
        raise


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: an import of NumPy that is interrupted by an exception fails in many ways, or crashes."""
    del number, frame
    os.write(2, b"tilewe-jax: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
