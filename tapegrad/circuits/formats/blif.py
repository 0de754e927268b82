r"""BLIF, the Berkeley Logic Interchange Format: one flat combinational model.

Read: `.model`, `.inputs`, `.outputs`, `.names` with on-set or off-set covers, `.end`, comments and `\`
continuations; notes on timing are passed over. Latches and sub-circuits are refused. An empty cover is 0.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

from tapegrad.circuits.builder import Wire
from tapegrad.circuits.formats.netlist import Gates, Net, Netlist, decoded
from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import FormatError, Refused
from tapegrad.source import Format, opening, quoted

# Circuits written as BLIF: one `.names` for each gate.


_COVERS = {
    Gate.FALSE: "",
    Gate.TRUE: "1\n",
    Gate.ID: "1 1\n",
    Gate.NOT: "0 1\n",
    Gate.AND: "11 1\n",
    Gate.NAND: "11 0\n",
    Gate.OR: "00 0\n",
    Gate.NOR: "00 1\n",
    Gate.XOR: "10 1\n01 1\n",
    Gate.XNOR: "11 1\n00 1\n",
}
_NAME = re.compile(r"[^\s#\\.][^\s#\\]*")
_LINE = 100


def write(circuit: Circuit) -> str:
    """The circuit as BLIF. The first output on a gate gives its net the name; an output on an input, or
    a further one on the same gate, is a buffer. Inputs and outputs share their names in BLIF."""
    _check_names(circuit)
    first = len(circuit.inputs)
    stem = _unused_stem((*circuit.inputs, *circuit.outputs))
    names = [*circuit.inputs, *(f"{stem}{gate}" for gate in range(circuit.size))]
    buffers = []
    for name, wire in zip(circuit.outputs, circuit.output_wires.tolist(), strict=True):
        if wire >= first and names[wire].startswith(stem):
            names[wire] = name
        elif names[wire] != name:
            buffers.append((wire, name))

    model = re.sub(r"[\s#\\]+", "_", circuit.name) or "circuit"
    parts = [f".model {model}\n", _listed(".inputs", circuit.inputs), _listed(".outputs", circuit.outputs)]
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for gate, (kind, *operands) in enumerate(rows):
        nets = [names[wire] for wire in operands[: ARITY[kind]]]
        parts.append(f".names {' '.join([*nets, names[first + gate]])}\n{_COVERS[Gate(kind)]}")
    parts += [f".names {names[wire]} {name}\n1 1\n" for wire, name in buffers]
    return "".join([*parts, ".end\n"])


def _check_names(circuit: Circuit) -> None:
    for name in (*circuit.inputs, *circuit.outputs):
        if not (_NAME.fullmatch(name) and name.isprintable()):
            raise Refused(
                f"the name {quoted(name)} cannot be written to BLIF",
                advice="Names there have no space, # or \\, and no dot in front. Rename it, or write AIGER.",
            )
    wire_of = {name: wire for wire, name in enumerate(circuit.inputs)}
    for name, wire in zip(circuit.outputs, circuit.output_wires.tolist(), strict=True):
        if wire_of.get(name, wire) != wire:
            raise Refused(
                f"an input and an output are both called {quoted(name)}, which BLIF takes for the same net",
                advice="Rename one of them, or write AIGER.",
            )


def _unused_stem(names: Iterable[str]) -> str:
    """A beginning that no name has."""
    stem, taken = "n", tuple(names)
    while any(name.startswith(stem) for name in taken):
        stem += "_"
    return stem


def _listed(head: str, names: Iterable[str]) -> str:
    lines = [head]
    for name in names:
        if len(lines[-1]) + len(name) > _LINE:
            lines[-1] += " \\"
            lines.append("")
        lines[-1] += f" {name}"
    return "\n".join(lines) + "\n"


# The covers of BLIF: a function as a list of cubes, for which it is 1 (on-set) or 0 (off-set).


@dataclass(frozen=True)
class Cover:
    """Cubes of `0`, `1` and `-` (either), one place for each operand; `value` is the function's value on
    every pattern in one of them, and it has the other value everywhere else."""

    operands: int
    cubes: tuple[str, ...] = ()
    value: bool = True

    def __call__(self, pattern: Sequence[int]) -> bool:
        """The value for one pattern of bits."""
        inside = any(
            all(place in ("-", str(int(bit))) for place, bit in zip(cube, pattern, strict=True))
            for cube in self.cubes
        )
        return inside == self.value

    def add(self, gates: Gates, operands: Sequence[Wire]) -> Wire:
        """The gates that compute it: a single one where it is the function of a gate, else ANDs of the
        literals of each cube, ORed."""
        kind = self.single_gate
        if kind is not None:
            if not operands or kind in (Gate.FALSE, Gate.TRUE):
                return gates.constant(kind is Gate.TRUE)
            return gates.negated(operands[0]) if kind is Gate.NOT else gates.build.gate(kind, *operands)
        inside = gates.tree(Gate.OR, [self._cube(gates, operands, cube) for cube in self.cubes])
        return inside if self.value else gates.negated(inside)

    @cached_property
    def single_gate(self) -> Gate | None:
        """The gate with this truth table, if there is one: its bit 2 a + b is the value for a, b."""
        if not self.cubes:
            return Gate.FALSE if self.value else Gate.TRUE
        if self.operands > 2:
            return None
        patterns = product((0, 1), repeat=2)
        table = sum(self(pattern[: self.operands]) << place for place, pattern in enumerate(patterns))
        kind = next((gate for gate in Gate if gate == table), None)
        # Of two operands, an identity or a negation reads the first and ignores the second: not one gate.
        return kind if kind is not None and kind.arity in (0, self.operands) else None

    @staticmethod
    def _cube(gates: Gates, operands: Sequence[Wire], cube: str) -> Wire:
        literals = [
            wire if place == "1" else gates.negated(wire)
            for wire, place in zip(operands, cube, strict=True)
            if place != "-"
        ]
        return gates.tree(Gate.AND, literals) if literals else gates.constant(True)


EXAMPLE = """\
.model half_adder
.inputs a b
.outputs sum carry
.names a b sum
10 1
01 1
.names a b carry
11 1
.end
"""

_SEQUENTIAL = {".latch", ".mlatch", ".clock", ".start_kiss"}
_HIERARCHICAL = {".subckt", ".gate", ".search", ".exdc", ".blackbox"}
_TIMING = {
    ".area",
    ".delay",
    ".wire_load_slope",
    ".wire",
    ".input_arrival",
    ".output_required",
    ".default_input_arrival",
    ".default_output_required",
    ".input_drive",
    ".output_load",
    ".default_input_drive",
    ".default_output_load",
}


_Line = tuple[int, list[str]]
"""Its number, and its words."""


def detect(data: bytes) -> bool:
    """Whether the first line that is no comment starts with a dot and a word of BLIF."""
    for line in opening(data).split("\n"):
        words = line.split("#")[0].split()
        if words:
            return words[0] in (".model", ".inputs", ".outputs", ".names", ".search")
    return False


def read(data: bytes) -> Circuit:
    """The circuit of a BLIF file."""
    return netlist(data).circuit()


def netlist(data: bytes) -> Netlist:
    """The nets of a BLIF file, as they stand in it."""
    found = Netlist()
    lines = _Lines(decoded(data))
    modelled = False
    for number, words in lines:
        head, rest, where = words[0], words[1:], f"line {number}"
        if head == ".model":
            if modelled:
                raise FormatError(
                    "a second .model begins", where=where, advice="Flatten the file to one model."
                )
            modelled, found.name = True, " ".join(rest) or found.name
        elif head == ".inputs":
            for name in rest:
                found.add_input(name, number)
        elif head == ".outputs":
            for name in rest:
                found.add_output(name, number)
        elif head == ".names":
            if not rest:
                raise FormatError(".names without a net", where=where)
            *reads, name = rest
            found.define(name, Net(tuple(reads), _cover(lines, len(reads)), number))
        elif head == ".end":
            _refuse_more_models(lines)
            break
        elif head not in _TIMING:
            raise _unreadable(head, where)
    return found


class _Lines(Iterator[_Line]):
    """Lines of words: comments dropped, continuations joined (under the number of the first), and the
    next one can be looked at before it is taken."""

    def __init__(self, text: str) -> None:
        self._lines = self._joined(text)
        self.next = next(self._lines, None)

    def __next__(self) -> _Line:
        if (line := self.next) is None:
            raise StopIteration
        self.next = next(self._lines, None)
        return line

    @staticmethod
    def _joined(text: str) -> Iterator[_Line]:
        words: list[str] = []
        start = 0
        for number, line in enumerate(text.split("\n"), 1):
            if not start and "#" not in line and "\\" not in line:  # as most lines are
                if own := line.split():
                    yield number, own
                continue
            start = start or number
            content = line.split("#", 1)[0].rstrip()
            goes_on = content.endswith("\\")
            words += content.removesuffix("\\").split()
            if not goes_on:
                if words:
                    yield start, words
                words, start = [], 0
        if words:
            raise FormatError(
                "the last line ends in a continuation",
                where=f"line {start}",
                advice="The file may be cut off.",
            )


def _cover(lines: _Lines, operands: int) -> Callable[[Gates, Sequence[Wire]], Wire]:
    """What adds the gates of the rows up to the next line that starts with a dot."""
    cubes: list[str] = []
    values: set[str] = set()
    while lines.next is not None and lines.next[1][0][0] != ".":
        number, words = next(lines)
        *places, value = words
        cube = "".join(places)
        if value not in ("0", "1") or len(places) > 1 or cube.strip("01-"):
            raise FormatError(
                f"{quoted(' '.join(words))} is no row of a cover",
                where=f"line {number}",
                advice="A row is a cube of 0, 1 and -, a space, and 0 or 1.",
            )
        if len(cube) != operands:
            raise FormatError(f"a cube of {len(cube)} places for {operands} operands", where=f"line {number}")
        values.add(value)
        if len(values) == 2:
            raise FormatError(
                "a cover lists rows of value 0 and of value 1",
                where=f"line {number}",
                advice="List either the patterns with value 1 or those with value 0.",
            )
        cubes.append(cube)
    own = operands, tuple(cubes), values != {"0"}
    return _shared(*own) if operands * len(cubes) <= SMALL else Cover(*own).add


SMALL = 64
"""Places of a cover that is shared."""


@lru_cache(maxsize=1024)
def _shared(operands: int, cubes: tuple[str, ...], value: bool) -> Callable[[Gates, Sequence[Wire]], Wire]:
    """Large files have few different covers. What is the same for many nets is there once, so that there is
    less to hold, and less for Python to look through again and again."""
    return Cover(operands, cubes, value).add


def _unreadable(head: str, where: str) -> FormatError:
    if head in _SEQUENTIAL:
        return FormatError(
            f"this is a sequential circuit, by {head}; only combinational ones can be read",
            where=where,
            advice="Cut it at its latches (latch outputs become inputs, latch inputs become outputs).",
        )
    if head in _HIERARCHICAL:
        return FormatError(f"{head} is not read", where=where, advice="Flatten the circuit to .names first.")
    if head.startswith("."):
        return FormatError(f"{quoted(head)} is no command of BLIF", where=where)
    return FormatError(
        f"{quoted(head)} stands outside of any cover",
        where=where,
        advice="Rows of a cover follow a .names line; every other line starts with a dot.",
    )


def _refuse_more_models(lines: _Lines) -> None:
    for number, words in lines:
        if words[0] == ".model":
            raise FormatError(
                "a second .model begins", where=f"line {number}", advice="Flatten the file to one model."
            )


FORMAT = Format(
    name="blif",
    summary="Berkeley Logic Interchange Format: .names with on-set or off-set covers",
    example=EXAMPLE,
    detect=detect,
    read=read,
    write=write,
)
