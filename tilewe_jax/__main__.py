"""Run the command line: ``tilewe-jax``, or ``python -m tilewe_jax``."""

import os
import signal
from pathlib import Path
from types import FrameType


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends the process."""
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
            # What went wrong has been said. Where a disk is full, say, threads and exit handlers of libraries would go on to
            # fail, each with a traceback.
            interrupts.leave(end.code)
        raise
    streams.discard()
    if interrupts.at_end:
        interrupts.leave(0)


def _use_wide_vectors() -> None:
    """Let XLA compile for vectors of 512 bits, where the CPU counts bits in them; it takes half of that by default.

    The polyomino games become faster by a fifth, other games and training neither faster nor slower. Older CPUs with such
    vectors slow down for them.
    """
    flags, about = os.environ.get("XLA_FLAGS", ""), Path("/proc/cpuinfo")
    if "xla_cpu_prefer_vector_width" not in flags and about.exists() and "avx512_vpopcntdq" in about.read_text():
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_prefer_vector_width=512".strip()


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: an import of NumPy that is interrupted by an exception fails in many ways, or crashes."""
    del number, frame
    os.write(2, b"tilewe-jax: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
