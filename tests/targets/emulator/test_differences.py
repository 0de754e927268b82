"""Steps that follow differences beside whole steps: every weight and every value, bit for bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad
from tapegrad.circuits.model import Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.learners import CircuitLearner, Learner
from tapegrad.programs import read_assembler
from tapegrad.programs.subleq import read_subleq
from tapegrad.targets.emulator import differences, fast
from tapegrad.targets.emulator.carried import Carried, carried
from tapegrad.targets.emulator.constants import Constants, gate_weight
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet, input_rows
from tests.learners.cases import CASES
from tests.targets.emulator.test_practical import counter

LOOP = b"""
        .equ __ram, 64
        li t0, 30
next:   mul t1, t0, t0
        rem t2, t1, t0
        sh t1, 61(zero)
        lhu t3, 61(zero)
        sub t4, t4, t3
        addi t0, t0, -1
        bnez t0, next
        mv a0, t4
        li a7, 93
        ecall
"""
SUMS = b"""subleq 8 16
# c counts, and b is the sum of its values so far, negated: no state comes back within 1,500 steps.
loop:   minus c ?
        c b ?
        z z loop
minus:  -1
c:      0
b:      0
z:      0
"""


class Beside:
    """A state that follows differences, and the same weights trained by whole steps."""

    def __init__(self, net: PracticalNet, carry: EmulatorCarry) -> None:
        self.net, self.steps = net, carry.steps
        self.state = carried(net.graph, carry.weights)
        self.rows = input_rows(carry.samples, 0, len(carry.samples))
        self.labels = 2 * carry.samples.y.astype(np.int8) - 1

    def advance(self, steps: int) -> None:
        """Follows differences alone."""
        part = slice(self.steps, self.steps + steps)
        rate = self.net.constants.rate
        differences.advance(self.state, self.rows[part], self.labels[part], rate, self.net.finished)
        self.steps += steps

    def spot_check(self) -> None:
        """One step of both, from the weights of the first: everything must be the same after it."""
        weights, kind = self.state.weights.copy(), self.state.weights.dtype
        graph, row = self.net.graph, self.rows[self.steps].astype(kind)
        values, slopes, errors = np.zeros((3, graph.vertices), kind)
        fast._forward(weights, graph.offsets, graph.sources, row, values, slopes)
        slope_of_loss = 2 * (values[-1] - kind.type(self.labels[self.steps]))
        rate = kind.type(self.net.constants.rate)
        fast.backward(
            weights, graph.offsets, graph.sources, len(row), values, slopes, errors, slope_of_loss, rate
        )
        self.advance(1)
        assert np.array_equal(_bits(self.state.every_value()), _bits(values))
        assert np.array_equal(_bits(self.state.weights), _bits(weights))
        assert not self.state.errors.any()


def _bits(numbers: np.ndarray) -> np.ndarray:
    return numbers.view(f"u{numbers.itemsize}")


def beside(learner: Learner, inputs: tuple[Any, ...], **options: Any) -> Beside:
    net: Any = tapegrad.compile(learner, "emulator", **options).net
    return Beside(net, net.start(learner.start(*inputs)))


@pytest.mark.parametrize("precision", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_learners_at_every_step(case: Any, precision: str) -> None:
    x, y = case.drawn(seed=3)
    both = beside(case.learner, (x, y, 8), precision=precision)
    for _ in range(len(x)):
        both.spot_check()


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 4), st.sampled_from(["float64", "float32"]))
def test_random_learners(seed: int, cells: int, inputs: int, precision: str) -> None:
    """Random inputs, so that vertices sleep and wake, and operands that occur twice."""
    circuit = random_circuit(seed, inputs=cells + inputs + 2, size=80, outputs=cells + 2)
    random = np.random.default_rng(seed)
    learner = CircuitLearner(circuit, inputs, tuple(random.integers(0, 2, cells).tolist()))
    samples = random.integers(0, 2, (30, inputs)), random.integers(0, 2, 30), seed
    both = beside(learner, samples, precision=precision)
    for _ in range(30):
        both.spot_check()


@pytest.mark.parametrize(("cells", "exponent"), [(3, -15), (16, -16), (8, -5)])
def test_weights_that_all_move(cells: int, exponent: int) -> None:
    """With a larger w0 nothing rounds away: no table, sum or bound outlives a change of its weights."""
    learner = counter(cells)
    net = PracticalNet.of(learner, Constants(2.0**exponent, gate_weight(cells)), "float64", 100)
    first = learner.start(np.zeros((150, 1)), np.random.default_rng(1).integers(0, 2, 150))
    both = Beside(net, net.start(first))
    for _ in range(150):
        both.spot_check()
    assert np.count_nonzero(both.state.weights != net.weights) > 2 * cells


def sums(steps: int) -> tuple[Any, EmulatorCarry]:
    """A small machine that never stops."""
    compiled: Any = tapegrad.compile(read_subleq(SUMS), "emulator", steps=steps, input=1, output=1)
    return compiled, compiled.start()


def test_a_thousand_steps_beside_automatic_differentiation() -> None:
    """The weights of both, after every step of either, each going on from its own."""
    compiled, by_reference = sums(1000)
    both, seen = Beside(compiled.net, by_reference), set()
    for step in range(1000):
        both.advance(1)
        by_reference = compiled.net.step(by_reference)
        assert np.array_equal(_bits(by_reference.weights), _bits(both.state.weights)), step
        seen.add(compiled.net.decode(by_reference).memory)
    assert len(seen) == 1000


def machine() -> tuple[Any, EmulatorCarry]:
    compiled: Any = tapegrad.compile(read_assembler(LOOP), "emulator", steps=260, input=1, output=1)
    return compiled, compiled.start()


def test_a_machine_with_spot_checks() -> None:
    """Fetch, arithmetic, division, stores across words, to the exit and beyond it."""
    compiled, carry = machine()
    both = Beside(compiled.net, carry)
    both.spot_check()
    for steps in (1, 2, 3, 5, 7, 10, 20, 30, 50, 100, 20):
        both.advance(steps)
        both.spot_check()
    assert both.steps == 260
    found = both.state.computed[0] / both.steps
    assert found < compiled.net.graph.vertices / 10


def test_advance_goes_on_from_where_it_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run in one go, in parts, and by whole steps; and from weights that someone has changed."""
    compiled, first = machine()
    net = compiled.net
    monkeypatch.setattr(fast, "MUCH", 100 * net.graph.edges)
    at_once = net.advance(first, 240, "fast")
    assert isinstance(at_once.state, Carried)
    half = net.advance(first, 120, "fast")
    in_parts = net.advance(half, 120, "fast")
    assert in_parts.state is half.state
    again = net.advance(half, 120, "fast")  # the state has moved on since
    assert again.state is not half.state
    changed = EmulatorCarry(half.weights.copy(), half.steps, half.samples, state=again.state)
    changed.weights[net.cells[:7]] *= -1
    from_changed = net.advance(changed, 120, "fast")
    in_small_parts = first
    for steps in (30, 50, 10, 9, 1, 1, 2, 30, 1, 5, 101):  # the 100th step follows differences
        before, in_small_parts = in_small_parts, net.advance(in_small_parts, steps, "fast")
        assert (in_small_parts.state is None) == (in_small_parts.steps < 100), before.steps
    assert in_small_parts.whole == 99
    monkeypatch.setattr(fast, "MUCH", 10**12)
    whole = net.advance(first, 240, "fast")
    assert whole.state is None
    for other in (at_once, in_parts, again, in_small_parts):
        assert np.array_equal(_bits(whole.weights), _bits(other.weights))
        assert (whole.output, whole.answer) == (other.output, other.answer)
    plain = EmulatorCarry(changed.weights, half.steps, half.samples)
    assert np.array_equal(net.advance(plain, 120, "fast").weights, from_changed.weights)


def test_where_much_changes_whole_steps_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums modulo 2 of random bits."""
    circuit = random_circuit(5, inputs=12, size=60, outputs=6, kinds=(Gate.XOR,))
    learner = CircuitLearner(circuit, 6)
    random = np.random.default_rng(5)
    first = learner.start(random.integers(0, 2, (240, 6)), random.integers(0, 2, 240), 1)
    net: Any = tapegrad.compile(learner, "emulator").net
    monkeypatch.setattr(fast, "MUCH", 100 * net.graph.edges)
    tried = net.advance(net.start(first), 130, "fast")
    assert tried.state is None
    assert tried.whole < 0
    tried = net.advance(tried, 110, "fast")
    assert tried.state is None
    monkeypatch.setattr(fast, "MUCH", 10**12)
    whole = net.advance(net.start(first), 240, "fast")
    assert whole.whole == 240
    assert np.array_equal(_bits(whole.weights), _bits(tried.weights))
    assert (whole.output, whole.answer) == (tried.output, tried.answer)
