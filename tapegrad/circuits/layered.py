"""Circuits in layers: every gate reads the layer just before its own, identities carry values along."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.circuits.model import ARITY, Bits, Circuit, Gate, batch_of_bits
from tapegrad.errors import Refused
from tapegrad.source import Rewriting

LARGEST = 1 << 25
"""Most gates, identities included, that a layered circuit may have: about a gigabyte while it is built."""


class Layer(NamedTuple):
    """One layer: kinds of its gates, and operands as positions in the layer before (0 where unused).
    `wires` are the wires of the unlayered circuit whose values the gates hold."""

    kinds: NDArray[np.uint8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    wires: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LayerState:
    """The values of one layer for a batch of patterns (a row for each); layer 0 are the inputs."""

    layer: int
    bits: Bits

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LayerState):
            return NotImplemented
        return self.layer == other.layer and np.array_equal(self.bits, other.bits)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class LayeredCircuit:
    """A circuit whose gates stand in layers 1, 2, ..., `depth`, one after the other in flat arrays; layer
    0 are the inputs, and the last layer holds the outputs in order, nothing else."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: NDArray[np.uint8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    wires: NDArray[np.int32]
    bounds: NDArray[np.int64]
    """Layer i stands from `bounds[i - 1]` to `bounds[i]`."""
    name: str = "layered circuit"

    @property
    def size(self) -> int:
        """Number of gates, identities included."""
        return len(self.kinds)

    @property
    def depth(self) -> int:
        """Number of layers, at least one; the inputs do not count."""
        return len(self.bounds) - 1

    @property
    def widths(self) -> NDArray[np.int64]:
        """Number of values in every layer, the inputs first."""
        return np.concatenate([[len(self.inputs)], np.diff(self.bounds)])

    def layer(self, number: int) -> Layer:
        """Layer 1, 2, ... or `depth`."""
        part = slice(self.bounds[number - 1], self.bounds[number])
        return Layer(self.kinds[part], self.left[part], self.right[part], self.wires[part])

    def start(self, bits: ArrayLike) -> LayerState:
        """Layer 0: one row of bits, or a matrix with a row for each pattern."""
        return LayerState(0, batch_of_bits(bits, self.inputs, self.name))

    def run(self, state: LayerState) -> Iterator[LayerState]:
        """This layer and every later one, in order."""
        yield state
        bits = state.bits
        for number in range(state.layer + 1, self.depth + 1):
            bits = _applied(self.layer(number), bits)
            yield LayerState(number, bits)


def _applied(layer: Layer, bits: Bits) -> Bits:
    """The values of a layer from those of the layer before, read off the gates' truth tables."""
    entry = np.zeros((len(bits), len(layer.kinds)), np.uint8)
    one, two = ARITY[layer.kinds] >= 1, ARITY[layer.kinds] == 2
    entry[:, one] = 2 * bits[:, layer.left[one]].view(np.uint8)
    entry[:, two] += bits[:, layer.right[two]].view(np.uint8)
    # A one-input gate reads b = 0: its table does not depend on b.
    return (layer.kinds >> entry & 1).astype(bool)


def layered(circuit: Circuit) -> Rewriting:
    """The circuit in layers, as few values in each as gates in earliest layers allow: gates that reach
    no output are left out, a wire is carried to the last layer that reads it and no further, and
    constants are made afresh where they are read. Same outputs for all inputs; the depth is that of the
    circuit, or one more if constants are read on a longest path.
    """
    after = _layered(circuit)

    def decode(state: LayerState) -> Bits | None:
        return state.bits if state.layer in (0, after.depth) else None

    return Rewriting("layers", circuit, after, lambda bits: LayerState(0, bits), decode)


def layered_widths(circuit: Circuit) -> NDArray[np.int64]:
    """The widths that `layered(circuit)` will have, the inputs first, at the cost of one pass."""
    plan = _plan(circuit)
    change = np.zeros(plan.depth + 1, np.int64)
    np.add.at(change, plan.first, 1)
    np.add.at(change, plan.last + 1, -1)
    width = np.cumsum(change)
    width += np.bincount(plan.constant_keys % plan.depth, minlength=plan.depth + 1)
    width[0], width[-1] = len(circuit.inputs), len(circuit.outputs)
    return width


class _Plan(NamedTuple):
    """Which wire is in which layers between the inputs and the outputs."""

    depth: int
    level: NDArray[np.int64]
    wire: NDArray[np.int64]
    """Inputs and gates that are in some layer strictly between, and there from `first` to `last`."""
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    constant_keys: NDArray[np.int64]
    """Constants strictly between, as `wire * depth + layer`, sorted."""


def _plan(circuit: Circuit) -> _Plan:
    inputs, arity = len(circuit.inputs), ARITY[circuit.kinds]
    # Layer 0 holds nothing but inputs, so a constant that is read stands in layer 1 at the earliest.
    level = circuit.levels(constants=1).astype(np.int64)
    depth = max(1, int(level[circuit.output_wires].max(initial=0)))
    constant = np.zeros(circuit.wires, bool)
    constant[inputs:] = arity == 0

    live = circuit.needed()[inputs:]
    readers = [(circuit.left[live & (arity >= 1)], level[inputs:][live & (arity >= 1)] - 1)]
    readers.append((circuit.right[live & (arity == 2)], level[inputs:][live & (arity == 2)] - 1))
    early = circuit.output_wires[(level[circuit.output_wires] < depth) & ~constant[circuit.output_wires]]
    readers.append((early, np.full(len(early), depth - 1)))
    wire = np.concatenate([wire for wire, _ in readers]).astype(np.int64)
    layer = np.concatenate([layer for _, layer in readers])

    last = np.zeros(circuit.wires, np.int64)
    carried = ~constant[wire]
    np.maximum.at(last, wire[carried], layer[carried])
    first = np.maximum(level, 1)
    between = np.flatnonzero(last >= first)
    keys = np.unique(wire[~carried] * depth + layer[~carried])
    return _Plan(depth, level, between, first[between], last[between], keys)


def _layered(circuit: Circuit) -> LayeredCircuit:
    plan, inputs, outputs = _plan(circuit), len(circuit.inputs), circuit.output_wires.astype(np.int64)
    spans = plan.last - plan.first + 1
    size = int(spans.sum()) + len(plan.constant_keys) + len(outputs)
    if size > LARGEST:
        raise Refused(
            f"in layers, the circuit {circuit.name!r} would have {size:,} gates, most of them identities "
            f"that carry values along its {plan.depth:,} layers",
            advice=f"At most {LARGEST:,} are built. Make the circuit shallower, or use its inputs earlier.",
        )
    # Every (wire, layer) in the order of wires, then constants, then outputs; `place` is where each
    # goes once sorted by layer. `start` finds the entry of a carried wire in a given layer.
    start = np.zeros(circuit.wires, np.int64)
    start[plan.wire] = np.cumsum(spans) - spans - plan.first
    wire = np.concatenate([np.repeat(plan.wire, spans), plan.constant_keys // plan.depth, outputs])
    layer = np.concatenate(
        [
            np.arange(spans.sum()) - np.repeat(start[plan.wire], spans),
            plan.constant_keys % plan.depth,
            np.full(len(outputs), plan.depth),
        ]
    )
    order = np.argsort(layer, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(layer, minlength=plan.depth + 1)[1:])])
    place = np.empty(size, np.int64)
    place[order] = np.arange(size) - bounds[layer[order] - 1]

    kinds, left, right = _gates_or_identities(circuit, plan, wire, layer)
    is_constant = np.zeros(circuit.wires, bool)
    is_constant[inputs:] = ARITY[circuit.kinds] == 0

    def position(operand: NDArray[np.int64], used: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Where the operand of each entry stands in the layer before the entry's own."""
        found = np.where(layer == 1, operand, 0)
        later = used & (layer > 1)
        fresh, carried = later & is_constant[operand], later & ~is_constant[operand]
        keys = operand[fresh] * plan.depth + layer[fresh] - 1
        found[fresh] = place[spans.sum() + np.searchsorted(plan.constant_keys, keys)]
        found[carried] = place[start[operand[carried]] + layer[carried] - 1]
        return found[order].astype(np.int32)

    return LayeredCircuit(
        inputs=circuit.inputs,
        outputs=circuit.outputs,
        kinds=kinds[order],
        left=position(left, ARITY[kinds] >= 1),
        right=position(right, ARITY[kinds] == 2),
        wires=wire[order].astype(np.int32),
        bounds=bounds,
        name=circuit.name,
    )


def _gates_or_identities(
    circuit: Circuit, plan: _Plan, wire: NDArray[np.int64], layer: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """For every entry the kind of its gate and its operands as wires: the gate itself in the layer of
    its level (a constant in any), an identity of the wire itself after that."""
    gate = wire - len(circuit.inputs)
    own = gate >= 0
    own[own] = (plan.level[wire[own]] == layer[own]) | (ARITY[circuit.kinds[gate[own]]] == 0)
    kinds = np.full(len(wire), Gate.ID, np.uint8)
    left, right = wire.copy(), np.zeros(len(wire), np.int64)
    kinds[own], left[own], right[own] = (
        circuit.kinds[gate[own]],
        circuit.left[gate[own]],
        circuit.right[gate[own]],
    )
    return kinds, left, right
