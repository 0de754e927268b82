"""The paper's own network in exact arithmetic: its constants, and SGD beside the learner."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad._compile import compile, estimate
from tapegrad._verify import verify
from tapegrad.circuits import UInt
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import Refused
from tapegrad.learners import CircuitLearner, FunctionLearner, conjunction, dictator, majority, parity
from tapegrad.targets.emulator import loss
from tapegrad.targets.emulator.build import build_exact
from tapegrad.targets.emulator.constants import ExactConstants
from tapegrad.targets.emulator.numbers import Exact, Field
from tapegrad.targets.emulator.paper_nets import ExactNet

LEARNERS = [
    (parity(3), lambda x: x[:, 0] ^ x[:, 2]),
    (majority(2, 5), lambda x: x[:, 0]),
    (conjunction(2, 6), lambda x: x[:, 0] * x[:, 1]),
    (dictator(3, 3), lambda x: x[:, 1]),
]


def whole_power(x: Exact, exponent: int) -> Exact:
    return x.power(Fraction(exponent))


def test_the_constants_are_those_of_the_paper() -> None:
    constants = ExactConstants.of(Fraction(3), 10)
    number, s = constants.field.number, constants.s
    half = Fraction(1, 2)
    with localcontext(prec=400):
        bound = Decimal(2) ** -243 * Decimal(3) ** (Decimal(-1641) / 2) * (18 * Decimal(3).sqrt()) ** 364
        assert constants.field.m0 == int(bound) + 1
    assert 10**79 < constants.field.m0 < 10**80
    assert whole_power(s, 364) == number(-243, -1641 * half, -1)  # s = (2^-243 3^(-1641/2) / m0)^(1/364)
    assert constants.rate == number(-244, -1643 * half) * whole_power(s, -362)
    assert constants.control == number(26, 91) * whole_power(s, 40)
    assert [constants.path(t) for t in range(1, 7)] == [number(0, 3 - t * half) * s for t in range(1, 7)]
    assert constants.first == whole_power(s * number(1, 5 * half), 3)  # s' = (18 sqrt(3) s)^3
    assert not (s * 18 * number(0, half)).exceeds(Fraction(1))
    assert ExactConstants.of(Fraction(3), 10**81).field.m0 == 10**81


def test_remark_9() -> None:
    """An exponent of 11/9 makes m0 "on the order of 1000"."""
    assert 1000 < ExactConstants.of(Fraction(11, 9), 10).field.m0 < 2000


@pytest.mark.parametrize("exponent", ["3", "11/9", "7/3"])
@pytest.mark.parametrize(("learner", "concept"), LEARNERS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.sampled(4)
def test_memory_and_answers_are_the_learners_after_every_step(learner, concept, exponent: str) -> None:
    x = np.random.default_rng(2).integers(0, 2, (10, learner.inputs))
    report = verify(compile(learner, "emulator", form="paper", exponent=exponent), [(x, concept(x), 3)])
    assert report.agreed, report
    assert report.deviation == 0


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6))
def test_random_learners(seed: int) -> None:
    circuit = random_circuit(seed, inputs=3 + 2 + 2, size=12, outputs=3 + 2)
    generator = np.random.default_rng(seed)
    learner = CircuitLearner(circuit, 2, tuple(generator.integers(0, 2, 3).tolist()))
    x, y = generator.integers(0, 2, (8, 2)), generator.integers(0, 2, 8)
    assert verify(compile(learner, "emulator", form="paper"), [(x, y, seed)]).agreed


def test_the_output_is_one_and_weights_only_change_sign() -> None:
    learner = parity(2)
    net = compile(learner, "emulator", form="paper").net
    assert isinstance(net, ExactNet)
    x = np.random.default_rng(0).integers(0, 2, (12, 2))
    carry = net.start(learner.start(x, x[:, 1], 4))
    changed = 0
    for _ in x:
        before, carry = carry, net.step(carry)
        assert abs(carry.output) == 1
        turned = [new == -old for old, new in zip(before.weights, carry.weights, strict=True)]
        same = [new == old for old, new in zip(before.weights, carry.weights, strict=True)]
        assert all(a or b for a, b in zip(turned, same, strict=True))
        changed += any(turned)
    assert changed > 2
    assert sum(net.copies.values()) == 2 * (net.constants.field.m0 - learner.cells)


def flipper() -> FunctionLearner:
    """One bit, which flips at every sample that is learned from."""
    return FunctionLearner(
        name="flipper",
        x=UInt(1),
        memory=UInt(1),
        update=lambda memory, x, y, r: memory + 1,
        predict=lambda memory, x: memory[0],
        done=lambda memory: memory[0] & ~memory[0],
    )


def in_decimals(x: Decimal, p: Decimal) -> tuple[Decimal, Decimal]:
    """The activation of the paper, for decimals."""
    if x == 0:
        return Decimal(0), Decimal(0)
    size, sign = abs(x), Decimal(1).copy_sign(x)
    return (2 * sign, Decimal(0)) if size > Decimal("1.2") else (sign * size**p, p * size ** (p - 1))


def decimal(number) -> Decimal:
    """An exact number with as many digits as the context asks for."""
    if not isinstance(number, Exact):
        return Decimal(number.numerator) / number.denominator if hasattr(number, "denominator") else number
    value = Decimal(number.r.numerator) / number.r.denominator
    for exponent, generator in zip(number.exponents, number.field.generators, strict=True):
        base = Decimal(generator.numerator) / generator.denominator
        value *= base ** (Decimal(exponent.numerator) / exponent.denominator)
    return value


def error_after_a_flip(p: Fraction, error: Decimal) -> list[Decimal]:
    """Relative errors of the six weights of a path after one flip, if all had the same error before."""
    constants = ExactConstants.of(p, 1)
    parts = build_exact(flipper(), constants)
    weights = [decimal(weight) for weight in parts.weights]
    path = _path_of(parts, parts.cells[0])
    for edge in path:
        weights[edge] *= 1 + error
    inputs = [Decimal(1)] * parts.graph.inputs  # guess 1
    after, _ = loss.sgd_step_by_hand(
        parts.graph,
        weights,
        inputs,
        Decimal(-1),
        decimal(constants.rate),
        partial(in_decimals, p=decimal(p)),
        parts.copies,
    )
    return [after[edge] / -decimal(parts.weights[edge]) - 1 for edge in path]


@pytest.mark.parametrize("p", [Fraction(3), Fraction(5, 2)])
def test_an_error_grows_by_the_predicted_factor_at_every_flip(p: Fraction) -> None:
    """2 sum p^j - 3, 725 for p = 3: this is why double precision cannot run the paper's network."""
    predicted = 2 * sum(p**j for j in range(6)) - 3
    assert p != 3 or predicted == 725
    with localcontext(prec=150):
        error = Decimal(10) ** -60
        for grown in error_after_a_flip(p, error):
            assert abs(float(grown / error) / float(predicted) - 1) < 0.01


def test_with_small_exponents_errors_grow_worse() -> None:
    """With p = 11/9 the factor would be 18. But an error e also leaves e at the vertex that closes the other
    path. The derivative along it is then e^(p - 1) at v_4 and (e^p)^(p - 1) at v_5, in all e^(p^2 - 1), which
    is more than e wherever p^2 < 2: an error of 10^-60 becomes one of 10^-29 in a single flip."""
    p = Fraction(11, 9)
    with localcontext(prec=150):
        for exponent in (60, 90):
            shared = error_after_a_flip(p, Decimal(10) ** -exponent)[:2]
            for grown in shared:
                assert abs(float(abs(grown).log10()) + float(p**2 - 1) * exponent) < 2


def _path_of(parts, cell: int) -> list[int]:
    """The edges of the cell's first path: v_0 to v_6 through v_4."""
    graph = parts.graph
    own = np.repeat(np.arange(graph.inputs, graph.vertices), np.diff(graph.offsets))
    edges, vertex = [cell], own[cell]
    while vertex != graph.vertices - 1:
        out = [e for e in np.flatnonzero(graph.sources == vertex) if isinstance(parts.weights[e], Exact)]
        edge = out[1] if len(edges) == 1 else out[0]  # the first edge from v_1 leads to the reader
        edges.append(int(edge))
        vertex = own[edge]
    return edges


@pytest.mark.parametrize(("exponent", "least", "most"), [(Fraction(3), 3, 8), (Fraction(11, 9), 0, 4)])
def test_double_precision_fails_within_a_few_flips(exponent: Fraction, least: int, most: int) -> None:
    constants = ExactConstants.of(exponent, 1)
    parts = build_exact(flipper(), constants)
    weights = [float(weight) for weight in parts.weights]
    p = float(exponent)

    def activation(x: float) -> tuple[float, float]:
        size, sign = abs(x), float(np.sign(x))
        return (2 * sign, 0.0) if size > 1.2 else (sign * size**p, p * size ** (p - 1) if x else 0.0)

    right = 0
    for flip in range(30):
        guess = 1 if flip % 2 == 0 else -1
        inputs = [1.0, 1.0, 1.0, float(guess)]
        weights, _ = loss.sgd_step_by_hand(
            parts.graph, weights, inputs, float(-guess), float(constants.rate), activation, parts.copies
        )
        if not abs(weights[parts.cells[0]] / float(constants.path(1)) + guess) < 0.01:
            break
        right += 1
    assert least <= right <= most


def test_numbers() -> None:
    field = Field(Fraction(3), 7)
    x = field.number(Fraction(1, 2), Fraction(-3, 2), 2)
    assert x.power(Fraction(2)) == Fraction(2 * 7**4, 27)
    assert x * x.power(Fraction(-1)) == 1
    assert (x - x) == 0
    assert x + x == x * 2
    assert float(x) == pytest.approx(2**0.5 * 3**-1.5 * 49)
    assert field.number(Fraction(1, 2)).exceeds(Fraction(7, 5))
    assert not field.number(Fraction(1, 2)).exceeds(Fraction(3, 2))
    with pytest.raises(ArithmeticError):
        _ = x + field.number(Fraction(1, 3))
    with pytest.raises(ArithmeticError):
        field.number(r=5).power(Fraction(1, 2))


def test_the_estimate_is_the_size() -> None:
    for learner, _ in LEARNERS:
        net = compile(learner, "emulator", form="paper").net
        guess = estimate(learner, "emulator", form="paper")
        assert guess.parameters == net.parameters
        assert guess.bytes == sum(array.nbytes for array in net.arrays().values())


@pytest.mark.parametrize("exponent", ["1", "1/2", "5", "x", "1/0"])
def test_exponents_that_do_not_work(exponent: str) -> None:
    with pytest.raises(Refused, match="exponent"):
        compile(parity(2), "emulator", form="paper", exponent=exponent)


def test_large_memories_are_refused() -> None:
    with pytest.raises(Refused, match="too many for exact"):
        compile(parity(40), "emulator", form="paper")
