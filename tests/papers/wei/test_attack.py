"""Attacks: what they find flips, and lies between the proved bound and what is known in closed form."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import RIGHT, Rule, TuringMachine
from tapegrad.targets.relu import ReluNet
from tapegrad_papers.wei.attack import attack, perturbation_test
from tapegrad_papers.wei.margins import all_layer_margins, chain_of, layerwise_bound, problem_of
from tapegrad_papers.wei.problems import Problem


def gate(kind: str, **options):
    make = CircuitBuilder()
    a, b = make.input("a"), make.input("b")
    make.output("y", getattr(make, kind)(a, b))
    return compile(make.circuit(kind), "relu", form="paper", **options)


def first_symbol_machine() -> TuringMachine:
    """Accepts words that begin with a, in one step."""
    return TuringMachine(
        start_state="look",
        rules={
            ("look", ("a",)): Rule(("a",), (RIGHT,), "yes"),
            ("look", ("b",)): Rule(("b",), (RIGHT,), "no"),
        },
        accept=frozenset({"yes"}),
        reject=frozenset({"no"}),
        name="first symbol",
    )


def radius_by_brute_force(margin, dimensions: int, steps: int = 61, reach: float = 1.0) -> float:
    axis = np.linspace(-reach, reach, steps)
    points = np.array(list(itertools.product(axis, repeat=dimensions)))
    flipped = np.array([margin(p) <= 0 for p in points])
    return float(np.linalg.norm(points[flipped], axis=1).min())


def test_a_linear_net_has_the_distance_to_a_plane_as_margin():
    """F = w . x + b: the least change is F / |(x, 1)|."""
    with jax.enable_x64(True):
        x = jnp.array([1.0, 1.0, 0.0])
        p = {"w": jnp.array([2.0, 0.5, 3.0]), "b": jnp.array(-1.0)}
        ones = jax.tree.map(jnp.ones_like, p)

        def margins(p, guide):
            return (p["w"] @ x + p["b"])[None]

        found = attack(Problem(p, ones, margins, lambda p: margins(p, 0.0) > 0, (ones,)))
    assert found.radius == pytest.approx(1.5 / np.sqrt(3), rel=1e-3)


def test_two_neurons_by_brute_force():
    """F = w2 relu(w1) - 1/2 at w = (1, 1), on a grid of changes of both weights."""
    with jax.enable_x64(True):
        start = jnp.ones(2)

        def margins(w, guide):
            return (w[1] * jnp.maximum(w[0], 0) - 0.5)[None]

        found = attack(Problem(start, start, margins, lambda w: margins(w, 0.0) > 0, (start,)))
    brute = radius_by_brute_force(lambda d: (1 + d[1]) * max(1 + d[0], 0) - 0.5, 2, steps=401)
    assert found.radius == pytest.approx(brute, abs=0.01)
    assert found.radius == pytest.approx(np.sqrt(2) - 1, rel=2e-3)


@pytest.mark.parametrize("correction", ["thirds", "none"])
@pytest.mark.parametrize("bits", [[1, 1], [0, 1]])
def test_the_bracket_of_a_gate(correction, bits):
    compiled = gate("and_", correction=correction)
    found = all_layer_margins(compiled, bits)
    assert found.upper is not None
    assert 0 < found.lower < found.upper
    # Changing the read-out alone flips y: the distance to a plane, as above.
    assert found.upper <= 1 / np.sqrt(1 + bits[0] * bits[1]) + 1e-6


@pytest.mark.slow
def test_what_is_found_flips_the_net_itself():
    """The change, written into the matrices of the net, gives the wrong sign in plain NumPy."""
    compiled = gate("or_")
    found = attack(problem_of(compiled, [0, 1]))
    values = np.array([0.0, 1.0])
    net = compiled.net
    assert isinstance(net, ReluNet)
    for layer in range(net.depth + 1):
        weight, bias = net.dense_layer(layer)
        rows, columns = weight.shape
        weight = weight + np.asarray(found.change["W"][layer, :rows, :columns])
        bias = bias + np.asarray(found.change["b"][layer, :rows])
        values = weight @ values + bias
        if layer < net.depth:
            values = np.maximum(values, 0)
    assert net.outputs([[0, 1]])[0, 0] == pytest.approx(1)
    assert values[0] <= 1e-9
    size = np.sqrt(sum(float((np.asarray(a) ** 2).sum()) for a in found.change.values()))
    assert size == pytest.approx(found.radius)


@pytest.mark.parametrize("kind", ["and_", "xor"])
def test_noise_below_the_bound_changes_nothing_and_noise_above_the_attack_does(kind):
    compiled = gate(kind)
    problem = problem_of(compiled, [[0, 0], [0, 1], [1, 0], [1, 1]])
    below = perturbation_test(problem, 0.999 * layerwise_bound(chain_of(compiled.net)))
    assert (below.changed, below.random) == (0, 10)
    assert below.adversarial > 0
    assert perturbation_test(problem, 1.5 * attack(problem).radius, trials=0).changed > 0


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
def test_a_transformer_is_bracketed_and_bears_noise(attention):
    compiled = compile(first_symbol_machine(), "transformer", form="paper", steps=2, attention=attention)
    problem = problem_of(compiled, "ab")
    lower = layerwise_bound(chain_of(compiled.net))
    # The problem's function is the net: same outputs at every decoder step as the reference engine.
    carry, bits = compiled.start("ab"), np.asarray(_bits(problem))
    for row in bits:
        carry = compiled.net.step(carry)
        np.testing.assert_array_equal(row, carry.output > 0.5)
    assert compiled.net.done(carry)
    report = perturbation_test(problem, 0.999 * lower, trials=5)
    assert report.changed == 0
    found = attack(problem)
    assert lower < found.radius < 1 / np.sqrt(2) + 1e-6  # theta_cls . o alone: |o| is at least sqrt(2)


@pytest.mark.slow
def test_without_corrections_a_transformer_bears_less():
    compiled = compile(first_symbol_machine(), "transformer", form="paper", steps=2)
    with_corrections, without = (
        attack(problem_of(compiled, "ab", corrections=corrections)).radius for corrections in (True, False)
    )
    assert without < with_corrections


def _bits(problem):
    with jax.enable_x64(True):
        return problem.bits(problem.parameters)


def test_bad_requests():
    with pytest.raises(Refused, match="no outputs"):
        problem_of(compile(CircuitBuilder().circuit("nothing"), "relu", form="paper"), [])
    with pytest.raises(Refused, match="too many parameters"):
        problem_of(gate("and_", width=4_000), [0, 1])
    loops = TuringMachine(
        start_state="go", rules={("go", (s,)): Rule((s,), (RIGHT,), "go") for s in "_a"}, name="loops"
    )
    with pytest.raises(InputError, match="does not halt"):
        problem_of(compile(loops, "transformer", form="paper", steps=4), "a")
