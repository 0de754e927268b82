"""From a learner to a graph with weights, once for each kind of memory; `constants.py` derives the weights.

All three have the learner's circuit in the middle (Lemma 1), around it the components that are the memory,
and last the output. The practical network is ours, along the ideas of section 4.3: a weight that is to change
starts out tiny and has a large weight behind it. The exact one is Lemma 3's, the noise-tolerant one
Lemma 6's.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.learners import Learner
from tapegrad.targets.emulator.constants import (
    AFTER,
    BEFORE,
    DIGITS,
    HIGH,
    LOW,
    PATH,
    READ,
    Constants,
    ExactConstants,
    power,
    third,
)
from tapegrad.targets.emulator.graph import (
    CONSTANT,
    NEVER,
    Computation,
    Copies,
    Edge,
    Graph,
    GraphBuilder,
    Vertex,
    flip_wires,
)
from tapegrad.targets.emulator.joined import joined
from tapegrad.targets.emulator.numbers import Number

SCALE = 2
"""Lemma 1's weights are doubled: total inputs of at least 4, twice the point from which f is flat."""

COMPENSATION = (3 / 8, -5 / 8, -3 / 8, 5 / 8)
"""What each of the four controls of a cell gives to the output, times u; see `_gates`."""


@dataclass(frozen=True, eq=False)
class PracticalParts:
    """A network as built: the graph, its first weights, and where the parts that have a meaning are."""

    graph: Graph
    weights: NDArray[np.float64]
    cells: NDArray[np.int64]
    """The edge that is cell c."""
    finished: Vertex
    """Says whether the learner has finished."""
    computation: tuple[int, int]
    """First and one past the last vertex of the computation component proper (inputs and gates)."""


def build_practical(learner: Learner, constants: Constants) -> PracticalParts:
    """The network of a learner. Vertices, in order: the constant and the inputs x, random bit, guess; for
    each cell its amplifier and its reader; flat copies of the inputs; gates; for each cell four controls
    and two gates; the output."""
    cells, inputs = learner.cells, learner.inputs + 2
    build = Copies(1 + inputs)
    first = np.array(learner.first, bool)
    edges = 2 * np.arange(cells)
    weights = np.where(first, -constants.w0, constants.w0)
    amplified = build.vertices + edges
    read = amplified + 1
    build.add(
        np.ones(2 * cells, np.int64),
        np.column_stack([np.full(cells, CONSTANT), amplified]).ravel(),
        np.column_stack([weights, np.full(cells, constants.read)]).ravel(),
    )
    begin = build.vertices
    copy = GraphBuilder(1)
    Computation(copy, SCALE).copy(0)
    copied = build.copies([copy], np.zeros(inputs, np.int64), 1 + np.arange(inputs)[:, None])
    gates = joined(learner.circuit, cells)
    edge_counts, sources, edge_weights, wires = gates.vertices(np.append(read, copied), build.vertices, SCALE)
    build.add(edge_counts, sources, edge_weights)
    answer, finished, flips = int(wires[gates.answer]), int(wires[gates.finished]), wires[gates.flips]
    end = build.vertices
    pattern = GraphBuilder(5)
    shares = _gates(Computation(pattern, SCALE), 1, 2, 3, 4, constants)
    given = np.column_stack([np.full(cells, CONSTANT), flips, np.full(cells, answer), read, amplified])
    firsts = build.copies([pattern], np.zeros(cells, np.int64), given)
    own = np.array([vertex - pattern.inputs for vertex, _ in shares])
    build.add(
        np.array([1 + len(shares) * cells]),
        np.append(answer, (firsts[:, None] + own).ravel()),
        np.append(0.5, np.tile(np.array([weight for _, weight in shares], np.float64), cells)),
    )
    return PracticalParts(*build.graph(), edges, finished, (begin, end))


def _gates(
    compute: Computation, flip: Vertex, answer: Vertex, bit: Vertex, amplified: Vertex, constants: Constants
) -> list[Edge]:
    """Controls and gates of one cell; gives their edges to the output.

    A wrong answer of 1 lowers the output, and with it every weight on a path of positive sign, and raises
    those on a path of negative sign; a wrong answer of 0 does the opposite. A positive weight (bit 0) must
    fall and a negative one rise, so the four cases of (answer, bit) open the gates +, -, -, +.

    A gate is at 4 +- 1/2 (closed: flat, output 2) with both its controls at -2, and at +-1/2 (open: linear)
    with one of them at 2. Closed gates cancel, 2u - 2u. Opening + at weight +w0 changes its share from 2u to
    u/2, at -w0 to -u/2, and the mirror image for -; the control that does it, going from -2 to 2, adds the
    difference back: 3u/8, 5u/8 and their negatives.
    """
    controls = [
        compute.all_of([(flip, 1), (answer, said), (bit, holds)]) for said in (1, -1) for holds in (-1, 1)
    ]
    falls_at_1, rises_at_1, falls_at_0, rises_at_0 = controls
    plus = compute.build.vertex([(amplified, constants.gain), (falls_at_1, -1), (rises_at_0, -1)])
    minus = compute.build.vertex([(amplified, constants.gain), (rises_at_1, -1), (falls_at_0, -1)])
    u = constants.gate
    shares = zip(controls, COMPENSATION, strict=True)
    return [(plus, u), (minus, -u), *((control, share * u) for control, share in shares)]


LARGEST_MEMORY = 400
"""The last m spare components are told apart by m^2 gates, and everything runs in Python."""


@dataclass(frozen=True, eq=False)
class ExactParts:
    """A network as built."""

    graph: Graph
    weights: list[Number]
    cells: list[int]
    """The edge (v_0, v_1) of each bit of the memory."""
    copies: dict[int, int]
    """Edges to the output that stand for many."""
    finished: Vertex


def build_exact(learner: Learner, constants: ExactConstants) -> ExactParts:
    """The network of Lemma 3. The output must be 1 or -1, so c = 1/m0, and exactly m0 components are flipped
    at every step: those of the memory that are to change, and spare ones. Of these all but the last m always
    flip; they are carried as one component with m0 - m copies. In order: the components of the memory, the
    last m of the spare ones, all the other spare ones as one."""
    circuit, cells = learner.circuit, learner.cells
    if cells > LARGEST_MEMORY:
        raise Refused(
            f"{cells:,} bits of memory are too many for exact arithmetic, which takes {LARGEST_MEMORY}",
            advice="Use form=practical.",
        )
    inputs = learner.inputs + 2
    build = GraphBuilder(1 + inputs)
    compute = Computation(build, 1)
    v0 = build.vertex([(CONSTANT, 2)])
    edges, first, read = [], [], []
    for bit in (*learner.first, *(0,) * (cells + 1)):
        edges.append(build.edges)
        first.append(build.vertex([(v0, -constants.path(1) if bit else constants.path(1))]))
    to_reader = constants.first.power(Fraction(-1)) * -2  # a positive weight is read as 0
    read = [build.vertex([(v1, to_reader)]) for v1 in first[:cells]]
    wires = compute.circuit(circuit, [*read, *(compute.copy(1 + i) for i in range(inputs))])
    answer, finished = (wires[wire] for wire in circuit.output_wires[:2].tolist())
    flips = compute.flips(circuit, wires, cells)
    flips += [*_spare_flips(compute, flips), compute.gate(Gate.TRUE)]
    to_output: list[Edge] = []
    for component, (v1, flip) in enumerate(zip(first, flips, strict=True)):
        bit = learner.first[component] if component < cells else 0
        to_output += _component(compute, v1, flip, answer, constants, -1 if bit else 1)
    begin = build.edges
    build.vertex(to_output)
    others = constants.field.m0 - cells
    copies = {begin + len(to_output) - 2: others, begin + len(to_output) - 1: others}
    return ExactParts(build.graph(), build.weights, edges[:cells], copies, finished)


def _component(
    compute: Computation, v1: Vertex, flip: Vertex, answer: Vertex, constants: ExactConstants, sign: int
) -> list[Edge]:
    """M_s from v_2 on (Definition 6), and its two control vertices; gives the edges to the output."""
    build = compute.build
    v2 = build.vertex([(v1, constants.path(2) * sign)])
    to_output = []
    for said, last in ((1, constants.path(6)), (-1, -constants.path(6))):
        # Closed (2) unless the bit is to flip and the answer is `said`; an open path would flip it.
        closed = build.vertex([(flip, -1), (answer, -said), (CONSTANT, 2)])
        control = build.vertex([(closed, Fraction(1, 2)), (CONSTANT, 1)])
        v3 = build.vertex([(v2, constants.path(3))])
        v4 = build.vertex([(v3, constants.path(4)), (control, -constants.control)])
        v5 = build.vertex([(v4, constants.path(5))])
        to_output.append((v5, last))
    return to_output


def _spare_flips(compute: Computation, flips: list[Vertex]) -> list[Vertex]:
    """For the last m spare components, whether they flip: number i (from 1) does if at most m - i bits of
    the memory do. Unary counting: `at_least[j]` after each bit is at_least[j] or (at_least[j-1] and bit)."""
    at_least: list[Vertex] = []
    for bit in flips:
        raised = [bit, *(compute.gate(Gate.AND, one, bit) for one in at_least)]
        kept = [compute.gate(Gate.OR, a, b) for a, b in zip(at_least, raised[:-1], strict=True)]
        at_least = [*kept, raised[-1]]
    return [compute.gate(Gate.NOT, one) for one in reversed(at_least)]


LARGEST_UNROLLED = 2_000_000
"""Gates and components that are built at most."""


@dataclass(frozen=True, eq=False)
class NoisyParts:
    """A network as built."""

    graph: Graph
    weights: list[Decimal]
    written: list[Vertex]
    """For each sample, whether it has been memorised."""
    memories: list[list[Vertex]]
    """The learner's memory after 0, 1, ..., T samples."""
    answers: list[tuple[Vertex, Vertex]]
    """What the learner says to each sample memorised, and in the end to the present one; and whether it has
    finished by then."""


def build_noisy(learner: Learner, samples: int) -> NoisyParts:
    """The network of Lemma 6, for so many samples of x and the random bit: it memorises them, one at every
    step, and computes the learner's answer from all of them. While it memorises, its output is 1/2."""
    bits = learner.inputs + 1
    if samples < 1 or samples * (learner.circuit.size + 4 * learner.cells + 30 * bits) > LARGEST_UNROLLED:
        raise Refused(
            f"{samples:,} samples of {bits} bits with {learner.circuit.size:,} gates each are too many",
            advice="Give fewer samples, or a smaller learner.",
        )
    build = GraphBuilder(1 + bits)
    compute = Computation(build, 1)
    components = [[[_Component(compute) for _ in (0, 1)] for _ in range(bits)] for _ in range(samples)]
    present = [compute.copy(1 + i) for i in range(bits)]
    written = [_any(compute, [m.written for pair in row for m in pair]) for row in components]
    stored = [[pair[1].written for pair in row] for row in components]
    labels = [
        compute.gate(Gate.OR, *(compute.gate(Gate.AND, m.written, m.label) for m in row[0]))
        for row in components
    ]
    memories, answers, answer = _unrolled(compute, learner, stored, labels, present)
    now = [compute.all_of([(written[t], -1), *([(written[t - 1], 1)] if t else [])]) for t in range(samples)]
    to_output: list[Edge] = []
    for t, row in enumerate(components):
        for i, pair in enumerate(row):
            for value, component in enumerate(pair):
                writes = compute.all_of([(now[t], 1), (present[i], 1 if value else -1)])
                to_output.append(component.path_from(compute, writes))
    to_output += _output_controls(compute, now, written[-1], answer, bits)
    build.vertex(to_output)
    weights = [
        Decimal(str(weight)) if not isinstance(weight, Decimal) else weight for weight in build.weights
    ]
    return NoisyParts(build.graph(), weights, written, memories, answers)


class _Component:
    """M' up to v_2 and v_r, and the vertices that read them."""

    def __init__(self, compute: Computation) -> None:
        build = compute.build
        self.v1 = build.vertex([(CONSTANT, PATH[0])])
        self.v2 = build.vertex([(self.v1, PATH[1])])
        self.vr = build.vertex([(self.v1, READ)])
        self.written, self.label = _read(compute, self.v2), _read(compute, self.vr)

    def path_from(self, compute: Computation, writes: Vertex) -> Edge:
        """The rest of M': v_c is 2 until it is written, v_c' from then on, and both 0 while it is."""
        build = compute.build
        before = compute.gate(Gate.NOR, self.written, writes)
        controls = [
            build.vertex([(vertex, Decimal("0.5")), (CONSTANT, 1)]) for vertex in (before, self.written)
        ]
        v3 = build.vertex([(self.v2, PATH[2])])
        v4 = build.vertex([(v3, PATH[3]), (controls[0], BEFORE), (controls[1], AFTER)])
        return (v4, PATH[4])


def _read(compute: Computation, vertex: Vertex) -> Vertex:
    """Lemma 5: total input at most -2 for what is below LOW, at least 2 for what is above HIGH."""
    with localcontext(prec=DIGITS):
        gap = HIGH - LOW
        return compute.build.vertex([(vertex, 4 / gap), (CONSTANT, -2 * (HIGH + LOW) / gap)])


def _any(compute: Computation, vertices: list[Vertex]) -> Vertex:
    found = vertices[0]
    for vertex in vertices[1:]:
        found = compute.gate(Gate.OR, found, vertex)
    return found


def _unrolled(
    compute: Computation,
    learner: Learner,
    stored: list[list[Vertex]],
    labels: list[Vertex],
    present: list[Vertex],
) -> tuple[list[list[Vertex]], list[tuple[Vertex, Vertex]], Vertex]:
    """The learner on all samples memorised, one after the other, and then on the present one. The guess is
    the opposite of the label, so that every sample is learned from."""
    circuit = learner.circuit
    memory = [compute.gate(Gate.TRUE if bit else Gate.FALSE) for bit in learner.first]
    memories, answers = [memory], []
    changing = (flip_wires(circuit, learner.cells) != NEVER).tolist()
    for x, label in zip(stored, labels, strict=True):
        wires = compute.circuit(circuit, [*memory, *x, compute.gate(Gate.NOT, label)])
        answer, finished = (wires[wire] for wire in circuit.output_wires[:2].tolist())
        wrong = compute.gate(Gate.XOR, answer, label)
        flips = compute.flips(circuit, wires, learner.cells)
        memory = [
            compute.gate(Gate.XOR, bit, compute.gate(Gate.AND, wrong, flip)) if changes else bit
            for bit, flip, changes in zip(memory, flips, changing, strict=True)
        ]
        memories.append(memory)
        answers.append((answer, finished))
    wires = compute.circuit(circuit, [*memory, *present, compute.gate(Gate.FALSE)])
    answer, finished = (wires[wire] for wire in circuit.output_wires[:2].tolist())
    return memories, [*answers, (answer, finished)], answer


def _output_controls(
    compute: Computation, now: list[Vertex], full: Vertex, answer: Vertex, bits: int
) -> list[Edge]:
    """At step t the control of step t, at 2, holds the output at 1/2, together with the n components that
    are being written; in the end the last control, at 2 or -2, gives 49/50 of the answer, cubed."""
    build = compute.build
    with localcontext(prec=DIGITS):
        hold = power(third(2), 0) / 4 - power(-243, -29) * bits
    edges: list[Edge] = []
    for vertex in now:
        edges.append((build.vertex([(vertex, Decimal("0.5")), (CONSTANT, 1)]), hold))
    says_1 = compute.gate(Gate.AND, full, answer)
    not_0 = compute.gate(Gate.OR, says_1, compute.gate(Gate.NOT, full))  # opposite to says_1 until it is full
    last = build.vertex([(says_1, Decimal("0.5")), (not_0, Decimal("0.5"))])
    return [*edges, (last, Decimal("0.49"))]
