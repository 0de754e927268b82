"""Theorem D.6 and its lemmas: the margin that corrections guarantee."""

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from tapegrad.compile import Compiled, compile
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.precision import in_double
from tapegrad_papers.claims.ledger import Outcome, holds
from tapegrad_papers.claims.wei.circuits import adder, compiled_relu, every_pattern
from tapegrad_papers.claims.wei.paper import PAPER
from tapegrad_papers.claims.wei.perturbed import CorrectedNetwork, apply, corrected_adder, noisy
from tapegrad_papers.theory.attack import attack
from tapegrad_papers.theory.margin_constants import MarginConstants, margin_constants
from tapegrad_papers.theory.margins import chain_of, problem_of
from tapegrad_papers.theory.problem import Problem
from tapegrad_papers.theory.relu_problem import relu_problem


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
        "descent on "
        "all parameters.",
        brackets={name: list(pair) for name, pair in rows.items()},
        depths=depths,
    )
