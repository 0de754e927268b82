"""The headline: section 6.1's parities, learned by plain SGD on a compiled network, where an ordinary network
fails in the same run (`tapegrad bench parity`)."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tapegrad.learners import parity, robust_parity
from tapegrad_papers.abbe_sandon.rivals import fit, practical


@dataclass(frozen=True)
class ParityRun:
    """How the compiled network did on one parity."""

    bits: int
    hidden: int
    cells: int
    weights: int
    samples: int
    """Samples consumed until the network says that it has finished."""
    learned: int
    """Samples that it learned from: those where its guess was wrong."""
    accuracy: tuple[tuple[int, float], ...]
    """Samples so far and accuracy: on 100 of the test images while it trains, on all of them at the end."""
    agrees: bool
    """With Gaussian elimination, on every test image."""
    build_seconds: float
    train_seconds: float
    test_seconds: float

    @property
    def seconds(self) -> float:
        """Building, training and testing."""
        return self.build_seconds + self.train_seconds + self.test_seconds


@dataclass(frozen=True)
class Contest:
    """One parity, with the same images for the compiled network and for the ordinary one."""

    name: str
    learned: ParityRun
    mlp_train: list[float]
    """Training error after every epoch."""
    mlp_test: list[float]
    mlp_seconds: float


@dataclass(frozen=True)
class Headline:
    """Two parities of the same images: of a hidden random subset, and, as in the paper, of all squares."""

    side: int
    contests: tuple[Contest, ...]


def headline(side: int = 13, images: int = 1000, epochs: int = 80, seed: int = 0) -> Headline:
    """Both parities on images of side x side squares; `images` to train on and as many to test on."""
    random = np.random.default_rng(seed)
    n = side * side
    train, test = random.integers(0, 2, (2, images, n))
    contests = []
    for name, subset in (("hidden subset", random.integers(0, 2, n)), ("all squares", np.ones(n, int))):
        began = time.perf_counter()
        labelled = ((x, x @ subset % 2) for x in (train, test))
        errors = fit(*labelled, epochs=epochs, seed=seed)
        seconds = time.perf_counter() - began
        mlp = errors.train_by_epoch, errors.test_by_epoch
        contests.append(Contest(name, learn(train, test, subset), *mlp, seconds))
    return Headline(side, tuple(contests))


def learn(train: np.ndarray, test: np.ndarray, subset: np.ndarray, seed: int = 0) -> ParityRun:
    """Compiles the parity learner, trains the network on the samples until it has finished, and tests it."""
    learner = parity(train.shape[1])
    began = time.perf_counter()
    net = practical(learner)
    built = time.perf_counter()
    first = learner.start(train, train @ subset % 2, seed)
    net.advance(net.start(first), 1, "fast")  # compiled once, and not timed
    carry, last, trained = net.start(first), None, 0.0
    truth = test @ subset % 2
    guesses = np.random.default_rng(seed + 1).integers(0, 2, len(test))
    accuracy, step, few = [], max(1, 2 * train.shape[1] // 20), slice(0, 100)
    while carry.answer is None and not net.done(carry):
        if carry.steps % step == 0:
            guessed = net.outputs(carry, test[few], guesses[few]) > 0
            accuracy.append((carry.steps, float(np.mean(guessed == truth[few]))))
        before = time.perf_counter()
        last, carry = carry, net.advance(carry, 1, "fast")
        trained += time.perf_counter() - before
    assert last is not None
    tested = time.perf_counter()
    said = net.outputs(carry, test, guesses) > 0
    test_seconds = time.perf_counter() - tested
    accuracy.append((last.steps, float(np.mean(said == truth))))
    used = first.samples.guess[: last.steps] != first.samples.y[: last.steps]
    solved = eliminated(train[: last.steps][used], (train @ subset % 2)[: last.steps][used])
    return ParityRun(
        bits=train.shape[1],
        hidden=int(subset.sum()),
        cells=len(net.cells),
        weights=net.graph.edges,
        samples=last.steps,
        learned=int(used.sum()),
        accuracy=tuple(accuracy),
        agrees=solved is not None and bool((said == test @ solved % 2).all()),
        build_seconds=built - began,
        train_seconds=trained,
        test_seconds=test_seconds,
    )


def eliminated(x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """The subset whose parity explains the labels, by Gaussian elimination on whole columns; None if the
    samples contradict each other or leave several subsets."""
    system = np.column_stack([x, y]).astype(bool)
    n, rank = x.shape[1], 0
    for column in range(n):
        pivots = np.flatnonzero(system[rank:, column])
        if len(pivots) == 0:
            return None
        system[[rank, rank + pivots[0]]] = system[[rank + pivots[0], rank]]
        others = system[:, column].copy()
        others[rank] = False
        system[others] ^= system[rank]
        rank += 1
    return None if system[rank:, n].any() else system[:n, n].astype(int)


def noise_sweep(n: int, rates: list[float], runs: int, *, robust: bool, seed: int = 0) -> dict[float, float]:
    """For every rate of wrong labels, the share of runs in which the trained network is right everywhere."""
    random = np.random.default_rng(seed)
    samples = 40 * n if robust else 8 * n
    learner = robust_parity(n, samples // 3) if robust else parity(n)
    net = practical(learner)
    shares = {}
    for rate in rates:
        right = 0
        for run in range(runs):
            subset, x, test = random.integers(0, 2, n), *random.integers(0, 2, (2, samples, n))
            flipped = random.random(samples) < rate
            first = learner.start(x, x @ subset % 2 ^ flipped, run)
            carry = net.advance(net.start(first), samples, "fast")
            said = net.outputs(carry, test, np.zeros(len(test), int)) > 0
            right += bool((said == test @ subset % 2).all())
        shares[rate] = right / runs
    return shares


def figure(result: Headline, path: str | Path) -> None:
    """Test accuracy of both networks, side by side."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    for contest in result.contests:
        points, shares = zip(*contest.learned.accuracy, strict=True)
        left.plot(points, [100 * share for share in shares], label=contest.name)
        for errors, kind, line in ((contest.mlp_train, "training", "--"), (contest.mlp_test, "test", "-")):
            share = [100 * (1 - e) for e in errors]
            right.plot(range(1, len(errors) + 1), share, line, label=f"{contest.name}, {kind}")
    left.set(title="compiled network, plain SGD", xlabel="samples", ylabel="accuracy, %")
    right.set(title="3 x 128 ReLU network, SGD 0.1", xlabel="epochs of the same images")
    for axes in (left, right):
        axes.axhline(50, color="grey", linewidth=0.8, linestyle=":")
        axes.legend()
    drawing.suptitle(f"Parity of {result.side} x {result.side} squares")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=150)


def report(result: Headline) -> list[dict]:
    """The headline as rows of the table."""
    return [
        {
            "what": f"parity of {result.side} x {result.side} images, {contest.name}: test accuracy after "
            f"{contest.learned.samples} samples ({contest.learned.learned} learned from)",
            "value": 100 * contest.learned.accuracy[-1][1],
            "unit": "%",
            "agrees_with_elimination": contest.learned.agrees,
            "seconds": contest.learned.seconds,
            "rival": "3 x 128 ReLU network, SGD 0.1",
            "rival_value": 100 * (1 - contest.mlp_test[-1]),
            "rival_training_error": 100 * contest.mlp_train[-1],
            "rival_seconds": contest.mlp_seconds,
        }
        for contest in result.contests
    ]


def rows() -> list[dict]:
    """Headline, other sizes, and how much label noise the learners tolerate."""
    return [*report(headline()), *other_rows()]


def other_rows() -> list[dict]:
    """Other sizes, and label noise."""
    found = []
    for n, hidden in ((30, 15), (64, 32)):
        random = np.random.default_rng(n)
        train, test = random.integers(0, 2, (2, 1000, n))
        subset = np.zeros(n, int)
        subset[random.permutation(n)[:hidden]] = 1
        learned = learn(train, test, subset)
        found.append(
            {
                "what": f"parity of {hidden} of {n} bits: test accuracy after {learned.samples} samples",
                "value": 100 * learned.accuracy[-1][1],
                "unit": "%",
                "agrees_with_elimination": learned.agrees,
                "seconds": learned.seconds,
            }
        )
    rates = [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    for robust, name, n in ((False, "elimination", 30), (False, "elimination", 6), (True, "counting", 6)):
        for rate, share in noise_sweep(n, rates, 20, robust=robust).items():
            found.append(
                {
                    "what": f"parity of {n} bits by {name}, {100 * rate:g}% wrong labels: runs all right",
                    "value": 100 * share,
                    "unit": "%",
                }
            )
    return found


def demonstration() -> list[dict]:
    """The headline at a small size, for `tapegrad demo`."""
    return report(headline(side=5, images=300, epochs=20))
