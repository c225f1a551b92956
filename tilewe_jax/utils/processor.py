"""Instructions of the CPU."""

from functools import cache
from pathlib import Path


@cache
def counts_bits_of_vectors() -> bool:
    """Return whether the CPU has an instruction that counts the bits of each word of a vector, ``AVX512_VPOPCNTDQ``.

    It returns ``False`` on systems other than Linux.
    """
    about = Path("/proc/cpuinfo")
    return about.exists() and "avx512_vpopcntdq" in about.read_text()
