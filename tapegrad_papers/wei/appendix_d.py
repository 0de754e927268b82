"""Appendix D, what it assumes: corrections, nice layers, bounded values and shared weights."""

from itertools import product

import jax
import numpy as np

from tapegrad.machines.library import ready
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.wei import PAPER
from tapegrad_papers.wei.blocks import TwoLayers
from tapegrad_papers.wei.chains import transformer_chain
from tapegrad_papers.wei.hidden import (
    all_ands,
    apply,
    corrected_adder,
    decoded_runs,
    random_noise,
    transformer,
    with_noise,
    worst_noise,
)
from tapegrad_papers.wei.problems import decoder_parameters
from tapegrad_papers.wei.tight import (
    attention_reaches,
    box,
    shared_margin,
)


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
    s, first, second, tried = 0.01, 0.0, 0.0, 0
    for network in (all_ands(), corrected_adder(2)):
        _, hidden = network.run(network.functions, network.corrections)
        inputs = [network.inputs, *hidden]
        for number, block in enumerate(network.chain.blocks[:-1]):
            assert isinstance(block, TwoLayers)
            theta = network.functions[number]
            for h in inputs[number][: 16 if long else 4]:
                worst, direction = worst_noise(theta, h)
                noises = [worst, *(random_noise(theta, random) for _ in range(2))]
                for noise, sign in product(noises, (-1, 1)):
                    moved = with_noise(theta, noise, sign * s)
                    change = np.linalg.norm(apply(moved, h[None]) - apply(theta, h[None]))
                    first = max(first, float(change) / (s * block.noise(s)))
                    for reach in (0.01, 0.5):
                        other = h + sign * reach * direction
                        by = np.linalg.norm(apply(moved, other[None]) - apply(moved, h[None])) / reach
                        second = max(second, float(by) / block.gain(s))
                        tried += 2
    ratios = {gap: _jump(gap) / gap for gap in (1e-2, 1e-4, 1e-6)}
    checks = {
        "ReLU layers keep the first line with the computed kappa_theta, and not with 0.9 of it": 0.9
        < first
        <= 1,
        "and the second with the computed mu, and not with 0.9 of it": 0.9 < second <= 1,
        "hard-max attention keeps the second line for no mu": ratios[1e-6] > 1e3 and ratios[1e-4] > 10,
    }
    return holds_corrected(
        checks,
        stated="|f(h, t) - f(h', t)| <= mu |h - h'| for all t near theta, also for attention (proof of "
        "Theorem 4.1)",
        measured=f"ReLU layers: at most {first:.3f} and {second:.3f} of the computed constants, {tried} "
        f"comparisons; attention: |f(h, t) - f(h', t)| / |h - h'| = {ratios[1e-2]:.2g}, {ratios[1e-4]:.2g}, "
        f"{ratios[1e-6]:.2g}",
        correction="For attention the second line must go. Two keys that tie, with equal values: perturbed "
        "parameters make the values differ "
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
    s, largest_zeta, tried = 0.01, 0.0, 0
    kinds = "noise", "inputs", "both", "noise, one unit", "inputs, one unit"
    shares: dict[str, float] = dict.fromkeys(kinds, 0.0)
    for network in (all_ands(), corrected_adder(2)):
        correction = network.chain.correction
        assert correction is not None
        _, hidden = network.run(network.functions, network.corrections)
        inputs = [network.inputs, *hidden]
        for number, block in enumerate(network.chain.blocks[:-1]):
            theta, xi = network.functions[number], network.corrections[number]
            for h, unit in product(inputs[number][: 16 if long else 4], (None, 0)):
                worst, direction = worst_noise(theta, h, unit)
                noise, gain = (
                    (block.noise, block.gain) if unit is None else (block.entry_noise, block.entry_gain)
                )
                suffix = "" if unit is None else ", one unit"
                for (what, size, reach), sign in product(
                    (("noise", s, 0.0), ("inputs", 1e-9, 0.01), ("inputs", 1e-9, 0.3), ("both", s, 0.3)),
                    (-1, 1),
                ):
                    found = apply(with_noise(theta, worst, sign * size), h[None] + sign * reach * direction)
                    change = (found - apply(theta, h[None]))[0]
                    moved = float(np.linalg.norm(change if unit is None else change[unit]))
                    share = moved / (noise(size) * size + gain(size) * reach)
                    name = what + suffix if what != "both" else what
                    shares[name] = max(shares[name], share)
                    tried += 1
            width = len(theta[-1])
            for z in [*np.eye(width)[:2], *(3 * random.normal(size=(4, width)))]:
                worst, _ = worst_noise(xi, z)
                for noise_of, sign in product((worst, random_noise(xi, random)), (-1, 1)):
                    error = np.linalg.norm(
                        apply(with_noise(xi, noise_of, sign * s), z[None]) - apply(xi, z[None])
                    )
                    scale = max(float(np.linalg.norm(z)), 1) * s * correction.kappa(s)
                    largest_zeta = max(largest_zeta, float(error) / scale)
                    tried += 1
    reaches = attention_reaches()
    checks = {
        "|f(h', t) - f(h, theta)| <= kappa_theta |t - theta| + mu |h' - h| for gates": max(shares.values())
        <= 1 + 1e-6,
        "and not with 0.9 of either constant; so for one unit of f": min(shares.values()) > 0.9,
        "|zeta(z, xi) - zeta(z, xi')| <= kappa_xi max(|z|, 1) |xi - xi'| for corrections, any z": largest_zeta
        <= 1,
        "and not with 0.9 of kappa_xi": largest_zeta > 0.9,
        "attention to the best of two keys stays up to the error that is stated, and no further": all(
            0.99 * by_proof < actual <= 1.01 * by_proof for by_proof, actual in reaches.values()
        ),
    }
    return holds_corrected(
        checks,
        stated="f_i is (kappa_theta, mu, sigma_h, sigma_theta)-nice; zeta_i Lipschitz in xi with kappa_xi",
        measured=f"{tried} comparisons with the worst noise: {min(shares.values()):.3f} to "
        f"{max(shares.values()):.3f} of the bounds for f, "
        f"{largest_zeta:.3f} for zeta; sigma_h {reaches['asks'][0]:.3f} and {reaches['answers'][0]:.3f} "
        "proved, "
        f"{reaches['asks'][1]:.3f} and {reaches['answers'][1]:.3f} found",
        correction="Both lines of D.2 are asked for together, |f(h', t) - f(h, theta)|, which is all that "
        "Lemma D.8 uses and which hard-max attention has too; the list of constants lacks sigma_xi. Of "
        "attention, "
        "the order of the scores is compared, not the values that are passed on.",
        shares_for_f=shares,
        share_for_zeta=largest_zeta,
        reaches={name: list(pair) for name, pair in reaches.items()},
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
    exponents = (4, 8, 16)
    growth = [transformer_chain(transformer(ready("increment"), 1 << e)).lambda_ for e in exponents]
    checks = {
        "max(|h_i|, 1) <= lambda for every layer and input": max(shares.values()) <= 1 + 1e-12,
        "lambda is less than twice as large as it must be": min(shares.values()) > 0.5,
        "for transformers it grows like sqrt(log T) at most": growth[2] / growth[0] <= 2.1,
    }
    return holds(
        checks,
        stated="max{|h_i(x, theta)|_2, 1} <= lambda; lambda = poly(|Z|, |A|, log T)",
        measured=f"largest norm is {min(shares.values()):.2f} to {max(shares.values()):.2f} of lambda; for T "
        f"= {', '.join(f'2^{e}' for e in exponents)} lambda is "
        + ", ".join(f"{value:.2f}" for value in growth),
        shares=shares,
        lambdas=growth,
    )


def _places(net: TransformerNet) -> list[np.ndarray]:
    """Which of all parameters of a transformer, as an attack changes them, belong to each of its layers."""
    parameters, real = decoder_parameters(net)
    leaves, structure = jax.tree.flatten(parameters)
    ends = np.cumsum([leaf.size for leaf in leaves])
    numbered = [
        np.arange(end - leaf.size, end).reshape(leaf.shape) for leaf, end in zip(leaves, ends, strict=True)
    ]
    numbers, places = jax.tree.unflatten(structure, numbered), []
    for group, own in zip(numbers["groups"], real["groups"], strict=True):
        for layer in range(len(group["b_1"])):
            kept = [group[name][layer][np.asarray(own[name])[layer] > 0] for name in group]
            places.append(np.concatenate(kept))
    return places


@PAPER.claim("Definition D.5", "Weights may be shared between layers, but not within one")
def definition_d_5(long: bool) -> Outcome:
    net = transformer(ready("increment"), 16)
    places = _places(net)
    copies = places * (net.layout.steps + 1)  # tau: every decoder step takes the same parameters
    size = 1 + max(int(pi.max()) for pi in places)
    uses = np.array([np.bincount(pi, minlength=size).max() for pi in copies])
    together = np.bincount(np.concatenate(copies), minlength=size)
    layers = 40
    bound = min(box((1.0,) * layers))
    shared, twice = shared_margin(layers), shared_margin(layers, uses=2)
    checks = {
        "no layer of the decoder has a parameter twice: a change of norm 1 is one of at most 1 in each": bool(
            (uses == 1).all()
        ),
        "each is used in all T + 1 steps, or in none": set(np.unique(together)) <= {0, net.layout.steps + 1},
        "there are T + 1 copies of every layer": len(copies) == (net.layout.steps + 1) * len(net.layers),
        "one weight for all layers of a rounded chain: the bound without sharing still holds": bound
        <= shared + 1e-9,
        "and is met": shared < 1.01 * bound,
        "one weight used twice in each layer: it does not hold": twice < 0.9 * bound,
    }
    return holds(
        checks,
        stated="tau_i(theta') picks distinct parameters, so no layer changes by more than theta' does",
        measured=f"{len(copies)} layers sharing {int((together > 0).sum()):,} parameters, none twice in a "
        "layer; a chain "
        f"of {layers} rounded weights: bound {bound:.4f}, margin {shared:.4f} with one weight for all "
        f"layers, {twice:.4f} "
        "with that weight twice in each",
        layers=len(copies),
        bound=bound,
        shared=shared,
        twice=twice,
    )
