"""The guard: over the reals a question has the answer that it has over bits, by a margin."""

from fractions import Fraction

import numpy as np
import pytest

from tapegrad._vnn.guard import COMPACT, FORMS, RADIUS, guarded, relu_count
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import InputError, Refused
from tapegrad.networks.form import Affine, Dense
from tapegrad.targets.relu.build import GADGETS
from tests.interop.cases import all_patterns, random_circuit
from tests.vnn.exactly import exact_value

HALVES = "satisfied by halves only"


def contradiction() -> Circuit:
    """a = b and b = not a: unsatisfiable, and satisfied by a = b = 1/2 where gates are taken over the
    reals."""
    build = CircuitBuilder(simplify=False)
    a, b = build.input("a"), build.input("b")
    negated = build.gate(Gate.NOT, a)
    build.output("y", build.gate(Gate.AND, build.gate(Gate.XNOR, a, b), build.gate(Gate.XNOR, b, negated)))
    return build.circuit(HALVES)


def conjunction() -> Circuit:
    build = CircuitBuilder()
    build.output("y", build.and_(build.input("a"), build.not_(build.input("b"))))
    return build.circuit("a and not b")


def one_output(seed: int) -> Circuit:
    """Gates of every kind, four of them drawn together to one output."""
    circuit = random_circuit(seed, inputs=4, gates=12)
    build = CircuitBuilder(simplify=False)
    wires = [build.input(name) for name in circuit.inputs]
    for kind, left, right in zip(circuit.kinds, circuit.left, circuit.right, strict=True):
        wires.append(build.gate(Gate(int(kind)), wires[left], wires[right]))
    build.output("y", wires[-1])
    return build.circuit(circuit.name)


def in_floats(layers: list[Dense], points: np.ndarray) -> np.ndarray:
    """The network in float32, a row for each point, by matrices alone."""
    x = points.astype(np.float32)
    for layer in layers:
        written = layer.map.dense()
        x = x @ np.asarray(written.weight).T + np.asarray(written.bias)
        x = np.maximum(x, 0) if layer.activation == "relu" else x
    return x[:, 0]


@pytest.mark.parametrize("x", [Fraction(k, 32) for k in range(-8, 41)])
def test_an_input_is_a_bit_or_costs_as_much_as_it_can_win(x: Fraction) -> None:
    """One input, passed through: Y = t - q, as the definition of t and q has it, cut by hand."""
    build = CircuitBuilder(simplify=False)
    build.output("y", build.gate(Gate.ID, build.input("a")))
    t = min(max(4 * (x - Fraction(3, 8)), Fraction(0)), Fraction(1))
    near = min(abs(x - Fraction(1, 4)), abs(x - Fraction(3, 4)))
    q = min(8 * near, Fraction(1)) if Fraction(1, 4) < x < Fraction(3, 4) else Fraction(0)
    assert exact_value(guarded([build.circuit()]), [x]) == t - q


@pytest.mark.parametrize("form", FORMS)
def test_what_halves_satisfy_is_not_satisfied(form: str) -> None:
    half = Fraction(1, 2)
    circuit = contradiction()
    assert exact_value(guarded([circuit], form), [half, half]) <= -1
    assert not circuit.wire_values(all_patterns(2))[circuit.output_wires].any()
    gate = {kind: GADGETS[kind].formula for kind in (Gate.XNOR, Gate.NOT)}
    assert gate == {
        Gate.XNOR: "1 - relu(a - b) - relu(b - a)",
        Gate.NOT: "relu(1 - a)",
    }  # 1 at halves, so 1 + 1 - 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("circuit", [contradiction(), conjunction()], ids=lambda own: own.name)
def test_every_real_point_by_an_exact_solver(circuit: Circuit, form: str) -> None:
    """z3 decides over all reals of the box, in rational arithmetic: nowhere above 0, or 1 within the
    radius."""
    z3 = pytest.importorskip("z3")
    solver, inputs = z3.Solver(), [z3.Real(name) for name in circuit.inputs]
    values = list(inputs)
    for layer in guarded([circuit], form):
        own = layer.map.entries()
        sums = [z3.RealVal(float(bias)) for bias in own.bias]
        for row, column, value in zip(own.rows, own.columns, own.values, strict=True):
            sums[row] = sums[row] + z3.RealVal(float(value)) * values[column]
        values = [z3.If(own > 0, own, 0) for own in sums] if layer.activation == "relu" else sums
    solver.add(*(bound for x in inputs for bound in (x >= 0, x <= 1)))
    solver.push()
    if circuit.name == HALVES:
        solver.add(values[0] > 0)
        assert solver.check() == z3.unsat
        return
    witness, radius = (1, 0), z3.RealVal(str(RADIUS))
    solver.add(
        *(z3.And(x >= bit - radius, x <= bit + radius) for x, bit in zip(inputs, witness, strict=True))
    )
    solver.add(values[0] != 1)
    assert solver.check() == z3.unsat
    solver.pop()
    solver.add(values[0] > 1)
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(12))
def test_random_circuits_at_random_points_in_floats(seed: int, form: str) -> None:
    """Points anywhere, points near bits, and points at the cuts, beside the circuit's own values."""
    circuit = one_output(seed)
    layers, random = guarded([circuit], form), np.random.default_rng(seed)
    assert relu_count([circuit], form) == sum(len(layer.map) for layer in layers[:-1])
    bits = all_patterns(4)
    right = circuit.wire_values(bits)[circuit.output_wires][0]
    rounding = len(circuit.inputs) * 2.0**-20
    for number, wanted in enumerate(right):
        near = np.abs(bits[number] - random.uniform(0, float(RADIUS), (50, 4)))
        assert np.array_equal(in_floats(layers, near), np.full(50, wanted, np.float32))
    grid = random.integers(0, 17, (500, 4)) / 16
    for points in (random.uniform(0, 1, (500, 4)), grid, np.nextafter(grid, random.uniform(0, 1, 4))):
        values = in_floats(layers, points)
        assert values.max() <= 1
        clear = ((points < 3 / 8) | (points > 5 / 8)).all(axis=1)
        assert values[~clear].max(initial=0) <= rounding
        own = circuit.wire_values(points[clear] > 0.5)[circuit.output_wires][0]
        assert (values[clear] <= own + rounding).all()


def test_what_a_compact_gate_has_too_much_between_bits_is_cut_off() -> None:
    """Of this circuit, the network is almost 3/2 somewhere between the bits."""
    *layers, last = guarded([one_output(259)], COMPACT)
    points = np.random.default_rng(0).uniform(3 / 8, 5 / 8, (4000, 4))
    points[:, 2:] = np.where(np.random.default_rng(1).uniform(size=(4000, 2)) < 0.5, points[:, 2:], 0)
    assert np.array_equal(last.map.dense().weight, [[1, -1, -1]])
    none = np.zeros(1, np.float32)
    uncut, cut = (
        in_floats([*layers, Dense(Affine.of(np.array([read], np.float32), none), "linear")], points)
        for read in ([1, 0, 0], [1, -1, 0])
    )
    assert uncut.max() > 1.25
    assert cut.max() == 1


def test_values_that_may_leave_the_range_are_refused() -> None:
    """A sum of three doubles what is between the bits, layer after layer, for all that intervals know."""
    build = CircuitBuilder()
    wires = [build.input(f"x{place}") for place in range(4)]
    for number in range(400):
        wires.append(build.xor(build.xor(wires[-1], wires[-2]), wires[number % 4]))
    build.output("y", wires[-1])
    with pytest.raises(Refused, match="range of float32"):
        guarded([build.circuit()], COMPACT)


def test_a_question_has_one_output() -> None:
    build = CircuitBuilder()
    wire = build.input("a")
    build.output("y", wire)
    build.output("z", wire)
    with pytest.raises(InputError, match="one output"):
        guarded([build.circuit()])
