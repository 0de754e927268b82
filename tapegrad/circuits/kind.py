"""Circuits, layered circuits and traced functions as kinds of source, and how they are shown."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad.circuits.formats import FORMATS
from tapegrad.circuits.inputs import (
    BUS,
    call_circuit,
    call_function,
    named_bits,
    parse_arguments,
    parse_bits,
    result_json,
    typed_arguments,
    typed_example,
)
from tapegrad.circuits.layered import LayeredCircuit, LayerState, layered_widths
from tapegrad.circuits.library import FUNCTIONS, READY, ready
from tapegrad.circuits.model import GATES, Bits, Circuit, Gate
from tapegrad.circuits.sampler import random_circuit, random_function
from tapegrad.circuits.tracer import Traced
from tapegrad.circuits.types import layout_from_json, layout_to_json
from tapegrad.source import Arrays, Inputs, Lowering, Option, Ready, ReadyBy, Rewriting, SourceKind

# How circuits are shown: in a few lines of text, their bits by name, and as panels of the player.


_MOST_SHOWN = 8


def summary(circuit: Circuit) -> str:
    """Inputs, outputs, gates by kind, depth and width."""
    counts = [(int(np.sum(circuit.kinds == kind)), kind.name) for kind in Gate]
    kinds = ", ".join(f"{count:,} {name}" for count, name in sorted(counts, reverse=True) if count)
    idle = circuit.size - int(circuit.needed()[len(circuit.inputs) :].sum())
    widths = layered_widths(circuit)
    rows = [
        ("inputs", listed(circuit.inputs)),
        ("outputs", listed(circuit.outputs)),
        ("gates", f"{circuit.size:,}  {kinds}" + (f"; {idle:,} reach no output" if idle else "")),
        ("depth", f"{circuit.depth:,}"),
        ("width", f"{int(widths.max()):,} in layers, {int(widths[1:].sum()):,} gates with identities"),
    ]
    return "\n".join([f"circuit {circuit.name}", *(f"  {head:8} {text}".rstrip() for head, text in rows)])


def listed(names: tuple[str, ...]) -> str:
    """How many names there are, and some of them."""
    return f"{len(names):,}  {_names(names)}".rstrip()


def _names(names: tuple[str, ...]) -> str:
    """Names in a row, the bits of a value as one: a[0], a[1], a[2] become a[0..2]."""
    shown: list[str] = []
    start = 0
    for stem, group in groupby(names, lambda name: match[1] if (match := BUS.fullmatch(name)) else None):
        members = names[start : (start := start + len(list(group)))]
        bits = [match[2] for name in members if (match := BUS.fullmatch(name))]
        if stem is not None and bits == [str(bit) for bit in range(len(bits))] and len(bits) > 1:
            shown.append(f"{stem}[0..{len(bits) - 1}]")
        else:
            shown += members
    if len(shown) > _MOST_SHOWN:
        shown = [*shown[: _MOST_SHOWN - 1], "...", shown[-1]]
    return ", ".join(shown)


MOST_BITS = 512
"""Bits of a memory or a layer that are shown."""


def state_json(circuit: Circuit, state: Bits) -> Any:
    """The outputs by name: of one pattern, or a list."""
    rows = [named_bits(circuit.outputs, row) for row in state]
    return rows[0] if len(rows) == 1 else rows


def state_text(circuit: Circuit, state: Bits) -> str:
    """The outputs by name, a line for each of the first patterns."""
    rows = [named_bits(circuit.outputs, row) for row in state[:8]]
    more = [f"... {len(state) - 8} more rows"] if len(state) > 8 else []
    return "\n".join(["  ".join(f"{name}={value}" for name, value in row.items()) for row in rows] + more)


class CircuitView:
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


class LayersView:
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


EXHAUSTIVE_BITS = 20
"""Circuits of up to this many inputs are checked on all of them."""

RANDOM_PATTERNS = 4096
BATCH = 1 << 12
PATTERNS_ONE_BY_ONE = 64
"""A circuit that runs as a machine takes its inputs one after the other, so fewer are sampled."""

PATTERNS_OF_FUNCTIONS = 1 << 12
"""A function is called once for each pattern."""

_ARRAYS = {
    Circuit: tuple(GATES),
    LayeredCircuit: ("kinds", "left", "right", "wires", "bounds"),
}
T = TypeVar("T", Circuit, LayeredCircuit)


def circuit_to_json(circuit: Circuit | LayeredCircuit) -> tuple[dict[str, Any], Arrays]:
    """Names as JSON, gates as arrays."""
    names = {"name": circuit.name, "inputs": list(circuit.inputs), "outputs": list(circuit.outputs)}
    return names, {field: np.array(getattr(circuit, field)) for field in _ARRAYS[type(circuit)]}


def circuit_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Circuit:
    """The circuit again."""
    return _circuit(Circuit, data, arrays)


def _circuit(kind: type[T], data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> T:
    fields: dict[str, Any] = {field: arrays[field] for field in _ARRAYS[kind]}
    return kind(inputs=tuple(data["inputs"]), outputs=tuple(data["outputs"]), name=data["name"], **fields)


def _function_to_json(traced: Traced) -> tuple[dict[str, Any], Arrays]:
    """The circuit and the types; the function's own code is not saved."""
    data, arrays = circuit_to_json(traced.circuit)
    types = {
        "parameters": {name: layout_to_json(layout) for name, layout in traced.inputs.items()},
        "result": layout_to_json(traced.output),
    }
    return {**data, **types}, arrays


def _function_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Traced:
    parameters = {name: layout_from_json(layout) for name, layout in data["parameters"].items()}
    return Traced(None, circuit_from_json(data, arrays), parameters, layout_from_json(data["result"]))


def function_circuit(traced: Traced) -> Rewriting:
    """A traced function as its circuit; both have bits as states."""
    return Rewriting("gates", traced, traced.circuit, lambda bits: bits, lambda bits: bits)


def _default_inputs(circuit: Circuit, random: np.random.Generator, in_batches: bool) -> tuple[Inputs, bool]:
    most = 1 << EXHAUSTIVE_BITS if in_batches else PATTERNS_ONE_BY_ONE
    return _patterns(len(circuit.inputs), most, in_batches, random)


def _default_arguments(traced: Traced, random: np.random.Generator, in_batches: bool) -> tuple[Inputs, bool]:
    most = PATTERNS_OF_FUNCTIONS if in_batches else PATTERNS_ONE_BY_ONE
    return _patterns(len(traced.circuit.inputs), most, in_batches, random)


def _patterns(bits: int, most: int, in_batches: bool, random: np.random.Generator) -> tuple[Inputs, bool]:
    """All patterns of a few bits, or a sample."""
    if exhaustive := 1 << bits <= most:
        batches = _every_pattern(bits)
    else:
        batches = iter([random.integers(0, 2, (min(most, RANDOM_PATTERNS), bits), np.uint8)])
    if not in_batches:
        batches = (row[None] for batch in batches for row in batch)
    return ((batch,) for batch in batches), exhaustive


def _every_pattern(bits: int) -> Iterator[NDArray[np.uint8]]:
    for first in range(0, 1 << bits, BATCH):
        numbers = np.arange(first, min(first + BATCH, 1 << bits))[:, None]
        yield (numbers >> np.arange(bits) & 1).astype(np.uint8)


CIRCUIT = SourceKind(
    name="circuit",
    type=Circuit,
    to_json=circuit_to_json,
    from_json=circuit_from_json,
    formats=FORMATS,
    ready=ReadyBy(READY, lambda name, entry: Ready(entry.summary, lambda: ready(name))),
    parse_input=parse_bits,
    input_needed="Write its bits in order, as in 0110, or name=number for each input.",
    input_example=typed_example,
    call=call_circuit,
    default_inputs=_default_inputs,
    sample=random_circuit,
    describe=summary,
    state_json=state_json,
    state_text=state_text,
    view=CircuitView,
    step="row of bits",
    refuses="tapegrad.lowering.clocked:refuse_circuit",
    lowerings=(
        Lowering("sequential circuit", "tapegrad.lowering.clocked:one_cycle"),
        Lowering("rasp program", "tapegrad.lowering.circuit_rasp:circuit_rasp"),
        Lowering("grid machine", "tapegrad.lowering.circuit_grid:circuit_grid"),
        Lowering(
            "turing machine",
            "tapegrad.lowering.circuit_machine:circuit_machine",
            {
                "machine": Option("straight-line", "a machine made for the circuit, or the fixed evaluator"),
                "tapes": Option(1, "tapes of the straight-line machine: more of them make it quicker"),
                "carried": Option(
                    None, "bits that the straight-line machine carries in its state; default: what suits it"
                ),
            },
        ),
    ),
)

LAYERED_CIRCUIT = SourceKind(
    name="layered circuit",
    type=LayeredCircuit,
    to_json=circuit_to_json,
    from_json=partial(_circuit, LayeredCircuit),
    view=LayersView,
)

FUNCTION = SourceKind(
    name="function",
    type=Traced,
    to_json=_function_to_json,
    from_json=_function_from_json,
    ready=ReadyBy(
        FUNCTIONS, lambda name, entry: Ready(entry.summary, lambda: entry.traced(name), lambda: entry.example)
    ),
    parse_input=parse_arguments,
    input_needed="Write a value for each parameter, in order or as name=value.",
    input_example=typed_arguments,
    call=call_function,
    default_inputs=_default_arguments,
    sample=random_function,
    describe=lambda traced: summary(traced.circuit),
    state_json=result_json,
    state_text=lambda traced, bits: str(result_json(traced, bits)),
    view=lambda traced: CircuitView(traced.circuit),
    step="call",
    refuses="tapegrad.lowering.clocked:refuse_function",
    lowerings=(Lowering("circuit", "tapegrad.circuits.kind:function_circuit"),),
)
