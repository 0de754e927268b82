"""Section 2 and appendix A: statistically meaningful approximation, the all-layer margin, sample bounds.

The networks of Definition 2.1 and Proposition 2.2 are `F(x, theta) = v relu(w . x + b) + c` on three bits,
for all theta of a grid: enough for every conjunction, and few enough for every empirical minimiser to be
found by looking at all of them. Their all-layer margin needs a search in one variable only
(`gate_distances`).
"""

import math
from dataclasses import dataclass
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad_papers.ledger import Outcome, holds
from tapegrad_papers.wei import PAPER, samples
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.problems import Problem
from tapegrad_papers.wei.tight import chain_problem, margin_without_rounding

BITS, DELTA = 3, 0.01


def gate_outputs(theta: NDArray, x: NDArray) -> NDArray:
    """F for every theta = (w, b, v, c), a row each, and every x."""
    w, b, v, c = np.split(theta, [BITS, BITS + 1, BITS + 2], axis=1)
    return v * np.maximum(w @ x.T + b, 0) + c


def gate_distances(theta: NDArray, x: NDArray) -> NDArray:
    """The least norm of a change of theta that makes F 0 or changes its sign, for every theta and x.

    What the changes of w and b do to the unit is to move its sum by some t, which costs `|t| / |(x, 1)|` at
    least (the change is a multiple of (x, 1)). After that v h + c, with the unit's new value h, must be
    brought to 0 by changing v and c, at the cost of its distance from a plane, `|v h + c| / |(h, 1)|`. What
    is left is the best t.
    """
    w, b, v, c = (part[..., None] for part in np.split(theta, [BITS, BITS + 1, BITS + 2], axis=1))
    z = w[..., 0] @ x.T + b[..., 0]
    sign = np.sign(gate_outputs(theta, x))[..., None]
    length = np.sqrt((x**2).sum(axis=1) + 1)[None, :, None]

    def cost(u: NDArray) -> NDArray:
        h = np.maximum(z[..., None] + u * length, 0)
        return np.hypot(u, np.maximum(sign * (v * h + c), 0) / np.hypot(h, 1))

    reach = cost(np.zeros((1, 1, 1)))  # no longer t can pay
    middle = np.zeros_like(reach)
    for _ in range(3):  # a grid, and a finer one around its best point, twice
        u = middle + reach * np.linspace(-1, 1, 401)
        best = cost(u).argmin(axis=-1)[..., None]
        middle, reach = np.take_along_axis(u, best, -1), reach / 100
    return cost(middle)[..., 0]


@dataclass(frozen=True)
class Networks:
    """F and G at once: nets, a row each, and conjunctions, a row each, on all patterns."""

    theta: NDArray[np.float64]
    inputs: NDArray[np.float64]
    distances: NDArray[np.float64]
    predictions: NDArray[np.bool_]
    targets: NDArray[np.bool_]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """The 0-1 losses, for every target, net and pattern."""
        return self.predictions[None] != self.targets[:, None]

    @property
    def gamma(self) -> float:
        """The largest gamma with which every target has a net of margin loss 0: the least over all targets of
        the best net's least margin."""
        least = np.where(self.wrong, 0, self.distances[None]).min(axis=2)
        return float(least.max(axis=1).min())

    def losses(self) -> NDArray[np.float64]:
        """(2.2), for every target, net and pattern. Where the prediction is wrong the margin is 0."""
        margins = np.where(self.wrong, 0, self.distances[None])
        return np.asarray(samples.surrogate_loss(margins, self.gamma))


def networks() -> Networks:
    """Every w of -1, 0, 1, b of -2 to 1, v of -2 and 2, c of -1, -0.1, 0.1, 1. The 1-norm is 8 at most."""
    inputs = np.array(list(product((0.0, 1.0), repeat=BITS)))
    theta = np.array(
        [
            (*w, b, v, c)
            for w in product((-1.0, 0.0, 1.0), repeat=BITS)
            for b in (-2.0, -1.0, 0.0, 1.0)
            for v in (-2.0, 2.0)
            for c in (-1.0, -0.1, 0.1, 1.0)
        ]
    )
    targets = [
        np.all([(s == 0) | (inputs[:, i] == (s > 0)) for i, s in enumerate(signs)], axis=0)
        for signs in product((0, 1, -1), repeat=BITS)
    ]
    predictions = gate_outputs(theta, inputs) > 0
    return Networks(theta, inputs, gate_distances(theta, inputs), predictions, np.array(targets))


@in_double
def attacked_distance(theta: NDArray, x: NDArray) -> float:
    """The same for one theta and x, by an attack on all its parameters."""

    def margins(own, guide: float):
        z = own[:BITS] @ x + own[BITS]
        leaky = jnp.maximum(z, 0) + guide * (0.2 * z - jax.lax.stop_gradient(0.2 * z))
        return (sign * (own[BITS + 1] * leaky + own[BITS + 2]))[None]

    sign = float(np.sign(gate_outputs(theta[None], x[None])[0, 0]))
    start = jnp.asarray(theta)
    ones = jnp.ones_like(start)
    return attack(Problem(start, ones, margins, lambda own: margins(own, 0.0) > 0, (ones,)), start=0.3).radius


def _attacked(nets: Networks) -> list[float]:
    """What attacks find over `gate_distances`, for two nets on two patterns."""
    return [
        attacked_distance(nets.theta[row], nets.inputs[place]) / nets.distances[row, place]
        for row in (len(nets.theta) // 3, len(nets.theta) - 1)
        for place in (0, len(nets.inputs) - 1)
    ]


@dataclass(frozen=True)
class Draws:
    """For samples of a target: the error of the worst empirical minimiser, the largest distance between the
    true and the empirical loss of a net, and `sup mean(sign * loss)`, each for every draw."""

    errors: NDArray[np.float64]
    deviations: NDArray[np.float64]
    complexities: NDArray[np.float64]


def draws(losses: NDArray, wrong: NDArray, count: int, trials: int, random: np.random.Generator) -> Draws:
    """Uniform samples of the patterns; `losses` and `wrong` have a row for each net."""
    patterns = losses.shape[1]
    counts = random.multinomial(count, np.full(patterns, 1 / patterns), size=trials)
    empirical, true = losses @ counts.T / count, losses.mean(axis=1)
    minimal = empirical <= empirical.min(axis=0) + 1e-12
    errors = np.where(minimal, wrong.mean(axis=1)[:, None], 0).max(axis=0)
    signs = random.binomial(counts, 0.5) * 2 - counts  # the sum of the Rademacher signs at each pattern
    return Draws(
        errors, np.abs(true[:, None] - empirical).max(axis=0), (losses @ signs.T / count).max(axis=0)
    )


@PAPER.claim(
    "Definition 2.1", "SM approximation: minimising on a sample gives small error, with probability 0.99"
)
def definition_2_1(long: bool) -> Outcome:
    nets, random = networks(), np.random.default_rng(0)
    losses, wrong = nets.losses(), nets.wrong
    epsilon, trials = 0.1, 2000 if long else 300
    enough = math.ceil(math.log(len(nets.theta) / DELTA) / epsilon)

    def share(count: int, by: NDArray) -> float:
        """For the target for which it is least: how often the worst minimiser is good enough."""
        return min(
            float((draws(own, bad, count, trials, random).errors <= epsilon).mean())
            for own, bad in zip(by, wrong, strict=True)
        )

    found, few, attacked = share(enough, losses), share(3, losses), _attacked(nets)
    between = float(((losses > 0) & (losses < 1)).mean())
    checks = {
        "every target has a net with margin loss 0 on all inputs": bool(
            (losses.max(axis=2).min(axis=1) == 0).all()
        ),
        "the loss is (2.2), not the 0-1 loss: it is above it, and often between 0 and 1": bool(
            (losses >= wrong).all()
        )
        and between > 0.05,
        "margins are those of (2.1): attacks on all parameters find no less, and at most 5% more": 0.999
        < min(attacked)
        <= max(attacked)
        < 1.05,
        "the worst empirical minimiser has error <= epsilon in 99% of samples, for every target": found
        >= 0.99,
        "with 3 samples it has not": few < 0.99,
    }
    return holds(
        checks,
        stated="P(error of the empirical minimiser <= epsilon) >= 0.99, for every G",
        measured=f"{len(nets.theta)} ReLU nets, {len(nets.targets)} targets, gamma = {nets.gamma:.4f}, n = "
        f"{enough}, "
        f"epsilon = {epsilon}: {found:.4f} of {trials:,} samples for the worst target; n = 3: {few:.3f}",
        note="The loss that is minimised is the all-layer-margin loss (2.2), for nets with one ReLU unit, on "
        "a grid "
        "of parameters; targets are the conjunctions of three bits; n = ln(|F| / 0.01) / epsilon.",
        gamma=nets.gamma,
        samples=enough,
        share=found,
        share_with_3=few,
        between_0_and_1=between,
    )


@PAPER.claim(
    "Proposition 2.2", "A surrogate above the loss, small complexity and a good fit give SM approximation"
)
def proposition_2_2(long: bool) -> Outcome:
    nets, random = networks(), np.random.default_rng(0)
    losses, wrong = nets.losses(), nets.wrong
    count, trials = 2000, 2000 if long else 300
    found = [draws(own, bad, count, trials, random) for own, bad in zip(losses, wrong, strict=True)]
    rademacher = max(
        float(d.complexities.mean() + 3 * d.complexities.std() / math.sqrt(trials)) for d in found
    )
    best = float(losses.mean(axis=2).min(axis=1).max())
    bound, deviation = (
        samples.proposition_2_2(rademacher, count, best),
        samples.largest_deviation(rademacher, count),
    )
    error = max(float(np.quantile(d.errors, 1 - DELTA)) for d in found)
    largest = max(float(np.quantile(d.deviations, 1 - DELTA)) for d in found)
    # Where (A.1) is nearly attained: one fair coin as the only loss, and all 0-1 losses on many points.
    coin = np.abs(random.binomial(count, 0.5, 100_000) / count - 0.5)
    coin_share = float(np.quantile(coin, 1 - DELTA)) / samples.largest_deviation(0.0, count)
    points, drawn = 1_000_000, 200
    off = (
        1 - len(np.unique(random.integers(points, size=drawn))) / points
    )  # right on the sample, wrong elsewhere
    all_share = off / samples.largest_deviation(0.5, drawn)  # the best signs are +1 on half of the sample
    checks = {
        "condition 1: the margin loss is at least the 0-1 loss": bool((losses >= wrong).all()),
        "condition 3: every target is fitted": best <= rademacher,
        "(A.1): no loss is off by more than 2 Rad + sqrt(ln(2/delta)/n), in 99% of samples": largest
        <= deviation,
        "(A.1) for one fair coin: kept in 99% of samples, and not by half of it": 0.5 < coin_share <= 1,
        "(A.1) for all 0-1 losses on a million points: kept, and not by 0.8 of it": 0.8 < all_share <= 1,
        "the minimiser's error is at most the best + 2 (A.1), in 99%": error <= bound,
        "which is 5 epsilon + 2 sqrt(ln(2/delta)/n) where Rad and the best are epsilon": math.isclose(
            samples.proposition_2_2(0.05, count, 0.05), 5 * 0.05 + 2 * math.sqrt(math.log(2 / DELTA) / count)
        ),
        "the bound is not vacuous": bound < 0.5,
    }
    return holds(
        checks,
        stated="error O(epsilon + 1/sqrt(n)); in the proof 5 epsilon + 2 sqrt(ln(2/delta)/n)",
        measured=f"n = {count}: Rad = {rademacher:.4f}, bound {bound:.3f}, error {error:.3f}; deviation "
        f"{largest:.4f} "
        f"against {deviation:.4f}; a coin takes {coin_share:.2f} of (A.1), all losses {all_share:.2f}",
        note="With the all-layer-margin loss (2.2) of all the nets of Definition 2.1, for every target; "
        "errors and "
        "deviations are those of 99% of the samples.",
        rademacher=rademacher,
        bound=bound,
        error=error,
        deviation=largest,
        coin_share=coin_share,
        all_share=all_share,
    )


def linear_margin(theta: NDArray, x: NDArray, y: NDArray) -> NDArray:
    """(2.1) for F = w . x + b in closed form: the distance of theta from the plane w . x + b = 0, or 0 where
    the prediction is wrong."""
    extended = np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)
    signed = (2 * y - 1) * (extended @ theta)
    return np.maximum(0, signed) / np.linalg.norm(extended, axis=-1)


@PAPER.claim("(2.1)", "The all-layer margin: the smallest change of parameters that flips a prediction")
def equation_2_1(long: bool) -> Outcome:
    random = np.random.default_rng(1)
    positive = reached = nearer = True
    right = 0
    for _ in range(200):
        theta, x, y = random.normal(size=4), random.normal(size=3), int(random.integers(2))
        extended, margin = np.append(x, 1), float(linear_margin(theta, x, np.array(y)))
        signed = (2 * y - 1) * float(extended @ theta)
        positive &= (margin > 0) == (signed > 0)
        right += signed > 0
        if signed > 0:
            across = -(2 * y - 1) * extended / np.linalg.norm(extended)
            reached &= (2 * y - 1) * float(extended @ (theta + 1.001 * margin * across)) <= 0
            tried = np.vstack([across, random.normal(size=(100, 4))])
            tried *= 0.999 * margin / np.linalg.norm(tried, axis=1, keepdims=True)
            nearer &= bool(((2 * y - 1) * ((theta + tried) @ extended) > 0).all())
    # Two layers: W_2 W_1 - 1/2 at (1, 1), by brute force on a grid, and by attack.
    grid = np.linspace(0, 1, 2001)
    first, second = np.meshgrid(grid, grid)
    flipped = first * second <= 0.5
    brute = float(np.sqrt(((1 - first) ** 2 + (1 - second) ** 2)[flipped].min()))
    found = attack(chain_problem(2, rounding=False)).radius
    closed = margin_without_rounding(2)
    attacked = _attacked(networks())
    checks = {
        "positive exactly where the prediction is right, on 200 linear classifiers": positive
        and 0 < right < 200,
        "a change 0.1% longer flips each": reached,
        "none that is 0.1% shorter does": nearer,
        "two layers: closed form and brute force agree": abs(brute - closed) < 1e-3,
        "an attack finds no less, and not much more": brute - 1e-3 <= found <= 1.02 * brute,
        "a ReLU unit and a read-out: attacks find what a search in one variable does, to 5%": 0.999
        < min(attacked)
        <= max(attacked)
        < 1.05,
    }
    return holds(
        checks,
        stated="rho = min |delta| with (y - 1/2) F(x, theta + delta) <= 0; rho > 0 iff the label is right",
        measured=f"product of two weights: {brute:.4f} by brute force, {closed:.4f} in closed form, "
        f"{found:.4f} by attack; a ReLU unit: attacks find {max(attacked):.3f} of it at most",
        brute_force=brute,
        closed_form=closed,
        attack=found,
    )


@PAPER.claim("(2.2)", "The margin loss is a ramp above the 0-1 loss")
def equation_2_2(long: bool) -> Outcome:
    random = np.random.default_rng(2)
    above = below = inside = True
    steepest, tried, scales = 0.0, 0, (0.01, 0.1, 1.0)
    for gamma in scales:
        margins = np.concatenate([[0.0, gamma, gamma / 2], gamma * 2 * random.random(500)])
        losses = np.array([samples.surrogate_loss(m, gamma) for m in margins])
        above &= bool((losses >= (margins <= 0)).all())  # a prediction is wrong where the margin is 0
        below &= bool((losses <= (margins < gamma)).all())
        inside &= bool((losses >= 0).all() and (losses <= 1).all() and losses[2] == 0.5)
        tried += len(margins)
        order = np.argsort(margins)
        rises = np.abs(np.diff(losses[order])) / np.maximum(np.diff(margins[order]), 1e-300)
        steepest = max(steepest, float(rises.max() * gamma))
    checks = {
        "at least the 0-1 loss": above,
        "at most 1(rho < gamma), which the proof of Lemma 2.3 uses": below,
        "between 0 and 1, and 1/2 at gamma / 2": inside,
        "Lipschitz with constant 1 / gamma": steepest <= 1 + 1e-9,
    }
    return holds(
        checks,
        stated="1 at rho <= 0, 1 - rho / gamma between, 0 from gamma on; >= 0-1 loss",
        measured=f"{tried:,} margins for {len(scales)} gamma; steepest slope {steepest:.6f} / gamma",
        steepest_slope_times_gamma=steepest,
    )
