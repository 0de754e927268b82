"""A training run written down step by step: the loss, the tapes and the largest deviation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.targets.descent.net import Descent, DescentNet


@dataclass(frozen=True)
class History:
    """One row for each gradient step, the start first."""

    losses: NDArray[np.float64]
    tapes: NDArray[np.float64]
    """The weights T: step, cell, tape; without tapes and cells for `simplex`."""
    heads: NDArray[np.float64]
    """The weights H, likewise."""
    deviation: float
    """The largest over the run."""
    stop: float
    """B_stop: the run ends when the loss is at most this."""


def record(net: DescentNet, start: Descent, steps: int = 1000) -> History:
    """Trains by the reference engine, one step at a time, and keeps everything."""
    if steps < 1:
        raise InputError(f"a history needs at least one step, not {steps}")
    carries = [start]
    while len(carries) <= steps and not net.done(carries[-1]):
        carries.append(net.step(carries[-1]))
    return History(
        losses=np.array([net.loss(carry) for carry in carries]),
        tapes=np.array([np.asarray(carry.weights.T) for carry in carries]),
        heads=np.array([np.asarray(carry.weights.H) for carry in carries]),
        deviation=max(net.deviation(carry) for carry in carries),
        stop=net.stop,
    )
