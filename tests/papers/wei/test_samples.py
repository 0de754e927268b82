"""Surrogate loss, covering numbers, sample complexity and sizes, against direct computation."""

import itertools
import math

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad.circuits.library import ready as ready_circuit
from tapegrad.errors import InputError, Refused
from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.wei.samples import (
    corollary_a_1,
    lemma_2_3,
    log_covering_number,
    rademacher_bound,
    relu_norm,
    size_table,
    surrogate_loss,
    theorem_3_1,
    theorem_4_1,
    transformer_norm,
    transformer_sizes,
    width_rows,
)


def test_surrogate_loss_is_the_ramp_of_2_2():
    assert [surrogate_loss(m, 0.5) for m in (-1, 0, 0.25, 0.5, 2)] == [1, 1, 0.5, 0, 0]
    with pytest.raises(InputError):
        surrogate_loss(1, 0)


def test_maureys_cover_covers():
    """p = 2, alpha = 1: every point of a grid in the ball is near a mean of k of 0, +-e_1, +-e_2."""
    scale = 0.5
    k = math.ceil(1 / scale**2)
    corners = [np.zeros(2), *np.eye(2), *-np.eye(2)]
    cover = np.array([sum(c) / k for c in itertools.combinations_with_replacement(corners, k)])
    assert len(cover) <= math.exp(log_covering_number(scale, 1, 1, 2)) * (1 + 1e-9)
    for point in itertools.product(np.linspace(-1, 1, 21), repeat=2):
        if np.abs(point).sum() <= 1:
            assert np.linalg.norm(cover - np.array(point), axis=1).min() <= scale


def test_the_closed_rademacher_bound_is_above_dudleys_integral():
    n, alpha, gamma, p = 10_000, 3.0, 0.5, 50
    scales = np.linspace(1 / math.sqrt(n), 1, 200_001)
    roots = np.sqrt([log_covering_number(e, alpha, gamma, p) for e in scales])
    integral = float(np.sum((roots[1:] + roots[:-1]) / 2 * np.diff(scales)))
    dudley = 4 / math.sqrt(n) + 12 / math.sqrt(n) * integral
    assert dudley <= rademacher_bound(n, alpha, gamma, p) <= 1.3 * dudley


def test_lemma_2_3_returns_the_least_number_of_samples():
    found = lemma_2_3(alpha=3, gamma=0.5, parameters=50, epsilon=0.1)

    def error(n):
        return 4 * rademacher_bound(n, 3, 0.5, 50) + 2 * math.sqrt(math.log(200) / n)

    assert error(found.samples * 1.001) < 0.1 < error(found.samples * 0.999)
    assert found.expression == pytest.approx(9 * math.log(50) / 0.0025)
    smaller = lemma_2_3(3, 0.5, 50, 0.05)
    assert 4 < smaller.samples / found.samples < 5  # 1 / epsilon^2, times logarithms
    for bad in ({"epsilon": 0}, {"gamma": 0}, {"alpha": -1}):
        with pytest.raises(InputError):
            lemma_2_3(**{"alpha": 3, "gamma": 0.5, "parameters": 50, "epsilon": 0.1} | bad)


def test_corollary_a_1_with_equal_margins():
    bound = corollary_a_1([0.5] * 400, alpha=2, parameters=100)
    assert bound.leading == pytest.approx(11 * 2 * math.sqrt(math.log(402)) / 20 / 0.5)
    assert bound.low_order == pytest.approx(2 * math.log(200) / 400)
    with pytest.raises(InputError, match="predicted right"):
        corollary_a_1([0.5, 0], alpha=2, parameters=100)


def test_corollary_a_1_where_no_margin_is_within_reach():
    """With k = 64 corners an average is within 2 / 8, and no margin is below twice that: only the number of
    averages counts. Other k are worse: k = 32 has all samples within reach."""
    n = 10**6
    bound = corollary_a_1(np.full(n, 0.501), alpha=2, parameters=100)
    assert bound.by_averages == pytest.approx((64 * math.log(402) + math.log(200)) / n, rel=1e-9)


@pytest.fixture(scope="module")
def adder() -> ReluNet:
    net = compile(ready_circuit("adder4"), "relu", form="paper").net
    assert isinstance(net, ReluNet)
    return net


def transformer(name: str, steps: int) -> TransformerNet:
    net = compile(ready(name), "transformer", form="paper", steps=steps).net
    assert isinstance(net, TransformerNet)
    return net


def test_norms_are_those_of_the_dense_matrices(adder):
    dense = [adder.dense_layer(i) for i in range(adder.depth + 1)]
    assert relu_norm(adder) == pytest.approx(sum(np.abs(w).sum() + np.abs(b).sum() for w, b in dense))
    net = transformer("increment", 4)
    total = sum(np.abs(a).sum() for a in (net.h_0, net.E, net.theta_cls))
    for layer in net.layers:
        maps = [dense.map for dense in layer.expanded().feed_forward]
        assert len(maps) == 3
        for attention in layer.attentions():
            maps += [attention.query, attention.key, attention.value]
            total += np.abs(attention.null_key).sum() + np.abs(attention.null_value).sum()
        total += sum(np.abs(m.dense().weight).sum() + np.abs(m.bias).sum() for m in maps)
    assert transformer_norm(net) == pytest.approx(float(total))


def test_samples_grow_like_the_logarithm_of_the_width(adder):
    rows = width_rows(adder, exponents=(3, 6, 12, 24, 48))
    samples = np.array([row.samples for row in rows])
    logs = np.log(10.0) * np.array([3, 6, 12, 24, 48])
    # Affine in log w up to the further logarithm of n that Dudley's integral has.
    assert (np.diff(samples) / np.diff(logs) / samples[0] < 0.5).all()
    assert samples[-1] / samples[0] < 20
    net = transformer("increment", 16)
    wide = theorem_4_1(net, width=10**9)
    assert theorem_4_1(net).samples < wide.samples < 10 * theorem_4_1(net).samples
    with pytest.raises(InputError, match="cannot be padded"):
        theorem_3_1(adder, width=2)


def test_sizes_without_building_are_those_of_built_nets():
    machine = ready("palindrome")
    (row,) = transformer_sizes(machine, [7])
    net = transformer("palindrome", 128)
    assert row.norm == pytest.approx(transformer_norm(net), rel=1e-6)
    assert (row.layers, row.width) == (len(net.layers), net.layout.width)
    assert row.width_expression == len(machine.states) * len(machine.alphabet) + 7


def test_layers_and_norm_grow_with_the_logarithm_of_time_as_theorem_4_1_says():
    rows = transformer_sizes(ready("palindrome"), range(4, 17), largest=0)
    layers = [row.layers for row in rows]
    assert set(np.diff(layers)) == {2}
    ratios = [row.norm_over_expression for row in rows]
    assert all(a > b for a, b in itertools.pairwise(ratios))
    assert ratios[-2] / ratios[-1] < 1.01
    assert size_table(rows).count("\n") == 13
    with pytest.raises(Refused, match="one tape"):
        transformer_sizes(TuringMachine({}, "s", tapes=2), [4])
