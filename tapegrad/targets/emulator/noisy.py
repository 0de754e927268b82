"""The noise-tolerant network: memory components M' (Definition 7), each written once (Lemmas 4 to 6).

The network memorises T samples, one at every step, and computes the learner's answer from all of them. While
it memorises, its output is 1/2. A component M' has the path weights 3^(-t/2)/4, t = 0 ... 4; opened once, at
label 1 they double, at label -1 they are multiplied by -2. Then v_2 tells that it was written, and v_r with
which label.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.learners import Learner
from tapegrad.targets.emulator.computation import CONSTANT, NEVER, Computation, flip_wires
from tapegrad.targets.emulator.graph import Edge, Graph, GraphBuilder, Vertex

DIGITS = 80
"""Of the constants, and of decimal arithmetic: Lemma 4 speaks of noise of 2^-134 3^-11, about 10^-46."""

LARGEST = 2_000_000
"""Gates and components that are built at most."""


def power(two: Any, three: Any) -> Decimal:
    """2^two * 3^three, to DIGITS digits; exponents may be halves and thirds, given as decimals."""
    with localcontext(prec=DIGITS):
        return Decimal(2) ** Decimal(two) * Decimal(3) ** Decimal(three)


def third(numerator: int) -> Decimal:
    """numerator/3, to DIGITS digits."""
    with localcontext(prec=DIGITS):
        return Decimal(numerator) / 3


PATH = tuple(power(-2, Decimal(-t) / 2) for t in range(5))
"""3^(-t/2)/4, from v_t to v_(t+1)."""
READ = Decimal(128)
"""From v_1 to v_r."""
BEFORE, AFTER = power(-81, -9).copy_negate(), power(-41, -9).copy_negate()
"""From v_c and v_c', which close v_4 before and after it is written."""
RATE = power(third(716), 24)
LOW, HIGH = power(-21, Decimal("-1.5")), power(-15, Decimal("-1.5"))
"""What v_2 gives is below LOW until its component is written, and above HIGH from then on."""
DEAD_ZONES = {"decimal": power(-121, -9), "double": power(-82, -9)}
"""Up to which total input the activation is 0; it is x^3 from twice that on.

The paper has 2^-121 3^-9. In double precision that is too narrow: once a component is written, v_4 gets the
difference of two numbers near 2^-40 3^-9, the errors of some 40 roundings to 53 bits, about 2^-85 3^-9 (which
is why 53 bits are far more noise than Lemma 4 allows). When it is to be written, v_4 gets 2^-80 3^-9. So for
double precision the dead zone is 2^-82 3^-9, between the two.
"""

NOISE = {"decimal": power(-134, -11), "double": power(-85, -9)}
"""The largest sum of the noise on a weight: Lemma 4's bound, and, in double precision, what keeps v_4 within
a quarter of its dead zone, where the edge from a control at 2 is what noise disturbs most."""


@dataclass(frozen=True, eq=False)
class Parts:
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


def build(learner: Learner, samples: int) -> Parts:
    """The network of Lemma 6, for so many samples of x and the random bit."""
    bits = learner.inputs + 1
    if samples < 1 or samples * (learner.circuit.size + 4 * learner.cells + 30 * bits) > LARGEST:
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
    return Parts(build.graph(), weights, written, memories, answers)


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
    changing = [wire != NEVER for wire in flip_wires(circuit, learner.cells)]
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
