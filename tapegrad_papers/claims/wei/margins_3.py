"""Section 3: margins of circuits as networks, with and without corrections, and the samples they save."""

import math

import numpy as np

from tapegrad_papers.claims.ledger import Outcome, asymptotic, holds
from tapegrad_papers.claims.wei.circuits import adder, compiled_relu, every_pattern, layered_of
from tapegrad_papers.claims.wei.paper import PAPER
from tapegrad_papers.theory.attack import attack
from tapegrad_papers.theory.claim_3_5 import claim_3_5 as chain_margins
from tapegrad_papers.theory.layerwise import uncorrected_log10
from tapegrad_papers.theory.margin_constants import margin_constants
from tapegrad_papers.theory.perturbation import perturbation_test
from tapegrad_papers.theory.relu_chain import relu_chain
from tapegrad_papers.theory.relu_problem import relu_problem
from tapegrad_papers.theory.theorems import relu_norm, width_rows


@PAPER.claim("Lemma 3.3", "With corrections between the layers the all-layer margin is at least 1 / poly(s)")
def lemma_3_3(long: bool) -> Outcome:
    rows = []
    for bits in (1, 2, 4, 8, 16) if long else (1, 2, 4, 8):
        compiled, net = compiled_relu(adder(bits))
        bare = compiled_relu(adder(bits), correction="none")[1]
        rows.append(
            {
                "gates": layered_of(compiled).size,
                "layers": net.circuit_layers,
                "margin": margin_constants(relu_chain(net)).bound,
                "uncorrected_log10": uncorrected_log10(relu_chain(bare)),
            }
        )
    first, last = rows[0], rows[-1]
    power = -math.log(last["margin"] / first["margin"]) / math.log(last["gates"] / first["gates"])
    decay = (last["uncorrected_log10"] - first["uncorrected_log10"]) / (last["layers"] - first["layers"])
    deep = compiled_relu(adder(1), depth=4 * 40)[1]
    deep_margin = margin_constants(relu_chain(deep)).bound
    net = compiled_relu(adder(1))[1]
    problem = relu_problem(net, every_pattern(2))
    noise = perturbation_test(problem, first["margin"], trials=20)
    upper = attack(problem).radius
    checks = {
        "the margin falls no faster than 1 / s": 0 <= power <= 1,
        "40 layers have the margin of a few": math.isclose(deep_margin, first["margin"], rel_tol=1e-9),
        "without corrections what is proved falls by a factor for each layer": decay < math.log10(1 / 1.5),
        "noise of the proved norm changes no output bit": noise.changed == 0 < noise.random,
        "an attack needs more": upper >= first["margin"],
        "but noise can flip the net": upper < 2,
    }
    return asymptotic(
        checks,
        stated="rho >= 1 / poly(s) for all x",
        measured="; ".join(f"s = {r['gates']}: rho >= {r['margin']:.2g}" for r in rows)
        + f"; like s^-{power:.2f}; without corrections "
        f"10^{decay:.2f} for each layer; attack on the smallest: {upper:.3f}",
        instead="Theorem D.6 on adders of growing size, each with its own constants; the exponent is fitted.",
        rows=rows,
        exponent=power,
        uncorrected_decades_per_layer=decay,
        attack=upper,
        margin_of_40_layers=deep_margin,
    )


@PAPER.claim("Claim 3.5", "Rounding between the weights of a chain keeps its margin above 1/3")
def claim_3_5(long: bool) -> Outcome:
    depths = (1, 2, 4, 8, 16, 32, 64) if long else (1, 2, 4, 8)
    rows = chain_margins(depths)
    same = all(_chain(depth, rounding) == 0.5 for depth in depths for rounding in (False, True))
    falls = [row.without_rounding * math.sqrt(row.depth) for row in rows]
    checks = {
        "both chains give 1/2 at weights 1": same,
        "with rounding the margin is at least 1/3 at every depth": min(r.with_rounding for r in rows)
        >= 1 / 3,
        "no attack does better than the dynamic programme": all(
            r.with_rounding_attacked >= r.with_rounding - 1e-3 for r in rows
        ),
        "nor better than the closed form without rounding": all(
            r.without_rounding_attacked >= r.without_rounding - 1e-6 for r in rows
        ),
        "without rounding it is at most 3 / sqrt(d), the paper's change": max(falls) <= 3,
        "and attacks come close to it": all(
            r.without_rounding_attacked <= 1.1 * r.without_rounding for r in rows
        ),
    }
    return holds(
        checks,
        stated="rho >= 1/3 with rounding; rho <~ 1 / sqrt(d) without",
        measured="; ".join(f"d = {r.depth}: {r.with_rounding:.3f} / {r.without_rounding:.3f}" for r in rows)
        + f" (without: tends to ln 2 / sqrt(d) = {math.log(2):.3f} / sqrt(d))",
        rows=[row.to_json() for row in rows],
    )


def _chain(depth: int, rounding: bool) -> float:
    """The chain at weights 1, written out."""
    value = 1.0
    for _ in range(depth):
        value = float(np.clip(3 * value - 1, 0, 1)) if rounding else value
    return value - 0.5


@PAPER.claim("Theorem 3.1", "Circuits are learnt with poly(s) samples, however wide the network")
def theorem_3_1(long: bool) -> Outcome:
    rows = []
    for bits in (1, 2, 4, 8):
        compiled, net = compiled_relu(adder(bits))
        circuit = layered_of(compiled)
        rows.append(
            {
                "size": circuit.size,
                "norm_over_size": relu_norm(net) / circuit.size,
                "depth_over_layers": net.depth / circuit.depth,
                "width_over_layer": net.width / int(np.diff(circuit.bounds).max()),
            }
        )
    widths = width_rows(compiled_relu(adder(2))[1], range(3, 13, 1 if long else 3))
    decades = 1 if long else 3
    per_decade = max(row.ratio for row in widths[1:]) ** (1 / decades)
    growth = widths[-1].samples / widths[0].samples
    checks = {
        "alpha / s stays between constants": max(r["norm_over_size"] for r in rows)
        <= 1.5 * min(r["norm_over_size"] for r in rows),
        "depth is 4 ReLU layers for each circuit layer": all(r["depth_over_layers"] == 4 for r in rows),
        "width is at most twice the widest circuit layer": all(r["width_over_layer"] <= 2 for r in rows),
        "ten times the width costs at most 1.4 times the samples": per_decade <= 1.4,
        "9 decades of width cost less than 5 times the samples": growth < 5,
        "samples do grow with width": growth > 1,
    }
    return asymptotic(
        checks,
        stated="poly(s) O~(log(w d) / epsilon^2) samples, alpha ~ s, d ~ q",
        measured=f"alpha = {rows[0]['norm_over_size']:.1f} to {rows[-1]['norm_over_size']:.1f} s; from "
        "width 10^3 to "
        f"10^12 the samples grow {growth:.2f} times",
        instead="Norm, depth and width of adders against s, q and r; the bound of Lemma 2.3 with the "
        "margin of "
        "Theorem D.6, as the width grows by powers of ten.",
        sizes=rows,
        widths=[row.to_json() for row in widths],
    )
