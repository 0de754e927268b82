"""AIGER in binary (`aig`): inputs, latches and gates are numbered in order, and gates are written as
differences.

AND number k has the even literal lhs = 2 (I + L + 1 + k) and reads rhs0 >= rhs1 with lhs > rhs0; the file
holds lhs - rhs0 and rhs0 - rhs1, seven bits to a byte, lowest first, a set top bit meaning "more to come".
"""

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.circuits.formats.aig import Aig, Literals, aig_of, circuit_of
from tapegrad.circuits.formats.aiger import (
    Header,
    Lines,
    reset_of,
    take_header,
    take_names,
    written_names,
    written_reset,
)
from tapegrad.circuits.formats.netlist import number
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError
from tapegrad.source import Format

EXAMPLE_BINARY = "aig 3 2 0 1 1\n6\n\x02\x02"
"""An AND gate: 6 reads 4 = 6 - 2 and 2 = 4 - 2."""

_MOST_BYTES = 5
"""Of a difference: 35 bits, more than any literal that is read here."""


def detect_binary(data: bytes) -> bool:
    """Whether the file starts with `aig` and a space."""
    return data.startswith(b"aig ")


def read_binary(data: bytes) -> Circuit | SequentialCircuit:
    """The circuit of a binary AIGER file."""
    lines = Lines(data)
    header = take_header(lines, "aig")
    if header.variables != header.inputs + header.latches + header.ands:
        raise FormatError(
            f"{header.variables} variables for {header.inputs} inputs, {header.latches} latches and "
            f"{header.ands} gates",
            where=lines.where,
            advice="In binary AIGER, M = I + L + A.",
        )
    most = 2 * header.variables + 1
    after: list[int] = []
    resets: list[int] = []
    for place in range(header.latches):
        becomes, *reset = lines.take("the next value of a latch").split() or [""]
        after.append(number(becomes, lines.where, "the next value of a latch", most))
        resets.append(reset_of(reset, 2 * (header.inputs + place) + 2, lines.where))
    outputs = [lines.take_number("the literal of an output", most) for _ in range(sum(header.given))]
    left, right, lines.position = _gates(data, lines.position, header)
    input_names, output_names = take_names(lines, header)
    literals = np.array([*outputs, *after], np.int64)
    return circuit_of(Aig(input_names, output_names, left, right, literals, tuple(resets)))


def _gates(data: bytes, position: int, header: Header) -> tuple[Literals, Literals, int]:
    """The operands of every gate, and the position after the last one."""
    deltas, starts, end = _numbers(data, position, 2 * header.ands)
    own = 2 * (header.inputs + header.latches + 1 + np.arange(header.ands))
    left = own - deltas[0::2]
    right = left - deltas[1::2]
    wrong = (deltas[0::2] == 0) | (left < 0) | (right < 0)
    if wrong.any():
        gate = int(np.argmax(wrong))
        raise FormatError(
            f"AND gate {gate} (literal {own[gate]}) reads literals {left[gate]} and {right[gate]}",
            where=f"byte {position + starts[2 * gate] + 1}",
            advice="Operands are smaller than the gate's own literal and not negative; the file is damaged.",
        )
    return left, right, position + end


def _numbers(data: bytes, position: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """So many numbers, where each starts, and where the last one ends."""
    octets = np.frombuffer(data, np.uint8, offset=position) if position < len(data) else np.empty(0, np.uint8)
    octets = octets[: _MOST_BYTES * count]
    ends = np.flatnonzero(octets < 0x80)[:count]
    starts = np.concatenate([[0], ends[:-1] + 1]) if count else np.empty(0, np.int64)
    sizes = ends - starts[: len(ends)] + 1
    if (sizes > _MOST_BYTES).any() or (len(ends) < count and len(octets) == _MOST_BYTES * count):
        first = int(np.argmax(np.append(sizes, _MOST_BYTES + 1) > _MOST_BYTES))
        raise FormatError(
            f"a number of more than {_MOST_BYTES} bytes",
            where=f"byte {position + starts[min(first, len(starts) - 1)] + 1}",
            advice="No literal is that large; the file is damaged.",
        )
    if len(ends) < count:
        raise FormatError(
            f"the file ends within AND gate {len(ends) // 2} of {count // 2}",
            where=f"byte {len(data) + 1}",
            advice="It is cut off, or its header claims too much.",
        )
    if not count:
        return np.empty(0, np.int64), starts, 0
    octets = octets[: ends[-1] + 1].astype(np.int64)
    shift = 7 * (np.arange(len(octets)) - np.repeat(starts, sizes))
    return np.add.reduceat((octets & 0x7F) << shift, starts), starts, int(ends[-1]) + 1


def write_binary(source: Circuit | SequentialCircuit) -> bytes:
    """The circuit as binary AIGER, with the names of its inputs, latches and outputs."""
    aig = aig_of(source)
    latches, ands = len(aig.resets), len(aig.left)
    inputs, outputs = len(aig.inputs) - latches, len(aig.outputs) - latches
    literals = aig.output_literals.tolist()
    head = f"aig {inputs + latches + ands} {inputs} {latches} {outputs} {ands}\n"
    for place, (becomes, reset) in enumerate(zip(literals[outputs:], aig.resets, strict=True)):
        head += f"{becomes}{written_reset(reset, 2 * (inputs + place) + 2)}\n"
    head += "".join(f"{literal}\n" for literal in literals[:outputs])
    own = 2 * (inputs + latches + 1 + np.arange(ands))
    deltas = np.stack([own - aig.left, aig.left - aig.right], axis=1).ravel()
    return head.encode() + _encoded(deltas) + written_names(source).encode()


def _encoded(numbers: NDArray[np.int64]) -> bytes:
    """Seven bits to a byte, lowest first."""
    groups = numbers[:, None] >> (7 * np.arange(_MOST_BYTES))
    more = groups[:, 1:] > 0
    octets = groups & 0x7F
    octets[:, :-1] |= 0x80 * more
    present = np.concatenate([np.ones((len(numbers), 1), bool), more], axis=1)
    return octets[present].astype(np.uint8).tobytes()


BINARY = Format(
    name="aiger-binary",
    summary="AIGER in binary (.aig): the same, compact",
    example=EXAMPLE_BINARY,
    detect=detect_binary,
    read=read_binary,
    write=write_binary,
)
