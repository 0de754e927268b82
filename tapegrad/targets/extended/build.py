"""An algorithm made ready for the tapes of the extended network: its machine, and where the bits lie.

A Turing machine is rewritten for the target `tape`; a Python function is traced to a circuit, which is
lowered to a machine that first copies its data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.builder import simplified
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import Array, Int
from tapegrad.errors import InputError, Refused, SourceError
from tapegrad.lowering.circuit_machine import DATA_END, data_evaluator, gate_list, straight_line
from tapegrad.machines.model import LEFT, RIGHT, Configuration, Rule, TuringMachine
from tapegrad.source import Rewriting
from tapegrad.targets.extended.formats import FixedPoint, NumberFormat
from tapegrad.targets.tape.target import passes

Place = tuple[int, int]
"""A tape and a cell on it."""

DATA_TAPE, RESULT_TAPE = 0, 1
FIRST_CELL = 1
"""Data and result begin at cell 1: cell 0, where all heads start, must not depend on the labels, which the
network does not know when it starts."""


@dataclass(frozen=True)
class Procedure:
    """A machine with a first configuration: what lies on its tapes where all data are 0. A bit of the data
    that is 1 turns the symbol 0 into 1 at all its places, on the first tape, which the machine only reads."""

    machine: TuringMachine
    tapes: tuple[Mapping[int, str], ...]
    data: tuple[tuple[Place, ...], ...]
    result: tuple[Place, ...]
    rule: Mapping[str, Any] | None = None
    """What it computes, if that has a name: the checker then computes it plainly."""

    @classmethod
    def side_by_side(cls, machine: TuringMachine, data_bits: int, result_bits: int) -> Self:
        """The data on the first tape from cell 1 on, bit after bit, and the result on the second."""
        cells = range(FIRST_CELL, FIRST_CELL + data_bits)
        content = {} if machine.blank == "0" else dict.fromkeys(cells, "0")
        return cls(
            machine,
            (content, *({} for _ in range(machine.tapes - 1))),
            tuple(((DATA_TAPE, cell),) for cell in cells),
            tuple((RESULT_TAPE, cell) for cell in range(FIRST_CELL, FIRST_CELL + result_bits)),
        )

    def with_symbols(self, symbols: Mapping[Place, str]) -> Configuration:
        """The first configuration with these symbols at these places."""
        tapes = [dict(tape) for tape in self.tapes]
        for (tape, cell), symbol in symbols.items():
            tapes[tape][cell] = symbol
            if symbol == self.machine.blank:
                del tapes[tape][cell]
        return Configuration(self.machine.start_state, tuple(tapes), (0,) * self.machine.tapes)


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A binary machine and its connections, in rows of numbers."""

    machine: TuringMachine
    start: Configuration
    read_only: int
    data: NDArray[np.int64]
    """For each place of the data, on read-only tapes: its bit, tape, cell, and the sign that lies there if
    the bit is 1, the opposite if it is 0; bit after bit."""
    result: NDArray[np.int64]
    """For each bit of the result: tape, cell, and the sign that lies there if it is 1."""
    rewritings: tuple[Rewriting, ...]
    procedure: Procedure

    @property
    def bits(self) -> int:
        """Of the data."""
        return 1 + int(self.data[-1, 0])

    @property
    def reach(self) -> int:
        """The farthest cell that data or result lie at, counted from cell 0 both ways."""
        cells = [*self.data[:, 2], *self.result[:, 1], *(cell for tape in self.start.tapes for cell in tape)]
        return int(np.abs(cells).max())

    def on(self, bits: Sequence[int]) -> Configuration:
        """The first configuration with these data on its tapes."""
        tapes = [dict(tape) for tape in self.start.tapes]
        for bit, tape, cell, sign in self.data.tolist():
            if bits[bit] and sign > 0:
                tapes[tape][cell] = self.machine.alphabet[-1]
            elif bits[bit]:
                del tapes[tape][cell]
        return Configuration(self.start.state, tuple(tapes), self.start.heads)


def lower(procedure: Procedure, for_tape: bool = True) -> Algorithm:
    """Rewrites the machine, for the target `tape` if it is to run there, and finds out where each bit has
    gone."""
    machine = procedure.machine
    _check(machine)
    rewritings = tuple(passes(machine, cells=0)) if for_tape else ()

    def encoded(symbols: Mapping[Place, str]) -> Configuration:
        state: Any = procedure.with_symbols(symbols)
        for rewriting in rewritings:
            state = rewriting.encode(state)
        return state

    start, zeros = encoded({}), dict.fromkeys(procedure.result, "0")
    data = _places(encoded, start, procedure.data)
    written = [(place,) for place in zeros]  # bits that are always the same may share a cell
    places = _places(lambda ones: encoded(zeros | ones), encoded(zeros), written)
    first = dict(zip(zeros, np.unique(places[:, 0], return_index=True)[1], strict=True))
    result = places[[first[place] for place in procedure.result], 1:]
    lowered = cast(TuringMachine, rewritings[-1].after) if rewritings else machine
    read_only = max(1 + int(data[:, 1].max()), lowered.tapes // machine.tapes)
    return Algorithm(lowered, start, read_only, data, result, rewritings, procedure)


def _places(
    encoded: Callable[[dict[Place, str]], Configuration],
    zeros: Configuration,
    bits: Sequence[Sequence[Place]],
) -> NDArray[np.int64]:
    """Where each bit has gone: its number, tape, cell, and the sign that it has there if it is 1, where blank
    is -1. Bits are told apart by their numbers, with one configuration for each digit: where all those differ
    from `zeros` whose digit is 1, and no others, there lies the bit."""
    found: dict[tuple[Place, int], int] = {}
    for digit in range(len(bits).bit_length()):
        ones = [place for number, places in enumerate(bits, 1) if number >> digit & 1 for place in places]
        for place in _differences(zeros, encoded(dict.fromkeys(ones, "1"))):
            found[place] = found.get(place, 0) | 1 << digit
    return np.array(sorted((number - 1, *place, sign) for (place, sign), number in found.items()))


def _differences(zero: Configuration, one: Configuration) -> list[tuple[Place, int]]:
    """Where two configurations differ, with the sign that the second has there: blank is -1."""
    found = []
    for tape, (before, after) in enumerate(zip(zero.tapes, one.tapes, strict=True)):
        found += [((tape, cell), 1) for cell in after.keys() - before.keys()]
        found += [((tape, cell), -1) for cell in before.keys() - after.keys()]
    return found


def _check(machine: TuringMachine) -> None:
    if machine.tapes < 2:
        raise Refused(
            f"the machine {machine.name!r} has one tape; an algorithm reads its data from the first tape and "
            "writes its result on the second",
            advice="Give it at least two tapes.",
        )
    if not {"0", "1"} <= set(machine.alphabet):
        raise SourceError(f"the machine {machine.name!r} does not know the symbols 0 and 1")
    for (state, read), rule in machine.rules.items():
        if rule.write[DATA_TAPE] != read[DATA_TAPE]:
            raise SourceError(
                f"the machine {machine.name!r} writes on its first tape, which holds the data",
                where=f"state {state!r} reading {' '.join(read)!r}",
                advice="Let it copy what it wants to change to another tape.",
            )


def tape_signs(configuration: Configuration, tape: int, first_cell: int, cells: int) -> NDArray[np.float64]:
    """One tape as signs: -1 blank, +1 the other symbol."""
    signs = np.full(cells, -1.0)
    for cell in configuration.tapes[tape]:
        signs[cell - first_cell] = 1.0
    return signs


# Python functions


Function = Callable[[Any, Any], Any]

_AHEAD = 2
"""The bit for cell i of the working tape lies at cell i + 2 of the data tape."""


def function_procedure(
    function: Function,
    x_shape: tuple[int, ...],
    y_shape: tuple[int, ...],
    data_format: NumberFormat,
    weight_format: NumberFormat,
    weights: int,
    machine: str,
) -> Procedure:
    """The machine of a function `(x, y) -> theta`, unrolled for data of these shapes. It sees x and y as
    arrays of whole numbers, the data in units of the last place of the format, and gives a list of whole
    numbers in units of the weights'. The `straight-line` machine has states for every gate; the `evaluator`
    has the gates on its data tape, and so as many states for every function and any data."""
    if machine not in ("straight-line", "evaluator"):
        raise InputError(f"there is no machine {machine!r}", advice="Choose straight-line or evaluator.")
    if not isinstance(data_format, FixedPoint) or not isinstance(weight_format, FixedPoint):
        raise InputError(
            "a Python function computes with fixed-point numbers",
            advice="Give a FixedPoint format, or write the algorithm as a TuringMachine.",
        )
    number = Int(data_format.width)
    traced = trace(function, _array(number, x_shape), _array(number, y_shape))
    bits = weights * weight_format.width
    if len(traced.circuit.outputs) != bits or not _all_of_width(traced.output, weight_format.width):
        raise InputError(
            f"theta does not fit: the function gives {len(traced.circuit.outputs)} bits ({traced.output}), "
            f"but {weights} weights in {weight_format} need {bits}",
            advice=f"Return a list of {weights} values of type Int({weight_format.width}).",
        )
    if machine == "evaluator":
        return _evaluated(simplified(traced.circuit))
    rewriting = straight_line(traced.circuit)
    work = cast(TuringMachine, rewriting.after)
    inputs = len(traced.circuit.inputs)
    places = [_place_of_input(rewriting, inputs, bit) for bit in range(inputs)]
    with_data = _with_data_tape(work, 1 + max((cell for _, cell in places), default=0))
    data = tuple(((DATA_TAPE, cell + _AHEAD),) for _, cell in places)
    result = tuple((RESULT_TAPE, cell) for cell in _result_cells(rewriting, inputs, bits))
    return Procedure(with_data, ({}, {}), data, result)


def _evaluated(circuit: Circuit) -> Procedure:
    """Inputs from cell 1 on, then the gates; the values of inputs, gates and outputs on the other tape."""
    inputs = len(circuit.inputs)
    content = "0" * inputs + DATA_END + gate_list(circuit)
    first = FIRST_CELL + inputs + circuit.size
    return Procedure(
        data_evaluator(),
        (dict(enumerate(content, FIRST_CELL)), {}),
        tuple(((DATA_TAPE, FIRST_CELL + bit),) for bit in range(inputs)),
        tuple((RESULT_TAPE, first + bit) for bit in range(len(circuit.outputs))),
    )


def _array(number: Int, shape: tuple[int, ...]) -> Array:
    layout: Any = number
    for length in reversed(shape):
        layout = Array(layout, length)
    return layout


def _all_of_width(layout: Any, width: int) -> bool:
    """Whether every number of a result has this width, so that none is cut in two or joined."""
    if isinstance(layout, Array):
        return _all_of_width(layout.element, width)
    if isinstance(layout, list | tuple):
        return all(_all_of_width(part, width) for part in layout)
    return getattr(layout, "width", None) == width


def _place_of_input(rewriting: Rewriting, inputs: int, bit: int) -> Place:
    row = np.zeros((1, inputs), bool)
    row[0, bit] = True
    tapes = cast(Configuration, rewriting.encode(row)).tapes
    return next((tape, cell) for tape, content in enumerate(tapes) for cell in content)


def _result_cells(rewriting: Rewriting, inputs: int, bits: int) -> list[int]:
    """Where the machine leaves each bit, found by decoding final configurations with a single 1."""
    machine = cast(TuringMachine, rewriting.after)
    (done,) = machine.accept
    first, last = 0, 0
    for state in machine.run(rewriting.encode(np.zeros((1, inputs), bool))):  # oblivious: any input will do
        first, last = min(first, state.heads[0]), max(last, state.heads[0])
    cells: dict[int, int] = {}
    for cell in range(first, last + 1):
        decoded = cast(Any, rewriting.decode(Configuration(done, ({cell: "1"},), (0,))))
        cells.update((int(bit), cell) for bit in np.flatnonzero(decoded[0]))
    if len(cells) != bits:
        raise SourceError("the straight-line machine leaves some bit of the result nowhere")
    return [cells[bit] for bit in range(bits)]


def _with_data_tape(work: TuringMachine, inputs: int) -> TuringMachine:
    """A machine with a read-only tape in front: copies its bits onto the working tape, goes back, and runs
    the given machine, the data head stepping to and fro."""
    rules: dict[tuple[str, tuple[str, ...]], Rule] = {}

    def copying(state: str, moves: tuple[int, int], after: str, copy: bool) -> None:
        for data in ("0", "1"):
            for cell in ("0", "1"):
                rules[state, (data, cell)] = Rule((data, data if copy else cell), moves, after)

    copying("ahead", (RIGHT, LEFT), "aside", copy=False)
    copying("aside", (RIGHT, RIGHT), "copy 0", copy=False)
    for cell in range(inputs):
        copying(
            f"copy {cell}",
            (RIGHT, RIGHT),
            f"copy {cell + 1}" if cell + 1 < inputs else f"back {inputs}",
            copy=True,
        )
    for cell in range(inputs, 0, -1):
        copying(
            f"back {cell}",
            (LEFT, LEFT),
            f"back {cell - 1}" if cell > 1 else f"run {work.start_state}",
            copy=False,
        )
    for (state, (cell,)), rule in work.rules.items():
        to_and_fro = RIGHT if _is_even(state) else LEFT
        for data in ("0", "1"):
            write, moves = (data, rule.write[0]), (to_and_fro, rule.moves[0])
            rules[f"run {state}", (data, cell)] = Rule(write, moves, f"run {rule.state}")
    return TuringMachine(rules, "ahead", blank="0", alphabet=("0", "1"), name=f"{work.name}, with data")


def _is_even(state: str) -> bool:
    """A straight-line machine's state begins with the time."""
    return int(state.partition(":")[0]) % 2 == 0
