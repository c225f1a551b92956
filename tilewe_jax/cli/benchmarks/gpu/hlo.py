"""Compiled GPU programs, read from the text of their HLO: the kernels of every loop, what they move and what they compute.

Counts are read from the program and are no measurements. A kernel is counted as if it read its operands from memory and wrote
its results there; of an operand that a fusion only slices or gathers, what it takes of it; of one that it updates in place,
what it writes. Caches are ignored.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

_ITEM_BYTES = {"pred": 1, "s4": 1, "u4": 1, "bf16": 2, "f8e4m3fn": 1, "f8e5m2": 1, "c64": 8, "c128": 16, "token": 0}
_NOTHING = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier", "optimization-barrier"),
    *("partition-id", "replica-id", "add-dependency", "domain", "async-done", "copy-done", "custom-call-done"),
}
"""Instructions that launch nothing."""
_TAKES_A_PART = {"slice", "dynamic-slice", "gather"}
_MOVES = {
    *("broadcast", "iota", "reshape", "transpose", "concatenate", "pad", "copy", "reverse", "reduce", "reduce-window"),
    *("dynamic-update-slice", "scatter", "fusion", "call", "while", "conditional", "custom-call", "dot", "convolution", "sort"),
    *("map", "select-and-scatter"),
    *_NOTHING,
    *_TAKES_A_PART,
}
"""Instructions that compute nothing for each element of their result, or are counted in another way."""

_CUSTOM_CALL = re.compile(r'custom_call_target="([^"]*)"')


@dataclass(frozen=True)
class Instruction:
    """An instruction of a computation."""

    name: str
    shape: str
    """The shape of its result, as text; a tuple in parentheses."""
    opcode: str
    operands: tuple[str, ...]
    """Names of the operands; of a parameter its number, of a constant its value."""
    attributes: str
    """What follows the operands."""
    is_root: bool = False

    def attribute(self, name: str) -> str:
        """An attribute that names a computation or a single word; empty where there is none."""
        matched = re.search(rf"\b{name}=%?([\w.\-]+)", self.attributes)
        return matched.group(1) if matched else ""


Computations = Mapping[str, Mapping[str, Instruction]]
"""The instructions of each computation, by name and in order."""


@dataclass
class Kernel:
    """A kernel, or another operation that the device is sent, and its work of one launch."""

    name: str
    kind: str
    """"fusion", "copy", ...; of a custom call its target."""
    source: str
    """The operation of the program that it came from, as JAX names it."""
    bytes_read: int
    bytes_written: int
    integer_ops: int
    """Operations on integers and booleans."""
    float_ops: int
    """Elementwise operations on floating-point numbers."""
    matrix_ops: dict[str, int] = field(default_factory=dict)
    """Multiplications and additions of matrix products and convolutions, by the dtype of their operands."""

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written


@dataclass
class Body:
    """The entry of a program, or the body of a loop."""

    name: str
    turns: int | None
    """How often it runs; ``None`` where the device decides that."""
    kernels: list[Kernel]
    """Kernels of one turn, those of loops inside not included."""
    loops: list["Body"]

    def walk(self) -> Iterator["Body"]:
        """The body itself and all the loops inside, from outside to inside."""
        yield self
        for loop in self.loops:
            yield from loop.walk()


def read(text: str) -> Body:
    """The entry of a compiled program, from the text of its HLO; raises ``ValueError`` where there is none."""
    computations, entry = parse(text)
    return _body(computations, entry, 1)


def parse(text: str) -> tuple[Computations, str]:
    """The computations of a program, and the name of its entry; raises ``ValueError`` where there is none."""
    computations: dict[str, dict[str, Instruction]] = {}
    current: dict[str, Instruction] = {}
    entry = None
    for line in text.splitlines():
        if heading := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            current = computations[heading.group(2)] = {}
            entry = heading.group(2) if heading.group(1) else entry
        elif instruction := _instruction(line):
            current[instruction.name] = instruction
    if entry is None:
        raise ValueError("the text has no entry computation")
    return computations, entry


def _instruction(line: str) -> Instruction | None:
    matched = re.match(r"\s+(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)", re.sub(r"/\*.*?\*/", "", line))
    if not matched:
        return None
    root, name, shape, opcode, rest = matched.groups()
    depth = 1
    for end, mark in enumerate(rest):  # noqa: B007
        depth += (mark == "(") - (mark == ")")
        if not depth:
            break
    operands = tuple(part.strip().split(" ")[-1].lstrip("%") for part in rest[:end].split(",") if part.strip())
    return Instruction(name, shape, opcode, operands, rest[end + 1 :], bool(root))


@cache
def size_in_bytes(shape: str) -> int:
    """Bytes of an array, or of all arrays of a tuple."""
    return sum(count * item_bytes(dtype) for dtype, count in _arrays(shape))


@cache
def num_elements(shape: str) -> int:
    """Elements of an array; of a tuple those of its largest array."""
    return max((count for _, count in _arrays(shape)), default=0)


def item_bytes(dtype: str) -> int:
    """Bytes of an element."""
    return _ITEM_BYTES[dtype] if dtype in _ITEM_BYTES else int(re.sub(r"\D", "", dtype)) // 8


def _arrays(shape: str) -> list[tuple[str, int]]:
    arrays = re.findall(r"\b(pred|token|bf16|[csuf]\d+\w*)\[([\d,]*)\]", shape)
    return [(dtype, int(np.prod([int(side) for side in sides.split(",") if side], dtype=np.int64))) for dtype, sides in arrays]


def _sides(shape: str) -> list[int]:
    matched = re.search(r"\[([\d,]*)\]", shape)
    return [int(side) for side in matched.group(1).split(",") if side] if matched else []


def _body(computations: Computations, name: str, turns: int | None) -> Body:
    body = Body(name, turns, [], [])
    instructions = computations[name]
    for instruction in instructions.values():
        opcode = instruction.opcode
        if opcode == "while":
            trip_count = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', instruction.attributes)
            inside = _body(computations, instruction.attribute("body"), int(trip_count.group(1)) if trip_count else None)
            condition = _body(computations, instruction.attribute("condition"), 1)
            # A loop of a known length does not ask its condition.
            inside.kernels += [] if trip_count else condition.kernels
            body.loops.append(inside)
        elif opcode in ("call", "async-start", "conditional"):
            for branch in _branches(instruction):
                inside = _body(computations, branch, 1)
                body.kernels += inside.kernels
                body.loops += inside.loops
        elif opcode not in _NOTHING and not opcode.endswith("-done"):
            body.kernels.append(_kernel(computations, instructions, instruction))
    return body


def _branches(instruction: Instruction) -> list[str]:
    """The computations that a call or a conditional may run; of a conditional all, an upper bound."""
    if several := re.search(r"branch_computations=\{([^}]*)\}", instruction.attributes):
        return [name.strip().lstrip("%") for name in several.group(1).split(",")]
    names = [instruction.attribute(name) for name in ("to_apply", "calls", "true_computation", "false_computation")]
    return [name for name in names if name]


def _kernel(computations: Computations, instructions: Mapping[str, Instruction], instruction: Instruction) -> Kernel:
    shape_of = {name: instructions[name].shape for name in instruction.operands if name in instructions}
    shapes = [shape_of.get(name, "") for name in instruction.operands]
    source = re.search(r'op_name="([^"]*)"', instruction.attributes)
    target = _CUSTOM_CALL.search(instruction.attributes)
    called = computations.get(instruction.attribute("calls"), {})
    if called:
        read, written = _traffic_of_fusion(called, shapes)
        inside = list(_all_inside(computations, called))
    else:
        read, written = _traffic(instruction, shapes)
        inside = [(instruction, shape_of)]
    kernel = Kernel(
        name=instruction.name,
        kind=target.group(1) if target else instruction.opcode,
        source=source.group(1) if source else "",
        bytes_read=read,
        bytes_written=written,
        integer_ops=0,
        float_ops=0,
    )
    for part, shapes_inside in inside:
        _add_operations(kernel, part, shapes_inside)
    return kernel


def _traffic(instruction: Instruction, shapes: list[str]) -> tuple[int, int]:
    """Bytes that an instruction reads and writes as a kernel of its own."""
    written = size_in_bytes(instruction.shape)
    if instruction.opcode == "custom-call" and "__cu" in instruction.attributes:
        dtype, count = _arrays(instruction.shape)[0]  # what a library writes beside its result is scratch memory
        written = count * item_bytes(dtype)
    if instruction.opcode in _TAKES_A_PART:
        return written + sum(map(size_in_bytes, shapes[1:])), written
    if instruction.opcode in ("dynamic-update-slice", "scatter"):
        update = size_in_bytes(shapes[1] if instruction.opcode == "dynamic-update-slice" else shapes[-1])
        return sum(map(size_in_bytes, shapes[1:])), update
    return sum(map(size_in_bytes, shapes)), written


def _traffic_of_fusion(called: Mapping[str, Instruction], shapes: list[str]) -> tuple[int, int]:
    """Bytes that a fusion reads and writes, by how its computation uses the parameters."""
    users: dict[str, list[Instruction]] = {}
    for instruction in called.values():
        for operand in instruction.operands:
            users.setdefault(operand, []).append(instruction)
    root = next(instruction for instruction in called.values() if instruction.is_root)
    results = [called[name] for name in root.operands] if root.opcode == "tuple" else [root]
    # A result that updates a parameter is written in place: the parameter is neither read nor written as a whole.
    updates = [update for result in results if (update := _update_in_place(called, result))]
    in_place = {_origin(called, update.operands[0]) for update in updates}

    def taken(name: str) -> int | None:
        """Bytes that all users of a value take of it; ``None`` for the whole."""
        total = 0
        for user in users.get(name, []):
            if user.opcode in _TAKES_A_PART and user.operands[0] == name:
                total += size_in_bytes(user.shape)
            elif user.opcode == "bitcast":
                inner = taken(user.name)
                if inner is None:
                    return None
                total += inner
            elif user in updates and user.operands[0] == name:
                continue
            else:
                return None
        return total

    read = written = 0
    for instruction in called.values():
        if instruction.opcode == "parameter":
            whole = size_in_bytes(shapes[int(instruction.operands[0])])
            part = taken(instruction.name)
            read += whole if part is None else min(whole, part)
    for result in results:
        update = _update_in_place(called, result)
        if update and _origin(called, update.operands[0]) in in_place:
            written += size_in_bytes(called[update.operands[1 if update.opcode != "scatter" else -1]].shape)
        else:
            written += size_in_bytes(result.shape)
    return read, written


def _update_in_place(called: Mapping[str, Instruction], result: Instruction) -> Instruction | None:
    """The update that a result of a fusion is, where it is one of a parameter."""
    while result.opcode == "bitcast":
        result = called[result.operands[0]]
    if result.opcode not in ("dynamic-update-slice", "scatter"):
        return None
    return result if called[_origin(called, result.operands[0])].opcode == "parameter" else None


def _origin(called: Mapping[str, Instruction], name: str) -> str:
    while called[name].opcode == "bitcast":
        name = called[name].operands[0]
    return name


def _all_inside(
    computations: Computations, called: Mapping[str, Instruction]
) -> Iterator[tuple[Instruction, Mapping[str, str]]]:
    """The instructions of a fusion and of the fusions inside, each with the shapes of its operands."""
    for instruction in called.values():
        yield instruction, {name: called[name].shape for name in instruction.operands if name in called}
        inner = computations.get(instruction.attribute("calls"), {}) if instruction.opcode == "fusion" else {}
        yield from _all_inside(computations, inner) if inner else ()


def _add_operations(kernel: Kernel, instruction: Instruction, shapes: Mapping[str, str]) -> None:
    """Add the operations of an instruction to those of its kernel."""
    operands = [shapes.get(name, "") for name in instruction.operands]
    if count := _matrix_ops(instruction, operands):
        dtype = operands[0].split("[")[0]
        kernel.matrix_ops[dtype] = kernel.matrix_ops.get(dtype, 0) + count
        return
    if instruction.opcode == "reduce":
        count, shape = num_elements(operands[0]), operands[0]
    elif instruction.opcode in _MOVES:
        return
    else:
        count, shape = num_elements(instruction.shape), instruction.shape
    if instruction.opcode == "compare":
        shape = operands[0]
    if re.match(r"\(?(f|bf|c)\d", shape):
        kernel.float_ops += count
    else:
        kernel.integer_ops += count


def _matrix_ops(instruction: Instruction, operands: list[str]) -> int:
    """Multiplications and additions of a matrix product or a convolution; 0 for other instructions."""
    target = _CUSTOM_CALL.search(instruction.attributes)
    name = target.group(1) if target else instruction.opcode
    if name == "convolution" or name.startswith("__cudnn$conv"):
        labels = re.search(r"dim_labels=\w+_(\w+)->(\w+)", instruction.attributes)
        assert labels
        kernel_sides, result = _sides(operands[1]), instruction.shape
        taps = int(np.prod(kernel_sides)) // kernel_sides[labels.group(1).index("o")]
        return 2 * _elements_of_first(result) * taps
    if name == "dot" or "cublas" in name:
        return 2 * _elements_of_first(instruction.shape) * _contracted(instruction, operands[0])
    return 0


def _elements_of_first(shape: str) -> int:
    """Elements of an array; of a tuple, of its first array, as the others are scratch memory."""
    arrays = _arrays(shape)
    return arrays[0][1] if arrays else 0


def _contracted(instruction: Instruction, left: str) -> int:
    matched = re.search(r'lhs_contracting_dims=\{([\d,]*)\}|"lhs_contracting_dimensions":\[([^\]]*)\]', instruction.attributes)
    if not matched:
        return 1
    sides = _sides(left)
    axes = [int(axis) for axis in re.findall(r"\d+", matched.group(1) or matched.group(2) or "")]
    return int(np.prod([sides[axis] for axis in axes], dtype=np.int64))
