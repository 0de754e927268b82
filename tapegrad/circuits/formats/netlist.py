"""Named nets in any order, as BLIF and `.bench` files define them, made into a circuit."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.clocked.model import SequentialCircuit, next_names, with_latches
from tapegrad.circuits.formats.tables import Plan
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import FormatError
from tapegrad.source import quoted

# Definitions in an order in which each comes after what it reads.


Key = TypeVar("Key", bound=Hashable)


class CycleError(Exception):
    """Definitions that read each other in a circle; `path` leads from one of them back to itself."""

    def __init__(self, path: Sequence[Hashable]) -> None:
        super().__init__(path)
        self.path = path


def in_order(keys: Iterable[Key], reads: Callable[[Key], Sequence[Key]]) -> list[Key]:
    """The keys and all they read, each after what it reads, as close to the given order as that allows.
    Depth first, with a stack of its own: a file may be as deep as it is long."""
    order: list[Key] = []
    done: set[Key] = set()
    for key in keys:
        if key in done:
            continue
        operands = reads(key)
        if done.issuperset(operands):  # as in most files
            done.add(key)
            order.append(key)
            continue
        path, todo = {key: None}, [(key, iter(operands))]  # the path is kept in order, for the message
        while todo:
            current, rest = todo[-1]
            for operand in rest:
                if operand in path:
                    whole = list(path)
                    raise CycleError([*whole[whole.index(operand) :], operand])
                if operand not in done:
                    path[operand] = None
                    todo.append((operand, iter(reads(operand))))
                    break
            else:
                todo.pop()
                del path[current]
                done.add(current)
                order.append(current)
    return order


class Gates:
    """Adds gates as a file writes them, nothing folded away. Negations, constants and the gates of tables and
    cubes, which stand in no file, are shared."""

    def __init__(self) -> None:
        self.build = CircuitBuilder(simplify=False)
        self._negations: dict[Wire, Wire] = {}
        self._constants: dict[bool, Wire] = {}
        self._known: dict[tuple[Gate, Wire, Wire], Wire] = {}

    def negated(self, wire: Wire) -> Wire:
        """NOT of a wire."""
        if wire not in self._negations:
            self._negations[wire] = self.build.not_(wire)
        return self._negations[wire]

    def constant(self, value: bool) -> Wire:
        """A wire that is always `value`."""
        if value not in self._constants:
            self._constants[value] = self.build.constant(value)
        return self._constants[value]

    def planned(self, plan: Plan | bool, operands: Sequence[Wire]) -> Wire:
        """The gates of a truth table on these operands."""
        if isinstance(plan, bool):
            return self.constant(plan)
        wires = list(operands)
        for kind, *reads in plan.steps:
            a, b = (wires[own] if own >= 0 else self.negated(wires[~own]) for own in reads)
            wires.append(self._shared(kind, a, b))
        return wires[plan.result] if plan.result >= 0 else self.negated(wires[~plan.result])

    def tree(self, kind: Gate, wires: Sequence[Wire], *, shared: bool = False) -> Wire:
        """AND, OR or XOR of one or more wires, by a balanced tree; of a gate that a file writes, its own."""
        add, row = self._shared if shared else self.build.gate, list(wires)
        while len(row) > 1:
            pairs = [add(kind, a, b) for a, b in zip(row[::2], row[1::2], strict=False)]
            row = pairs + row[2 * len(pairs) :]
        return row[0]

    def _shared(self, kind: Gate, a: Wire, b: Wire) -> Wire:
        key = kind, min(a, b), max(a, b)
        if key not in self._known:
            self._known[key] = self.build.gate(*key)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Net:
    """A definition: the nets it reads, how its gates are added, and the line it stands in."""

    reads: tuple[str, ...]
    add: Callable[[Gates, Sequence[Wire]], Wire]
    line: int


@dataclass(frozen=True, slots=True)
class Latch:
    """The net that a latch takes its next value from, its reset, and the line it stands in."""

    reads: str
    reset: int
    line: int


@dataclass
class Netlist:
    """Inputs, outputs, latches and nets by name, with the line of each; gathered first, put in order at the
    end."""

    name: str = "circuit"
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    latches: dict[str, Latch] = field(default_factory=dict)
    nets: dict[str, Net] = field(default_factory=dict)

    def add_input(self, name: str, line: int) -> None:
        """The next input."""
        self._refuse_driven(name, line)
        self.inputs[name] = line

    def add_output(self, name: str, line: int) -> None:
        """The next output: the net of this name, wherever it is defined."""
        if name in self.outputs:
            raise FormatError(
                f"output {quoted(name)} is listed twice",
                where=f"lines {self.outputs[name]} and {line}",
                advice="List each output once.",
            )
        self.outputs[name] = line

    def define(self, name: str, net: Net) -> None:
        """What drives a net."""
        self._refuse_driven(name, net.line)
        self.nets[name] = net

    def add_latch(self, name: str, latch: Latch) -> None:
        """The next latch, which drives a net."""
        self._refuse_driven(name, latch.line)
        self.latches[name] = latch

    def _refuse_driven(self, name: str, line: int) -> None:
        if name in self.inputs:
            raise FormatError(
                f"net {quoted(name)} is driven twice, once as an input",
                where=f"lines {self.inputs[name]} and {line}",
                advice="Each net is either an input or defined once.",
            )
        if (driver := self.nets.get(name) or self.latches.get(name)) is not None:
            raise FormatError(
                f"net {quoted(name)} is driven twice",
                where=f"lines {driver.line} and {line}",
                advice="Each net is either an input or defined once.",
            )

    def needed(self) -> "Netlist":
        """Without the nets that no output and no latch depends on."""
        waiting = [*self.outputs, *(latch.reads for latch in self.latches.values())]
        found = set[str]()
        while waiting:
            name = waiting.pop()
            if name not in found and name in self.nets:
                found.add(name)
                waiting += self.nets[name].reads
        nets = {name: net for name, net in self.nets.items() if name in found}
        return Netlist(self.name, self.inputs, self.outputs, self.latches, nets)

    def circuit(self) -> Circuit | SequentialCircuit:
        """The circuit, gates in the order of the file where that is possible."""
        self._refuse_undriven()
        try:
            order = in_order(self.nets, lambda name: self.nets[name].reads if name in self.nets else ())
        except CycleError as cycle:
            path = [str(name) for name in cycle.path]
            shown = path if len(path) <= 6 else [*path[:4], "...", path[-1]]
            raise FormatError(
                f"net {quoted(path[0])} depends on itself: {' <- '.join(shown)}",
                where=f"line {self.nets[path[0]].line}",
                advice="Without a latch in it, a circuit has no cycles; break this one.",
            ) from None
        gates = Gates()
        wires = {name: gates.build.input(name) for name in (*self.inputs, *self.latches)}
        for name in order:
            if (net := self.nets.get(name)) is not None:
                wires[name] = net.add(gates, [wires[read] for read in net.reads])
        for name in self.outputs:
            gates.build.output(name, wires[name])
        becomes = next_names(tuple(self.outputs), tuple(self.latches))
        for name, latch in zip(becomes, self.latches.values(), strict=True):
            gates.build.output(name, wires[latch.reads])
        resets = tuple(latch.reset for latch in self.latches.values())
        return with_latches(gates.build.circuit(self.name), resets)

    def _refuse_undriven(self) -> None:
        driven, others = self.nets, self.inputs.keys() | self.latches.keys()
        nets = ((name, net.reads, net.line) for name, net in driven.items())
        latches = ((name, (latch.reads,), latch.line) for name, latch in self.latches.items())
        for name, reads, line in chain(nets, latches):
            for read in reads:
                if read not in driven and read not in others:
                    raise FormatError(
                        f"net {quoted(read)}, which {quoted(name)} reads, is driven by nothing",
                        where=f"line {line}",
                        advice="Define it, or list it among the inputs; the file may be cut off.",
                    )
        for name, line in self.outputs.items():
            if name not in driven and name not in others:
                raise FormatError(
                    f"output {quoted(name)} is driven by nothing",
                    where=f"line {line}",
                    advice="Define it, or list it among the inputs; the file may be cut off.",
                )


# What every reader of circuits shares: limits, decoding, and short quotations for errors.


UNLISTED_INPUTS = 4096
"""Some formats state the number of inputs without listing them, so a short file can claim any number. This
many are believed, and one more for each byte of the file: time and memory stay in proportion to it."""

MOST_WIRES = 1 << 28
"""Largest number that stands for a wire or a literal."""


def decoded(data: bytes) -> str:
    """The text of a file, or a FormatError if it is not UTF-8 text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"byte {data[error.start]:#04x} is not UTF-8",
            where=f"line {data.count(10, 0, error.start) + 1}, byte {error.start + 1} of the file",
            advice="Save the file as UTF-8 text.",
        ) from None
    if (nul := text.find("\0")) >= 0:
        raise FormatError(
            "this is a binary file, not a text",
            where=f"line {text.count(chr(10), 0, nul) + 1} holds a zero byte",
            advice="This format is plain text; of those read here only AIGER has a binary form.",
        )
    return text


def number(text: str, where: str, what: str = "a number", most: int = MOST_WIRES) -> int:
    """A whole number in plain digits, from 0 to `most`."""
    if not (text.isascii() and text.isdigit()):
        raise FormatError(f"{what} was expected, not {quoted(text)}", where=where)
    if len(text) > 18 or int(text) > most:
        raise FormatError(
            f"{what} of {quoted(text)} is too large",
            where=where,
            advice=f"At most {most:,} can be read here; is the file what it seems to be?",
        )
    return int(text)
