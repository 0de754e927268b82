r"""BLIF, the Berkeley Logic Interchange Format: one flat model, combinational or with one clock.

Read: `.model`, `.inputs`, `.outputs`, `.names` with on-set or off-set covers, `.latch` with one clock for
all, `.end`, comments and `\` continuations; notes on timing are passed over. Sub-circuits are refused. An
empty cover is 0. The clock is no input: it is what a step is.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from tapegrad.circuits.builder import Wire
from tapegrad.circuits.clocked.model import ANY, SequentialCircuit
from tapegrad.circuits.formats.covers import Cover
from tapegrad.circuits.formats.netlist import Gates, Latch, Net, Netlist, decoded
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


def write(source: Circuit | SequentialCircuit) -> str:
    """The circuit as BLIF. The first output on a gate gives its net the name; an output on an input or a
    latch, or a further one on the same gate, is a buffer. Inputs, latches and outputs share their names."""
    circuit = source.logic if isinstance(source, SequentialCircuit) else source
    _check_names(circuit, source.outputs)
    first = len(circuit.inputs)
    stem = _unused_stem((*circuit.inputs, *source.outputs))
    names = [*circuit.inputs, *(f"{stem}{gate}" for gate in range(circuit.size))]
    buffers = []
    wires = circuit.output_wires.tolist()
    for name, wire in zip(source.outputs, wires, strict=False):
        if wire >= first and names[wire].startswith(stem):
            names[wire] = name
        elif names[wire] != name:
            buffers.append((wire, name))

    model = re.sub(r"[\s#\\]+", "_", circuit.name) or "circuit"
    parts = [f".model {model}\n", _listed(".inputs", source.inputs), _listed(".outputs", source.outputs)]
    if isinstance(source, SequentialCircuit):
        for name, wire, reset in zip(
            source.latches, wires[len(source.outputs) :], source.resets, strict=True
        ):
            parts.append(f".latch {names[wire]} {name} {3 if reset == ANY else reset}\n")
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for gate, (kind, *operands) in enumerate(rows):
        nets = [names[wire] for wire in operands[: ARITY[kind]]]
        parts.append(f".names {' '.join([*nets, names[first + gate]])}\n{_COVERS[Gate(kind)]}")
    parts += [f".names {names[wire]} {name}\n1 1\n" for wire, name in buffers]
    return "".join([*parts, ".end\n"])


def _check_names(circuit: Circuit, outputs: tuple[str, ...]) -> None:
    for name in (*circuit.inputs, *outputs):
        if not (_NAME.fullmatch(name) and name.isprintable()):
            raise Refused(
                f"the name {quoted(name)} cannot be written to BLIF",
                advice="Names there have no space, # or \\, and no dot in front. Rename it, or write AIGER.",
            )
    wire_of = {name: wire for wire, name in enumerate(circuit.inputs)}
    for name, wire in zip(outputs, circuit.output_wires.tolist(), strict=False):
        if wire_of.get(name, wire) != wire:
            raise Refused(
                f"an input or latch and an output are both called {quoted(name)}, in BLIF the same net",
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

_SEQUENTIAL = {".mlatch", ".start_kiss"}
_EDGES, _LEVELS = ("re", "fe"), ("ah", "al", "as")
_RESETS = {"0": 0, "1": 1, "2": ANY, "3": ANY}
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


def read(data: bytes) -> Circuit | SequentialCircuit:
    """The circuit of a BLIF file."""
    return netlist(data).circuit()


def netlist(data: bytes) -> Netlist:
    """The nets of a BLIF file, as they stand in it."""
    found = Netlist()
    lines = _Lines(decoded(data))
    clocks: dict[tuple[str, str], int] = {}
    names: dict[str, str] = {}  # each is there once, however often it is read
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
            *reads, name = (names.setdefault(name, name) for name in rest)
            found.define(name, Net(tuple(reads), _cover(lines, len(reads)), number))
        elif head == ".latch":
            found.add_latch(*_latch(rest, number, clocks))
        elif head == ".end":
            _refuse_more_models(lines)
            break
        elif head not in (*_TIMING, ".clock"):
            raise _unreadable(head, where)
    _take_out(clocks, found)
    return found


def _latch(words: Sequence[str], number: int, clocks: dict[tuple[str, str], int]) -> tuple[str, Latch]:
    """`.latch input output [type control] [reset]`; the clock is noted."""
    where = f"line {number}"
    reset = words[-1] if len(words) in (3, 5) else "3"
    if not 2 <= len(words) <= 5 or reset not in _RESETS:
        raise FormatError(
            f"{quoted(' '.join(words))} is no latch",
            where=where,
            advice="Write .latch input output, perhaps a type and a clock, perhaps a reset of 0 to 3.",
        )
    if len(words) > 3:
        edge, control = words[2:4]
        if edge in _LEVELS:
            raise FormatError(
                f"a latch of type {edge} is open while a level is held, and only flip-flops can be read",
                where=where,
                advice="Use re or fe, with one clock for all.",
            )
        if edge not in _EDGES:
            raise FormatError(f"{quoted(edge)} is no type of a latch", where=where)
        if control != "NIL":
            clocks.setdefault((edge, control), number)
    return words[1], Latch(words[0], _RESETS[reset], number)


def _take_out(clocks: dict[tuple[str, str], int], found: Netlist) -> None:
    """The clock is what a step is, and no input."""
    if len(clocks) > 1:
        (one, _), (other, line) = list(clocks.items())[:2]
        raise FormatError(
            f"latches have two clocks, {' '.join(one)} and {' '.join(other)}",
            where=f"line {line}",
            advice="All of them take their values at the same edge of one clock.",
        )
    for (_, clock), line in clocks.items():
        reading = [*found.outputs, *(latch.reads for latch in found.latches.values())]
        reading += [read for net in found.nets.values() for read in net.reads]
        if clock not in found.inputs or clock in reading:
            raise FormatError(
                f"the clock {quoted(clock)} is {'read as a value' if clock in found.inputs else 'no input'}",
                where=f"line {line}",
                advice="A cycle is one step: the clock is an input that goes to latches alone.",
            )
        del found.inputs[clock]


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
        for number, line in enumerate(_single(text), 1):
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


def _single(text: str) -> Iterator[str]:
    """The lines one by one: all of them at once would be larger than the text."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


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
            f"{head} is not read", where=where, advice="Of what keeps a state, only .latch is."
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
    summary="Berkeley Logic Interchange Format: .names with on-set or off-set covers, and .latch",
    example=EXAMPLE,
    detect=detect,
    read=read,
    write=write,
)
