"""AIGER in ASCII (`aag`): a line for each input, output and AND gate, in any order."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.formats.netlist import UNLISTED_INPUTS, CycleError, in_order, number
from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import FormatError, Refused
from tapegrad.source import Format, quoted

# And-inverter graphs, the model behind AIGER: AND gates over literals, where a literal may be negated.


Literals = NDArray[np.int64]
"""Variable v is the literal 2 v, its negation 2 v + 1; variable 0 is the constant 0."""


@dataclass(frozen=True)
class Aig:
    """Inputs are the variables 1, 2, ..., then comes one variable for each AND, in an order in which
    every AND reads earlier variables only."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    left: Literals
    right: Literals
    output_literals: Literals


def circuit_of(aig: Aig, name: str = "circuit") -> Circuit:
    """One gate for each AND: AND of two plain operands, NOR of two negated ones, and for one of each an
    AND that reads a NOT. There is one NOT for a variable, after its own gate, and only where needed."""
    inputs, ands = len(aig.inputs), len(aig.left)
    both_negated = (aig.left & aig.right & 1).astype(bool)
    both_negated &= (aig.left > 1) & (aig.right > 1)  # constants are gates of their own
    left, right = aig.left - both_negated, aig.right - both_negated

    used = np.zeros(2 * (1 + inputs + ands), bool)
    for literals in (left, right, aig.output_literals):
        used[literals] = True
    # The wire of every literal. Gates stand in the order of literals, inputs and unused NOTs left out,
    # and the two literals of variable 0 are the constants.
    is_gate = used.copy()
    is_gate[2 : 2 + 2 * inputs : 2] = False
    is_gate[2 + 2 * inputs :: 2] = True
    wire = inputs + np.cumsum(is_gate) - 1
    wire[2 : 2 + 2 * inputs : 2] = np.arange(inputs)

    literal = np.flatnonzero(is_gate)
    kinds = np.where(literal & 1, Gate.NOT, Gate.AND).astype(np.uint8)
    first, second = wire[literal & ~1], np.zeros(len(literal), np.int64)
    plain = np.flatnonzero((literal >= 2 + 2 * inputs) & (literal & 1 == 0))
    kinds[plain[both_negated]] = Gate.NOR
    first[plain], second[plain] = wire[left], wire[right]
    constant = literal < 2
    kinds[constant] = np.where(literal[constant] == 1, Gate.TRUE, Gate.FALSE)
    first[constant] = 0
    return Circuit(
        inputs=aig.inputs,
        outputs=aig.outputs,
        kinds=kinds,
        left=first.astype(np.int32),
        right=second.astype(np.int32),
        output_wires=wire[aig.output_literals].astype(np.int32),
        name=name,
    )


def aig_of(circuit: Circuit) -> Aig:
    """The same circuit of ANDs alone: NOT, identity and constants take none, XOR and XNOR three."""
    left: list[int] = []
    right: list[int] = []
    variables = 1 + len(circuit.inputs)

    def and_(a: int, b: int) -> int:
        left.append(max(a, b))
        right.append(min(a, b))
        return 2 * (variables + len(left) - 1)

    literal = [2 * number + 2 for number in range(len(circuit.inputs))]
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for kind, i, j in rows:
        arity = ARITY[kind]
        a, b = literal[i] if arity else 0, literal[j] if arity == 2 else 0
        if arity == 0:
            literal.append(int(kind == Gate.TRUE))
        elif arity == 1:
            literal.append(a ^ (kind == Gate.NOT))
        elif kind in (Gate.XOR, Gate.XNOR):
            neither, both = and_(a ^ 1, b ^ 1), and_(a, b)
            literal.append(and_(neither ^ 1, both ^ 1) ^ (kind == Gate.XNOR))
        else:  # by De Morgan, OR and NOR are ANDs of negated operands
            flip = kind in (Gate.OR, Gate.NOR)
            literal.append(and_(a ^ flip, b ^ flip) ^ (kind in (Gate.OR, Gate.NAND)))
    return Aig(
        inputs=circuit.inputs,
        outputs=circuit.outputs,
        left=np.array(left, np.int64),
        right=np.array(right, np.int64),
        output_literals=np.array([literal[wire] for wire in circuit.output_wires.tolist()], np.int64),
    )


# What ASCII and binary AIGER share: the header and the table of names.


class Header(NamedTuple):
    """The numbers of the first line; a latch or a property has been refused by now."""

    variables: int
    inputs: int
    outputs: int
    ands: int


class Lines:
    """Lines of a file one by one, with their numbers, as a binary file may change to and from text."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.position = 0
        self.number = 0

    def more(self) -> bool:
        """Whether anything is left."""
        return self.position < len(self._data)

    def take(self, what: str) -> str:
        """The next line; `what` was expected there."""
        if not self.more():
            raise FormatError(
                f"the file ends where {what} was expected",
                where=f"line {self.number + 1}",
                advice="It may be cut off, or its header claims too much.",
            )
        end = self._data.find(b"\n", self.position)
        end = len(self._data) if end < 0 else end
        line, self.position = self._data[self.position : end], end + 1
        self.number += 1
        try:
            return line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError:
            raise FormatError(f"{what} was expected, not binary data", where=self.where) from None

    def take_number(self, what: str, most: int) -> int:
        """The next line, which is a number."""
        return number(self.take(what).strip(), self.where, what, most)

    @property
    def where(self) -> str:
        """The position of the line taken last."""
        return f"line {self.number}"


def take_header(lines: Lines, kind: str) -> Header:
    """`aag` or `aig` with the numbers M I L O A; B C J F of version 1.9 may follow if they are 0."""
    words = lines.take("the header").split()
    if not words or words[0] != kind or not 6 <= len(words) <= 10:
        raise FormatError(
            f"the header is {quoted(' '.join(words))}",
            where=lines.where,
            advice=f"It is `{kind} M I L O A`, with five to nine numbers.",
        )
    variables, inputs, latches, outputs, ands, *properties = (
        number(word, lines.where, "a count in the header") for word in words[1:]
    )
    if latches:
        raise FormatError(
            f"this is a sequential circuit with {latches} latch(es); only combinational ones can be read",
            where=lines.where,
            advice="Cut it at its latches (latch outputs become inputs, latch inputs become outputs).",
        )
    if any(properties):
        raise FormatError(
            "the header announces properties to check (B, C, J or F), which are for sequential circuits",
            where=lines.where,
            advice="List them as outputs to read the circuit.",
        )
    if inputs > UNLISTED_INPUTS + lines.size or inputs + ands > variables:
        raise FormatError(
            f"{inputs:,} inputs and {ands:,} gates with {variables:,} variables in {lines.size:,} bytes",
            where=lines.where,
            advice=f"M is at least I + L + A, and I at most {UNLISTED_INPUTS:,} plus the bytes of the file.",
        )
    return Header(variables, inputs, outputs, ands)


def take_names(lines: Lines, header: Header) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of inputs and outputs, from lines such as `i0 carry`, up to the comment or the end. What
    has no name is called as its position: i0, i1, ..., o0, o1, ..."""
    given: dict[str, dict[int, str]] = {"i": {}, "o": {}}
    taken: set[tuple[str, str]] = set()
    counts = {"i": header.inputs, "o": header.outputs}
    while lines.more():
        line = lines.take("a name")
        if line == "c":
            break
        position, _, name = line.partition(" ")
        letter = line[:1]
        if letter not in given or not name:
            raise FormatError(
                f"{quoted(line)} is no name of an input or output",
                where=lines.where,
                advice="Names look like `i0 carry`; a line `c` starts the comment.",
            )
        place = number(position[1:], lines.where, "a position")
        if place >= counts[letter] or place in given[letter]:
            raise FormatError(f"{quoted(position)} is named twice or does not exist", where=lines.where)
        if (letter, name) in taken:
            raise FormatError(
                f"two have the name {quoted(name)}", where=lines.where, advice="Rename one of them."
            )
        taken.add((letter, name))
        given[letter][place] = name
    return _completed("i", header.inputs, given["i"]), _completed("o", header.outputs, given["o"])


def _completed(letter: str, count: int, given: dict[int, str]) -> tuple[str, ...]:
    taken = set(given.values())
    names = []
    for place in range(count):
        name = given.get(place)
        if name is None:
            name = f"{letter}{place}"
            while name in taken:
                name += "'"
            taken.add(name)
        names.append(name)
    return tuple(names)


def written_names(circuit: Circuit) -> str:
    """The table of names; those that reading would give anyway are left out."""
    rows = []
    for letter, names in (("i", circuit.inputs), ("o", circuit.outputs)):
        for place, name in enumerate(names):
            if not name.isprintable() or not name:
                raise Refused(
                    f"the name {quoted(name)} cannot be written to AIGER",
                    advice="Names are made of printable characters.",
                )
            if name != f"{letter}{place}":
                rows.append(f"{letter}{place} {name}\n")
    return "".join(rows)


EXAMPLE_ASCII = """\
aag 5 2 0 2 3
2
4
10
6
6 2 4
8 3 5
10 7 9
i0 a
i1 b
o0 sum
o1 carry
"""

_Ands = dict[int, tuple[int, int, int]]
"""By variable: the two literals that it reads, and the line."""


def detect_ascii(data: bytes) -> bool:
    """Whether the file starts with `aag` and a space."""
    return data.startswith(b"aag ")


def read_ascii(data: bytes) -> Circuit:
    """The circuit of an ASCII AIGER file."""
    lines = Lines(data)
    header = take_header(lines, "aag")
    most = 2 * header.variables + 1
    variable = {0: 0}
    for _ in range(header.inputs):
        literal = lines.take_number("the literal of an input", most)
        _refuse_defined(literal, literal >> 1 in variable, lines)
        variable[literal >> 1] = len(variable)
    outputs: list[tuple[int, str]] = []
    for _ in range(header.outputs):
        outputs.append((lines.take_number("the literal of an output", most), lines.where))
    ands = _ands(lines, header, variable)
    input_names, output_names = take_names(lines, header)

    for number_of_and in _ordered(ands, variable):
        variable[number_of_and] = len(variable)
    for literal, where in outputs:
        if literal >> 1 not in variable:
            raise _undefined(literal, where)

    def renumbered(literal: int) -> int:
        return 2 * variable[literal >> 1] + (literal & 1)

    in_file = list(variable)[1 + header.inputs :]
    aig = Aig(
        inputs=input_names,
        outputs=output_names,
        left=np.array([renumbered(ands[key][0]) for key in in_file], np.int64),
        right=np.array([renumbered(ands[key][1]) for key in in_file], np.int64),
        output_literals=np.array([renumbered(literal) for literal, _ in outputs], np.int64),
    )
    return circuit_of(aig)


def _ands(lines: Lines, header: Header, inputs: dict[int, int]) -> _Ands:
    ands: _Ands = {}
    for _ in range(header.ands):
        line = lines.take("an AND gate")
        words = line.split()
        if len(words) != 3:
            raise FormatError(
                f"three literals of an AND gate were expected, not {quoted(line)}", where=lines.where
            )
        most = 2 * header.variables + 1
        literal, left, right = (number(word, lines.where, "a literal", most) for word in words)
        _refuse_defined(literal, literal >> 1 in inputs or literal >> 1 in ands, lines)
        ands[literal >> 1] = (left, right, lines.number)
    return ands


def _ordered(ands: _Ands, inputs: dict[int, int]) -> list[int]:
    """The ANDs' variables, each after those it reads; undefined ones and cycles are refused."""
    for left, right, line in ands.values():
        for literal in (left, right):
            if literal >> 1 not in ands and literal >> 1 not in inputs:
                raise _undefined(literal, f"line {line}")
    try:
        order = in_order(ands, lambda key: [lit >> 1 for lit in ands[key][:2]] if key in ands else ())
    except CycleError as cycle:
        first = cycle.path[0]
        raise FormatError(
            f"the AND gate of literal {2 * int(first)} depends on itself",  # type: ignore[call-overload]
            where=f"line {ands[first][2]}",  # type: ignore[index]
            advice="A combinational circuit has no cycles; break this one.",
        ) from None
    return [key for key in order if key in ands]


def _refuse_defined(literal: int, defined: bool, lines: Lines) -> None:
    if literal < 2 or literal & 1:
        raise FormatError(
            f"literal {literal} cannot be defined",
            where=lines.where,
            advice="An input or AND gate is defined by an even literal from 2 on.",
        )
    if defined:
        raise FormatError(f"literal {literal} is defined twice", where=lines.where)


def _undefined(literal: int, where: str) -> FormatError:
    return FormatError(
        f"literal {literal} is read, but its variable is neither an input nor an AND gate",
        where=where,
        advice="Every variable is defined once; the header's counts may be wrong.",
    )


def write_ascii(circuit: Circuit) -> str:
    """The circuit as ASCII AIGER, with the names of its inputs and outputs."""
    aig = aig_of(circuit)
    inputs, ands = len(aig.inputs), len(aig.left)
    rows = [f"aag {inputs + ands} {inputs} 0 {len(aig.outputs)} {ands}"]
    rows += [str(2 * number + 2) for number in range(inputs)]
    rows += [str(literal) for literal in aig.output_literals.tolist()]
    operands = zip(aig.left.tolist(), aig.right.tolist(), strict=True)
    rows += [f"{2 * (1 + inputs + k)} {left} {right}" for k, (left, right) in enumerate(operands)]
    return "\n".join(rows) + "\n" + written_names(circuit)


# AIGER in binary (`aig`): inputs and gates are numbered in order, and gates are written as differences.
#
# AND number k has the even literal lhs = 2 (I + 1 + k) and reads rhs0 >= rhs1 with lhs > rhs0; the file
# holds lhs - rhs0 and rhs0 - rhs1, seven bits to a byte, lowest first, a set top bit meaning "more to come".


EXAMPLE_BINARY = "aig 3 2 0 1 1\n6\n\x02\x02"
"""An AND gate: 6 reads 4 = 6 - 2 and 2 = 4 - 2."""

_MOST_BYTES = 5
"""Of a difference: 35 bits, more than any literal that is read here."""


def detect_binary(data: bytes) -> bool:
    """Whether the file starts with `aig` and a space."""
    return data.startswith(b"aig ")


def read_binary(data: bytes) -> Circuit:
    """The circuit of a binary AIGER file."""
    lines = Lines(data)
    header = take_header(lines, "aig")
    if header.variables != header.inputs + header.ands:
        raise FormatError(
            f"{header.variables} variables for {header.inputs} inputs and {header.ands} gates",
            where=lines.where,
            advice="In binary AIGER, M = I + L + A.",
        )
    most = 2 * header.variables + 1
    outputs = [lines.take_number("the literal of an output", most) for _ in range(header.outputs)]
    left, right, lines.position = _gates(data, lines.position, header)
    input_names, output_names = take_names(lines, header)
    return circuit_of(Aig(input_names, output_names, left, right, np.array(outputs, np.int64)))


def _gates(data: bytes, position: int, header: Header) -> tuple[Literals, Literals, int]:
    """The operands of every gate, and the position after the last one."""
    deltas, starts, end = _numbers(data, position, 2 * header.ands)
    own = 2 * (header.inputs + 1 + np.arange(header.ands))
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


def write_binary(circuit: Circuit) -> bytes:
    """The circuit as binary AIGER, with the names of its inputs and outputs."""
    aig = aig_of(circuit)
    inputs, ands = len(aig.inputs), len(aig.left)
    head = f"aig {inputs + ands} {inputs} 0 {len(aig.outputs)} {ands}\n"
    head += "".join(f"{literal}\n" for literal in aig.output_literals.tolist())
    own = 2 * (inputs + 1 + np.arange(ands))
    deltas = np.stack([own - aig.left, aig.left - aig.right], axis=1).ravel()
    return head.encode() + _encoded(deltas) + written_names(circuit).encode()


def _encoded(numbers: NDArray[np.int64]) -> bytes:
    """Seven bits to a byte, lowest first."""
    groups = numbers[:, None] >> (7 * np.arange(_MOST_BYTES))
    more = groups[:, 1:] > 0
    octets = groups & 0x7F
    octets[:, :-1] |= 0x80 * more
    present = np.concatenate([np.ones((len(numbers), 1), bool), more], axis=1)
    return octets[present].astype(np.uint8).tobytes()


ASCII = Format(
    name="aiger-ascii",
    summary="AIGER as text (.aag): and-inverter graphs, combinational",
    example=EXAMPLE_ASCII,
    detect=detect_ascii,
    read=read_ascii,
    write=write_ascii,
)

BINARY = Format(
    name="aiger-binary",
    summary="AIGER in binary (.aig): the same, compact",
    example=EXAMPLE_BINARY,
    detect=detect_binary,
    read=read_binary,
    write=write_binary,
)
