"""Comparing the vertices that compute with the gates of the circuit they were made from."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet

AND, XOR, XNOR, FALSE = 0b1000, 0b0110, 0b1001, 0b0000
OPERANDS = {kind: 0 if kind in (0, 15) else 1 if kind in (3, 12) else 2 for kind in range(16)}


class Wired(NamedTuple):
    """The arrays of a net that say what its vertices compute."""

    weights: NDArray[Any]
    offsets: NDArray[Any]
    sources: NDArray[Any]
    given: int


def check_gates(
    arrays: dict[str, NDArray[Any]], net: Wired, cells: int, flips: NDArray[Any], answer: int
) -> None:
    """Every gate of the saved circuit has a vertex that reads the vertices of its operands and has its truth
    table; XOR and XNOR have two, an AND first. The answer and the flips are those of the circuit."""
    kinds, outputs = arrays["source.kinds"], arrays["source.output_wires"]
    double = np.isin(kinds, (XOR, XNOR))
    first_copy = net.given + 2 * cells
    first_gate = first_copy + net.given - 1
    own = first_gate + np.cumsum(1 + double) - 1
    readers = net.given + 1 + 2 * np.arange(cells)
    wire = np.concatenate([readers, np.arange(first_copy, first_gate), own])
    left, right = arrays["source.left"], arrays["source.right"]
    for kind in np.unique(kinds).tolist():
        gates = np.flatnonzero(kinds == kind)
        operands = [wire[side[gates]] for side in (left, right)][: OPERANDS[kind]]
        _check_kind(net, kind, own[gates], operands)
    _require(len(outputs) == cells + 2, "the circuit of the learner has another number of outputs")
    _require(wire[outputs[0]] == answer, "the answer of the net is not that of the learner")
    first = cells + net.given - 1
    for cell, new in enumerate(outputs[2:].tolist()):
        flip = flips[cell : cell + 1]
        if new == cell:
            _check_kind(net, FALSE, flip, [])
        elif new >= first and flip[0] <= wire[-1]:
            pair = {int(left[new - first]), int(right[new - first])} - {cell}
            _require(kinds[new - first] == XOR and len(pair) == 1, "a cell flips where it should not")
            _require(wire[pair.pop()] == flip[0], "a cell flips on another bit than it should")
        else:
            _check_kind(net, XOR, flip, [readers[cell : cell + 1], wire[new : new + 1]])


def _require(holds: Any, otherwise: str) -> None:
    if not holds:
        raise BrokenNet(otherwise, advice="Compile and save the net again.")


def _check_kind(net: Wired, kind: int, vertices: NDArray[Any], operands: list[NDArray[Any]]) -> None:
    if kind in (XOR, XNOR):
        both = vertices - 1
        _check_table(net, AND, both, operands)
        operands = [*operands, both]
    _check_table(net, kind, vertices, operands)


def _check_table(net: Wired, kind: int, vertices: NDArray[Any], operands: list[NDArray[Any]]) -> None:
    """The sign of the total input is the gate's value, for all values of the first two operands; a third
    operand is their AND. After the operands there may be one more edge, from the constant."""
    begin, end = net.offsets[vertices - net.given], net.offsets[vertices - net.given + 1]
    count, reads = int((end - begin)[0]), len(operands)
    _require((end - begin == count).all() and count in (reads, reads + 1), "a gate lacks an edge")
    edges = begin[:, None] + np.arange(count)
    expected = [*operands, np.zeros_like(vertices)][:count]
    for place, of in enumerate(expected):
        _require((net.sources[edges[:, place]] == of).all(), "a gate reads other vertices than its operands")
    weights = net.weights[edges].astype(np.float64)
    for a, b in product((0, 1), repeat=2):
        values = [4 * bit - 2 for bit in (a, b, a & b)][:reads] + [1] * (count - reads)
        if reads == 1 and a != b:
            continue
        total = weights @ np.array(values, np.float64)
        _require(((total > 0) == bool(kind >> (2 * a + b) & 1)).all(), "a gate has another truth table")
