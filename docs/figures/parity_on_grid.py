"""Draws `docs/images/rcnn-parity.svg`: layers and samples that networks of target `rcnn` take to learn
parities of d bits by SGD. Prints the numbers. Run as `python docs/figures/parity_on_grid.py` (minutes)."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tapegrad_papers.goel.parity import SPARE, learn, least_samples

SIZES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 169)
SMALL = (4, 8, 16, 24, 32)
SEEDS = range(3)


def main() -> None:
    """Layers against d, and the fewest samples against d."""
    learned = [learn(d, d + SPARE, 0) for d in SIZES]
    for one in learned:
        print(f"d = {one.features}, m = {one.samples}: {one.layers:,} layers, {one.right:.0%} right")
    samples = {d: [least_samples(d, seed) for seed in SEEDS] for d in SMALL}
    for d, found in samples.items():
        print(f"d = {d}: fewest samples {found}, mean {np.mean(found):.1f}")
    figure = Figure(figsize=(9, 3.8))
    left, right = figure.subplots(1, 2)
    d = np.array(SIZES, float)
    layers = np.array([one.layers for one in learned])
    left.loglog(d, layers, "o-", color="tab:blue", label=f"layers, m = d + {SPARE}")
    left.loglog(d, layers[-1] * (d / d[-1]) ** 3, "--", color="0.6", label="d^3")
    left.loglog(d, layers[-1] * (d / d[-1]) ** 2, ":", color="0.6", label="d^2")
    left.set(xlabel="bits d", ylabel="layers until the answer", title="Layers")
    right.plot(SMALL, SMALL, "--", color="0.6", label="d")
    for size, found in samples.items():
        right.plot([size] * len(found), found, "o", color="tab:blue", markersize=4)
    right.set(xlabel="bits d", ylabel="fewest samples, 3 draws", title="Samples")
    for axes in (left, right):
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(Path(__file__).parents[1] / "images" / "rcnn-parity.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
