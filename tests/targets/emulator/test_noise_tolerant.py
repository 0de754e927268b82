"""The noise-tolerant network: Lemma 4's ranges, SGD beside the learner, with noise and without."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from tapegrad._compile import compile, estimate
from tapegrad._precision import in_double
from tapegrad._verify import Report, verify
from tapegrad.errors import InputError, Refused
from tapegrad.learners import Learner, conjunction, dictator, majority, parity
from tapegrad.targets.emulator import cubes, loss, paper_nets
from tapegrad.targets.emulator.build import build_noisy
from tapegrad.targets.emulator.constants import DEAD_ZONES, DIGITS, NOISE, PATH, RATE, power
from tapegrad.targets.emulator.paper_nets import NoisyNet
from tapegrad.targets.emulator.reference import Reference

# Learners that are done within so many samples, and samples of which the first ones suffice.
CASES = [
    (parity(2), 3, [[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0]], [1, 1, 0, 0, 1, 1]),
    (majority(1, 3), 3, [[0], [1], [1], [0], [1]], [1, 0, 1, 1, 0]),
    (conjunction(2, 4), 4, [[1, 1], [0, 1], [1, 0], [1, 1], [0, 0], [1, 0]], [1, 0, 1, 1, 0, 1]),
]


def checked(learner: Learner, samples: int, x: list, y: list, **options) -> Report:
    compiled = compile(learner, "emulator", form="noise-tolerant", samples=samples, **options)
    return verify(compiled, [(x, y, 1, False)])


@pytest.mark.parametrize("arithmetic", ["double", "decimal"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_memory_and_answers_are_the_learners_after_every_step(case, arithmetic: str) -> None:
    for noise in (0.0, float(NOISE[arithmetic])):
        report = checked(*case, arithmetic=arithmetic, noise=noise)
        assert report.agreed, report
        assert report.deviation < 1e-12


def test_a_randomised_learner() -> None:
    learner = dictator(2, 2)
    x = np.random.default_rng(1).integers(0, 2, (14, 2))
    states = list(learner.run(learner.start(x, x[:, 1], 1, False)))
    needed = next(t for t, state in enumerate(states) if learner.respond(state.memory, [0, 0], 0, 0).finished)
    assert needed < 10
    assert checked(learner, needed, x.tolist(), x[:, 1].tolist()).agreed


def test_lemma_4() -> None:
    """Writing doubles the path weights at label 1, and multiplies them by -2 at label -1; what v_2 and v_r
    give lies in the ranges of the lemma, with its noise."""
    learner = majority(1, 3)
    net = NoisyNet.of(learner, 3, "decimal", float(NOISE["decimal"]))
    with localcontext(prec=DIGITS):
        half = Decimal("-1.5")
        unwritten, once = (power(-25, half), power(-23, half)), (power(-13, half), power(-11, half))
        for label in (0, 1):
            carry = net.step(net.start(learner.start([[1]], [label], 1, False)))
            factor = 2 if label else -2
            first = [w for w, old in zip(carry.weights, net.weights, strict=True) if old == PATH[0]]
            written = [w for w in first if abs(w / PATH[0] - factor) < Decimal(10) ** -40]
            assert len(written) == 2  # x and the random bit
            assert all(abs(w / PATH[0] - 1) < Decimal(10) ** -40 for w in first if w not in written)
            values = net._values(carry.weights, np.ones(3, np.int8))
            for component in range(len(first)):
                v1 = net.graph.inputs + 5 * component
                v2, vr = values[v1 + 1], values[v1 + 2]
                low, high = once if first[component] in written else unwritten
                assert low < v2 < high
                assert vr == (-2 if first[component] in written and label == 0 else 2)
    assert power(-242, -29) == pytest.approx(power(-80, -9) ** 3 * PATH[4])


def test_the_noise_that_breaks_it() -> None:
    """Lemma 4 leaves a margin: with five samples it breaks between 10^4 and 10^6 times its bound."""
    x = [[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0], [0, 1]]
    y = [row[0] for row in x]

    def holds(factor: float) -> bool:
        return checked(
            parity(2), 5, x, y, arithmetic="decimal", noise=factor * float(NOISE["decimal"])
        ).agreed

    assert holds(1e4)
    assert not holds(1e6)


def test_the_papers_dead_zone_is_too_narrow_for_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_nets, "DEAD", float(DEAD_ZONES["decimal"]))
    assert not checked(*CASES[0], arithmetic="double").agreed


@in_double
def test_backpropagation_is_automatic_differentiation() -> None:
    """The engine for decimals, run on floats, beside JAX: same values, same new weights."""
    learner, samples, x, _ = CASES[0]
    parts = build_noisy(learner, samples)
    weights = np.array(parts.weights, np.float64)
    dead = float(DEAD_ZONES["double"])

    def activation(value: float) -> tuple[float, float]:
        found, slope = loss.cube_by_hand(Decimal(value), DEAD_ZONES["double"])
        return float(found), float(slope)

    row = np.array([1.0, 2 * x[0][0] - 1, 2 * x[0][1] - 1, 1.0])
    after, values = loss.sgd_step_by_hand(
        parts.graph, weights.tolist(), row.tolist(), 1.0, float(RATE), activation
    )
    network = loss.loss_of(parts.graph, loss.cube_with(dead), np.float64, float(RATE), {})
    given = {"weights": weights, "row": row, "label": np.asarray(1.0)}
    by_jax, every = Reference(network, parts.graph.vertices).step(given)
    assert np.allclose(np.array(values), every, rtol=1e-12, atol=0)
    assert np.allclose(np.array(after), by_jax, rtol=1e-12, atol=0)
    assert np.count_nonzero(np.array(after) != weights) > 5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_the_fast_engine_does_what_automatic_differentiation_does(case) -> None:
    learner, samples, x, y = case
    net = NoisyNet.of(learner, samples, "double", float(NOISE["double"]))
    slow = quick = net.start(learner.start(x, y, 1, False))
    for _ in x:
        slow, quick = net.step(slow), net.advance(quick, 1, "fast")
        assert np.allclose(slow.weights, quick.weights, rtol=1e-14, atol=0)
        assert slow.output == pytest.approx(quick.output, rel=1e-14)
        assert slow.answer == quick.answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_decimals_are_the_same_whether_flat_vertices_are_computed_or_known(case) -> None:
    """Every weight and every value, to the last digit, beside the plain engine by hand."""
    learner, samples, x, y = case
    net = NoisyNet.of(learner, samples, "decimal", float(NOISE["decimal"]))
    carry = net.start(learner.start(x, y, 1, False))
    for t in range(samples):
        row = np.array([1, *(2 * bit - 1 for bit in x[t]), 2 * int(carry.samples.random[t]) - 1], np.int8)
        found = net._trained(carry.weights, row, 2 * y[t] - 1)
        with localcontext(prec=DIGITS):
            given = [Decimal(int(v)) for v in row], Decimal(2 * y[t] - 1), RATE, paper_nets.IN_DECIMALS
            assert found == loss.sgd_step_by_hand(net.graph, carry.weights, *given)
        flat = cubes.flat_for_sure(net.graph, np.array(carry.weights, np.float64), row)
        assert np.count_nonzero(flat) > net.graph.vertices / 2
        carry = net.step(carry)


def test_noise_in_decimals_is_even_and_within_its_share_and_doubles_stay_near() -> None:
    learner, samples, x, y = CASES[0]
    most = Decimal("7.3e-20")
    net = NoisyNet.of(learner, samples, "decimal", float(samples * most))
    carry = net.start(learner.start(x, y, 1, False))
    for t in range(1, samples + 1):
        disturbed = net._disturbed(carry.weights, t)
        with localcontext(prec=DIGITS):
            sizes = [abs(b - a) / most for a, b in zip(carry.weights, disturbed, strict=True)]
        assert Decimal("0.99") < max(sizes) < Decimal("1.000001")
        assert abs(sum(sizes, Decimal(0)) / len(sizes) - Decimal("0.5")) < Decimal("0.05")
        assert len(set(sizes)) > 0.99 * len(sizes)
        carry = net.step(carry)
        away = [abs(Decimal(float(n)) - w) for n, w in zip(carry.weights.near, carry.weights, strict=True)]
        rounding = [abs(w) * Decimal(2) ** -52 for w in carry.weights]
        assert all(a <= Decimal(carry.weights.off) + r for a, r in zip(away, rounding, strict=True))
        assert carry.weights.off < 1.01 * t * float(most)


@pytest.mark.parametrize("dead", [DEAD_ZONES["decimal"], Decimal("0.1")])
def test_the_activation_is_smooth_and_nondecreasing(dead: Decimal) -> None:
    points = [dead / 2, dead, dead * Decimal("1.5"), 2 * dead, Decimal("0.5"), Decimal(1), Decimal("1.2")]
    points += [Decimal("1.5"), Decimal(3)]
    with localcontext(prec=80):
        small = Decimal(10) ** -20
        before = Decimal(0)
        for point in sorted(points):
            value, slope = loss.cube_by_hand(point, dead)
            above, _ = loss.cube_by_hand(point * (1 + small), dead)
            below, _ = loss.cube_by_hand(point * (1 - small), dead)
            found = (above - below) / (2 * point * small)
            assert abs(found - slope) <= Decimal("1e-15") * (slope + value / point) + 100 * small * point**2
            assert before <= below <= value <= above
            assert loss.cube_by_hand(-point, dead) == (-value, slope)
            before = value


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Refused, match="fixed number of samples"):
        compile(parity(2), "emulator", form="noise-tolerant")
    with pytest.raises(Refused, match="too many"):
        compile(parity(20), "emulator", form="noise-tolerant", samples=10_000)
    with pytest.raises(Refused, match="noise"):
        compile(parity(2), "emulator", form="noise-tolerant", samples=2, noise=-1.0)
    net = compile(parity(2), "emulator", form="noise-tolerant", samples=8).net
    with pytest.raises(InputError, match="guessing=False"):
        net.start(parity(2).start([[0, 1]] * 9, [0] * 9))


def test_the_estimate_is_the_size() -> None:
    for learner, samples, _, _ in CASES:
        options = {"form": "noise-tolerant", "samples": samples}
        net = compile(learner, "emulator", **options).net
        guess = estimate(learner, "emulator", **options)
        assert guess.parameters == net.parameters
        assert guess.bytes >= sum(array.nbytes for array in net.all_arrays().values())
