"""Parity learned by SGD with noise on every weight at every step: accuracy against noise, and the bound."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tapegrad.errors import Refused
from tapegrad.learners import FunctionLearner, LearnerState, parity
from tapegrad.targets.emulator.constants import Constants
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad.targets.emulator.noise import Noise, Opened, choose_for_noise, largest, load

TESTS = 500


@dataclass(frozen=True)
class Setting:
    """A parity to learn, the learner's own run, and what the network of this size is proved to bear."""

    learner: FunctionLearner
    constants: Constants
    first: LearnerState
    subset: np.ndarray
    states: list[LearnerState]
    """The learner's, from the first on, until it is done."""
    opened: Opened
    """In how many steps a bit of memory was to change at most, and how many were at once."""
    load: float

    @property
    def steps(self) -> int:
        """One for each sample."""
        return len(self.first.samples)

    def bound(self, kind: str, known: bool) -> float:
        """The most noise that is proved to do no harm: to any learner, or with what is known of this one."""
        opened = self.opened if known else None
        return largest(kind, self.learner.cells, self.steps, self.constants, self.load, opened)

    def net(self, noise: Noise) -> PracticalNet:
        """The network with noise of any size."""
        return PracticalNet.of(self.learner, self.constants, "float64", self.steps, noise)


def setting(n: int, steps: int, seed: int = 0) -> Setting:
    """Parity of a hidden subset of n bits; the learner is run as it is, without any network."""
    rng = np.random.default_rng(seed)
    learner, subset, x = parity(n), rng.integers(0, 2, n), rng.integers(0, 2, (steps, n))
    first = learner.start(x, x @ subset % 2, seed)
    states, times, together = [], np.zeros(learner.cells, int), 0
    for state in learner.run(first):
        states.append(state)
        if state.answer is not None or state.position == steps:
            break
        x_t, _, random, guess = first.samples[state.position]
        opened = np.array(learner.respond(state.memory, x_t, random, guess).if_wrong) != state.memory
        times, together = times + opened, max(together, int(opened.sum()))
    constants = choose_for_noise(learner.cells, steps, "float64")
    plain = PracticalNet.of(learner, constants, "float64", steps)
    flat = load(plain.graph, plain.weights, learner.cells)
    return Setting(learner, constants, first, subset, states, Opened(int(times.max()), together), flat)


@dataclass(frozen=True)
class Trained:
    """One run with noise."""

    noise: Noise
    right: bool
    """Whether memory and answers were the learner's after every step."""
    accuracy: float
    """On inputs that were not trained on."""
    least_changed: float
    """The share of all weights that the noise changed, in the step in which it changed fewest."""
    error: float
    """Of the worst cell in the end, relative to its size."""


def trained(task: Setting, noise: Noise, seed: int = 1) -> Trained:
    """SGD with noise on all samples; the memory is compared with the learner's after every step."""
    net, labels = task.net(noise), task.first.samples.y
    carry, right, changed = net.start(task.first), True, 1.0
    for t in range(task.steps):
        disturbance = noise.at(t, net.weights, net.steps)
        carry = net.advance(carry, 1, "fast")
        changed = min(changed, float(np.mean(carry.weights - disturbance != carry.weights)))
        wanted = task.states[min(t + 1, len(task.states) - 1)]
        right = right and net.decode(carry).memory == wanted.memory
        right = right and carry.answer == (wanted.answer if t + 1 < len(task.states) else labels[t])
    test = np.random.default_rng([seed, 2]).integers(0, 2, (TESTS, len(task.subset)))
    said = net.outputs(carry, test, np.random.default_rng([seed, 3]).integers(0, 2, TESTS)) > 0
    accuracy = float(np.mean(said == (test @ task.subset % 2 == 1)))
    cells = carry.weights[net.cells]
    return Trained(
        noise, right, accuracy, changed, float(np.abs(np.abs(cells) / task.constants.w0 - 1).max())
    )


@dataclass(frozen=True)
class Curve:
    """Accuracies for one kind of noise, and its two bounds."""

    kind: str
    for_all: float
    for_this: float
    runs: list[Trained]

    def sizes(self) -> list[float]:
        return [getattr(run.noise, self.kind) for run in self.runs]


def curves(n: int, steps: int, factors: Sequence[float], seed: int = 0) -> Iterator[Curve]:
    """Noise as a multiple of what this learner is proved to bear."""
    task = setting(n, steps, seed)
    for kind in ("relative", "absolute"):
        own = task.bound(kind, True)
        runs = [trained(task, Noise(**{kind: factor * own}, seed=seed)) for factor in factors]
        yield Curve(kind, task.bound(kind, False), own, runs)


def report(found: Sequence[Curve]) -> list[dict[str, Any]]:
    """A row for each run."""
    return [
        {
            "what": f"{curve.kind} noise of {size:.2g} in all on every weight, {size / curve.for_this:.3g} "
            f"times the bound ({run.least_changed:.0%} of the weights change at every step)",
            "value": 100 * run.accuracy,
            "unit": "%",
            "memory_right": run.right,
            "error_of_a_cell": run.error,
            "bound": curve.for_this,
            "bound_for_all_learners": curve.for_all,
        }
        for curve in found
        for size, run in zip(curve.sizes(), curve.runs, strict=True)
    ]


def figure(found: Sequence[Curve], path: Path) -> None:
    """Accuracy against noise, one panel for each kind, with both bounds marked."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused("figures need matplotlib", advice="Install tapegrad[plot].") from error
    drawing = Figure(figsize=(8.4, 3.2), layout="constrained")
    for axes, curve in zip(drawing.subplots(1, 2, sharey=True), found, strict=True):
        axes.semilogx(curve.sizes(), [100 * run.accuracy for run in curve.runs], "o-", markersize=4)
        axes.axvline(curve.for_all, color="grey", linestyle=":", label="proved, any learner")
        axes.axvline(curve.for_this, color="black", linestyle="--", label="proved, this learner")
        unit = "times the weight" if curve.kind == "relative" else "the same on every weight"
        axes.set(xlabel=f"sum of the noise, {unit}", ylim=(40, 104))
        axes.legend(loc="lower left")
    drawing.axes[0].set_ylabel("test accuracy, %")
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "noise"}):
        drawing.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
