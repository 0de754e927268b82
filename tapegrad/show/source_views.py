"""What the left side of the page shows: the state of a source as its own interpreter has it."""

from typing import Any, Protocol

import numpy as np

from tapegrad.circuits.layered import LayeredCircuit, LayerState
from tapegrad.circuits.model import Circuit
from tapegrad.learners import Learner, LearnerState
from tapegrad.lowering.rewriting import Source, State
from tapegrad.machines.grid import GridConfiguration, GridMachine
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.show.panels import Cells, CellsFrame, Fields, Panel
from tapegrad.show.rule_table import rule_table, rule_words
from tapegrad.show.text import named_bits, state_text, verdict

BITS_IN_A_ROW = 16
MOST_BITS = 512
"""Bits of a memory or a layer that are shown."""


class SourceView(Protocol):
    """Panels, and what they show of a state."""

    panels: list[Panel]

    def frame(self, state: State) -> list[Any]:
        """One entry for each panel."""
        ...


def source_view(source: Source) -> SourceView:
    """The view for this kind of source; any other kind is shown as text."""
    for kind, view in _VIEWS:
        if isinstance(source, kind):
            return view(source)
    return _TextView(source)


class _MachineView:
    """State, tapes and table of a Turing machine."""

    def __init__(self, machine: TuringMachine) -> None:
        self.machine = machine
        names = ["Tape"] if machine.tapes == 1 else [f"Tape {n}" for n in range(1, machine.tapes + 1)]
        tapes = [
            Cells(
                name,
                "text",
                rows=("",),
                default=(machine.blank,),
                explain=lambda _, cell, name=name: (
                    f"{name}, cell {cell}, as the machine's interpreter has it."
                ),
                room=2,
            )
            for name in names
        ]
        self.table = rule_table(machine)
        self.panels: list[Panel] = [Fields("Machine"), *tapes]
        if self.table is not None:
            self.panels.append(self.table.panel)

    def frame(self, state: Configuration) -> list[Any]:
        read = self.machine.read(state)
        rule = self.machine.rules.get((state.state, read))
        then = "halt" if rule is None else rule_words(rule)
        fields = {"state": state.state, "reads": " ".join(read), "then": then}
        if said := verdict(self.machine, state):
            fields["verdict"] = said
        tapes = [
            CellsFrame([(0, cell, symbol) for cell, symbol in sorted(tape.items())], [(0, head)])
            for tape, head in zip(state.tapes, state.heads, strict=True)
        ]
        return [fields, *tapes, *([self.table.place(state.state, read)] if self.table else [])]


class _GridView:
    """State and plane of a grid machine."""

    def __init__(self, machine: GridMachine) -> None:
        self.panels: list[Panel] = [
            Fields("Grid machine"),
            Cells(
                "Plane",
                "text",
                default=(machine.blank,),
                explain=lambda r, c: (
                    f"Row {r}, column {c} of the plane, as the machine's interpreter has it."
                ),
            ),
        ]
        self.machine = machine

    def frame(self, state: GridConfiguration) -> list[Any]:
        reads = state.cells.get(state.head, self.machine.blank)
        cells = [(r, c, symbol) for (r, c), symbol in sorted(state.cells.items())]
        return [{"state": state.state, "reads": reads}, CellsFrame(cells, [state.head])]


class _CircuitView:
    """Inputs of a circuit, and its outputs once they are known; of a batch the first pattern."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.first: dict[str, str] | None = None
        self.panels: list[Panel] = [Fields("Inputs"), Fields("Outputs")]

    def frame(self, state: np.ndarray) -> list[Any]:
        if self.first is None:
            self.first = {"pattern": f"1 of {len(state):,}"} if len(state) > 1 else {}
            self.first |= _written(self.circuit.inputs, state[0])
            outputs = dict.fromkeys(
                named_bits(self.circuit.outputs, np.zeros(len(self.circuit.outputs))), "·"
            )
            self.start, self.unknown = state, outputs
        known = state is not self.start
        return [self.first, _written(self.circuit.outputs, state[0]) if known else self.unknown]


def _written(names: tuple[str, ...], bits: np.ndarray) -> dict[str, str]:
    return {name: str(value) for name, value in named_bits(names, bits).items()}


class _LayersView:
    """The layer that a layered circuit has reached."""

    def __init__(self, circuit: LayeredCircuit) -> None:
        self.circuit = circuit
        rows = tuple(f"layer {n}" if n else "inputs" for n in range(circuit.depth + 1))
        widths = [int(width) for width in circuit.widths]
        self.hidden = len(rows) > 64 or max(widths, default=0) > MOST_BITS
        self.rows = rows if not self.hidden else ("layer",)
        self.widths = [min(width, MOST_BITS) for width in widths] if not self.hidden else None
        self.bits: dict[int, np.ndarray] = {}
        self.panels: list[Panel] = [
            Cells(
                "Circuit, layer by layer",
                "unit",
                rows=self.rows,
                column_name="value",
                explain=None if self.hidden else self._word,
                note="Only the layer just computed is shown." if self.hidden else "",
            )
        ]

    def frame(self, state: LayerState) -> list[Any]:
        bits = state.bits[0][:MOST_BITS]
        if self.hidden:
            return [CellsFrame([(0, int(c), 1) for c in np.flatnonzero(bits)], widths=[len(bits)])]
        self.bits[state.layer] = bits
        cells = [(r, int(c), 1) for r, row in self.bits.items() for c in np.flatnonzero(row)]
        reached = [width if row in self.bits else 0 for row, width in enumerate(self.widths or ())]
        return [CellsFrame(cells, widths=reached)]

    def _word(self, layer: int, place: int) -> str:
        if layer == 0:
            return f"Input {self.circuit.inputs[place]!r}." if place < len(self.circuit.inputs) else ""
        gates = self.circuit.layer(layer)
        if place >= len(gates.kinds):
            return ""
        output = f", output {self.circuit.outputs[place]!r}" if layer == self.circuit.depth else ""
        return f"Gate {place} of circuit layer {layer}{output}: holds wire {gates.wires[place]}."


class _LearnerView:
    """Memory of a learner, and the sample it was shown last."""

    def __init__(self, learner: Learner) -> None:
        self.count = min(learner.cells, MOST_BITS)
        self.names = learner.circuit.inputs[: self.count]
        note = "" if learner.cells <= MOST_BITS else f"{MOST_BITS} of {learner.cells:,} bits are shown."
        self.panels: list[Panel] = [
            Fields("Last sample"),
            Cells(
                "Memory",
                "text",
                rows=bit_rows(self.count),
                default=("0",),
                columns=(0, min(BITS_IN_A_ROW, max(1, self.count)) - 1),
                note=note,
                column_name="bit",
                explain=lambda r, c: bit_word(self.names, r, c),
            ),
        ]

    def frame(self, state: LearnerState) -> list[Any]:
        fields = {"sample": f"{state.position:,} of {len(state.samples):,}", "x": "·", "label": "·"}
        if state.position:
            x, y, _, guess = state.samples[state.position - 1]
            fields |= {"x": "".join(map(str, x[:64])), "label": str(y)}
            fields["learner"] = f"guesses {guess}" if state.answer is None else f"answers {state.answer}"
        ones = [(*divmod(i, BITS_IN_A_ROW), "1") for i, bit in enumerate(state.memory[: self.count]) if bit]
        return [fields, CellsFrame(ones, widths=bit_widths(self.count))]


def bit_rows(count: int) -> tuple[str, ...]:
    """Labels of rows of sixteen bits: the number of the first bit in each."""
    return tuple(str(first) for first in range(0, max(1, count), BITS_IN_A_ROW))


def bit_widths(count: int) -> list[int]:
    """The last row may be shorter."""
    return [min(BITS_IN_A_ROW, count - first) for first in range(0, max(1, count), BITS_IN_A_ROW)]


def bit_word(names: tuple[str, ...], row: int, column: int) -> str:
    """A bit of the memory by name."""
    number = row * BITS_IN_A_ROW + column
    return f"Bit {number} of the learner's memory, {names[number]!r}." if number < len(names) else ""


class _TextView:
    """Any other source: its state as text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.panels: list[Panel] = [Fields("Source")]

    def frame(self, state: State) -> list[Any]:
        return [{"state": state_text(self.source, state)}]


_VIEWS: tuple[tuple[type, Any], ...] = (
    (TuringMachine, _MachineView),
    (GridMachine, _GridView),
    (LayeredCircuit, _LayersView),
    (Circuit, _CircuitView),
    (Learner, _LearnerView),
)
