"""The network of Lemma 3 with the paper's constants: memory components M_s (Definition 6).

The activation is x^p (with the sign of x) between -1 and 1, and 2 or -2 beyond 3/2; the paper has p = 3, and
Remark 9 p = 11/9. A path of M_s has the weights w_t = p^((6-t)/2) s for t = 1 ... 6. Open, it gives
c = w_6 * prod_(t<6) w_t^(p^(6-t)) * 2^(p^5) to the output; its derivative in w_t is c p^(6-t)/w_t, which is
c w_t/s^2. At a wrong output, dL/d(total input) = 4p, so the rate s^2/(2 p c) turns every w_t into -w_t.

The output must be 1 or -1, so c = 1/m0, which defines s, and exactly m0 components are flipped at every step:
those of the memory that are to change, and spare ones. Of these all but the last m always flip; they are
carried as one component with m0 - m copies.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.learners import Learner
from tapegrad.targets.emulator.computation import CONSTANT, Computation
from tapegrad.targets.emulator.exact_numbers import Exact, Field
from tapegrad.targets.emulator.graph import Edge, Graph, GraphBuilder, Vertex

LARGEST_MEMORY = 400
"""The last m spare components are told apart by m^2 gates, and everything runs in Python."""


@dataclass(frozen=True)
class Constants:
    """s, the rate and all weights of M_s, for an exponent p and at least `cells` components."""

    field: Field

    @classmethod
    def of(cls, p: Fraction, cells: int) -> "Constants":
        """The paper's m0 = max(m, ceil(2^(-p^5) p^(-E) (2 p^(5/2))^S)): the smallest for which the largest
        total input, 2 w_1 = 2 p^(5/2) s, is below 1. For p = 3: ceil(2^-243 3^(-1641/2) (18 sqrt 3)^364)."""
        if not 1 < p <= 4:
            raise Refused(f"the exponent of the activation must be above 1 and at most 4, not {p}")
        s_power, p_power = _sums(p)
        with localcontext() as context:
            context.prec = 1000
            two, ratio = Decimal(2).ln(), (Decimal(p.numerator) / Decimal(p.denominator)).ln()
            log = (_decimal(s_power) - _decimal(p**5)) * two
            log += (_decimal(s_power) * Decimal(5) / 2 - _decimal(p_power)) * ratio
            bound = log.exp()
            least = int(bound.to_integral_value(rounding="ROUND_CEILING"))
        return cls(Field(p, max(cells, least)))

    @property
    def s(self) -> Exact:
        """From s^S 2^(p^5) p^E = 1/m0, with S = sum p^j and E = sum j p^j / 2, for j = 0 ... 5."""
        p = self.field.p
        s_power, p_power = _sums(p)
        return self.field.number(-(p**5) / s_power, -p_power / s_power, -1 / s_power)

    def path(self, t: int) -> Exact:
        """w_t = p^((6-t)/2) s."""
        return self.field.number(0, Fraction(6 - t, 2)) * self.s

    @property
    def rate(self) -> Exact:
        """s^2 / (2 p c) with c = 1/m0."""
        return self.s * self.s * self.field.number(-1, -1, 1)

    @property
    def first(self) -> Exact:
        """The output of v_1, by which the computation reads the bit: (2 w_1)^p."""
        return (self.path(1) * 2).power(self.field.p)

    @property
    def control(self) -> Exact:
        """Half of what v_4 gets from v_3, so that a control at 2 closes the path: 2^26 3^91 s^40 at p = 3."""
        value = self.first
        for t in (2, 3):
            value = (value * self.path(t)).power(self.field.p)
        return value * self.path(4) * Fraction(1, 2)


def _sums(p: Fraction) -> tuple[Fraction, Fraction]:
    return sum((p**j for j in range(6)), Fraction(0)), sum((j * p**j / 2 for j in range(6)), Fraction(0))


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def activation(x: Any, p: Fraction) -> tuple[Any, Any]:
    """x^p up to 1, flat beyond 3/2. In between the paper leaves it open; nothing may come to lie there."""
    if x == 0:
        return 0, 0
    if not isinstance(x, Exact):
        if abs(x) > Fraction(3, 2):
            return (2, 0) if x > 0 else (-2, 0)
        if abs(x) != 1:
            raise ArithmeticError(f"a total input of {x}, where only powers of 2, p and m0 are expected")
        return x, p
    if x.exceeds(Fraction(3, 2)):
        return 2 * x.sign, 0
    if x.exceeds(Fraction(1)):
        raise ArithmeticError(f"a total input of {x}, where the activation is not given by the paper")
    size = abs(x)
    return size.power(p) * x.sign, size.power(p - 1) * p


@dataclass(frozen=True, eq=False)
class Parts:
    """A network as built."""

    graph: Graph
    weights: list[Any]
    cells: list[int]
    """The edge (v_0, v_1) of each bit of the memory."""
    copies: dict[int, int]
    """Edges to the output that stand for many."""
    finished: Vertex


def build(learner: Learner, constants: Constants) -> Parts:
    """The network of Lemma 3. Components: those of the memory, then the last m of the spare ones, then all
    the other spare ones as one."""
    circuit, cells = learner.circuit, learner.cells
    if cells > LARGEST_MEMORY:
        raise Refused(
            f"{cells:,} bits of memory are too many for exact arithmetic, which takes {LARGEST_MEMORY}",
            advice='Use memory="practical".',
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
    return Parts(build.graph(), build.weights, edges[:cells], copies, finished)


def _component(
    compute: Computation, v1: Vertex, flip: Vertex, answer: Vertex, constants: Constants, sign: int
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
