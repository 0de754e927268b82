"""How circuits are shown: in a few lines of text, their bits by name, and as panels of the player."""

import re
from itertools import groupby
from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad.circuits.layered import LayeredCircuit, LayerState, layered_widths
from tapegrad.circuits.model import Bits, Circuit, Gate

BUS = re.compile(r"(.+)\[([0-9]+)\]")
"""A bit of a value, as in `a[3]`."""
_MOST_SHOWN = 8


def summary(circuit: Circuit) -> str:
    """Inputs, outputs, gates by kind, depth and width."""
    counts = [(int(np.sum(circuit.kinds == kind)), kind.name) for kind in Gate]
    kinds = ", ".join(f"{count:,} {name}" for count, name in sorted(counts, reverse=True) if count)
    idle = circuit.size - int(circuit.needed()[len(circuit.inputs) :].sum())
    widths = layered_widths(circuit)
    rows = [
        ("inputs", f"{len(circuit.inputs):,}  {_names(circuit.inputs)}"),
        ("outputs", f"{len(circuit.outputs):,}  {_names(circuit.outputs)}"),
        ("gates", f"{circuit.size:,}  {kinds}" + (f"; {idle:,} reach no output" if idle else "")),
        ("depth", f"{circuit.depth:,}"),
        ("width", f"{int(widths.max()):,} in layers, {int(widths[1:].sum()):,} gates with identities"),
    ]
    return "\n".join([f"circuit {circuit.name}", *(f"  {head:8} {text}".rstrip() for head, text in rows)])


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


def named_bits(names: tuple[str, ...], row: np.ndarray) -> dict[str, int]:
    """Bits under their names; `x[0]`, `x[1]`, ... become one number, bit 0 lowest."""
    values: dict[str, int] = {}
    for name, bit in zip(names, row, strict=True):
        bus = BUS.fullmatch(name)
        if bus:
            values[bus[1]] = values.get(bus[1], 0) | int(bit) << int(bus[2])
        else:
            values[name] = int(bit)
    return values


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
