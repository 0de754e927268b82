"""AIGER in ASCII (`aag`): a line for each input, output and AND gate, in any order."""

import numpy as np

from tapegrad.circuits.formats.aig import Aig, aig_of, circuit_of
from tapegrad.circuits.formats.aiger_parts import Header, Lines, take_header, take_names, written_names
from tapegrad.circuits.formats.ordering import CycleError, in_order
from tapegrad.circuits.formats.text import number
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError
from tapegrad.formats import quoted

EXAMPLE = """\
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


def detect(data: bytes) -> bool:
    """Whether the file starts with `aag` and a space."""
    return data.startswith(b"aag ")


def read(data: bytes) -> Circuit:
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


def write(circuit: Circuit) -> str:
    """The circuit as ASCII AIGER, with the names of its inputs and outputs."""
    aig = aig_of(circuit)
    inputs, ands = len(aig.inputs), len(aig.left)
    rows = [f"aag {inputs + ands} {inputs} 0 {len(aig.outputs)} {ands}"]
    rows += [str(2 * number + 2) for number in range(inputs)]
    rows += [str(literal) for literal in aig.output_literals.tolist()]
    operands = zip(aig.left.tolist(), aig.right.tolist(), strict=True)
    rows += [f"{2 * (1 + inputs + k)} {left} {right}" for k, (left, right) in enumerate(operands)]
    return "\n".join(rows) + "\n" + written_names(circuit)
