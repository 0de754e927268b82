"""What an emulating network hands from one step of SGD to the next."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.learners.model import Samples


@dataclass(frozen=True, eq=False)
class EmulatorCarry:
    """The weights under training, the samples, and how many of them have been shown."""

    weights: Any
    """An array of floats, or a list of exact numbers; one for each edge."""
    steps: int
    samples: Samples
    output: float = 0.0
    """The output at the last step."""
    answer: int | None = None
    """The learner's answer at the last step; None while it was learning."""


def input_rows(samples: Samples, begin: int, end: int) -> NDArray[np.int8]:
    """The inputs of the network for some samples: the constant 1, then x, random bit and guess as -1, 1."""
    count = len(samples.y[begin:end])
    columns = np.column_stack([samples.x[begin:end], samples.random[begin:end], samples.guess[begin:end]])
    return np.column_stack([np.ones(count, np.int8), 2 * columns.astype(np.int8) - 1])
