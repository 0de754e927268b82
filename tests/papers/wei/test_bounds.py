"""Lower bounds of the all-layer margin against brute force, closed forms and formulas written out by hand."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad.attention.engines import ONE, ZERO, read_scores
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.wei.blocks import Affine
from tapegrad_papers.wei.chains import Scores, score_gaps
from tapegrad_papers.wei.margins import (
    chain_of,
    constants_at,
    layerwise_bound,
    margin_constants,
    uncorrected_log10,
)
from tests.networks.written import with_decoder


def gate_circuit(kind: str):
    make = CircuitBuilder()
    a, b = make.input("a"), make.input("b")
    make.output("y", getattr(make, kind)(a, b))
    return make.circuit(kind)


def chain(name_or_circuit, target="relu", **options):
    source = ready(name_or_circuit) if isinstance(name_or_circuit, str) else name_or_circuit
    papers = {"form": "paper"} if target == "relu" else {}
    return chain_of(compile(source, target, **papers, **options).net)


@pytest.fixture(scope="module")
def palindrome():
    return compile(ready("palindrome"), "transformer", form="paper", steps=16)


def test_norms_are_upper_bounds_of_the_true_ones():
    random = np.random.default_rng(1)
    for _ in range(50):
        weight = random.integers(-2, 3, (5, 7)) * (random.random((5, 7)) < 0.4) * 1.0
        bias = random.integers(-2, 3, 5).astype(float)
        affine = Affine.of(weight, bias)
        assert affine.norm >= np.linalg.norm(weight, 2) - 1e-12
        np.testing.assert_allclose(affine.row_norms, np.linalg.norm(weight, axis=1))
        vectors = np.array(list(itertools.product((0, 1), repeat=7))).T
        values = weight @ vectors + bias[:, None]
        assert affine.on_bits >= np.linalg.norm(values, axis=0).max() - 1e-12
        assert affine.relu_on_bits >= np.linalg.norm(np.maximum(values, 0), axis=0).max() - 1e-12


def test_theorem_d_6_for_one_gate_by_hand():
    """AND: W1 = (1, 1), b1 = -1, W2 = 1; inputs of norm sqrt(2); correction by thirds with slope 3."""
    s = 1e-3
    found = constants_at(chain(gate_circuit("and_")), s)
    assert found.lambda_ == pytest.approx(math.sqrt(2))
    assert found.mu == pytest.approx(max((1 + s) * (math.sqrt(2) + s), 2 + s))
    noise = math.sqrt((1 + 1) + ((1 + s) * math.sqrt(3)) ** 2)
    assert found.kappa_theta * found.lambda_ == pytest.approx(max(noise, math.sqrt(1 + 1)))
    kappa_xi = math.sqrt(2 * 18 + (math.sqrt(2) + math.sqrt(2) * s) ** 2 + 1)
    assert found.kappa_xi == pytest.approx(kappa_xi, rel=1e-6)
    assert found.sigma_zeta == pytest.approx(1 / 3, rel=1e-6)
    assert found.mu_0 == 0
    assert found.sigma_h == math.inf


def test_radii_are_where_the_terms_meet():
    constants = margin_constants(chain("palindrome", "transformer", form="paper", steps=16))
    others = [v for n, v in constants.terms.items() if n not in ("sigma_theta", "sigma_xi")]
    assert constants.bound == pytest.approx(min(others), rel=1e-6)
    assert constants.sigma_theta == pytest.approx(min(others), rel=1e-6)


@pytest.mark.parametrize("kind", ["and_", "or_", "xor"])
@pytest.mark.parametrize("correction", ["thirds", "quarters"])
def test_the_layer_by_layer_bound_is_sharper(kind, correction):
    found = chain(gate_circuit(kind), correction=correction)
    assert 0 < margin_constants(found).bound < layerwise_bound(found) < 0.5


def test_depth_does_not_lower_the_bounds_with_corrections_but_does_without():
    circuit = gate_circuit("and_")
    shallow, deep, deeper = (chain(circuit, depth=depth) for depth in (8, 80, 400))
    assert margin_constants(deeper).bound == margin_constants(shallow).bound
    # Errors of second order are handed on from layer to layer, and settle.
    assert layerwise_bound(deeper) == pytest.approx(layerwise_bound(deep), rel=1e-6)
    bare = [uncorrected_log10(chain(circuit, correction="none", depth=depth)) for depth in (8, 80)]
    assert bare[1] < bare[0] - 0.3


def test_padding_to_a_width_changes_no_bound():
    circuit = gate_circuit("xor")
    narrow, wide = chain(circuit), chain(circuit, width=10**9)
    assert margin_constants(wide) == margin_constants(narrow)
    assert layerwise_bound(wide) == layerwise_bound(narrow)


def test_time_enters_the_margin_of_a_transformer_through_its_logarithm_only():
    margins = [
        margin_constants(chain("palindrome", "transformer", form="paper", steps=1 << e)).bound
        for e in (4, 8, 12)
    ]
    assert margins[0] > margins[1] > margins[2] > margins[0] / 2
    product = uncorrected_log10(chain("palindrome", "transformer", form="paper", steps=64))
    assert product < -64


def test_without_corrections_theorem_d_6_says_nothing():
    found = chain(gate_circuit("and_"), correction="none")
    for bound in (margin_constants, layerwise_bound):
        with pytest.raises(Refused, match="needs corrections"):
            bound(found)


def test_other_targets_are_refused():
    with pytest.raises(Refused, match="targets relu and transformer in the paper's form"):
        chain_of(compile(ready("increment"), "simplex").net)


def test_softmax_bears_less_noise_than_hard_max():
    hard, soft = (
        chain("increment", "transformer", form="paper", steps=8, attention=a) for a in ("hardmax", "softmax")
    )
    assert 0 < margin_constants(soft).bound < layerwise_bound(soft) < layerwise_bound(hard)
    assert margin_constants(soft).sigma_zeta == pytest.approx(0.25 * (1 - 1.5 / 2))
    with pytest.raises(Refused, match="add up"):
        uncorrected_log10(soft)


def test_softmax_that_is_not_sharp_enough_has_no_bound():
    net = compile(ready("increment"), "transformer", form="paper", steps=8, attention="softmax").net
    assert isinstance(net, TransformerNet)
    with pytest.raises(Refused, match="do not absorb"):
        chain_of(with_decoder(net, dataclasses.replace(net.decoder, temperature=net.temperature - 0.1)))


def attentions(net):
    for layer in net.layers:
        for attention in (layer.self_attention, layer.encoder_attention):
            if attention is not None:
                yield attention


def test_score_gaps_are_those_of_real_scores(palindrome):
    """Against all scores that random bits give: best, next and null are as far apart as the matrices say."""
    random = np.random.default_rng(2)
    for attention in attentions(palindrome.net):
        gaps = score_gaps(attention)
        assert gaps.null == 1
        assert gaps.keys == 2
        query, key = attention.query.dense(), attention.key.dense()
        hidden = random.integers(0, 2, (300, query.width))
        queries, keys = hidden @ query.weight.T + query.bias, hidden @ key.weight.T + key.bias
        null = queries @ attention.null_key
        assert (null == null[0]).all()
        scores = np.unique(queries @ keys.T)
        best = null[0] + 1
        assert not ((scores > best - gaps.keys) & (scores < best)).any()
        assert scores.max() <= best


def test_attended_positions_stay_within_the_radius(palindrome):
    """Scores under random noise of the size allowed move by less than `stay` allows them to."""
    random = np.random.default_rng(3)
    for attention in attentions(palindrome.net):
        scores = Scores.of(attention)
        asking, answering = attention.query.dense(), attention.key.dense()
        norm = math.sqrt(asking.width)
        s = next(2.0**-k for k in range(30) if scores.stay(2.0**-k, (norm, 2.0**-k), (norm, 2.0**-k)))
        assert not scores.stay(1.0, (norm, 0.0), (norm, 0.0))
        for _ in range(20):
            asks, answers = random.integers(0, 2, (2, asking.width))

            def moved(array, s=s):
                noise = random.normal(size=np.shape(array))
                return array + s * noise / np.linalg.norm(noise)

            before = (asking.weight @ asks + asking.bias) @ (answering.weight @ answers + answering.bias)
            query = moved(asking.weight) @ moved(asks) + asking.bias
            after = query @ (moved(answering.weight) @ moved(answers) + answering.bias)
            assert abs(after - before) < scores.gaps.null


def test_weight_that_goes_astray_under_noise_is_as_claimed():
    """Softmax over as many keys as there can be, all of which just miss, and noise of the size allowed in
    matrices and vectors: what is not on the null key stays below the softness that the correction bears."""
    random, steps = np.random.default_rng(4), 30
    net = compile(ready("palindrome"), "transformer", form="paper", steps=steps, attention="softmax").net
    assert isinstance(net, TransformerNet)
    correction = chain_of(net).correction
    assert correction is not None
    leeway = math.log(1.5) / net.temperature
    largest = 0.0
    for attention in attentions(net):
        scores, width = Scores.of(attention, leeway), attention.query.width
        norm = math.sqrt(width)
        s = next(2.0**-k for k in range(40) if scores.stay(2.0**-k, (norm, 2.0**-k), (norm, 2.0**-k)))

        def moved(array, s=s):
            noise = random.normal(size=np.shape(array))
            return array + s * noise / np.linalg.norm(noise)

        def all_scores(move, asks, answers, attention=attention):
            asking, answering = attention.query.dense(), attention.key.dense()
            query = move(asking.weight) @ move(asks) + asking.bias
            key = move(answering.weight)
            keys = [key @ move(answer) + answering.bias for answer in answers]
            return np.array([move(attention.null_key), *keys]) @ query

        for _ in range(5):
            asks, answers = random.integers(0, 2, width), np.zeros((steps + 1, width), int)
            query, key = attention.query.entries(), attention.key.entries()
            compared = read_scores(query, key, np.asarray(attention.null_key)).pairs
            pairs = {answer: ask for ask, answer in compared if ask != ZERO}
            answers[:, [*pairs]] = [1 if ask == ONE else asks[ask] for ask in pairs.values()]
            for answer in answers:
                answer[random.choice([*pairs])] ^= 1
            exact, noisy = all_scores(lambda a: a, asks, answers), all_scores(moved, asks, answers)
            weights = np.exp(net.temperature * (noisy - noisy.max()))
            astray = weights[exact < exact.max()].sum() / weights.sum()
            largest = max(largest, astray)
            assert astray <= correction.softness < 0.25
    assert largest > correction.softness / 2  # so close is it already without noise
