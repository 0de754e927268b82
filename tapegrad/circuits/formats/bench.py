"""ISCAS `.bench`: `INPUT(a)`, `OUTPUT(y)`, `y = NAND(a, b)`, gates of any number of operands; and, as in
ISCAS-89, flip-flops `q = DFF(d)`, whose value at reset is open."""

import re
from collections.abc import Callable, Sequence
from functools import partial

from tapegrad.circuits.builder import Wire
from tapegrad.circuits.clocked.model import ANY, SequentialCircuit
from tapegrad.circuits.formats.netlist import Gates, Latch, Net, Netlist, decoded
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import FormatError
from tapegrad.source import Format, opening, quoted

EXAMPLE = """\
INPUT(a)
INPUT(b)
OUTPUT(sum)
OUTPUT(carry)
sum = XOR(a, b)
carry = AND(a, b)
"""

_PORT = re.compile(r"(INPUT|OUTPUT)\s*\(\s*([^\s(),=]+)\s*\)", re.IGNORECASE)
_GATE = re.compile(r"([^\s(),=]+)\s*=\s*([A-Za-z]\w*)\s*\(([^()]*)\)")
_CONSTANT = re.compile(r"([^\s(),=]+)\s*=\s*(vdd|gnd)", re.IGNORECASE)
_NAME = re.compile(r"[^\s(),=]+")

_TREES = {"AND": Gate.AND, "OR": Gate.OR, "XOR": Gate.XOR}
_NEGATED_TREES = {"NAND": Gate.AND, "NOR": Gate.OR, "XNOR": Gate.XOR}
_OTHER_LATCHES = {"DFFSR", "LATCH", "SDFF"}


def detect(data: bytes) -> bool:
    """Whether the first line that is no comment declares a port, or is a gate and another line does."""
    lines = [line.split("#", 1)[0].strip() for line in opening(data).split("\n")]
    lines = [line for line in lines if line]
    if not lines:
        return False
    return bool(_PORT.match(lines[0])) or (
        bool(_GATE.match(lines[0]) or _CONSTANT.match(lines[0])) and any(map(_PORT.match, lines))
    )


def read(data: bytes) -> Circuit | SequentialCircuit:
    """The circuit of a `.bench` file."""
    return netlist(data).circuit()


def netlist(data: bytes) -> Netlist:
    """The nets of a `.bench` file, as they stand in it."""
    found = Netlist()
    for number, line in enumerate(decoded(data).split("\n"), 1):
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        if port := _PORT.fullmatch(content):
            declare = found.add_input if port[1].upper() == "INPUT" else found.add_output
            declare(port[2], number)
        elif constant := _CONSTANT.fullmatch(content):
            value = constant[2].lower() == "vdd"
            found.define(constant[1], Net((), partial(_constant, value=value), number))
        elif (gate := _GATE.fullmatch(content)) and gate[2].upper() == "DFF":
            reads = _operands(gate[3], f"line {number}")
            if len(reads) != 1:
                raise FormatError(f"DFF takes one operand, not {len(reads)}", where=f"line {number}")
            found.add_latch(gate[1], Latch(reads[0], ANY, number))
        elif gate:
            found.define(gate[1], _net(gate[2].upper(), gate[3], number))
        else:
            raise FormatError(
                f"{quoted(content)} is no line of a .bench file",
                where=f"line {number}",
                advice="Lines are INPUT(a), OUTPUT(y), y = AND(a, b) or a # comment.",
            )
    return found


def _operands(text: str, where: str) -> tuple[str, ...]:
    reads = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    for name in reads:
        if not _NAME.fullmatch(name):
            raise FormatError(f"{quoted(name)} is no name of a net", where=where)
    return reads


def _net(kind: str, operands: str, line: int) -> Net:
    where = f"line {line}"
    reads = _operands(operands, where)
    if kind in _OTHER_LATCHES:
        raise FormatError(
            f"{kind} is not read; of what keeps a state, only DFF is",
            where=where,
            advice="Write set and reset as gates before a DFF.",
        )
    if kind in ("NOT", "INV", "BUF", "BUFF"):
        if len(reads) != 1:
            raise FormatError(f"{kind} takes one operand, not {len(reads)}", where=where)
        return Net(reads, _negation if kind in ("NOT", "INV") else _identity, line)
    if kind not in _TREES and kind not in _NEGATED_TREES:
        raise FormatError(
            f"there is no gate {quoted(kind)}",
            where=where,
            advice="Gates are AND, NAND, OR, NOR, XOR, XNOR, NOT, BUFF; constants are vdd and gnd.",
        )
    if not reads:
        raise FormatError(f"{kind} without operands", where=where)
    return Net(reads, _tree_of(kind), line)


def _tree_of(kind: str) -> Callable[[Gates, Sequence[Wire]], Wire]:
    """A tree of two-input gates; of two operands, NAND, NOR and XNOR are one gate."""

    def add(gates: Gates, operands: Sequence[Wire]) -> Wire:
        if len(operands) == 2:
            return gates.build.gate(Gate[kind], *operands)
        if kind in _TREES:
            return gates.tree(_TREES[kind], operands)
        return gates.negated(gates.tree(_NEGATED_TREES[kind], operands))

    return add


def _constant(gates: Gates, operands: Sequence[Wire], *, value: bool) -> Wire:
    return gates.constant(value)


def _negation(gates: Gates, operands: Sequence[Wire]) -> Wire:
    return gates.negated(operands[0])


def _identity(gates: Gates, operands: Sequence[Wire]) -> Wire:
    return gates.build.gate(Gate.ID, operands[0])


FORMAT = Format(
    name="bench",
    summary="ISCAS .bench: y = NAND(a, b), gates of any number of operands, and DFF",
    example=EXAMPLE,
    detect=detect,
    read=read,
)
