"""Bristol Fashion: numbered wires, gates in order, the bits of every value least significant first.

The header gives the numbers of gates and wires, then the sizes of the input values, then those of the
output values; input values are the first wires, output values the last. The older format, with one line
of two input sizes and an output size, is read as well. The files name nothing: bit 3 of the second input
value is called `in1[3]` here, and outputs likewise `out0[3]`.
"""

import re
from itertools import takewhile
from typing import NamedTuple

from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.formats.netlist import UNLISTED_INPUTS, decoded, number
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import FormatError
from tapegrad.source import Format, opening, quoted

EXAMPLE = """\
2 4
2 1 1
2 1 1

2 1 0 1 2 XOR
2 1 0 1 3 AND
"""

_GATES = {"AND": Gate.AND, "XOR": Gate.XOR, "OR": Gate.OR, "NAND": Gate.NAND, "NOR": Gate.NOR}
_GATES |= {"XNOR": Gate.XNOR, "INV": Gate.NOT, "NOT": Gate.NOT, "EQW": Gate.ID}
_BINARY = {name: int(kind) for name, kind in _GATES.items() if kind.arity == 2}
_NUMBERS = re.compile(r"[0-9\s]+")
_GATE_LINE = re.compile(r"[0-9]+(\s+[0-9]+)+\s+[A-Z]+\s*$")


class _Line(NamedTuple):
    number: int
    words: list[str]

    @property
    def where(self) -> str:
        return f"line {self.number}"


def detect(data: bytes) -> bool:
    """Whether a line of two numbers is followed by one or two lines of numbers, then gates or nothing."""
    lines = [line for line in opening(data).split("\n")[:20] if line.strip()]
    numbers = [line.split() for line in takewhile(_NUMBERS.fullmatch, lines[:3])]
    if len(numbers) < 2 or len(numbers[0]) != 2:
        return False
    return len(lines) == len(numbers) or bool(_GATE_LINE.match(lines[len(numbers)]))


def read(data: bytes) -> Circuit:
    """The circuit of a Bristol Fashion file."""
    lines = [
        _Line(place, line.split())
        for place, line in enumerate(decoded(data).split("\n"), 1)
        if line and not line.isspace()
    ]
    gates, wires, sizes_in, sizes_out, body = _header(lines, UNLISTED_INPUTS + len(data))
    build = CircuitBuilder(simplify=False)
    driven: dict[int, Wire] = {}
    for value, size in enumerate(sizes_in):
        for bit in range(size):
            driven[len(driven)] = build.input(f"in{value}[{bit}]")
    plain = not any(sign in data for sign in (b"+", b"-", b"_")) and data.isascii()
    for line in body:
        if not (plain and _add_plain_gate(line.words, build, driven, wires)):
            _add_gate(line, build, driven, wires)
    if len(body) != gates:
        raise FormatError(
            f"the header promises {gates} gates, and there are {len(body)}",
            where=f"line {body[-1].number if body else lines[-1].number}",
            advice="The file may be cut off." if len(body) < gates else "",
        )
    wire = wires - sum(sizes_out)
    for value, size in enumerate(sizes_out):
        for bit in range(size):
            if wire not in driven:
                raise FormatError(
                    f"output bit {bit} of value {value} is wire {wire}, which nothing drives",
                    where=f"line {lines[-1].number}, the end of the file",
                    advice="The outputs are the last wires; the file may be cut off.",
                )
            build.output(f"out{value}[{bit}]", driven[wire])
            wire += 1
    return build.circuit()


def _header(lines: list[_Line], most: int) -> tuple[int, int, list[int], list[int], list[_Line]]:
    """Numbers of gates and wires, sizes of input and output values, and the lines of the gates."""
    rows = []
    for line in lines[:3]:
        if all(word.isascii() and word.isdigit() for word in line.words):
            rows.append([number(word, line.where) for word in line.words])
        else:
            break
    if len(rows) < 2 or len(rows[0]) != 2:
        raise FormatError(
            "a header of two numbers, of gates and of wires, and lines of sizes were expected",
            where=lines[min(len(rows), len(lines) - 1)].where if lines else "line 1",
            advice="The file may be cut off.",
        )
    (gates, wires), *sizes = rows
    if len(sizes) == 1:  # the older format: two input values and an output
        if len(sizes[0]) != 3:
            raise FormatError("sizes of two inputs and an output were expected", where=lines[1].where)
        sizes_in, sizes_out = [size for size in sizes[0][:2] if size], sizes[0][2:]
    else:
        for row, line in zip(sizes, lines[1:], strict=False):
            if row[0] != len(row) - 1:
                raise FormatError(
                    f"{row[0]} values are announced, and {len(row) - 1} sizes follow", where=line.where
                )
        sizes_in, sizes_out = sizes[0][1:], sizes[1][1:]
    for total, what in ((sum(sizes_in), "inputs"), (sum(sizes_out), "outputs")):
        if total > min(wires, most):
            raise FormatError(
                f"{total:,} {what} are announced, with {wires:,} wires",
                where=lines[1].where,
                advice=f"There are no more than wires, or than {UNLISTED_INPUTS:,} plus the file's bytes.",
            )
    return gates, wires, sizes_in, sizes_out, lines[len(rows) :]


def _add_plain_gate(words: list[str], build: CircuitBuilder, driven: dict[int, Wire], wires: int) -> bool:
    """The hot path: a gate of two operands that is as it should be, in a text where `int` takes digits only.
    Anything else is left to what can say what is wrong with it."""
    if len(words) != 6 or words[0] != "2" or words[1] != "1" or len(words[4]) > 18:
        return False
    try:
        kind, a, b, place = _BINARY[words[5]], driven[int(words[2])], driven[int(words[3])], int(words[4])
    except (KeyError, ValueError):
        return False
    if place in driven or place >= wires:
        return False
    driven[place] = build.gate(kind, a, b)
    return True


def _add_gate(line: _Line, build: CircuitBuilder, driven: dict[int, Wire], wires: int) -> None:
    *counts, kind = line.words
    if len(counts) < 2:
        raise FormatError(f"{quoted(' '.join(line.words))} is no gate", where=line.where)
    takes, gives = (number(word, line.where) for word in counts[:2])
    numbers = [number(word, line.where, "a wire", wires - 1) for word in counts[2:]]
    if len(numbers) != takes + gives:
        raise FormatError(
            f"{takes} + {gives} wires are announced, and {len(numbers)} follow", where=line.where
        )
    reads, drives = numbers[:takes], numbers[takes:]
    if kind == "EQ" and (takes, gives) == (1, 1) and reads[0] <= 1:  # a constant, not a wire
        _drive(driven, drives[0], build.constant(reads[0] == 1), line)
        return
    for wire in reads:
        if wire not in driven:
            raise FormatError(
                f"wire {wire} is read before anything drives it",
                where=line.where,
                advice="Gates stand in order, each after those it reads, without cycles.",
            )
    operands = [driven[wire] for wire in reads]
    if kind == "MAND" and takes == 2 * gives:  # many ANDs at once: first all left operands, then all right
        for place, wire in enumerate(drives):
            _drive(driven, wire, build.gate(Gate.AND, operands[place], operands[gives + place]), line)
    elif kind in _GATES and (takes, gives) == (_GATES[kind].arity, 1):
        _drive(driven, drives[0], build.gate(_GATES[kind], *operands), line)
    else:
        raise FormatError(
            f"there is no gate {quoted(kind)} with {takes} operands and {gives} results",
            where=line.where,
            advice=f"Gates are {', '.join(_GATES)}, EQ (of the constants 0 and 1) and MAND.",
        )


def _drive(driven: dict[int, Wire], wire: int, by: Wire, line: _Line) -> None:
    if wire in driven:
        raise FormatError(f"wire {wire} is driven twice", where=line.where)
    driven[wire] = by


FORMAT = Format(
    name="bristol",
    summary="Bristol Fashion: numbered wires, values with the lowest bit first",
    example=EXAMPLE,
    detect=detect,
    read=read,
)
