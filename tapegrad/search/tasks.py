"""What a search looks for: learning tasks, drawn at random, laid out as the network sees them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.learners.on_grid import xor_form
from tapegrad.search.tree import MINUS, OFF, PLUS, Problems

MOST_STEPS = 10**8
"""Of one run, whatever the exponent: so that it can be waited for."""


@dataclass(frozen=True)
class Problem:
    """One learning problem with one test point."""

    X: NDArray[np.int64]
    y: NDArray[np.int64]
    x: NDArray[np.int64]
    answer: int


class DataSet(NamedTuple):
    """One learning problem: samples, and test points with their answers."""

    X: NDArray[np.int64]
    y: NDArray[np.int64]
    points: NDArray[np.int64]
    answers: NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """A distribution over learning problems (the meta-distribution of section 5): sizes between bounds,
    features uniform, and an answer for each."""

    name: str
    summary: str
    answer: Callable[[np.random.Generator, NDArray[np.int64]], Callable[[NDArray[np.int64]], int]]
    """Draws what is unknown, for these training features; gives the labelling."""
    samples: tuple[int, int] = (3, 6)
    features: tuple[int, int] = (2, 5)
    copies_label: bool = False
    """Whether the answer is the last training label, and the labels are coin tosses."""

    def draw(self, rng: np.random.Generator) -> Problem:
        X, y, points, answers = self.data(rng, 1)
        return Problem(X, y, points[0], int(answers[0]))

    def data(self, rng: np.random.Generator, points: int) -> DataSet:
        """A problem with this many test points."""
        m, d = (int(rng.integers(low, high + 1)) for low, high in (self.samples, self.features))
        X, T = rng.choice([-1, 1], (m, d)), rng.choice([-1, 1], (points, d))
        if self.copies_label:
            y = rng.choice([-1, 1], m)
            return DataSet(X, y, T, np.repeat(y[-1:], points))
        label = self.answer(rng, X)
        return DataSet(X, np.array([label(x) for x in X]), T, np.array([label(x) for x in T]))


def _single_coordinate(rng: np.random.Generator, X: NDArray[np.int64]) -> Callable[[NDArray[np.int64]], int]:
    chosen = int(rng.integers(X.shape[1]))
    return lambda x: int(x[chosen])


TASKS = {
    task.name: task
    for task in (
        Task("first-coordinate", "the first feature", lambda rng, X: lambda x: int(x[0])),
        Task("last-label", "the label of the last sample", lambda rng, X: lambda x: 1, copies_label=True),
        Task("any-minus", "-1 if any feature is -1", lambda rng, X: lambda x: int(x.min())),
        Task("parity-of-all", "the product of all features", lambda rng, X: lambda x: int(x.prod())),
        Task(
            "single-coordinate",
            "one feature, and the samples tell which: a learning algorithm",
            _single_coordinate,
            samples=(7, 9),
            features=(3, 5),
        ),
    )
}


def task_named(name: str) -> Task:
    """The task of this name."""
    if name not in TASKS:
        raise InputError(f"there is no task {name!r}", advice=f"Choose one of {', '.join(TASKS)}.")
    return TASKS[name]


@dataclass(frozen=True)
class Instances:
    """Problems as grids with a frame of one blank cell, all in one array; the head starts at `start`."""

    grids: NDArray[np.int8]
    start: NDArray[np.int64]
    answer: NDArray[np.int64]
    size: NDArray[np.int64]
    """`2 d m` of each problem: a machine has `(2 d m)^k` steps (Corollary 2)."""

    def __len__(self) -> int:
        return len(self.grids)

    def digest(self) -> str:
        """A name for these very problems."""
        parts = (self.grids, self.start, self.answer)
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

    def problems(self, exponent: int) -> Problems:
        """For compiled code, with the time bound of this exponent."""
        limit = np.array([min(int(size) ** exponent, MOST_STEPS) for size in self.size])
        wanted = np.where(self.answer > 0, PLUS, MINUS)
        grids = self.grids.reshape(len(self), -1)
        return Problems(grids, self.grids.shape[2], self.start, wanted, limit)


def draw_instances(task: Task, count: int, seed: int) -> Instances:
    """`count` problems of the task."""
    rng = np.random.default_rng(seed)
    return laid_out([task.draw(rng) for _ in range(count)])


def laid_out(problems: list[Problem]) -> Instances:
    """Problems in XOR form, each in its frame, the rest of the array off the grid."""
    forms = [xor_form(p.X, p.y, p.x) for p in problems]
    rows, columns = (max(form.shape[i] for form in forms) + 4 for i in (0, 1))
    grids = np.full((len(forms), rows, columns), OFF, dtype=np.int8)
    start = np.zeros(len(forms), dtype=np.int64)
    for i, form in enumerate(forms):
        m, d = form.shape
        grids[i, 1 : m + 3, 1 : d + 3] = 0
        grids[i, 2 : m + 2, 2 : d + 2] = np.where(form > 0, 1, 2)
        start[i] = (m + 1) * columns + d + 1
    answers = np.array([problem.answer for problem in problems])
    sizes = np.array([2 * problem.X.size for problem in problems])
    return Instances(grids, start, answers, sizes)
