"""Draws `docs/images/attention.svg`: where each decoder step finds the last write. Run as
`python docs/figures/attention.py`."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import tapegrad as tg
from tapegrad.networks.heads import Watching
from tapegrad.targets.transformer import TransformerNet

MACHINE = "busy-beaver-4x2"


def main() -> None:
    """The attention of the copying layer over time, as a picture."""
    machine = tg.read(MACHINE)
    assert isinstance(machine, tg.TuringMachine)
    net = tg.compile(machine, "transformer", form="paper", steps=128).net
    assert isinstance(net, TransformerNet)
    watching = Watching(net.network, net.reading, net.given(net.start(machine.start())))
    steps = sum(1 for _ in machine.run(machine.start()))
    picture = np.zeros((steps, steps + 1))
    for step in range(steps):
        *_, weights = (look.weights for look in watching.step().looks if look.own_steps)
        picture[step, : len(weights)] = weights
    figure = Figure(figsize=(6, 5.6))
    axes = figure.subplots()
    now, found = np.nonzero(picture[:, 1:])
    axes.plot([0, steps], [0, steps], color="0.85", linewidth=1, zorder=0)
    axes.scatter(found, now, s=7, color="tab:blue", label="last step that wrote at the head's cell")
    nothing = np.flatnonzero(picture[:, 0])
    axes.scatter(
        np.zeros(len(nothing)), nothing, s=9, color="tab:orange", marker="x", label="null key: never written"
    )
    axes.set(
        xlabel="step attended to", ylabel="decoder step", title=f"{MACHINE}: attention finds the last write"
    )
    axes.invert_yaxis()
    axes.legend(loc="upper right", fontsize=8)
    figure.tight_layout()
    figure.savefig(Path(__file__).parents[1] / "images" / "attention.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
