"""Circuits with state as a kind of source, and how they are shown."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._panels import WIDEST, Cells, CellsFrame, Fields, Panel
from tapegrad.circuits.clocked.library import READY, random_sequential
from tapegrad.circuits.clocked.model import ANY, SequentialCircuit, SequentialState
from tapegrad.circuits.clocked.traces import ADVICE, parse_trace
from tapegrad.circuits.clocked.verilog import FORMAT
from tapegrad.circuits.inputs import cycles_by_name, named_bits
from tapegrad.circuits.kind import circuit_from_json, circuit_to_json, listed, summary
from tapegrad.errors import InputError
from tapegrad.source import Arrays, Call, Inputs, Lowering, Option, Ready, ReadyBy, SourceKind

MOST_SIGNALS = 64
"""Bits that a picture of waves has rows for: outputs first, then latches."""
MOST_FIELDS = 48
"""Registers that are listed by name."""
LENGTHS_IN_STEP, LENGTHS = (1, 7, 40, 40), (1, 2, 3)
"""Cycles of the random traces that nets are verified on: where a cycle is a step of the net, and where it is
many steps of a machine."""


def _to_json(source: SequentialCircuit) -> tuple[dict[str, Any], Arrays]:
    data, arrays = circuit_to_json(source.logic)
    return data, {**arrays, "resets": np.array(source.resets, np.uint8)}


def _from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> SequentialCircuit:
    return SequentialCircuit(circuit_from_json(data, arrays), tuple(arrays["resets"].tolist()))


def describe(source: SequentialCircuit) -> str:
    """Inputs, outputs, latches with their resets, and the gates between them."""
    signs = {0: "0", 1: "1", ANY: "?"}
    resets = "".join(signs[reset] for reset in source.resets[:MOST_SIGNALS])
    more = "..." if len(source.resets) > MOST_SIGNALS else ""
    left_open = f"; ? is open: {len(source.open_latches):,}" if source.open_latches else ""
    _, _, _, *gates = summary(source.logic).splitlines()
    rows = {
        "inputs": listed(source.inputs),
        "outputs": listed(source.outputs),
        "latches": listed(source.latches),
        "reset": f"{resets}{more}{left_open}",
    }
    own = [f"  {head:8} {text}" for head, text in rows.items()]
    return "\n".join([f"circuit with state {source.name}", *own, *gates])


def _last(source: SequentialCircuit, state: SequentialState) -> dict[str, int]:
    return named_bits(source.outputs, state.outputs[-1]) if len(state.outputs) else {}


def state_json(source: SequentialCircuit, state: SequentialState) -> dict[str, Any]:
    """Cycles, the outputs of the last one, and the registers, all by name."""
    registers = named_bits(source.latches, np.array(state.latches))
    return {"cycles": state.cycle, "outputs": _last(source, state), "registers": registers}


def state_text(source: SequentialCircuit, state: SequentialState) -> str:
    """The same in three lines."""
    parts = [_last(source, state), named_bits(source.latches, np.array(state.latches))]
    rows = [
        " ".join(f"{name}={value}" for name, value in list(part.items())[:MOST_FIELDS])
        + (" ..." if len(part) > MOST_FIELDS else "")
        for part in parts
    ]
    cycles = "1 cycle" if state.cycle == 1 else f"{state.cycle:,} cycles"
    return f"after {cycles}\noutputs {rows[0] or 'none'}\nregisters {rows[1] or 'none'}"


def history(source: SequentialCircuit, state: SequentialState, seen: int) -> tuple[int, list[Any]]:
    """How many cycles there were, and the outputs of those after the first, as far as they are known."""
    new = min(state.cycle - seen, len(state.outputs))
    return state.cycle, [named_bits(source.outputs, row) for row in state.outputs[len(state.outputs) - new :]]


def call(source: SequentialCircuit, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """A row of bits for each cycle, or by the name of each input a number for each cycle. What comes back are
    the outputs of the last cycle, as of a circuit; `run` watches all of them."""
    rows = cycles_by_name(source.inputs, source.name, named) if named else None
    if rows is not None and given:
        raise InputError("inputs by name and rows of bits do not go together", advice=ADVICE)

    def result(state: SequentialState) -> Any:
        values = _last(source, state)
        return next(iter(values.values())) if len(values) == 1 else values

    return Call(given if rows is None else (rows,), result)


class ClockedView:
    """Inputs and outputs of the last cycle, registers, and waves: bits in rows, cycles in columns."""

    def __init__(self, source: SequentialCircuit) -> None:
        self.source = source
        names = [*source.outputs, *source.latches]
        self.shown = names[:MOST_SIGNALS]
        note = "" if len(names) <= MOST_SIGNALS else f"{MOST_SIGNALS} of {len(names):,} bits are shown."
        self.ones: deque[list[tuple[int, int, int]]] = deque(maxlen=WIDEST)
        """Bits that are 1, cycle by cycle, as far back as the page shows them."""
        self.seen = -1
        self.panels: list[Panel] = [
            Fields("Clock"),
            Fields("Registers"),
            Cells(
                "Waves: outputs, then latches",
                "unit",
                rows=tuple(self.shown) or ("none",),
                note=note,
                column_name="cycle",
            ),
        ]

    def frame(self, state: SequentialState) -> list[Any]:
        source = self.source
        clock = {"cycle": f"{state.cycle:,} of {len(state.trace):,}"}
        if state.cycle:
            row = state.trace[state.cycle - 1]
            clock |= {f"{name} (in)": str(value) for name, value in named_bits(source.inputs, row).items()}
            clock |= {f"{name} (out)": str(value) for name, value in _last(source, state).items()}
        registers = named_bits(source.latches, np.array(state.latches))
        fields = {name: str(value) for name, value in list(registers.items())[:MOST_FIELDS]}
        self._note(state)
        columns = state.cycle + 1
        ones = [cell for cells in self.ones for cell in cells]
        waves = CellsFrame(ones, focus=state.cycle, widths=[columns] * max(1, len(self.shown)))
        return [clock, fields, waves]

    def _note(self, state: SequentialState) -> None:
        """An output belongs to the cycle before this one, what a latch holds to the one to come."""
        if state.cycle <= self.seen:
            return
        self.seen = state.cycle
        outputs = state.outputs[-1].tolist() if len(state.outputs) else []
        values = [*((bit, state.cycle - 1) for bit in outputs)] or [(0, 0)] * len(self.source.outputs)
        values += [(bit, state.cycle) for bit in state.latches]
        shown = enumerate(values[:MOST_SIGNALS])
        self.ones.append([(row, column, 1) for row, (bit, column) in shown if bit])


def random_trace(
    source: SequentialCircuit, random: np.random.Generator, cycles: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """So many random rows, and random first values of the latches that are open."""
    rows = random.integers(0, 2, (cycles, len(source.inputs)), np.uint8)
    return rows, random.integers(0, 2, len(source.open_latches), np.uint8)


def _default_inputs(
    source: SequentialCircuit, random: np.random.Generator, in_batches: bool
) -> tuple[Inputs, bool]:
    lengths = LENGTHS_IN_STEP if in_batches else LENGTHS
    return iter([random_trace(source, random, cycles) for cycles in lengths]), False


SEQUENTIAL = SourceKind(
    name="sequential circuit",
    type=SequentialCircuit,
    to_json=_to_json,
    from_json=_from_json,
    formats=(FORMAT,),
    ready=ReadyBy(READY, lambda name, entry: Ready(entry.summary, entry.build, entry.example)),
    parse_input=parse_trace,
    call=call,
    input_needed=ADVICE,
    default_inputs=_default_inputs,
    sample=random_sequential,
    describe=describe,
    state_json=state_json,
    state_text=state_text,
    step="cycle",
    history=history,
    view=ClockedView,
    refuses="tapegrad.lowering.clocked:refuse",
    compiled_run="tapegrad.circuits.clocked.model:look_ahead",
    lowerings=(
        Lowering("learner", "tapegrad.lowering.clocked:clocked_learner"),
        Lowering(
            "circuit",
            "tapegrad.lowering.clocked:unrolled",
            {"cycles": Option(..., "how many cycles the circuit without latches stands for")},
            suits="tapegrad.lowering.clocked:suiting",
        ),
    ),
)
