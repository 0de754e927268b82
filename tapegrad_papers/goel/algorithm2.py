"""Algorithm 2 of Goel et al.: from a learner that is told s and k to one that is told nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError

Examples = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Features and labels."""
Classifier = Callable[[NDArray[np.int64]], int]
C = TypeVar("C", bound=Classifier, covariant=True)


class SizedLearner(Protocol[C]):
    """A learner that is told the number of states, the exponent of the time bound, and a limit on its own
    steps; None if it does not finish."""

    def __call__(self, s: int, k: int, samples: Examples, extra: Examples, limit: int) -> C | None: ...


@dataclass(frozen=True)
class Chosen(Generic[C]):
    """The classifier with the least error on the examples held back, and the s, k, t it came from."""

    classifier: C
    s: int
    k: int
    t: int
    error: float
    tried: int


def algorithm_2(
    learner: SizedLearner[C], samples: Examples, extra: Examples, *, root: float = 10
) -> Chosen[C]:
    """Tries every s, k and t up to `r = M^(1/root)`, each with the first t extra examples and at most M
    steps, and keeps the best on the last r. The paper's root is 10; a smaller one reaches further with
    fewer examples, at a cost that the paper's exponents no longer cover."""
    X, y = extra
    count = len(X)
    if count < 1 or len(y) != count:
        raise InputError("Algorithm 2 needs extra examples, each with a label")
    r = max(1, int(count ** (1 / root) + 1e-9))
    best: Chosen[C] | None = None
    tried = 0
    for s, k, t in ((s, k, t) for s in range(1, r + 1) for k in range(1, r + 1) for t in range(1, r + 1)):
        classifier = learner(s, k, samples, (X[:t], y[:t]), count)
        tried += 1
        if classifier is None:
            continue
        error = float(np.mean([classifier(x) != label for x, label in zip(X[-r:], y[-r:], strict=True)]))
        if best is None or error < best.error:
            best = Chosen(classifier, s, k, t, error, tried)
    if best is None:
        raise InputError("no learner finished within the limit", advice="Give more extra examples.")
    return Chosen(best.classifier, best.s, best.k, best.t, best.error, tried)
