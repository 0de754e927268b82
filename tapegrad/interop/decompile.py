"""Back from a ReLU network to a circuit, by looking at its weights alone.

Between two layers of values near 0 and 1 stands a block of ReLU layers (two for the gates, two for the
correction). A unit at the end of a block is a tree: each unit reads two others, down to the values before the
block. If at most two different values are reached with weights other than 0, the unit is a function of two
bits; running the tree on all four cases gives its truth table. No gadget needs to be recognised, so
this works for any weights that compute gates in this shape, and it says so where they do not.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import Refused
from tapegrad.interop.decompile_compact import decompiled
from tapegrad.interop.exporting import net_of
from tapegrad.networks.wiring import Wiring
from tapegrad.targets.net import Net
from tapegrad.targets.relu.build import relu_layers
from tapegrad.targets.relu.compact.net import CompactNet
from tapegrad.targets.relu.net import ReluNet

NEAR = 1 / 4
"""A value this near to a bit counts as that bit: what the corrections mend at the least."""

CHUNK = 1 << 14
"""Trees that are run at a time."""

_CASES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
"""Bits a and b in the order of a gate's truth table."""


class _Units(NamedTuple):
    """Units with two inputs each, in the layer before; one that is not used is 0 and has weight 0."""

    inputs: NDArray[np.int64]
    weights: NDArray[np.floating]
    biases: NDArray[np.floating]
    bounds: NDArray[np.int64]

    @classmethod
    def of(cls, wiring: Wiring) -> "_Units":
        counts = np.diff(wiring.starts)
        if counts.max(initial=0) > 2:
            raise Refused("a unit reads more than two values of the layer before, so it is part of no gate")
        inputs, weights = (
            np.zeros((len(counts), 2), np.int64),
            np.zeros((len(counts), 2), wiring.values.dtype),
        )
        for layer, (begin, end) in enumerate(pairwise(wiring.bounds.tolist())):
            own = wiring.layer(layer)
            side = np.arange(len(own.rows)) - (wiring.starts[begin:end] - wiring.starts[begin])[own.rows]
            inputs[begin + own.rows, side], weights[begin + own.rows, side] = own.columns, own.values
        return cls(inputs, weights, wiring.biases, wiring.bounds)


class _Tables(NamedTuple):
    """The units at the end of a block: which two values each reads (the same twice if only one), and its
    truth table, whose bit `2 a + b` is the output for a, b."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    table: NDArray[np.int64]


def decompile(compiled: Compiled | Net, name: str = "decompiled") -> Circuit:
    """The circuit that a `relu` net computes, read off its weights. Identities are left out, as are gates
    that occur twice or reach no output, so it is often smaller than the circuit that was compiled."""
    net = net_of(compiled)
    if isinstance(net, CompactNet):
        return decompiled(net, name)
    if not isinstance(net, ReluNet):
        raise Refused(f"only nets of target 'relu' are circuits, and this one is of {net.target!r}")
    units = _Units.of(net.wiring)
    make = CircuitBuilder(simplify=True)
    wires = [make.input(given) for given in net.input_names]
    each = relu_layers(net.correction)
    for block in range(0, net.depth, each):
        tables = _block(units, block, each, len(wires))
        wires = [_gate(make, wires, *row) for row in zip(*(t.tolist() for t in tables), strict=True)]
    for output, wire in zip(net.output_names, _outputs(units, wires, make), strict=True):
        make.output(output, wire)
    return make.circuit(name)


def _block(units: _Units, first: int, layers: int, width: int) -> _Tables:
    """The truth tables of the units in the last layer of a block."""
    begin, end = units.bounds[first + layers - 1], units.bounds[first + layers]
    parts = [
        _trees(units, first, layers, np.arange(start, min(start + CHUNK, end)), width)
        for start in range(begin, end, CHUNK)
    ]
    empty = np.zeros(0, np.int64)
    return _Tables(*(np.concatenate([empty, *column]) for column in zip(*parts, strict=True)))


def _trees(units: _Units, first: int, layers: int, roots: NDArray[np.int64], width: int) -> _Tables:
    """Unfolds the tree of every root, finds the values it reads, and runs it on the four cases."""
    levels = [roots[:, None]]  # numbers of units, one row for each root, twice as many at each level down
    reached = np.ones(levels[0].shape, bool)
    for layer in range(first + layers - 1, first - 1, -1):
        nodes = levels[-1]
        places = units.inputs[nodes].reshape(len(roots), -1)
        reached = np.repeat(reached, 2, axis=1) & (units.weights[nodes].reshape(len(roots), -1) != 0)
        before = units.bounds[layer - 1] if layer > first else 0
        levels.append(np.where(reached, places, 0) + before)  # what is not reached has no weight anyway
    leaves = levels.pop()
    left = np.where(reached, leaves, width).min(axis=1)  # `width`: none
    right = np.where(reached, leaves, -1).max(axis=1)
    strange = reached & (leaves != left[:, None]) & (leaves != right[:, None])
    if strange.any():
        raise Refused("a unit depends on more than two values of the layer before, so it is no gate")
    first_bit, second_bit = _CASES.T.astype(units.weights.dtype)
    values = np.where((leaves == left[:, None])[..., None], first_bit, second_bit)
    for nodes in reversed(levels):
        terms = values.reshape(*nodes.shape, 2, 4) * units.weights[nodes][..., None]
        values = np.maximum(terms.sum(axis=2) + units.biases[nodes][..., None], 0)
    values = values[:, 0]
    if np.abs(values - np.rint(values)).max(initial=0) > NEAR or values.max(initial=0) > 1 + NEAR:
        raise Refused("a unit has a value that is not near 0 or 1, so it is no gate")
    table = (np.rint(values).astype(np.int64) << np.arange(4)).sum(axis=1)
    nothing = left == width
    return _Tables(np.where(nothing, 0, left), np.where(nothing, 0, right), table)


def _gate(make: CircuitBuilder, wires: list[Wire], left: int, right: int, table: int) -> Wire:
    """The gate with this truth table."""
    if table in (Gate.FALSE, Gate.TRUE):
        return make.constant(table == Gate.TRUE)
    a, b = wires[left], wires[right]
    if table in (Gate.ID, Gate.NOT):
        return make.gate(Gate(table), a)
    if table in _SECOND:
        return make.gate(_SECOND[table], b)
    if table in _ONE_NEGATED:
        return make.gate(_ONE_NEGATED[table], make.not_(a), b)
    return make.gate(Gate(table), a, b)


_SECOND = {0b1010: Gate.ID, 0b0101: Gate.NOT}
_ONE_NEGATED = {0b0010: Gate.AND, 0b1011: Gate.OR, 0b1101: Gate.NAND, 0b0100: Gate.NOR}
"""Tables that no `Gate` has: b alone, and gates of not-a and b."""


def _outputs(units: _Units, wires: list[Wire], make: CircuitBuilder) -> list[Wire]:
    """The last layer is linear; an output is 1 where it is positive, so only its sign counts."""
    found = []
    for unit in range(int(units.bounds[-2]), int(units.bounds[-1])):
        weights, bias = units.weights[unit], units.biases[unit]
        used = np.unique(units.inputs[unit][weights != 0])
        if len(used) > 1:
            raise Refused("an output of the network reads more than one value")
        slope = weights.sum()
        low, high = bias > 0, bias + slope > 0
        if low == high:
            found.append(make.constant(bool(low)))
        else:
            wire = wires[used[0]]
            found.append(wire if high else make.not_(wire))
    return found
