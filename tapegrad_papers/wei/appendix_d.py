"""Appendix D: corrections, nice layers, bounded values and shared weights; and the margin that corrections
guarantee (Theorem D.6 and its lemmas)."""

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from tapegrad._compile import Compiled, compile
from tapegrad._precision import in_double
from tapegrad.machines.library import ready
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad_papers.ledger import Outcome, fails_as_printed, holds, holds_corrected
from tapegrad_papers.wei import PAPER
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.blocks import TwoLayers
from tapegrad_papers.wei.chains import transformer_chain
from tapegrad_papers.wei.hidden import (
    CorrectedNetwork,
    apply,
    corrected_adder,
    decoded_runs,
    noisy,
    transformer,
)
from tapegrad_papers.wei.margins import MarginConstants, chain_of, margin_constants, problem_of
from tapegrad_papers.wei.problems import Problem, relu_problem
from tapegrad_papers.wei.section_3 import adder, compiled_relu, every_pattern


def _ball(random: np.random.Generator, count: int, size: int, radius: float) -> np.ndarray:
    """Vectors of this norm: in random directions, and with all of it on one coordinate."""
    found = random.normal(size=(count, size))
    found[: count // 4] = np.eye(size)[random.integers(size, size=count // 4)]
    return radius * found / np.linalg.norm(found, axis=1, keepdims=True)


@PAPER.claim("Definition D.1", "Corrections restore every layer value from anything within their radius")
def definition_d_1(long: bool) -> Outcome:
    random = np.random.default_rng(0)
    worst = beyond = 0.0
    tried = 0
    for bits in (1, 2, 3) if long else (1, 2):
        network = corrected_adder(bits)
        correction = network.chain.correction
        assert correction is not None
        _, hidden = network.run(network.functions, network.corrections)
        for number, values in enumerate(hidden):
            for share in (0.1, 0.9, 1.0):
                noise = _ball(random, len(values), values.shape[1], share * correction.radius)
                found = apply(network.corrections[number], values + noise)
                worst = max(worst, float(np.abs(found - np.round(values)).max()))
                tried += len(values)
            outside = _ball(random, len(values), values.shape[1], 1.5 * correction.radius)
            found = apply(network.corrections[number], values + outside)
            beyond = max(beyond, float(np.abs(found - np.round(values)).max()))
    network = corrected_adder(1)
    plain, with_corrections = network.run(network.functions, network.corrections)
    checks = {
        "zeta_i(h^) = h_i for |h^ - h_i| <= 1/3, on every layer": worst < 1e-14,
        "not so at 1.5 times that distance": beyond > 0.1,
        "F with corrections equals F without noise: outputs are -1 and +1": bool(
            np.allclose(np.abs(plain[-1]), 1, atol=1e-14)
        ),
        "h_0 = zeta_0(g_0), as Lemma D.7 uses it": np.allclose(
            apply(network.corrections[0], plain[0]), with_corrections[0], atol=1e-14
        ),
    }
    return holds_corrected(
        checks,
        stated="zeta_i(h^, xi_i) = h_i(x, theta) for all |h^ - h_i|_2 <= sigma_zeta",
        measured=f"{tried} noisy layer values restored to {worst:.1g}; beyond the radius off by up to "
        f"{beyond:.2f}",
        correction="(D.1) must read h_i = zeta_i(g_i), not zeta_i(g_(i-1)); f_i takes no xi_i; i = 0 is "
        "included, and h^ is in R^w.",
        restored_to=worst,
        beyond_radius=beyond,
    )


@PAPER.claim("Definition D.2", "Nice functions: Lipschitz in parameters and in inputs, near the true ones")
def definition_d_2(long: bool) -> Outcome:
    random = np.random.default_rng(1)
    s, first, second, tried = 0.05, 0.0, 0.0, 0
    network = corrected_adder(2)
    _, hidden = network.run(network.functions, network.corrections)
    inputs = [network.inputs, *hidden]
    for number, block in enumerate(network.chain.blocks[:-1]):
        assert isinstance(block, TwoLayers)
        for trial in range(60 if long else 20):
            theta = network.functions[number]
            size = s * random.random()
            moved = noisy(theta, size, random, spread=trial % 2 == 0)
            h = inputs[number]
            change = np.linalg.norm(apply(moved, h) - apply(theta, h), axis=1).max()
            first = max(first, change / (size * block.noise(s)))
            other = h + _ball(random, len(h), h.shape[1], random.random())
            distance = np.linalg.norm(other - h, axis=1)
            moved_by = np.linalg.norm(apply(moved, other) - apply(moved, h), axis=1)
            second = max(second, float((moved_by / distance).max()) / block.gain(s))
            tried += 2 * len(h)
    ratios = {gap: _jump(gap) / gap for gap in (1e-2, 1e-4, 1e-6)}
    checks = {
        "ReLU layers keep the first line with the computed kappa_theta": 0 < first <= 1,
        "and the second with the computed mu": 0 < second <= 1,
        "hard-max attention keeps the second line for no mu": ratios[1e-6] > 1e3 and ratios[1e-4] > 10,
    }
    return fails_as_printed(
        checks,
        stated="|f(h, t) - f(h', t)| <= mu |h - h'| for all t near theta, also for attention (proof of "
        "Theorem 4.1)",
        measured=f"ReLU layers: at most {first:.2f} and {second:.2f} of the computed constants, {tried} "
        f"comparisons; attention: |f(h, t) - f(h', t)| / |h - h'| = {ratios[1e-2]:.2g}, {ratios[1e-4]:.2g}, "
        f"{ratios[1e-6]:.2g}",
        counterexample="Two keys that tie, with equal values: perturbed parameters make the values differ "
        "while the tie remains, and then a step h' - h of any size, however small, makes one of them win. "
        "Lemma D.8 only uses both lines together, |f(h', t) - f(h, theta)|, and that is bounded: the bounds "
        "here use it.",
        share_of_kappa=first,
        share_of_mu=second,
        attention_ratios={str(gap): ratio for gap, ratio in ratios.items()},
    )


def _jump(gap: float) -> float:
    """Hard-max attention with two keys that tie and one coordinate each as value, W_V off by 0.01: how far
    the output moves when the first key moves by `gap`."""
    W_V = np.array([[1.0, 0.0, 0.01], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])  # the 0.01 is the noise

    def attend(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        query = np.array([0.0, 1.0, 0.0])
        scores = np.array([query @ first, query @ second])
        values = np.array([W_V @ first, W_V @ second])
        return values[scores == scores.max()].mean(axis=0)

    one, two = np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, 1.0])  # same key, same value before the noise
    nudged = one + np.array([0.0, gap, 0.0])
    return float(np.linalg.norm(attend(nudged, two) - attend(one, two)))


@PAPER.claim(
    "Condition D.3", "The layers of the constructed nets are nice, with constants read off the matrices"
)
def condition_d_3(long: bool) -> Outcome:
    random = np.random.default_rng(2)
    s, largest_f, largest_zeta, tried = 0.02, 0.0, 0.0, 0
    network = corrected_adder(2)
    correction = network.chain.correction
    assert correction is not None
    _, hidden = network.run(network.functions, network.corrections)
    inputs = [network.inputs, *hidden]
    for number, block in enumerate(network.chain.blocks[:-1]):
        for trial in range(60 if long else 20):
            size, reach = s * random.random(), random.random()
            moved = noisy(network.functions[number], size, random, spread=trial % 2 == 0)
            h = inputs[number]
            other = h + _ball(random, len(h), h.shape[1], reach)
            change = np.linalg.norm(apply(moved, other) - apply(network.functions[number], h), axis=1).max()
            largest_f = max(largest_f, change / (block.noise(s) * size + block.gain(s) * reach))
            z = 3 * random.normal(size=(50, len(network.functions[number][-1])))
            xi = network.corrections[number]
            bent = noisy(xi, size, random, spread=trial % 2 == 0)
            error = np.linalg.norm(apply(bent, z) - apply(xi, z), axis=1)
            scale = np.maximum(np.linalg.norm(z, axis=1), 1) * size * correction.kappa(s)
            largest_zeta = max(largest_zeta, float((error / scale).max()))
            tried += len(h) + len(z)
    checks = {
        "|f(h', t) - f(h, theta)| <= kappa_theta |t - theta| + mu |h' - h| for gates": 0 < largest_f <= 1,
        "|zeta(z, xi) - zeta(z, xi')| <= kappa_xi max(|z|, 1) |xi - xi'| for corrections, any z": 0
        < largest_zeta
        <= 1,
    }
    return holds_corrected(
        checks,
        stated="f_i is (kappa_theta, mu, sigma_h, sigma_theta)-nice; zeta_i Lipschitz in xi with kappa_xi",
        measured=f"{tried} comparisons: at most {largest_f:.2f} of the bound for f, {largest_zeta:.2f} for "
        "zeta",
        correction="Both lines of D.2 are asked for together, |f(h', t) - f(h, theta)|, which is all that "
        "Lemma D.8 uses and which hard-max attention has too; the list of constants lacks sigma_xi.",
        share_for_f=largest_f,
        share_for_zeta=largest_zeta,
    )


@PAPER.claim("Condition D.4", "One number lambda bounds the norms of all layer values")
def condition_d_4(long: bool) -> Outcome:
    shares = {}
    for bits in (1, 2, 3):
        network = corrected_adder(bits)
        before, hidden = network.run(network.functions, network.corrections)
        values = [network.inputs, *before, *hidden]
        largest = max(float(np.linalg.norm(v, axis=1).max()) for v in values)
        shares[f"adder {bits}"] = largest / network.chain.lambda_
    for run in decoded_runs(long):
        vectors = [v for step in run.hidden for v in step] + run.inputs
        largest = max(float(np.linalg.norm(v)) for v in vectors)
        name = f"transformer, T = {run.net.layout.steps}, {len(run.net.layout.states)} states"
        shares[name] = largest / transformer_chain(run.net).lambda_
    growth = [transformer_chain(transformer(ready("increment"), 1 << e)).lambda_ for e in (4, 8, 16)]
    checks = {
        "max(|h_i|, 1) <= lambda for every layer and input": max(shares.values()) <= 1 + 1e-12,
        "lambda is not far too large": min(shares.values()) > 0.3,
        "for transformers it grows like sqrt(log T) at most": growth[2] / growth[0] <= 2.1,
    }
    return holds(
        checks,
        stated="max{|h_i(x, theta)|_2, 1} <= lambda; lambda = poly(|Z|, |A|, log T)",
        measured=f"largest norm is {min(shares.values()):.2f} to {max(shares.values()):.2f} of lambda; for T "
        f"= 2^4, 2^8, 2^16 lambda is {', '.join(f'{value:.2f}' for value in growth)}",
        shares=shares,
        lambdas=growth,
    )


@PAPER.claim("Definition D.5", "Weights may be shared between layers, but not within one")
def definition_d_5(long: bool) -> Outcome:
    random = np.random.default_rng(3)
    net = transformer(ready("increment"), 16)
    maps = [layer.feed_forward[0].map for layer in net.layers]
    sizes = [len(own) * (own.width + 1) for own in maps]
    places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    copies = places * (net.layout.steps + 1)  # tau: every decoder step takes the same parameters
    largest = 0.0
    for _ in range(20):
        change = random.normal(size=sum(sizes)) * random.choice([0.0, 1.0], sum(sizes))
        change /= np.linalg.norm(change)
        largest = max(largest, max(float(np.linalg.norm(change[pi])) for pi in copies[: len(places)]))
    distinct = all(len(set(pi.tolist())) == len(pi) for pi in copies)
    checks = {
        "the decoder's copies are distinct indices within each layer": distinct,
        "there are T + 1 copies of every layer": len(copies) == (net.layout.steps + 1) * len(net.layers),
        "a change of norm 1 of the shared parameters is a change of norm at most 1 in each layer": largest
        <= 1,
    }
    return holds(
        checks,
        stated="tau_i(theta') picks distinct parameters, so no layer changes by more than theta' does",
        measured=f"{len(copies)} layers sharing {sum(sizes):,} parameters: largest change of a layer "
        f"{largest:.3f}",
        note="With a parameter twice in one layer, a change of it would count sqrt(2) times there.",
        layers=len(copies),
        largest_change=largest,
    )


def _transformer() -> Compiled:
    """A two-state machine that accepts words with an even number of ones."""
    rules = {
        ("even", ("1",)): Rule(("1",), (1,), "odd"),
        ("odd", ("1",)): Rule(("1",), (1,), "even"),
        ("even", ("_",)): Rule(("_",), (1,), "yes"),
        ("odd", ("_",)): Rule(("_",), (1,), "no"),
    }
    machine = TuringMachine(rules, "even", accept=frozenset({"yes"}), reject=frozenset({"no"}), name="even")
    return compile(machine, "transformer", steps=4)


def _limits(constants: MarginConstants) -> tuple[float, float]:
    """(D.7) and (D.8): how much noise each f_i and each correction may have."""
    terms = constants.terms
    theta = ("sigma_theta", "1 / (2 kappa_theta)", "sigma_zeta / (2 kappa_theta lambda)")
    return min(terms[name] for name in theta), min(
        value for name, value in terms.items() if name not in theta and "mu_0" not in name
    )


@PAPER.claim("Lemma D.7", "Noise within (D.6) on the first layer is within reach of the first correction")
def lemma_d_7(long: bool) -> Outcome:
    random = np.random.default_rng(0)
    used, restored, tried = 0.0, 0.0, 0
    for bits in (1, 2, 3) if long else (1, 2):
        network = corrected_adder(bits)
        constants = margin_constants(network.chain)
        block = network.chain.blocks[0]
        mu_0 = block.noise(1.0)  # the first layer of gates as f_0: its noise does not exceed 1 here
        limit = min(constants.lambda_ / mu_0, constants.sigma_zeta / mu_0)
        truth = network.run(network.functions, network.corrections)[0][0]
        for trial in range(100 if long else 30):
            moved = noisy(network.functions[0], limit, random, spread=trial % 2 == 0)
            g_0 = apply(moved, network.inputs)
            distance = float(np.linalg.norm(g_0 - truth, axis=1).max())
            used = max(used, distance / min(constants.lambda_, constants.sigma_zeta))
            restored = max(restored, float(np.abs(apply(network.corrections[0], g_0) - truth).max()))
            tried += 1
    checks = {
        "|g_0 - h_0| <= min(lambda, sigma_zeta)": 0 < used <= 1,
        "the first correction restores h_0": restored < 1e-13,
    }
    return holds(
        checks,
        stated="|g_0(x, theta^) - h_0| <= min{lambda, sigma_zeta} and zeta_0(g_0) = h_0 under (D.6)",
        measured=f"{tried} perturbations at the limit: up to {used:.2f} of the radius, restored to "
        f"{restored:.1g}",
        share_of_radius=used,
        restored_to=restored,
    )


def _worst_layer(network: CorrectedNetwork, trials: int) -> tuple[float, float, float]:
    """With noise at the limits (D.7) and (D.8) on every layer: the largest |g_i - h_i| as a share of
    min(lambda, sigma_zeta), how exactly an unperturbed correction restores it, how far outputs move."""
    random = np.random.default_rng(1)
    constants = margin_constants(network.chain)
    theta_limit, xi_limit = _limits(constants)
    truth, hidden = network.run(network.functions, network.corrections)
    share = restored = moved = 0.0
    for trial in range(trials):
        spread = trial % 2 == 0
        theta = [noisy(f, theta_limit, random, spread) for f in network.functions]
        xi = [noisy(c, xi_limit, random, spread) for c in network.corrections]
        before, _ = network.run(theta, xi)
        for number, (found, right) in enumerate(zip(before, truth, strict=True)):
            distance = float(np.linalg.norm(found - right, axis=1).max())
            share = max(share, distance / min(constants.lambda_, constants.sigma_zeta))
            if number < len(hidden):
                again = apply(network.corrections[number], found)
                restored = max(restored, float(np.abs(again - hidden[number]).max()))
        moved = max(moved, float(np.abs(before[-1] - truth[-1]).max()))
    return share, restored, moved


@PAPER.claim("Lemma D.8", "Noise within (D.7) and (D.8) on all layers stays within reach of every correction")
def lemma_d_8(long: bool) -> Outcome:
    found = [
        _worst_layer(corrected_adder(bits), 60 if long else 20) for bits in ((1, 2, 3) if long else (1, 2))
    ]
    share, restored, moved = (max(column) for column in zip(*found, strict=True))
    checks = {
        "|g_i - h_i| <= min(lambda, sigma_zeta) at every layer": 0 < share <= 1,
        "an unperturbed correction gives h_i again": restored < 1e-13,
        "no output moves by 1": moved < 1,
    }
    return holds(
        checks,
        stated="|g_i(x, theta^, xi^) - h_i| <= min{lambda, sigma_zeta} and zeta_i(g_i, xi_i) = h_i",
        measured=f"up to {share:.3f} of the radius at any layer; restored to {restored:.1g}; outputs moved "
        f"{moved:.3f} at most",
        share_of_radius=share,
        restored_to=restored,
        output_moved=moved,
    )


@in_double
def _changed(problem: Problem, *radii: float) -> list[int]:
    """For each radius: how many of 20 random changes of all parameters, of that norm, change a bit."""
    flat, unravel = ravel_pytree(problem.parameters)
    real, _ = ravel_pytree(problem.real)
    bits = jax.jit(lambda parameters: problem.bits(unravel(parameters)))
    before, found = bits(flat), []
    for radius in radii:
        noise = np.random.default_rng(2).normal(size=(20, len(flat))) * np.asarray(real)
        noise *= radius / np.linalg.norm(noise, axis=1, keepdims=True)
        found.append(sum(bool((bits(flat + row) != before).any()) for row in noise))
    return found


@PAPER.claim("Lemma D.9", "Norm bounds for each layer give a margin bound: the least of them, shared or not")
def lemma_d_9(long: bool) -> Outcome:
    net = compiled_relu(adder(1))[1]
    constants = margin_constants(chain_of(net))
    least = min(_limits(constants))
    (relu,) = _changed(relu_problem(net, every_pattern(2)), least)
    compiled = _transformer()
    shared_bound = margin_constants(chain_of(compiled.net)).bound
    changed, by_much = _changed(problem_of(compiled, "11"), shared_bound, 30.0)
    checks = {
        "ReLU net: noise of the least norm on all layers together changes nothing": relu == 0,
        "transformer, weights shared by all steps: the same": changed == 0,
        "noise of norm 30 does change its outputs": by_much > 0,
    }
    return holds(
        checks,
        stated="rho >= min{a_0, ..., a_d, b_0, ..., b_(d-1)}, also with shared weights",
        measured=f"ReLU net: 20 changes of norm {least:.4g}, {relu} change a bit; transformer: 20 of norm "
        f"{shared_bound:.4g}, {changed} change one",
        relu_bound=least,
        shared_bound=shared_bound,
    )


@PAPER.claim("Theorem D.6", "Corrections guarantee a margin that does not depend on the number of layers")
def theorem_d_6(long: bool) -> Outcome:
    rows = {}
    for bits in (1, 2, 3) if long else (1,):
        net = compiled_relu(adder(bits))[1]
        lower = margin_constants(chain_of(net)).bound
        upper = attack(relu_problem(net, every_pattern(2 * bits)[:64])).radius
        rows[f"adder {bits}"] = (lower, upper)
    if long:
        compiled = _transformer()
        lower = margin_constants(chain_of(compiled.net)).bound
        rows["transformer"] = (lower, attack(problem_of(compiled, "11")).radius)
    depths = {}
    for layers in (2, 8, 32):
        net = compiled_relu(adder(1), depth=4 * layers)[1]
        depths[layers] = margin_constants(chain_of(net)).bound
    checks = {
        "the bound is positive and below what an attack needs": all(
            0 < low <= up for low, up in rows.values()
        ),
        "attacks do succeed": all(up < 4 for _, up in rows.values()),
        "2, 8 and 32 layers of the same width have the same bound": bool(
            np.ptp(list(depths.values())) < 1e-12
        ),
    }
    return holds(
        checks,
        stated="rho >= the least of the nine terms of (D.5), for every input",
        measured="; ".join(f"{name}: {low:.2g} <= rho <= {up:.2g}" for name, (low, up) in rows.items()),
        note="The nine constants are read off the nets' own matrices; the attack is projected gradient "
        "descent on all parameters.",
        brackets={name: list(pair) for name, pair in rows.items()},
        depths=depths,
    )
