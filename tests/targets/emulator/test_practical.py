"""The practical network beside its learner, sample by sample."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad._compile import compile, estimate
from tapegrad._verify import verify
from tapegrad.circuits import Circuit, UInt
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import InputError, Refused
from tapegrad.learners import CircuitLearner, FunctionLearner, Learner, parity
from tapegrad.networks.tiles import blocks_of
from tapegrad.targets.emulator.build import build_practical
from tapegrad.targets.emulator.constants import Constants, choose, drift, gate_weight
from tapegrad.targets.emulator.net import PracticalNet
from tests.learners.cases import CASES, Case


def practical(learner: Learner, **options) -> PracticalNet:
    net = compile(learner, "emulator", **options).net
    assert isinstance(net, PracticalNet)
    return net


def counter(bits: int) -> FunctionLearner:
    """Counts the samples that it learns from, for ever; the lowest bit flips at every one of them."""
    return FunctionLearner(
        name="counter",
        x=UInt(1),
        memory=UInt(bits),
        update=lambda memory, x, y, r: memory + 1,
        predict=lambda memory, x: memory[0],
        done=lambda memory: memory[0] & ~memory[0],
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.sampled(3)
def test_memory_and_answers_are_the_learners_after_every_step(case: Case) -> None:
    x, y = case.drawn(seed=4)
    report = verify(compile(case.learner, "emulator"), [(x, y, 8)], engine="fast")
    assert report.agreed, report
    assert report.states == len(x) + 1
    assert report.deviation == 0


def test_the_reference_engine_needs_room_in_proportion_to_the_edges() -> None:
    """Every edge has its place once, whatever the shape of the graph; padding comes on top."""
    for learner in (parity(24), parity(32)):
        graph = build_practical(learner, choose(learner.cells, 1000, "float64")).graph
        places = blocks_of(graph.offsets, graph.sources, graph.inputs).entries.ravel()
        assert np.array_equal(np.sort(places[places < graph.edges]), np.arange(graph.edges))
        assert places.size <= 6 * graph.edges


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", ["parity", "dictator", "doubling"])
def test_reference_and_fast_engine_give_the_same_weights(name: str, precision: str) -> None:
    case = next(case for case in CASES if case.name == name)
    net = practical(case.learner, precision=precision)
    x, y = case.drawn(seed=5, count=25)
    by_reference = by_fast = net.start(case.learner.start(x, y, 1))
    for state in list(case.learner.run(case.learner.start(x, y, 1)))[1:]:
        by_reference = net.step(by_reference)
        by_fast = net.advance(by_fast, 1, "fast")
        assert np.array_equal(by_reference.weights, by_fast.weights)
        assert net.decode(by_reference) == net.decode(by_fast) == state
        assert by_reference.output == by_fast.output


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 4), st.sampled_from(["float64", "float32"]))
def test_random_learners(seed: int, cells: int, inputs: int, precision: str) -> None:
    circuit = random_circuit(seed, inputs=cells + inputs + 2, size=25, outputs=cells + 2)
    generator = np.random.default_rng(seed)
    learner = CircuitLearner(circuit, inputs, tuple(generator.integers(0, 2, cells).tolist()))
    x, y = generator.integers(0, 2, (40, inputs)), generator.integers(0, 2, 40)
    compiled = compile(learner, "emulator", precision=precision)
    assert verify(compiled, [(x, y, seed)], engine="fast").agreed
    assert verify(compiled, [(x[:4], y[:4], seed)]).agreed


@pytest.mark.parametrize("outputs", [[0, 1, 2, 3, 4], [5, 5, 4, 2, 3], [3, 2, 3, 4, 5]])
def test_memory_that_takes_over_inputs(outputs: list[int]) -> None:
    """A circuit without gates: answer, end and new memory are wires that come in, one bit of memory or of x
    each. (Three bits of memory, x, randomness, guess.)"""
    names = ("m0", "m1", "m2", "x", "random", "guess")
    no_wires = np.zeros(0, np.int32)
    circuit = Circuit(
        names,
        tuple(f"o{i}" for i in range(5)),
        no_wires.astype(np.uint8),
        no_wires,
        no_wires,
        np.array(outputs),
    )
    learner = CircuitLearner(circuit, 1, (0, 1, 0))
    x, y = np.array([[0], [1], [1], [0], [1]]), np.array([1, 0, 1, 1, 0])
    report = verify(compile(learner, "emulator"), [(x, y, 8)], engine="fast")
    assert report.agreed, report


def test_training_changes_the_cells_and_no_other_weight() -> None:
    case = CASES[0]
    net = practical(case.learner)
    x, y = case.drawn(seed=6)
    carry = net.advance(net.start(case.learner.start(x, y)), len(x), "fast")
    changed = np.flatnonzero(carry.weights != net.weights)
    assert len(changed) > 5
    assert set(changed) <= set(net.cells)
    assert set(np.abs(carry.weights[net.cells])) == {net.constants.w0}


def test_a_hundred_thousand_steps_and_fifty_thousand_flips_of_one_cell() -> None:
    steps = 100_000
    y = np.random.default_rng(0).integers(0, 2, steps)
    for precision in ("float64", "float32"):
        learner = counter(16)
        net = practical(learner, precision=precision)
        first = learner.start(np.zeros((steps, 1)), y, 2)
        carry = net.advance(net.start(first), steps, "fast")
        learned = int((first.samples.guess != y).sum())
        assert sum(bit << i for i, bit in enumerate(net.decode(carry).memory)) == learned > 40_000
        assert net.deviation(carry) == 0


@pytest.mark.parametrize(("cells", "steps", "exponent"), [(3, 200, -15), (8, 100, -15), (16, 60, -16)])
def test_the_drift_of_the_cells_stays_within_its_bound(cells: int, steps: int, exponent: int) -> None:
    """With a larger w0 nothing rounds away, and every weight of the network moves."""
    learner = counter(cells)
    w0 = 2.0**exponent
    net = PracticalNet.of(learner, Constants(w0, gate_weight(cells)), "float64", steps)
    bound = drift(w0, cells, steps)
    assert bound < 1 / 4
    first = learner.start(np.zeros((steps, 1)), np.random.default_rng(1).integers(0, 2, steps))
    by_reference = by_fast = net.start(first)
    for state in list(learner.run(first))[1:]:
        by_fast = net.advance(by_fast, 1, "fast")
        assert net.decode(by_fast) == state
    for _ in range(5):
        by_reference = net.step(by_reference)
    again = net.advance(net.start(first), 5, "fast")
    assert np.allclose(by_reference.weights, again.weights, rtol=1e-14, atol=1e-18)
    moved = np.flatnonzero(by_fast.weights != net.weights)
    assert len(set(moved) - set(net.cells)) > cells
    assert 0 < net.deviation(by_fast) < bound


def test_a_cell_that_is_too_large_breaks() -> None:
    learner = counter(8)
    net = PracticalNet.of(learner, Constants(2.0**-5, gate_weight(8)), "float64", 1)
    first = learner.start(np.zeros((500, 1)), np.random.default_rng(1).integers(0, 2, 500))
    carry = net.start(first)
    agreed = 0
    for state in list(learner.run(first))[1:]:
        carry = net.advance(carry, 1, "fast")
        if net.decode(carry) != state:
            break
        agreed += 1
    assert agreed < 500
    assert drift(2.0**-5, 8, agreed) > 1 / 8  # it may not break before the bound says so


def test_the_estimate_is_the_size() -> None:
    for case in CASES:
        net = practical(case.learner)
        guess = estimate(case.learner, "emulator")
        assert guess.parameters == net.parameters
        assert guess.bytes == sum(array.nbytes for array in net.all_arrays().values())
        assert net.graph.levels().max() <= guess.depth


def test_samples_lost_and_learned() -> None:
    """Theorem 4: about half of the samples are learned from."""
    learner = parity(24)
    net = practical(learner)
    generator = np.random.default_rng(3)
    hidden, needed, learned = generator.integers(0, 2, 24), [], []
    for seed in range(20):
        x = generator.integers(0, 2, (150, 24))
        first = learner.start(x, x @ hidden % 2, seed)
        carry = net.start(first)
        while not (net.outputs(carry, x[:1]).size and carry.answer is not None):
            carry = net.advance(carry, 1, "fast")
        needed.append(carry.steps - 1)
        learned.append(int((first.samples.guess != first.samples.y)[: carry.steps - 1].sum()))
    assert 24 <= np.mean(learned) < 24 + 4
    assert 1.8 < np.sum(needed) / np.sum(learned) < 2.2


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Refused, match="too many for float32"):
        choose(1 << 20, 10, "float32")
    with pytest.raises(Refused, match="range of float32"):
        choose(1000, 10**15, "float32")
    with pytest.raises(Refused, match="positive integer"):
        compile(parity(2), "emulator", steps=0)
    with pytest.raises(Refused, match="memory"):
        compile(parity(2), "emulator", memory="magic")
    with pytest.raises(InputError, match="2 bits"):
        practical(parity(2)).start(parity(3).start([[0, 1, 1]], [0]))


@pytest.mark.parametrize("cells", [1, 2, 3, 44, 14_534, 1 << 17])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_constants_are_powers_of_two_and_other_changes_round_away(cells: int, precision: str) -> None:
    kind = np.dtype(precision).type
    constants = choose(cells, 1_000_000, precision)
    for number in (constants.w0, constants.gate, constants.gain, -constants.read, constants.rate):
        assert np.frexp(number)[0] == 0.5
        assert kind(number) == number
    u = kind(constants.gate)
    for weight in (u, -u, 3 * u / 8, 5 * u / 8, kind(0.5)):
        for sign in (-1, 1):
            assert weight + kind(sign * 8 * constants.rate) == weight
    assert constants.rate * 4 * constants.gate * constants.gain == 2 * constants.w0
