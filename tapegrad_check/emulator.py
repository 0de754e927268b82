"""The independent checker of `emulator` nets: from the saved arrays to "SGD changes the cells alone".

It knows nothing of the compiler. Vertices that compute are shown to be flat on all Boolean inputs, one by
one. Practical memory: every cell is followed through the situations that can arise, and every other change
that a step of SGD could make is shown to round away. Exact memory (Definition 6, Lemma 3): weights are
monomials r 2^a p^b m0^c, and what the paper says of them is re-derived from p and m0 alone. Noise-tolerant
memory (Definition 7): the algebra of Lemma 4, to 60 digits. The names of the arrays are those of the file.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.sources import Learner, Model

SATURATION = 2.0
"""The activation of practical memory is max(-2, min(2, x))."""
FLAT_FROM = 1.5
"""The paper's own activation is 2 or -2 beyond 3/2 (Lemma 1)."""
AND, XOR, XNOR, FALSE = 0b1000, 0b0110, 0b1001, 0b0000
OPERANDS = {kind: 0 if kind in (0, 15) else 1 if kind in (3, 12) else 2 for kind in range(16)}
CLOSE = Decimal(10) ** -60


def check(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None = None
) -> Checked:
    """What was re-derived, in sentences; `CheckError` names the first thing that does not hold."""
    if config["memory"] == "exact":
        return Checked(_check_exact(config, arrays))
    if config["memory"] == "noise-tolerant":
        return Checked(_check_noise_tolerant(config, arrays))
    return Checked(_check_practical(config, arrays, certificate, source))


class _Graph(NamedTuple):
    """Vertices in order, each with the edges that lead to it; the first `given` of them have none."""

    weights: NDArray[Any]
    offsets: NDArray[Any]
    sources: NDArray[Any]
    given: int

    @classmethod
    def of(cls, arrays: Arrays, given: int, weights: NDArray[Any]) -> "_Graph":
        """The graph, once all edges are known to be there and to come from earlier vertices."""
        offsets, sources = arrays["offsets"], arrays["sources"]
        require(offsets[0] == 0 and offsets[-1] == len(sources) == len(weights), "edges are missing")
        require((np.diff(offsets) >= 0).all(), "edges are out of order")
        graph = cls(weights, offsets, sources, given)
        earlier = (sources >= 0) & (sources < graph.ends())
        require(earlier.all(), "an edge does not come from an earlier vertex")
        return graph

    @property
    def last(self) -> int:
        """The output."""
        return self.given + len(self.offsets) - 2

    def ends(self) -> NDArray[Any]:
        """The vertex that each edge leads to."""
        return np.repeat(np.arange(self.given, self.last + 1), np.diff(self.offsets))

    def edges(self, vertices: NDArray[Any], count: int) -> NDArray[Any]:
        """The edges of vertices that all have `count` of them, one row for each vertex."""
        begin, end = self.offsets[vertices - self.given], self.offsets[vertices - self.given + 1]
        require((end - begin == count).all(), "a vertex has another number of edges than its part needs")
        return begin[:, None] + np.arange(count)

    def flat_margin(self, vertices: NDArray[Any], flat_from: float) -> float:
        """How far from the part of the activation that is not flat these vertices stay, with the constant at
        1, inputs at -1 or 1 and all other vertices at -2 or 2."""
        counts = np.diff(self.offsets)[vertices - self.given]
        smallest = math.inf
        for count in np.unique(counts).tolist():
            edges = self.edges(vertices[counts == count], count)
            sources, weights = self.sources[edges], self.weights[edges].astype(np.float64)
            size = np.where(sources >= self.given, 2.0, 1.0)
            for signs in product((-1.0, 1.0), repeat=count):
                value = np.where(sources == 0, 1.0, np.array(signs)) * size
                smallest = min(smallest, float(np.abs((weights * value).sum(axis=1)).min()))
        return smallest - flat_from


# ---- practical memory ----


class _Net(NamedTuple):
    graph: _Graph
    cells: int
    first_copy: int
    first_control: int
    w0: float
    rate: float

    def output(self) -> NDArray[Any]:
        """The edges of the output: the answer, then six of each cell."""
        return self.graph.edges(np.array([self.graph.last]), 6 * self.cells + 1)[0]


def _check_practical(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None
) -> list[str]:
    net = _shape(config, arrays)
    margin = _flat(net)
    require(margin >= certificate["flat_margin"], "the computation is not as flat as claimed")
    u = _cells(net)
    answer, flips = _controls(net)
    _output(net, u, answer)
    statements = [
        f"each of {net.first_control - net.first_copy:,} vertices that compute is flat on all Boolean "
        f"inputs, by a margin of {margin:g}",
        f"every one of {net.cells:,} cells flips, exactly, at a wrong output while it is open",
        "whatever is flipped, the output stays exactly at -1 or 1",
    ]
    vanish = _changes_vanish(net, u)
    require(vanish == certificate["changes_vanish"], "the claim about rounding does not hold")
    if vanish:
        statements.append("every other change that SGD could make rounds away: exact for any number of steps")
    drift = _drift(net.w0, u, net.cells, int(certificate["steps"]))
    require(math.isclose(drift, certificate["drift"], rel_tol=1e-9), "the bound on the drift is another")
    require(vanish or drift <= 1 / 4, "neither rounding nor the bound on the drift protects the cells")
    statements.append(
        f"without rounding, cells would drift by at most {drift:.2g} in {certificate['steps']:,} steps"
    )
    if isinstance(source, Learner):
        own = source.circuit
        circuit = {name: getattr(own, name) for name in ("kinds", "left", "right", "output_wires")}
        _check_gates(circuit, net.graph, net.cells, flips, answer)
        statements.append("the vertices that compute are, gate by gate, the circuit of the saved learner")
    return statements


def _shape(config: dict[str, Any], arrays: Arrays) -> _Net:
    cells, given = arrays["cells"], 1 + int(config["inputs"]) + 2
    graph = _Graph.of(arrays, given, arrays["weights"])
    begin, end = map(int, config["computation"])
    require(begin == given + 2 * len(cells), "the computation does not begin after the cells")
    require(end + 6 * len(cells) == graph.last, "the computation ends elsewhere")
    net = _Net(graph, len(cells), begin, end, float(config["w0"]), float(config["rate"]))
    amplifiers = given + 2 * np.arange(net.cells)
    require((graph.edges(amplifiers, 1)[:, 0] == cells).all(), "a cell is not the edge of its amplifier")
    return net


def _flat(net: _Net) -> float:
    """How far from the linear range all total inputs stay: copies, gates, controls."""
    graph = net.graph
    controls = net.first_control + (6 * np.arange(net.cells)[:, None] + np.arange(4)).ravel()
    vertices = np.concatenate([np.arange(net.first_copy, net.first_control), controls])
    readers = graph.given + 1 + 2 * np.arange(net.cells)
    read = graph.sources[np.isin(graph.ends(), vertices)]
    computing = np.isin(read[read >= graph.given], np.concatenate([readers, vertices]))
    require(computing.all(), "a vertex that computes reads one that does not")
    return graph.flat_margin(vertices, SATURATION)


def _cells(net: _Net) -> float:
    """Amplifiers, readers, gates; gives the size of the edges from the gates to the output."""
    graph, cell = net.graph, np.arange(net.cells)
    sources, weights = graph.sources, graph.weights
    amplifier, reader = graph.given + 2 * cell, graph.given + 1 + 2 * cell
    own, read = graph.edges(amplifier, 1)[:, 0], graph.edges(reader, 1)[:, 0]
    require((sources[own] == 0).all(), "a cell does not begin at the constant")
    require((np.abs(weights[own]) == net.w0).all(), "a cell has another weight than w0")
    require((sources[read] == amplifier).all(), "a reader reads another cell")
    require((weights[read].astype(np.float64) * net.w0 == -4).all(), "a reader is not at -4 or 4")
    first = net.first_control + 6 * cell
    for gate, controls in ((4, (0, 3)), (5, (1, 2))):
        edges = graph.edges(first + gate, 3)
        require((sources[edges[:, 0]] == amplifier).all(), "a gate is at another cell")
        require((weights[edges[:, 0]].astype(np.float64) * net.w0 == 0.5).all(), "a gate is not at 1/2")
        for place, control in enumerate(controls, start=1):
            require((sources[edges[:, place]] == first + control).all(), "a gate has other controls")
            require((weights[edges[:, place]] == -1).all(), "a control opens its gate by another weight")
    u = float(weights[net.output()[1]]) if net.cells else 1.0
    require(net.rate * 4 * u * (0.5 / net.w0) == 2 * net.w0, "the rate does not flip a cell")
    require(u * net.cells <= 1, "errors of the cells could grow")
    return u


def _controls(net: _Net) -> tuple[int, NDArray[Any]]:
    """Each control is on if its cell is to flip, the answer is so and the bit is so; gives the answer, and
    for each cell the vertex that says whether it is to flip."""
    graph, cell = net.graph, np.arange(net.cells)
    answer = int(graph.sources[graph.offsets[-2]])
    flips = graph.sources[graph.edges(net.first_control + 6 * cell, 4)[:, 0]]
    for control, (said, holds) in enumerate(((1, -1), (1, 1), (-1, -1), (-1, 1))):
        edges = graph.edges(net.first_control + 6 * cell + control, 4)
        sources, weights = graph.sources[edges], graph.weights[edges]
        require((sources[:, 0] == flips).all(), "controls of a cell disagree on when it flips")
        require((sources[:, 1] == answer).all(), "a control looks at another answer")
        require((sources[:, 2] == graph.given + 1 + 2 * cell).all(), "a control reads another cell")
        require((sources[:, 3] == 0).all(), "a control lacks its constant")
        require((weights == np.array([2, 2 * said, 2 * holds, -8])).all(), "a control has other weights")
    return answer, flips


def _output(net: _Net, u: float, answer: int) -> None:
    """In each of the five situations of a cell, its shares of the output cancel."""
    edges = net.output()
    sources, weights = net.graph.sources[edges], net.graph.weights[edges].astype(np.float64)
    require(sources[0] == answer and weights[0] == 0.5, "the output does not begin with half the answer")
    parts = sources[1:].reshape(-1, 6) - net.first_control - 6 * np.arange(net.cells)[:, None]
    require((parts == np.array([4, 5, 0, 1, 2, 3])).all(), "the output reads other vertices")
    shares = weights[1:].reshape(-1, 6)
    require((shares[:, 0] == u).all(), "gates have edges of different sizes")
    closed = np.array([2.0, 2.0, -2.0, -2.0, -2.0, -2.0])
    require((shares @ closed == 0).all(), "closed cells do not cancel")
    for control, (gate, at) in enumerate(((0, 0.5), (1, -0.5), (1, 0.5), (0, -0.5))):
        open_cell = closed.copy()
        open_cell[gate], open_cell[2 + control] = at, 2.0
        require((shares @ open_cell == 0).all(), "an open cell is not made up for")
    require((shares[:, 1] == -u).all(), "the second gate of a cell is not the opposite of the first")


def _changes_vanish(net: _Net, u: float) -> bool:
    """Whether the largest change that a wrong output (slope 4) makes to a weight leaves it as it is."""
    weights = net.graph.weights
    gates = (net.first_control + 6 * np.arange(net.cells)[:, None] + np.array([4, 5])).ravel()
    inner = net.graph.edges(gates, 3)
    changes = [(net.output(), net.rate * 4 * 2), (inner[:, 1:], net.rate * 4 * u * 2)]
    changes.append((inner[:, :1], net.rate * 4 * u * net.w0))
    return all(
        bool((weights[edges] + weights.dtype.type(sign * change) == weights[edges]).all())
        for edges, change in changes
        for sign in (-1, 1)
    )


def _drift(w0: float, u: float, cells: int, steps: int) -> float:
    """Each step moves 6M + 1 edges of the output by 10 rate and their shares by 20 rate; gates by 41 w0^2;
    the product of the two gains by 11 w0^2/u^2. Errors add up over the steps, and over the cells in the
    Euclidean norm, which the steps do not lengthen."""
    each = 20 * (6 * cells + 1) / u + 41 + 28 / u**2
    return math.sqrt(cells) * steps**2 / 2 * w0**2 * each


def _check_gates(circuit: Arrays, net: _Graph, cells: int, flips: NDArray[Any], answer: int) -> None:
    """Every gate of the saved circuit has a vertex that reads the vertices of its operands and has its truth
    table; XOR and XNOR have two, an AND first. The answer and the flips are those of the circuit."""
    kinds, left, right, outputs = (circuit[name] for name in ("kinds", "left", "right", "output_wires"))
    double = np.isin(kinds, (XOR, XNOR))
    first_copy = net.given + 2 * cells
    first_gate = first_copy + net.given - 1
    own = first_gate + np.cumsum(1 + double) - 1
    readers = net.given + 1 + 2 * np.arange(cells)
    wire = np.concatenate([readers, np.arange(first_copy, first_gate), own])
    for kind in np.unique(kinds).tolist():
        gates = np.flatnonzero(kinds == kind)
        operands = [wire[side[gates]] for side in (left, right)][: OPERANDS[kind]]
        _check_kind(net, kind, own[gates], operands)
    require(len(outputs) == cells + 2, "the circuit of the learner has another number of outputs")
    require(wire[outputs[0]] == answer, "the answer of the net is not that of the learner")
    first = cells + net.given - 1
    for cell, new in enumerate(outputs[2:].tolist()):
        flip = flips[cell : cell + 1]
        if new == cell:
            _check_kind(net, FALSE, flip, [])
        elif new >= first and flip[0] <= wire[-1]:
            pair = {int(left[new - first]), int(right[new - first])} - {cell}
            require(kinds[new - first] == XOR and len(pair) == 1, "a cell flips where it should not")
            require(wire[pair.pop()] == flip[0], "a cell flips on another bit than it should")
        else:
            _check_kind(net, XOR, flip, [readers[cell : cell + 1], wire[new : new + 1]])


def _check_kind(net: _Graph, kind: int, vertices: NDArray[Any], operands: list[NDArray[Any]]) -> None:
    if kind in (XOR, XNOR):
        both = vertices - 1
        _check_table(net, AND, both, operands)
        operands = [*operands, both]
    _check_table(net, kind, vertices, operands)


def _check_table(net: _Graph, kind: int, vertices: NDArray[Any], operands: list[NDArray[Any]]) -> None:
    """The sign of the total input is the gate's value, for all values of the first two operands; a third
    operand is their AND. After the operands there may be one more edge, from the constant."""
    reads = len(operands)
    count = int(np.diff(net.offsets)[vertices[0] - net.given])
    require(count in (reads, reads + 1), "a gate lacks an edge")
    edges = net.edges(vertices, count)
    expected = [*operands, np.zeros_like(vertices)][:count]
    for place, of in enumerate(expected):
        require((net.sources[edges[:, place]] == of).all(), "a gate reads other vertices than its operands")
    weights = net.weights[edges].astype(np.float64)
    for a, b in product((0, 1), repeat=2):
        values = [4 * bit - 2 for bit in (a, b, a & b)][:reads] + [1] * (count - reads)
        if reads == 1 and a != b:
            continue
        total = weights @ np.array(values, np.float64)
        require(((total > 0) == bool(kind >> (2 * a + b) & 1)).all(), "a gate has another truth table")


# ---- exact memory ----

Monomial = tuple[Fraction, tuple[Fraction, Fraction, Fraction]]


def _check_exact(config: dict[str, Any], arrays: Arrays) -> list[str]:
    p, m0 = Fraction(config["p"]), int(config["m0"])
    given, m = 1 + int(config["inputs"]) + 2, len(arrays["cells"])
    require(p > 1 and m0 >= m, "the exponent or the number of components is out of range")
    sizes = [(Fraction(r), (Fraction(a), Fraction(b), Fraction(c))) for r, a, b, c in config["sizes"]]
    plain = [float(r) if not any(e) else np.nan for r, e in sizes]
    graph = _Graph.of(arrays, given, np.array(plain)[arrays["kinds"]] * arrays["signs"])
    constants = _Constants(p, m0)
    is_size = {
        name: np.array([constants.equal(size, wanted) for size in sizes])[arrays["kinds"]]
        for name, wanted in constants.wanted.items()
    }
    _components(arrays, graph, m, is_size)
    require(graph.weights[0] == 2 and graph.sources[0] == 0, "v_0 is not at 2")
    computing = np.arange(given + 1 + 3 * m + 1, graph.last - 11 * (2 * m + 1))
    margin = graph.flat_margin(computing, FLAT_FROM)
    require(margin >= 0.5, "a vertex that computes is not flat")
    return [
        f"each of {len(computing):,} vertices that compute is flat on all Boolean inputs, by {margin:g}",
        f"all {2 * m + 1:,} components are M_s of Definition 6 with p = {p}, c = 1/m0 and m0 = {m0}",
        "the rate turns the weights of an open path into their negatives, and a control at 2 closes a path",
    ]


class _Constants:
    """Every size of Definition 6, by the exponents of 2, p and m0."""

    def __init__(self, p: Fraction, m0: int) -> None:
        self.generators = (Fraction(2), p, Fraction(m0))
        total = sum((p**j for j in range(6)), Fraction(0))
        shift = sum((j * p**j / 2 for j in range(6)), Fraction(0))
        s = (-(p**5) / total, -shift / total, -1 / total)
        path = {t: (s[0], s[1] + Fraction(6 - t, 2), s[2]) for t in range(1, 7)}
        require(_log(self.generators, (path[1][0] + 1, *path[1][1:])) < 0, "the input 2 w_1 is not below 1")
        value = (Fraction(1), Fraction(0), Fraction(0))  # v_0 is 2
        at = []
        for t in range(1, 6):
            value = tuple(p * (x + y) for x, y in zip(value, path[t], strict=True))
            at.append(value)
        share = tuple(x + y for x, y in zip(at[-1], path[6], strict=True))
        require(share == (0, 0, -1), "an open path does not give 1/m0 to the output")
        # rate * 4 p * (share p^(6-t) / w_t) = 2 w_t with rate = s^2 m0 / (2 p), exponent by exponent.
        for t in range(1, 7):
            left = (2 * s[0] + 1, 2 * s[1] + (6 - t), 2 * s[2])
            right = (2 * path[t][0] + 1, 2 * path[t][1], 2 * path[t][2])
            require(left == right, "the rate does not flip a path")
        control = tuple(x + y for x, y in zip(at[2], path[4], strict=True))
        self.wanted: dict[str, Monomial] = {f"path {t}": (Fraction(1), e) for t, e in path.items()}
        self.wanted["control"] = (Fraction(1, 2), (control[0], control[1], control[2]))
        self.wanted["reader"] = (Fraction(2), (-at[0][0], -at[0][1], -at[0][2]))

    def equal(self, a: Monomial, b: Monomial) -> bool:
        """Whether two monomials are the same number: exponents may differ by whole numbers."""
        ratio = a[0] / b[0]
        for x, y, generator in zip(a[1], b[1], self.generators, strict=True):
            if (x - y).denominator != 1:
                return False
            ratio *= generator ** int(x - y)
        return ratio == 1


def _log(generators: tuple[Fraction, ...], exponents: tuple[Fraction, ...]) -> Decimal:
    """The logarithm of a monomial, to 200 digits: the paper's m0 is the smallest that will do."""
    with localcontext(prec=200):
        logs = [Decimal(g.numerator).ln() - Decimal(g.denominator).ln() for g in generators]
        pairs = zip(exponents, logs, strict=True)
        return sum((Decimal(e.numerator) / e.denominator * log for e, log in pairs), Decimal(0))


def _components(arrays: Arrays, graph: _Graph, m: int, is_size: dict[str, NDArray[Any]]) -> None:
    """Every edge of every component comes from where Definition 6 says and has the weight it says."""
    sources, signs = graph.sources, arrays["signs"]
    count = 2 * m + 1
    v1 = graph.given + 1 + np.arange(count)
    base = graph.last - 11 * (count - np.arange(count))

    def expect(vertices: NDArray[Any], place: int, of: int, source: NDArray[Any], name: str) -> NDArray[Any]:
        edges = graph.edges(vertices, of)[:, place]
        require((sources[edges] == source).all(), f"{name}: an edge comes from elsewhere")
        require(is_size[name].take(edges).all(), f"{name}: an edge has another weight")
        return edges

    first = expect(v1, 0, 1, np.full(count, graph.given), "path 1")
    require((first[:m] == arrays["cells"]).all(), "cells differ")
    read = expect(v1[:m] + count, 0, 1, v1[:m], "reader")
    require((signs[read] < 0).all(), "a positive weight is not read as 0")
    expect(base, 0, 1, v1, "path 2")
    output = graph.edges(np.array([graph.last]), 2 * count)[0].reshape(count, 2)
    for side in (0, 1):
        closed = base + 1 + 5 * side
        expect(closed + 2, 0, 1, base, "path 3")
        expect(closed + 3, 0, 2, closed + 2, "path 4")
        closing = expect(closed + 3, 1, 2, closed + 1, "control")
        require((signs[closing] < 0).all(), "a control opens its path instead of closing it")
        expect(closed + 4, 0, 1, closed + 3, "path 5")
        edges = output[:, side]
        require((sources[edges] == closed + 4).all(), "the output reads another vertex")
        require(is_size["path 6"].take(edges).all(), "path 6: an edge has another weight")
        require((signs[edges] == (1, -1)[side]).all(), "the two paths do not have opposite signs")
    require((arrays["copied"] == output[-1]).all(), "copies are not those of the last component")


# ---- noise-tolerant memory ----


def _check_noise_tolerant(config: dict[str, Any], arrays: Arrays) -> list[str]:
    given, samples = 1 + int(config["inputs"]) + 1, len(arrays["written"])
    table = [Decimal(weight) for weight in config["weights"]]
    graph = _Graph.of(arrays, given, np.array(table, np.float64)[arrays["kinds"]])
    with localcontext(prec=80):
        root = Decimal(3).sqrt()
        two, three = Decimal(2), Decimal(3)
        path = [1 / (4 * root**t) for t in range(5)]
        before, after = -(two**-81) * three**-9, -(two**-41) * three**-9
        _algebra(path, before, after)
        wanted = {f"path {t}": weight for t, weight in enumerate(path)} | {
            "read": Decimal(128),
            "before": before,
            "after": after,
            "hold": two ** (two / 3) / 4 - two**-243 * three**-29 * (given - 1),
            "answer": Decimal("0.49"),
        }
        is_weight = {
            name: np.array([abs(weight / ideal - 1) < CLOSE for weight in table])[arrays["kinds"]]
            for name, ideal in wanted.items()
        }
    components = 2 * (given - 1) * samples
    first = given + 5 * np.arange(components)
    for vertex, source, name in ((0, 0 * first, "path 0"), (1, first, "path 1"), (2, first, "read")):
        edges = graph.edges(first + vertex, 1)[:, 0]
        require((graph.sources[edges] == source).all(), f"{name}: an edge comes from elsewhere")
        require(is_weight[name].take(edges).all(), f"{name}: an edge has another weight")
    for name in ("path 2", "path 3", "path 4", "before", "after"):
        require(is_weight[name].sum() == components, f"{name}: not every component has its edge")
    output = graph.edges(np.array([graph.last]), components + samples + 1)[0]
    require(is_weight["path 4"].take(output[:components]).all(), "a component gives another share")
    require(is_weight["hold"].take(output[components:-1]).all(), "the output is not held at 1/2")
    require(is_weight["answer"].take(output[-1]), "the answer has another weight")
    computing = _whole_numbers(graph, given + 5 * components)
    margin = graph.flat_margin(computing, FLAT_FROM)
    require(margin >= 0.5, "a vertex that computes is not flat")
    return [
        f"each of {len(computing):,} vertices that compute is flat on all Boolean inputs, by {margin:g}",
        f"all {components:,} components have the weights of Definition 7",
        "controls close a component before it is written and after; writing doubles its weights (Lemma 4)",
    ]


def _algebra(path: list[Decimal], before: Decimal, after: Decimal) -> None:
    """What v_4 gets, open, is -2 times the first control's weight; after doubling, of the second's. The rate
    2^(716/3) 3^24 adds to each weight once its size at output 1/2 and label 1."""
    for factor, control in ((1, before), (2, after)):
        value = Decimal(1)
        for weight in path[:3]:
            value = (factor * weight * value) ** 3
        require(abs(factor * path[3] * value / (-2 * control) - 1) < CLOSE, "a control does not close")
    with localcontext(prec=80):
        rate = Decimal(2) ** (Decimal(716) / 3) * Decimal(3) ** 24
        slope = 3 * Decimal(2) ** (Decimal(-2) / 3)  # of the cube at its value 1/2; the loss has slope -1
        values = [Decimal(1)]
        for weight in path[:4]:
            values.append((weight * values[-1]) ** 3)
        for t in range(5):
            change = rate * slope * path[4] * values[4] * Decimal(3) ** (4 - t) / path[t]
            require(abs(change / path[t] - 1) < CLOSE, "writing does not double a weight")


def _whole_numbers(graph: _Graph, first: int) -> NDArray[Any]:
    """Vertices behind the components all of whose weights are whole numbers: copies of inputs and gates."""
    whole = (graph.weights == np.round(graph.weights)) & (np.abs(graph.weights) <= 16)
    return np.setdiff1d(np.arange(first, graph.last + 1), graph.ends()[~whole])
