"""The (s, k)-Turing-optimal learner: the best of many random machines of s states on the extra examples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.grid import GridMachine
from tapegrad.search.family import Family, Table, machine_of
from tapegrad.search.tasks import Problem, laid_out
from tapegrad.search.tree import GO_ON, evaluate, sample
from tapegrad_papers.goel.algorithm2 import Examples


@dataclass(frozen=True)
class FoundClassifier:
    """What a machine makes of the samples: its answer for a test point."""

    table: Table
    family: Family
    samples: Examples
    exponent: int

    def __call__(self, x: NDArray[np.int64]) -> int:
        instance = laid_out([Problem(*self.samples, x, 1)])
        right = evaluate(self.table[None], self.family.states, instance.problems(self.exponent))
        return 1 if right[0] else -1

    @property
    def machine(self) -> GridMachine:
        return machine_of(self.table, self.family)


def best_machine(s: int, k: int, samples: Examples, extra: Examples, limit: int) -> FoundClassifier | None:
    """`A_{s,k}` by Corollary 2: `limit` random machines of s states, each an algorithm that is given the
    samples and one extra point at a time and has `(2 d m)^k` steps; the one with the fewest errors on the
    extra examples is kept."""
    X, y = samples
    points, labels = extra
    family = Family(s)
    instances = laid_out([Problem(X, y, x, int(label)) for x, label in zip(points, labels, strict=True)])
    seed = (s * 1009 + k) * 1009 + len(points)  # other draws for every s, k and t
    _, kept, errors, _ = sample(family.code(), instances.problems(k), len(points), seed, limit, 1, GO_ON)
    return FoundClassifier(kept[0], family, samples, k) if errors[0] <= len(points) else None
