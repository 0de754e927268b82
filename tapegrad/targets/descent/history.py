"""A training run written down step by step, the loss, the tapes and the largest deviation; and drawn (extra
`plot`)."""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
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


def plot_history(history: History, path: str | os.PathLike[str]) -> None:
    """Writes one figure: the loss over the steps with the stopping bound, and below it, for each writable
    tape, a row for every step with dark cells where the weight is +1 and the head in colour."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused("plots need matplotlib", advice="Install tapegrad[plot].") from error
    tapes = history.tapes.shape[2]
    figure = Figure(figsize=(8, 3 + 3 * tapes), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1 + tapes, 1, squeeze=False)[:, 0]
    panels[0].plot(history.losses, drawstyle="steps-post", label="loss")
    panels[0].axhline(history.stop, linestyle="--", color="tab:red", label="B_stop")
    panels[0].set(xlabel="gradient step", ylabel="1/2 |F(x) - y|²")
    panels[0].legend()
    own_heads = history.heads[:, :, history.heads.shape[2] - tapes :] if tapes else history.heads
    for tape in range(tapes):
        panel, cells = panels[1 + tape], history.tapes[:, :, tape].T
        used = np.flatnonzero((cells > 0).any(axis=1) | (own_heads[:, :, tape].T > 0.5).any(axis=1))
        first, last = used.min(), used.max() + 1
        panel.imshow(
            -cells[first:last], aspect="auto", cmap="gray", interpolation="nearest", vmin=-1.5, vmax=1
        )
        panel.plot(own_heads[:, first:last, tape].argmax(axis=1), color="tab:orange", linewidth=0.8)
        panel.set(xlabel="gradient step", ylabel=f"tape {tape + 1}: cells in use")
    figure.savefig(path)
