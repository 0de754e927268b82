"""The headline (section 1): parity is learned as by Gaussian elimination, from O(d) samples in O(d^2) time.

The paper's machines have one head, and one head cannot do it: each of d pivots is added to up to m rows of d
bits, so it goes through some d^3 cells. O(d^2) is the number of row operations. But the filter is applied to
every cell, and moves as many heads as there are. With a head in each row the layers are O(d^2), by the same
filter of clauses, with weights from the same U_s."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tapegrad.errors import BrokenNet, Refused
from tapegrad.learners import many_heads, on_grid
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import predict_many
from tapegrad.targets.rcnn.training import memorise_many
from tapegrad_papers.goel import PAPER
from tapegrad_papers.goel.drawn import in_architecture
from tapegrad_papers.ledger import Outcome, holds_corrected

SPARE = 8
"""Samples beyond d: they fail to span with probability 2^-8 at most."""


def most_steps(m: int, d: int) -> int:
    """A bound on the steps of the machine with one head, counted by hand.

    To undo the XOR form: there and back along m rows of d + 1 cells and along d columns of m + 1. Then, for
    each column i with a pivot, at most m - i rows to pass, of d - i cells with 4 steps each and 10 besides;
    the way through the column and back to its top, and the row that is erased."""
    undo = m * (2 * d + 6) + d * (2 * m + 6) + 4 * (m + d + 4)
    columns = sum((m - i) * (4 * (d - i) + 10) + 3 * (m - i) + (d - i) + 14 for i in range(min(m, d)))
    return undo + columns + (d - min(m, d)) * 16 + 3 * (m + d) + 10


def most_steps_of_many(m: int, d: int) -> int:
    """A bound on the steps of the machine with many heads, where every column has a pivot (d <= m).

    To undo the XOR form: up the labels, down and up again, and along the test row. Then for each column i, of
    m + 1 - i rows: 3 steps for each row down, 1 up, and 4 besides. At the end down the labels and up again,
    and along the top."""
    undo = 3 * m + d + 10
    columns = sum(4 * (m + 1 - i) + 4 for i in range(d))
    return undo + columns + 2 * (m + 1 - d) + d + 5


MACHINES = {"one": (on_grid.parity, most_steps), "many": (many_heads.parity, most_steps_of_many)}
"""By the number of heads: the learner, and the bound on its steps."""


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


def learn(features: int, samples: int, seed: int, points: int = 8, heads: str = "many") -> Learned:
    """Draws a hidden set and samples, trains the network of the parity machine, and runs it on test points.
    Fewer samples are the first of more. If it takes more layers than the bound on one head, it has no
    answer."""
    rng = np.random.default_rng([features, seed])
    hidden = rng.permutation(features) < max(1, features // 2)
    T, X = (1 - 2 * (rng.random((count, features)) < 0.5) for count in (points, samples))
    y, truth = (np.where(hidden, part, 1).prod(axis=1) for part in (X, T))
    learner = MACHINES[heads][0]()
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
    learned = {
        heads: [learn(d, d + SPARE, seed, heads=heads) for d in sizes for seed in range(1 if d > 100 else 2)]
        for heads in MACHINES
    }
    few = [learn(d, d // 2, 0, points=64, heads=heads) for d in sizes[:3] for heads in MACHINES]
    layers = {heads: {one.features: one.layers for one in found} for heads, found in learned.items()}
    exponents = {heads: _exponents(found) for heads, found in layers.items()}
    everything = [*learned["one"], *learned["many"], *few]
    squares = [count / d**2 for d, count in layers["many"].items()]
    checks = {
        "trained by SGD on d + 8 samples, the network is right on every test point": all(
            one.right == 1 for found in learned.values() for one in found
        ),
        "and says what row reduction in NumPy says, also from too few samples": all(
            one.as_elimination for one in everything
        ),
        "SGD has memorised the samples as in Lemma 2": all(one.memorised for one in everything),
        "from d/2 samples it is not right: O(d) are needed": all(one.right < 0.8 for one in few),
        "layers are within the bounds counted by hand, and more than half of them": all(
            count <= MACHINES[heads][1](d + SPARE, d) + 2 * d + SPARE < 2 * count
            for heads, found in layers.items()
            for d, count in found.items()
        ),
        "with a head in each row they are O(d^2): layers / d^2 falls as d grows": all(
            a > b > 2 for a, b in pairwise(squares)
        ),
        "with one head they are not: the exponent rises above 2": exponents["one"][-1]
        > 2.3
        > exponents["one"][0],
        "the filter for many heads has no more states than that for one": _states("many") <= _states("one"),
        "it is in the architecture of Theorem 1, with weights of U_s": _drawable(),
    }
    return holds_corrected(
        checks,
        stated="row reduction takes O(d) examples and O(d^2) time, and the network learns as well",
        measured=f"m = d + {SPARE}, layers for d = {list(layers['many'])}: {list(layers['many'].values())} "
        f"with a head in each row ({_states('many')} states), {list(layers['one'].values())} with one head; "
        f"exponents from one to the next {_rounded(exponents['many'])} and {_rounded(exponents['one'])}",
        correction="O(d^2) is the number of row operations; each has up to d bits. A machine with one head, "
        "as in Theorem 1, goes through all of them, and layers grow as d^3. The filter moves any number of "
        "heads at once: with one in each row, layers grow as d^2.",
        layers=list(layers["many"].values()),
        exponents=exponents["many"],
    )


def _exponents(layers: dict[int, int]) -> list[float]:
    """By which power of d the layers grow from one size to the next."""
    return [math.log(layers[b] / layers[a]) / math.log(b / a) for a, b in pairwise(layers) if b / a > 1.2]


def _rounded(numbers: list[float]) -> list[float]:
    return [round(number, 2) for number in numbers]


def _states(heads: str) -> int:
    return len(MACHINES[heads][0]().machine.states)


def _drawable() -> bool:
    """Whether Theorem 1's draw can draw the filter for many heads."""
    learner = many_heads.parity()
    try:
        in_architecture(Rcnn.of(learner.machine, 1, 1, 3, encoding="ternary", frame=learner.frame))
    except (Refused, BrokenNet):
        return False
    return True
