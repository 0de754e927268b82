"""The independent checker of `emulator` nets: from the saved arrays to "SGD changes the cells alone".

It knows nothing of the compiler. Vertices that compute are shown to be flat on all Boolean inputs, one by
one; every cell is followed through the situations that can arise; and every other change that a step of
SGD could make is shown to round away. The names of the arrays are those of the file.
"""

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad_check.emulator_exact import check_exact
from tapegrad_check.emulator_gates import Wired, check_gates
from tapegrad_check.emulator_noise import check_noise_tolerant

Arrays = dict[str, NDArray[Any]]
SATURATION = 2.0
"""The activation is max(-2, min(2, x))."""


class _Net(NamedTuple):
    weights: NDArray[Any]
    offsets: NDArray[Any]
    sources: NDArray[Any]
    given: int
    cells: int
    first_copy: int
    first_control: int
    w0: float
    rate: float

    def edges(self, vertices: NDArray[Any], count: int) -> NDArray[Any]:
        """The edges of vertices that all have `count` of them, one row for each vertex."""
        begin = self.offsets[vertices - self.given]
        _require((self.offsets[vertices - self.given + 1] - begin == count).all(), "a vertex lacks an edge")
        return begin[:, None] + np.arange(count)


def check(config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any]) -> list[str]:
    """What was re-derived, in sentences; `BrokenNet` names the first thing that does not hold."""
    if config["memory"] == "exact":
        return check_exact(config, arrays)
    if config["memory"] == "noise-tolerant":
        return check_noise_tolerant(config, arrays)
    net = _shape(config, arrays)
    margin = _flat(net)
    _require(margin >= certificate["flat_margin"], "the computation is not as flat as claimed")
    u = _cells(net)
    answer = _controls(net)
    _output(net, u, answer)
    statements = [
        f"each of {net.first_control - net.first_copy:,} vertices that compute is flat on all Boolean "
        f"inputs, by a margin of {margin:g}",
        f"every one of {net.cells:,} cells flips, exactly, at a wrong output while it is open",
        "whatever is flipped, the output stays exactly at -1 or 1",
    ]
    vanish = _changes_vanish(net, u)
    _require(vanish == certificate["changes_vanish"], "the claim about rounding does not hold")
    if vanish:
        statements.append("every other change that SGD could make rounds away: exact for any number of steps")
    drift = _drift(net.w0, u, net.cells, int(certificate["steps"]))
    _require(math.isclose(drift, certificate["drift"], rel_tol=1e-9), "the bound on the drift is another")
    _require(vanish or drift <= 1 / 4, "neither rounding nor the bound on the drift protects the cells")
    statements.append(
        f"without rounding, cells would drift by at most {drift:.2g} in {certificate['steps']:,} steps"
    )
    if "source.kinds" in arrays:
        flips = net.sources[net.edges(net.first_control + 6 * np.arange(net.cells), 4)[:, 0]]
        graph = Wired(net.weights, net.offsets, net.sources, net.given)
        check_gates(arrays, graph, net.cells, flips, answer)
        statements.append("the vertices that compute are, gate by gate, the circuit of the saved learner")
    return statements


def _require(holds: Any, otherwise: str) -> None:
    if not holds:
        raise BrokenNet(otherwise, advice="Compile and save the net again.")


def _shape(config: dict[str, Any], arrays: Arrays) -> _Net:
    weights, offsets, sources, cells = (arrays[name] for name in ("weights", "offsets", "sources", "cells"))
    given = 1 + int(config["inputs"]) + 2
    _require(offsets[0] == 0 and offsets[-1] == len(sources) == len(weights), "edges are missing")
    _require((np.diff(offsets) >= 0).all(), "edges are out of order")
    own = np.repeat(np.arange(given, given + len(offsets) - 1), np.diff(offsets))
    _require(((sources >= 0) & (sources < own)).all(), "an edge does not come from an earlier vertex")
    begin, end = map(int, config["computation"])
    _require(begin == given + 2 * len(cells), "the computation does not begin after the cells")
    _require(end + 6 * len(cells) + 1 == given + len(offsets) - 1, "the computation ends elsewhere")
    net = _Net(
        weights, offsets, sources, given, len(cells), begin, end, float(config["w0"]), float(config["rate"])
    )
    amplifiers = given + 2 * np.arange(net.cells)
    _require((net.edges(amplifiers, 1)[:, 0] == cells).all(), "a cell is not the edge of its amplifier")
    return net


def _flat(net: _Net) -> float:
    """How far from the linear range all total inputs stay: copies, gates, controls."""
    first, last = net.first_copy, net.first_control
    controls = net.first_control + (6 * np.arange(net.cells)[:, None] + np.arange(4)).ravel()
    vertices = np.concatenate([np.arange(first, last), controls])
    counts = np.diff(net.offsets)[vertices - net.given]
    readers = set((net.given + 1 + 2 * np.arange(net.cells)).tolist())
    computing = readers | set(vertices.tolist())
    smallest = math.inf
    for count in np.unique(counts).tolist():
        group = vertices[counts == count]
        edges = net.edges(group, count)
        sources, weights = net.sources[edges], net.weights[edges].astype(np.float64)
        inner = sources >= net.given
        _require(set(sources[inner].tolist()) <= computing, "a vertex that computes reads one that does not")
        size = np.where(inner, 2.0, 1.0)
        for signs in product((-1.0, 1.0), repeat=count):
            value = np.where(sources == 0, 1.0, np.array(signs)) * size
            smallest = min(smallest, float(np.abs((weights * value).sum(axis=1)).min()))
    return smallest - SATURATION


def _cells(net: _Net) -> float:
    """Amplifiers, readers, gates; gives the size of the edges from the gates to the output."""
    cell = np.arange(net.cells)
    amplifier, reader = net.given + 2 * cell, net.given + 1 + 2 * cell
    own, read = net.edges(amplifier, 1)[:, 0], net.edges(reader, 1)[:, 0]
    _require((net.sources[own] == 0).all(), "a cell does not begin at the constant")
    _require((np.abs(net.weights[own]) == net.w0).all(), "a cell has another weight than w0")
    _require((net.sources[read] == amplifier).all(), "a reader reads another cell")
    _require((net.weights[read].astype(np.float64) * net.w0 == -4).all(), "a reader is not at -4 or 4")
    first = net.first_control + 6 * cell
    for gate, controls in ((4, (0, 3)), (5, (1, 2))):
        edges = net.edges(first + gate, 3)
        _require((net.sources[edges[:, 0]] == amplifier).all(), "a gate is at another cell")
        _require((net.weights[edges[:, 0]].astype(np.float64) * net.w0 == 0.5).all(), "a gate is not at 1/2")
        for place, control in enumerate(controls, start=1):
            _require((net.sources[edges[:, place]] == first + control).all(), "a gate has other controls")
            _require((net.weights[edges[:, place]] == -1).all(), "a control opens its gate by another weight")
    output = net.edges(np.array([net.given + len(net.offsets) - 2]), 6 * net.cells + 1)[0]
    u = float(net.weights[output[1]]) if net.cells else 1.0
    _require(net.rate * 4 * u * (0.5 / net.w0) == 2 * net.w0, "the rate does not flip a cell")
    _require(u * net.cells <= 1, "errors of the cells could grow")
    return u


def _controls(net: _Net) -> int:
    """Each control is on if its cell is to flip, the answer is so and the bit is so; gives the answer."""
    cell = np.arange(net.cells)
    answer = int(net.sources[net.offsets[-2]])
    flips = None
    for control, (said, holds) in enumerate(((1, -1), (1, 1), (-1, -1), (-1, 1))):
        edges = net.edges(net.first_control + 6 * cell + control, 4)
        sources, weights = net.sources[edges], net.weights[edges]
        flips = sources[:, 0] if flips is None else flips
        _require((sources[:, 0] == flips).all(), "controls of a cell disagree on when it flips")
        _require((sources[:, 1] == answer).all(), "a control looks at another answer")
        _require((sources[:, 2] == net.given + 1 + 2 * cell).all(), "a control reads another cell")
        _require((sources[:, 3] == 0).all(), "a control lacks its constant")
        _require((weights == np.array([2, 2 * said, 2 * holds, -8])).all(), "a control has other weights")
    return answer


def _output(net: _Net, u: float, answer: int) -> None:
    """In each of the five situations of a cell, its shares of the output cancel."""
    edges = net.edges(np.array([net.given + len(net.offsets) - 2]), 6 * net.cells + 1)[0]
    sources, weights = net.sources[edges], net.weights[edges].astype(np.float64)
    _require(sources[0] == answer and weights[0] == 0.5, "the output does not begin with half the answer")
    parts = sources[1:].reshape(-1, 6) - net.first_control - 6 * np.arange(net.cells)[:, None]
    _require((parts == np.array([4, 5, 0, 1, 2, 3])).all(), "the output reads other vertices")
    shares = weights[1:].reshape(-1, 6)
    _require((shares[:, 0] == u).all(), "gates have edges of different sizes")
    closed = np.array([2.0, 2.0, -2.0, -2.0, -2.0, -2.0])
    _require((shares @ closed == 0).all(), "closed cells do not cancel")
    for control, (gate, at) in enumerate(((0, 0.5), (1, -0.5), (1, 0.5), (0, -0.5))):
        open_cell = closed.copy()
        open_cell[gate], open_cell[2 + control] = at, 2.0
        _require((shares @ open_cell == 0).all(), "an open cell is not made up for")
    signs = shares[:, 1]
    _require((signs == -u).all(), "the second gate of a cell is not the opposite of the first")


def _changes_vanish(net: _Net, u: float) -> bool:
    """Whether the largest change that a wrong output (slope 4) makes to a weight leaves it as it is."""
    kind = net.weights.dtype.type
    output = net.edges(np.array([net.given + len(net.offsets) - 2]), 6 * net.cells + 1)[0]
    gates = (net.first_control + 6 * np.arange(net.cells)[:, None] + np.array([4, 5])).ravel()
    inner = net.edges(gates, 3)
    changes = [(output, net.rate * 4 * 2), (inner[:, 1:], net.rate * 4 * u * 2)]
    changes.append((inner[:, :1], net.rate * 4 * u * net.w0))
    return all(
        bool((net.weights[edges] + kind(sign * change) == net.weights[edges]).all())
        for edges, change in changes
        for sign in (-1, 1)
    )


def _drift(w0: float, u: float, cells: int, steps: int) -> float:
    """Each step moves 6M + 1 edges of the output by 10 rate and their shares by 20 rate; gates by 41 w0^2;
    the product of the two gains by 11 w0^2/u^2. Errors add up over the steps, and over the cells in the
    Euclidean norm, which the steps do not lengthen."""
    each = 20 * (6 * cells + 1) / u + 41 + 28 / u**2
    return math.sqrt(cells) * steps**2 / 2 * w0**2 * each
