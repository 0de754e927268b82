"""The headline (section 1): parity is learned as by Gaussian elimination, from O(d) samples, in polynomial
time."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tapegrad.learners.on_grid import parity
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import predict_many
from tapegrad.targets.rcnn.training import memorise_many
from tapegrad_papers.goel import PAPER
from tapegrad_papers.ledger import Outcome, holds_in_part

SPARE = 8
"""Samples beyond d: they fail to span with probability 2^-8 at most."""


def most_steps(m: int, d: int) -> int:
    """A bound on the machine's steps, counted by hand.

    To undo the XOR form: there and back along m rows of d + 1 cells and along d columns of m + 1. Then, for
    each column i with a pivot, at most m - i rows to pass, of d - i cells with 4 steps each and 10 besides;
    the way through the column and back to its top, and the row that is erased."""
    undo = m * (2 * d + 6) + d * (2 * m + 6) + 4 * (m + d + 4)
    columns = sum((m - i) * (4 * (d - i) + 10) + 3 * (m - i) + (d - i) + 14 for i in range(min(m, d)))
    return undo + columns + (d - min(m, d)) * 16 + 3 * (m + d) + 10


def reduce_rows(X: np.ndarray, y: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Row reduction over the integers modulo 2, in NumPy: the labels of the points; coordinates without a
    pivot count as absent."""
    rows = np.column_stack([X < 0, y < 0]).astype(np.int64)
    rest = np.column_stack([points < 0, np.zeros(len(points))]).astype(np.int64)
    for column in range(X.shape[1]):
        found = np.flatnonzero(rows[:, column])
        if len(found):
            pivot = rows[found[0]].copy()
            rows = np.delete(rows, found[0], axis=0)
            rows[rows[:, column] == 1] ^= pivot
            rest[rest[:, column] == 1] ^= pivot
    return 1 - 2 * rest[:, -1]


@dataclass(frozen=True)
class Learned:
    """One parity of d bits, learned from m samples by SGD."""

    features: int
    samples: int
    right: float
    """The share of test points with the true label."""
    as_elimination: bool
    """Whether the labels are those of row reduction in NumPy."""
    memorised: bool
    """Whether SGD has written Lemma 2's memory."""
    layers: int


def learn(features: int, samples: int, seed: int, points: int = 8) -> Learned:
    """Draws a hidden set and samples, trains the network of the parity machine, and runs it on test points.
    If it takes more layers than the bound, it has no answer."""
    rng = np.random.default_rng([features, samples, seed])
    hidden = rng.permutation(features) < max(1, features // 2)
    X, T = (rng.choice([-1, 1], (count, features)) for count in (samples, points))
    y, truth = (np.where(hidden, part, 1).prod(axis=1) for part in (X, T))
    learner = parity()
    layers = most_steps(samples, features) + samples + features
    network = Rcnn.of(learner.machine, samples, features, layers, frame=learner.frame)
    (memory,) = memorise_many([network], X.astype(float), y.astype(float))
    found = predict_many([network], [memory], T)
    wanted = np.vstack([np.column_stack([X, np.ones(samples)]) * y[:, None], np.ones(features + 1)]) / 3
    return Learned(
        features,
        samples,
        float((found.labels[0] == truth).mean()),
        bool((found.labels[0] == reduce_rows(X, y, T)).all()),
        bool(np.abs(memory - wanted).max() < 1e-6),
        int(found.layers.max()),
    )


def least_samples(features: int, seed: int) -> int:
    """The fewest samples from which 24 test points come out right, by networks trained on 1, 2, 4, ...
    samples and then on numbers between."""
    low, high = 0, 1
    while not _all_right(features, high, seed):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _all_right(features, middle, seed) else (middle, high)
    return high


def _all_right(features: int, samples: int, seed: int) -> bool:
    return learn(features, samples, seed, points=24).right == 1.0


@PAPER.claim("Parity", "Parities of d bits are learned like row reduction: O(d) examples, O(d^2) time")
def parity_row(long: bool) -> Outcome:
    sizes = (8, 16, 32, 64, 128, 169) if long else (8, 16, 32, 64)
    learned = [learn(d, d + SPARE, seed) for d in sizes for seed in range(1 if d > 100 else 2)]
    few = [learn(d, d // 2, 0, points=64) for d in sizes[:3]]
    layers = {one.features: one.layers for one in learned}
    exponents = [math.log(layers[b] / layers[a]) / math.log(b / a) for a, b in pairwise(sizes) if b / a > 1.2]
    cells = {d: sum((d + SPARE - i) * (d - i) for i in range(d)) for d in sizes}
    checks = {
        "trained by SGD on d + 8 samples, the network is right on every test point": all(
            one.right == 1 for one in learned
        ),
        "and says what row reduction in NumPy says, also from too few samples": all(
            one.as_elimination for one in [*learned, *few]
        ),
        "SGD has memorised the samples as in Lemma 2": all(one.memorised for one in [*learned, *few]),
        "from d/2 samples it is not right: O(d) are needed": all(one.right < 0.8 for one in few),
        "layers are within the bound counted by hand, and more than half of it": all(
            d_layers <= most_steps(d + SPARE, d) + 2 * d + SPARE < 2 * d_layers
            for d, d_layers in layers.items()
        ),
        "4 to 5 of them for each cell that a pivot row passes, for the largest d": 4
        <= layers[sizes[-1]] / cells[sizes[-1]]
        <= 5,
        "and their exponent rises above 2": exponents[-1] > 2.3 > exponents[0],
    }
    return holds_in_part(
        checks,
        stated="row reduction takes O(d) examples and O(d^2) time, and the network learns as well",
        measured=f"m = d + {SPARE}, layers for d = {list(layers)}: {list(layers.values())}; exponents from "
        f"one to the next {[round(e, 2) for e in exponents]}",
        part="The O(d) examples. O(d^2) is the number of row operations; each has up to d bits, and d^3/3 "
        "of them are gone through here, in 4 layers each, as the machine has one head: layers grow as d^3.",
        layers=list(layers.values()),
        exponents=exponents,
    )
