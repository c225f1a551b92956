"""Machine code of compiled kernels: registers, spills, instructions and threads, from what XLA dumps and ``ptxas``."""

import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_INSTRUCTION_BYTES = 16
"""Bytes of a machine instruction, from compute capability 7.0 on."""


@dataclass(frozen=True)
class MachineCode:
    """What ``ptxas`` makes of a kernel."""

    registers: int
    """Registers of a thread."""
    spill_bytes: int
    """Bytes of a thread that are stored to and loaded from local memory, since registers do not suffice."""
    instructions: int
    """Instructions of the whole kernel, a little padding included."""
    has_loop: bool
    """Whether instructions run more than once, so that their number says little."""


def find_ptxas() -> Path | None:
    """The assembler of the CUDA wheels or of the machine; ``None`` where there is none."""
    for folder in map(Path, sys.path):
        for path in (folder / "nvidia").glob("*/bin/ptxas"):
            return path
    path_of_machine = shutil.which("ptxas")
    return Path(path_of_machine) if path_of_machine else None


def assemble(files: Iterable[Path], architecture: str, ptxas: Path) -> dict[str, MachineCode]:
    """The machine code of all kernels in files of PTX, by the name of the kernel."""
    kernels: dict[str, MachineCode] = {}
    with tempfile.TemporaryDirectory() as scratch:
        binary = Path(scratch) / "kernel.cubin"
        for path in files:
            ptx = path.read_text()
            if ".entry" not in ptx:  # constants alone
                continue
            command = [str(ptxas), "-v", f"-arch={architecture}", str(path), "-o", str(binary)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"ptxas refuses {path.name}: {done.stderr.strip()}")
            sizes = dict(_code_sizes(binary.read_bytes()))
            for name, registers, spill_bytes in parse_verbose(done.stderr):
                body = ptx.partition(f".entry {name}(")[2].partition(".entry ")[0]
                code = MachineCode(registers, spill_bytes, sizes.get(name, 0) // _INSTRUCTION_BYTES, _has_loop(body))
                kernels[name] = code
    return kernels


def parse_verbose(text: str) -> Iterator[tuple[str, int, int]]:
    """The name, the registers and the spilled bytes of each kernel, from what ``ptxas -v`` prints."""
    for part in text.split("Compiling entry function '")[1:]:
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        registers = re.search(r"Used (\d+) registers", part)
        yield (
            part.partition("'")[0],
            int(registers.group(1)) if registers else 0,
            sum(map(int, spills.groups())) if spills else 0,
        )


def parse_threads(text: str) -> dict[str, int]:
    """The threads that each kernel is launched with, by its name, from XLA's dump of the sequence of its commands."""
    threads = {}
    patterns = (
        r"(\S+) grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\]",
        r"kernel=(\S+?),.*blocks: \{(\d+), (\d+), (\d+)\}, threads/block: \{(\d+), (\d+), (\d+)\}",
    )
    for pattern in patterns:
        for name, *sides in re.findall(pattern, text):
            count = 1
            for side in sides:
                count *= int(side)
            threads[name] = count
    return threads


def _has_loop(ptx: str) -> bool:
    """Whether the text of a kernel jumps to a label before it."""
    labels: set[str] = set()
    for line in ptx.splitlines():
        if label := re.match(r"\s*(\$\w+):", line):
            labels.add(label.group(1))
        elif (jump := re.search(r"\bbra(?:\.uni)?\s+(\$\w+)", line)) and jump.group(1) in labels:
            return True
    return False


def _code_sizes(binary: bytes) -> Iterator[tuple[str, int]]:
    """The bytes of code of each kernel of an ELF file of 64 bits."""
    (sections_at,) = struct.unpack_from("<Q", binary, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", binary, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", binary, sections_at + i * entry_size) for i in range(count)]
    names_at = headers[names_index][4]
    for name_at, _type, _flags, _address, _offset, size in headers:
        start = names_at + name_at
        name = binary[start : binary.index(b"\0", start)].decode()
        if name.startswith(".text."):
            yield name.removeprefix(".text."), size
