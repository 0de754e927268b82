"""Section 2 and appendix A: statistically meaningful approximation, the all-layer margin, sample bounds."""

import math
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.targets.relu import ReluNet
from tapegrad_papers.ledger import Outcome, asymptotic, holds
from tapegrad_papers.wei import PAPER, samples
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.margins import chain_problem, margin_without_rounding


@dataclass(frozen=True)
class NetworkClass:
    """F and G at once. Row f of `predictions` is what network f says (0 or 1) on every pattern, row f of
    `labels` what conjunction f is, computed from its definition."""

    inputs: NDArray[np.int64]
    predictions: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def disagreements(self) -> NDArray[np.int64]:
        """0-1 losses of every network for every target on every pattern."""
        return (self.predictions[None, :, :] != self.labels[:, None, :]).astype(np.int64)


def conjunctions(bits: int) -> NetworkClass:
    """For each bit: absent, as it is, or negated. All 3^bits of them, each compiled to a network."""
    inputs = np.array(list(product((0, 1), repeat=bits)))
    predictions, labels = [], []
    for signs in product((0, 1, -1), repeat=bits):
        net = compile(_circuit(signs), "relu", form="paper").net
        assert isinstance(net, ReluNet)
        predictions.append((net.outputs(inputs, "fast")[:, 0] > 0).astype(int))
        labels.append(np.all([(s == 0) | (inputs[:, i] == (s > 0)) for i, s in enumerate(signs)], axis=0))
    return NetworkClass(inputs, np.array(predictions), np.array(labels).astype(int))


def _circuit(signs: tuple[int, ...]) -> Circuit:
    make = CircuitBuilder()
    wires = [make.input(f"x{i}") for i in range(len(signs))]
    literals = [w if s > 0 else make.not_(w) for w, s in zip(wires, signs, strict=True) if s]
    everything = make.or_(wires[0], make.not_(wires[0]))
    make.output("out", reduce(make.and_, literals, everything))
    return make.circuit("conjunction")


BITS, DELTA = 3, 0.01


def _draws(networks: NetworkClass, samples: int, trials: int) -> tuple[NDArray, NDArray, NDArray]:
    """For random targets and samples: the worst empirical minimiser's true error, and the largest distance
    between true and empirical loss over the class."""
    losses = networks.disagreements
    random = np.random.default_rng(0)
    errors, deviations, complexities = [], [], []
    for _ in range(trials):
        loss = losses[random.integers(len(losses))]
        counts = random.multinomial(samples, np.full(loss.shape[1], 1 / loss.shape[1]))
        empirical, true = loss @ counts / samples, loss.mean(axis=1)
        errors.append(true[empirical == empirical.min()].max())
        deviations.append(np.abs(true - empirical).max())
        signs = random.binomial(counts, 0.5) * 2 - counts  # the sum of the Rademacher signs at each pattern
        complexities.append((loss @ signs).max() / samples)
    return np.array(errors), np.array(deviations), np.array(complexities)


@PAPER.claim(
    "Definition 2.1", "SM approximation: minimising on a sample gives small error, with probability 0.99"
)
def definition_2_1(long: bool) -> Outcome:
    networks = conjunctions(BITS)
    epsilon = 0.1
    enough = math.ceil(math.log(len(networks.labels) / DELTA) / epsilon)
    trials = 4000 if long else 1000
    share = float((_draws(networks, enough, trials)[0] <= epsilon).mean())
    few = float((_draws(networks, 3, trials)[0] <= epsilon).mean())
    exact = np.array_equal(networks.predictions, networks.labels)
    checks = {
        "every target has a network that computes it": exact,
        "the worst empirical minimiser has error <= epsilon in 99% of samples": share >= 0.99,
        "with 3 samples it has not": few < 0.99,
    }
    return holds(
        checks,
        stated="P(error of the empirical minimiser <= epsilon) >= 0.99",
        measured=f"{len(networks.labels)} networks, n = {enough}, epsilon = {epsilon}: {share:.4f} of "
        f"{trials:,} samples; n = 3: {few:.3f}",
        note="The definition, met by all conjunctions of three bits as ReLU networks, with the 0-1 loss as "
        "its own surrogate and n = ln(|F| / 0.01) / epsilon.",
        samples=enough,
        share=share,
        share_with_3=few,
    )


@PAPER.claim(
    "Proposition 2.2", "A surrogate above the loss, small complexity and a good fit give SM approximation"
)
def proposition_2_2(long: bool) -> Outcome:
    networks = conjunctions(BITS)
    samples, trials = 2000, 2000 if long else 500
    errors, deviations, complexities = _draws(networks, samples, trials)
    rademacher = float(complexities.mean() + 3 * complexities.std() / math.sqrt(trials))
    deviation_bound = 2 * rademacher + math.sqrt(math.log(2 / DELTA) / samples)
    bound = 5 * rademacher + 2 * math.sqrt(math.log(2 / DELTA) / samples)
    best = float(networks.disagreements.mean(axis=2).min(axis=1).max())
    checks = {
        "condition 3: every target is fitted": best <= rademacher,
        "(A.1): no loss is off by more than 2 Rad + sqrt(ln(2/delta)/n), in 99% of samples": bool(
            (deviations <= deviation_bound).mean() >= 1 - DELTA
        ),
        "the minimiser's error is at most 5 Rad + 2 sqrt(ln(2/delta)/n), in 99%": bool(
            (errors <= bound).mean() >= 1 - DELTA
        ),
        "the bound is not vacuous": bound < 0.5,
        "the deviations are not all tiny": float(deviations.max()) > deviation_bound / 10,
    }
    return holds(
        checks,
        stated="error O(epsilon + 1/sqrt(n)); in the proof 5 epsilon + 2 sqrt(ln(2/delta)/n)",
        measured=f"n = {samples}: Rad = {rademacher:.4f}, bound {bound:.3f}, largest error "
        f"{errors.max():.3f}; largest deviation {deviations.max():.4f} against {deviation_bound:.4f}",
        rademacher=rademacher,
        bound=bound,
        largest_error=float(errors.max()),
        largest_deviation=float(deviations.max()),
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
    theta, x = random.normal(size=(200, 4)), random.normal(size=(200, 3))
    y = random.integers(2, size=200)
    signed = np.array([(2 * b - 1) * (t[:3] @ a + t[3]) for t, a, b in zip(theta, x, y, strict=True)])
    margins = np.array([linear_margin(t, a, b) for t, a, b in zip(theta, x, y, strict=True)])
    positive = bool(((margins > 0) == (signed > 0)).all())
    # Two layers: W_2 W_1 - 1/2 at (1, 1), by brute force on a grid, and by attack.
    grid = np.linspace(0, 1, 2001)
    first, second = np.meshgrid(grid, grid)
    flipped = first * second <= 0.5
    brute = float(np.sqrt(((1 - first) ** 2 + (1 - second) ** 2)[flipped].min()))
    found = attack(chain_problem(2, rounding=False)).radius
    closed = margin_without_rounding(2)
    checks = {
        "positive exactly where the prediction is right, on 200 linear classifiers": positive,
        "both kinds occur": 0 < (signed > 0).sum() < 200,
        "two layers: closed form and brute force agree": abs(brute - closed) < 1e-3,
        "an attack finds no less, and not much more": brute - 1e-3 <= found <= 1.02 * brute,
    }
    return holds(
        checks,
        stated="rho = min |delta| with (y - 1/2) F(x, theta + delta) <= 0; rho > 0 iff the label is right",
        measured=f"product of two weights: {brute:.4f} by brute force, {closed:.4f} in closed form, "
        f"{found:.4f} by attack",
        brute_force=brute,
        closed_form=closed,
        attack=found,
    )


@PAPER.claim("(2.2)", "The margin loss is a ramp above the 0-1 loss")
def equation_2_2(long: bool) -> Outcome:
    random = np.random.default_rng(2)
    above = below = inside = True
    steepest = 0.0
    for gamma in (0.01, 0.1, 1.0):
        margins = np.concatenate([[0.0, gamma, gamma / 2], gamma * 2 * random.random(500)])
        losses = np.array([samples.surrogate_loss(m, gamma) for m in margins])
        above &= bool((losses >= (margins <= 0)).all())  # a prediction is wrong where the margin is 0
        below &= bool((losses <= (margins < gamma)).all())
        inside &= bool((losses >= 0).all() and (losses <= 1).all() and losses[2] == 0.5)
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
        measured=f"1,509 margins for three gamma; steepest slope {steepest:.6f} / gamma",
        steepest_slope_times_gamma=steepest,
    )


@PAPER.claim("Lemma 2.3", "Large margins suffice: samples grow like alpha^2 log(p) / (gamma epsilon)^2")
def lemma_2_3(long: bool) -> Outcome:
    random = np.random.default_rng(3)
    # The margin is 1-Lipschitz in theta (Claim A.4 of Wei and Ma), on linear classifiers in closed form.
    largest = 0.0
    for _ in range(2000 if long else 500):
        theta, other, x = random.normal(size=4), random.normal(size=4), random.normal(size=3)
        other = theta + 10 ** random.uniform(-3, 0) * other
        y = np.array(random.integers(2))
        change = abs(float(linear_margin(theta, x, y) - linear_margin(other, x, y)))
        largest = max(largest, change / float(np.linalg.norm(theta - other)))
    # Rademacher complexity of the ramps of sparse linear classifiers, against the bound with its constants.
    p, n, alpha, gamma = 40, 400, 1.0, 0.2
    x = random.choice([-1.0, 1.0], (n, p)) / math.sqrt(p)
    ramps = np.clip(1 - alpha * np.concatenate([x, -x], axis=1).T / gamma, 0, 1)
    signs = random.choice([-1.0, 1.0], (n, 2000))
    measured = float((ramps @ signs / n).max(axis=0).mean())
    bound = samples.rademacher_bound(n, alpha, gamma, p)
    one = samples.lemma_2_3(10, 0.1, 1e4, 0.1)
    grown = {
        "alpha x 2": samples.lemma_2_3(20, 0.1, 1e4, 0.1),
        "gamma / 2": samples.lemma_2_3(10, 0.05, 1e4, 0.1),
        "epsilon / 2": samples.lemma_2_3(10, 0.1, 1e4, 0.05),
        "p^2": samples.lemma_2_3(10, 0.1, 1e8, 0.1),
    }
    ratios = {what: found.samples / one.samples for what, found in grown.items()}
    checks = {
        "the margin changes by at most the change of theta": largest <= 1 + 1e-9,
        "and by nearly that": largest > 0.9,
        "measured Rademacher complexity is below the bound": measured <= bound,
        "doubling alpha, 1/gamma or 1/epsilon costs 4 times the samples, up to logarithms": all(
            4 <= ratios[what] <= 5 for what in ("alpha x 2", "gamma / 2", "epsilon / 2")
        ),
        "squaring p costs twice the samples, up to logarithms": 1.9 < ratios["p^2"] < 2.5,
    }
    return asymptotic(
        checks,
        stated="O~((alpha^2 log(p) / gamma^2 + 1) / epsilon^2) samples",
        measured=f"Lipschitz ratio up to {largest:.4f}; Rad {measured:.3f} against {bound:.1f}; growth "
        + ", ".join(f"{what}: {ratio:.2f}" for what, ratio in ratios.items()),
        instead="The constants are written out (Maurey's cover, Dudley's integral); the Lipschitz property "
        "is measured on linear classifiers, and the growth of the resulting number of samples.",
        lipschitz=largest,
        rademacher=measured,
        rademacher_bound=bound,
        growth=ratios,
    )


@PAPER.claim("Corollary A.1", "Test error is bounded by the mean of 1 / margin^2 over the training samples")
def corollary_a_1(long: bool) -> Outcome:
    random = np.random.default_rng(4)
    dimension = 25
    teacher = np.zeros(dimension)
    teacher[:3] = 1
    test = random.choice([-1.0, 1.0], (20_000, dimension))
    rows = []
    for n in (100, 1600, 25_600, 102_400) if long else (100, 1600, 25_600):
        x = random.choice([-1.0, 1.0], (n, dimension))
        y = (x @ teacher > 0).astype(int)
        theta = _perceptron(x, y)
        margins = linear_margin(theta, x, y)
        error = float(np.mean((np.c_[test, np.ones(len(test))] @ theta > 0) != (test @ teacher > 0)))
        bound = samples.corollary_a_1(margins.tolist(), float(np.abs(theta).sum()), dimension + 1, DELTA)
        rows.append({"n": n, "error": error, "leading": bound.leading, "low_order": bound.low_order})
    totals = [row["leading"] + row["low_order"] for row in rows]
    checks = {
        "test error below the bound, with all constants 1": all(
            row["error"] <= total for row, total in zip(rows, totals, strict=True)
        ),
        "the bound falls as n grows": all(b < a for a, b in pairwise(totals)),
        "some test error is not 0": rows[0]["error"] > 0,
        "the last bound is not vacuous": totals[-1] < 1,
    }
    return asymptotic(
        checks,
        stated="error <= O(alpha sqrt(log p) / sqrt(n) * sqrt(mean of 1/rho^2)) + low order",
        measured="; ".join(
            f"n = {row['n']}: error {row['error']:.4f}, bound {total:.2f}"
            for row, total in zip(rows, totals, strict=True)
        ),
        instead="Perceptrons trained to zero training error on a majority of three bits; constants set to 1.",
        rows=rows,
    )


def _perceptron(x: NDArray, y: NDArray) -> NDArray:
    """Rosenblatt's rule until every sample is right."""
    extended, signs = np.c_[x, np.ones(len(x))], 2 * y - 1
    theta = np.zeros(extended.shape[1])
    for _ in range(10_000):
        wrong = np.flatnonzero(signs * (extended @ theta) <= 0)
        if not len(wrong):
            return theta
        theta = theta + signs[wrong[0]] * extended[wrong[0]]
    raise ArithmeticError("the perceptron did not converge")
