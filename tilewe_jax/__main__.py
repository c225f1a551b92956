"""Run the command line: ``tilewe-jax``, or ``python -m tilewe_jax``."""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line. Ctrl-C during imports ends the process."""
    signal.signal(signal.SIGINT, _end)
    _use_wide_vectors()
    from tilewe_jax.cli import main as cli
    from tilewe_jax.cli import streams
    from tilewe_jax.utils import interrupts

    try:
        cli.main()
    except SystemExit as end:
        streams.discard()
        if end.code == 1 or (interrupts.at_end and isinstance(end.code, int)):
            # The error has been reported. Threads and exit handlers of libraries could fail for the same reason, such as a
            # full disk, and print tracebacks.
            interrupts.leave(end.code)
        raise
    streams.discard()
    if interrupts.at_end:
        interrupts.leave(0)


def _use_wide_vectors() -> None:
    """Let XLA use vectors of 512 bits on CPUs with AVX512_VNNI; its default is 256 bits.

    The polyomino games become faster by a fifth to a half; the speed of other games and of training does not change. CPUs
    with AVX-512 but without VNNI (Intel's before 2019) reduce their clock rate for such vectors.
    """
    from pathlib import Path

    flags, about = os.environ.get("XLA_FLAGS", ""), Path("/proc/cpuinfo")  # on Linux
    if "xla_cpu_prefer_vector_width" not in flags and about.exists() and "avx512_vnni" in about.read_text():
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_prefer_vector_width=512".strip()


def _end(number: int, frame: FrameType | None) -> None:
    """End the process without an exception, because an interrupted import of NumPy can fail in many ways or crash."""
    del number, frame
    os.write(2, b"tilewe-jax: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
