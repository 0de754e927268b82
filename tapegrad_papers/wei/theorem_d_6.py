"""Theorem D.6 and its lemmas: the margin that corrections guarantee."""

import math
from dataclasses import replace

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from tapegrad._compile import Compiled, compile
from tapegrad._precision import in_double
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad_papers.ledger import Outcome, holds
from tapegrad_papers.wei import PAPER
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.hidden import (
    CorrectedNetwork,
    all_ands,
    apply,
    corrected_adder,
    noisy,
    with_noise,
    worst_noise,
)
from tapegrad_papers.wei.margins import (
    chain_of,
    from_each_layer,
    largest,
    margin_constants,
    problem_of,
)
from tapegrad_papers.wei.problems import Problem, relu_problem
from tapegrad_papers.wei.section_3 import adder, compiled_relu, every_pattern
from tapegrad_papers.wei.tight import (
    box,
    chain_margin,
    limits,
    limits_are_met,
    margin_over_bound,
    margin_with_rounding,
    shared_margin,
    shares_at_the_limits,
)


def even_ones() -> Compiled:
    """A two-state machine that accepts words with an even number of ones."""
    rules = {
        ("even", ("1",)): Rule(("1",), (1,), "odd"),
        ("odd", ("1",)): Rule(("1",), (1,), "even"),
        ("even", ("_",)): Rule(("_",), (1,), "yes"),
        ("odd", ("_",)): Rule(("_",), (1,), "no"),
    }
    machine = TuringMachine(rules, "even", accept=frozenset({"yes"}), reject=frozenset({"no"}), name="even")
    return compile(machine, "transformer", form="paper", steps=4)


@PAPER.claim("Lemma D.7", "Noise within (D.6) on the first layer is within reach of the first correction")
def lemma_d_7(long: bool) -> Outcome:
    used = restored = 0.0
    for network in (all_ands(), corrected_adder(1), *([corrected_adder(3)] if long else [])):
        constants, block = margin_constants(network.chain), network.chain.blocks[0]
        # The first layer of gates as f_0: the largest noise s for which (D.6) with mu_0 = noise(s) allows s.
        limit = largest(lambda s, k=constants, f=block: s <= limits(replace(k, mu_0=f.noise(s)))[2])
        truth = network.run(network.functions, network.corrections)[0][0]
        for number, h in enumerate(network.inputs):
            worst, _ = worst_noise(network.functions[0], h)
            for sign in (-1, 1):
                g_0 = apply(with_noise(network.functions[0], worst, sign * limit), h[None])[0]
                distance = float(np.linalg.norm(g_0 - truth[number]))
                used = max(used, distance / min(constants.lambda_, constants.sigma_zeta))
                again = apply(network.corrections[0], g_0[None])[0]
                restored = max(restored, float(np.abs(again - truth[number]).max()))
    at_limits = {name: share for name, share, _ in shares_at_the_limits()}
    exact = next(own for name, _, own in shares_at_the_limits() if name == "sigma_zeta / mu_0")
    checks = {
        "|g_0 - h_0| <= min(lambda, sigma_zeta) with the worst noise": used <= 1,
        "and not with 0.85 of it": used > 0.85,
        "the first correction restores h_0": restored < 1e-13,
        "met exactly where f_0 is linear": max(at_limits.values()) <= 1 + 1e-9 and math.isclose(exact, 1),
    }
    return holds(
        checks,
        stated="|g_0(x, theta^) - h_0| <= min{lambda, sigma_zeta} and zeta_0(g_0) = h_0 under (D.6)",
        measured=f"worst noise at the limit: up to {used:.3f} of the radius, restored to {restored:.1g}; one "
        "number: "
        f"{exact:.3f} of it",
        share_of_radius=used,
        restored_to=restored,
    )


def _worst_layer(network: CorrectedNetwork, trials: int) -> tuple[float, float, float]:
    """With noise at the limits (D.7) and (D.8) on every layer: the largest |g_i - h_i| as a share of
    min(lambda, sigma_zeta), how exactly an unperturbed correction restores it, how far outputs move."""
    random = np.random.default_rng(1)
    constants = margin_constants(network.chain)
    theta_limit, xi_limit, _ = limits(constants)
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
    at_limits = {name: (most, own) for name, most, own in shares_at_the_limits()}
    checks = {
        "|g_i - h_i| <= min(lambda, sigma_zeta) at every layer of adders": 0 < share <= 1,
        "an unperturbed correction gives h_i again": restored < 1e-13,
        "no output moves by 1": moved < 1,
        "one number, all limits at once: nothing is further off than it may be": all(
            most <= 1 + 1e-9 for most, _ in at_limits.values()
        ),
        "and each limit is met to 1%, or to 25% with lambda = 8": limits_are_met(),
    }
    return holds(
        checks,
        stated="|g_i(x, theta^, xi^) - h_i| <= min{lambda, sigma_zeta} and zeta_i(g_i, xi_i) = h_i",
        measured=f"adders: up to {share:.3f} of the radius at any layer; restored to {restored:.1g}; outputs "
        "moved "
        f"{moved:.3f} at most; one number: {min(own for _, own in at_limits.values()):.3f} to "
        f"{max(own for _, own in at_limits.values()):.3f} of the limits",
        note="Of the nine terms, lambda / mu_0, 1 / (2 kappa_theta) and 1 / (4 mu kappa_xi) never decide, "
        "since "
        "sigma_zeta < 1 <= lambda; for the other six there is a net of one number that meets them.",
        share_of_radius=share,
        restored_to=restored,
        output_moved=moved,
        limits=at_limits,
    )


CHANGES = 20


@in_double
def _changed(problem: Problem, *radii: float) -> list[int]:
    """For each radius: how many of `CHANGES` random changes of all parameters, of that norm, change a bit."""
    flat, unravel = ravel_pytree(problem.parameters)
    real, _ = ravel_pytree(problem.real)
    bits = jax.jit(lambda parameters: problem.bits(unravel(parameters)))
    before, found = bits(flat), []
    for radius in radii:
        noise = np.random.default_rng(2).normal(size=(CHANGES, len(flat))) * np.asarray(real)
        noise *= radius / np.linalg.norm(noise, axis=1, keepdims=True)
        found.append(sum(bool((bits(flat + row) != before).any()) for row in noise))
    return found


@PAPER.claim("Lemma D.9", "Norm bounds for each layer give a margin bound: the least of them, shared or not")
def lemma_d_9(long: bool) -> Outcome:
    net = compiled_relu(adder(1))[1]
    constants = margin_constants(chain_of(net))
    least = from_each_layer(limits(constants)[:2])
    (relu,) = _changed(relu_problem(net, every_pattern(2)), least)
    compiled = even_ones()
    shared_bound = margin_constants(chain_of(compiled.net)).bound
    changed, by_much = _changed(problem_of(compiled, "11"), shared_bound, 30.0)
    # Chains whose box of norm bounds is known: equal layers, one layer with twice the slope, one weight.
    even, steep = (1.0,) * 8, (1.0, 1.0, 2.0, 1.0)
    rows = {
        "equal layers": (from_each_layer(box(even)), margin_with_rounding(len(even))),
        "one steep layer": (from_each_layer(box(steep)), chain_margin(steep)),
        "one weight for all": (from_each_layer(box(even)), shared_margin(len(even))),
    }
    checks = {
        "ReLU net: noise of the least norm on all layers together changes nothing": relu == 0,
        "transformer, weights shared by all steps: the same": changed == 0,
        "noise of norm 30 does change its outputs": by_much > 0,
        "rounded chains: the least a_i is at most the margin": all(
            low <= up + 1e-9 for low, up in rows.values()
        ),
        "and at least half of it; all of it where one weight is shared by all layers": all(
            up < 1.6 * low for low, up in rows.values()
        )
        and math.isclose(*rows["one weight for all"]),
    }
    return holds(
        checks,
        stated="rho >= min{a_0, ..., a_d, b_0, ..., b_(d-1)}, also with shared weights",
        measured=f"ReLU net: {CHANGES} changes of norm {least:.4g}, {relu} change a bit; transformer: "
        f"{CHANGES} of norm {shared_bound:.4g}, {changed} change one; rounded chains: "
        + "; ".join(f"{name} {low:.4f} <= rho = {up:.4f}" for name, (low, up) in rows.items()),
        relu_bound=least,
        shared_bound=shared_bound,
        chains={name: list(pair) for name, pair in rows.items()},
    )


def _by_singular_values(network: CorrectedNetwork) -> dict[str, float]:
    """Constants of Theorem D.6 once more, from dense matrices and their singular values, for small noise."""

    def norm(matrix: np.ndarray) -> float:
        return float(np.linalg.norm(matrix, 2))

    before, after = network.run(network.functions, network.corrections)
    inputs = [network.inputs, *after]
    noise, gain, largest_value = [], [], [np.linalg.norm(before[-1], axis=1).max()]
    for values, layers in zip(inputs, network.functions, strict=True):
        wide = np.linalg.norm(values, axis=1).max()
        largest_value.append(wide)
        if len(layers) == 2:  # the read-out
            noise.append(math.hypot(wide, 1))
            gain.append(norm(layers[0]))
            continue
        inner = np.linalg.norm(np.maximum(values @ layers[0].T + layers[1], 0), axis=1).max()
        largest_value.append(inner)
        noise.append(math.hypot(math.hypot(inner, 1), norm(layers[2]) * math.hypot(wide, 1)))
        gain.append(norm(layers[0]) * norm(layers[2]))
    cuts, difference = network.corrections[0][0], network.corrections[0][2]
    lambda_ = float(max(1.0, *largest_value))
    return {
        "kappa_theta lambda": max(noise),
        "kappa_xi": math.hypot(math.sqrt(2) * norm(difference), norm(cuts), 1),
        "mu": max(gain),
        "lambda": lambda_,
    }


@PAPER.claim("Theorem D.6", "Corrections guarantee a margin that does not depend on the number of layers")
def theorem_d_6(long: bool) -> Outcome:
    rows, constants_over = {}, {}
    for bits in (1, 2, 3) if long else (1,):
        net = compiled_relu(adder(bits))[1]
        own = margin_constants(chain_of(net))
        upper = attack(relu_problem(net, every_pattern(2 * bits)[:64])).radius
        rows[f"adder {bits}"] = (own.bound, upper)
        plain = _by_singular_values(corrected_adder(bits))
        mine = own.kappa_theta * own.lambda_, own.kappa_xi, own.mu, own.lambda_
        constants_over |= {f"{k}, adder {bits}": a / b for (k, b), a in zip(plain.items(), mine, strict=True)}
    if long:
        compiled = even_ones()
        lower = margin_constants(chain_of(compiled.net)).bound
        rows["transformer"] = (lower, attack(problem_of(compiled, "11")).radius)
    depths = {}
    for layers in (2, 8, 32):
        net = compiled_relu(adder(1), depth=4 * layers)[1]
        depths[layers] = margin_constants(chain_of(net)).bound
    over = margin_over_bound()
    checks = {
        "the bound is positive and below what an attack needs": all(
            0 < low <= up for low, up in rows.values()
        ),
        "attacks do succeed": all(up < 4 for _, up in rows.values()),
        "2, 8 and 32 layers of the same width have the same bound": bool(
            np.ptp(list(depths.values())) < 1e-12
        ),
        "constants are at least what singular values give, and at most 1.9 times that": all(
            1 - 1e-9 <= ratio < 1.9 for ratio in constants_over.values()
        ),
        "nets of one number: the bound is at most their margin": min(over.values()) >= 1 - 1e-9,
        "and more than half of it": max(over.values()) < 2,
        "and every term that can decide is met, to 1%, or to 25% with lambda = 8": limits_are_met(),
    }
    return holds(
        checks,
        stated="rho >= the least of the nine terms of (D.5), for every input",
        measured="; ".join(f"{name}: {low:.2g} <= rho <= {up:.2g}" for name, (low, up) in rows.items())
        + f"; nets of one number: rho is {min(over.values()):.2f} to {max(over.values()):.2f} of the bound",
        note="The nine constants are read off the nets' own matrices; the attack is projected gradient "
        "descent on all parameters.",
        brackets={name: list(pair) for name, pair in rows.items()},
        depths=depths,
        constants=constants_over,
        one_number=over,
    )
