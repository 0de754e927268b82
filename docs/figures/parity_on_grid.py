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
    layers = {}
    for heads in ("one", "many"):
        learned = [learn(d, d + SPARE, 0, heads=heads) for d in SIZES]
        for found in learned:
            shown = f"d = {found.features}, m = {found.samples}, {heads} head(s)"
            print(f"{shown}: {found.layers:,} layers, {found.right:.0%} right")
        layers[heads] = np.array([found.layers for found in learned])
    samples = {d: [least_samples(d, seed) for seed in SEEDS] for d in SMALL}
    for d, found in samples.items():
        print(f"d = {d}: fewest samples {found}, mean {np.mean(found):.1f}")
    figure = Figure(figsize=(9, 3.8))
    left, right = figure.subplots(1, 2)
    d = np.array(SIZES, float)
    shown = (
        ("one", "one head", "tab:orange", 3, "--"),
        ("many", "a head in each row", "tab:blue", 2, ":"),
    )
    for heads, label, colour, power, line in shown:
        counts = layers[heads]
        left.loglog(d, counts, "o-", color=colour, label=label)
        left.loglog(d, counts[-1] * (d / d[-1]) ** power, line, color="0.6", label=f"d^{power}")
    left.set(xlabel="bits d", ylabel="layers until the answer", title=f"Layers, m = d + {SPARE}")
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
