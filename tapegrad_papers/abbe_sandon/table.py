"""The limits of gradient descent in one table and one figure, beside what compiled networks do."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from tapegrad.errors import Refused
from tapegrad_papers.abbe_sandon.cross_predictability import Estimated, estimated, of_parities
from tapegrad_papers.abbe_sandon.descent import (
    Descent,
    corollary_2,
    on_parities,
    theorem_3,
    theorem_6_bound,
)
from tapegrad_papers.abbe_sandon.hard_functions import (
    Arithmetic,
    Connectivity,
    arithmetic,
    connectivity,
    hidden_digit_sums,
)
from tapegrad_papers.abbe_sandon.rivals import Images, Learned, by_emulator, by_rcnn, images

DESCENT = Descent(rate=0.3, noise=0.15, steps=16, overflow=0.5)
"""Little enough noise to learn parities of two bits, and enough for the bound to be below 1 at 16."""
HIDDEN = 8
SIZES = (1, 2, 3, 4, 6, 8, 12, 16)


@dataclass(frozen=True)
class NoisyParities:
    """One number of bits. Accuracies are means over runs, each with a parity, a network and noise of its own;
    the descent follows the mean gradient over all 2^n inputs, and is tested on all of them."""

    n: int
    weights: int
    accuracy: Estimated
    junk_flow: float
    theorem_3: float
    corollary_2: float
    theorem_6: float
    emulator: Learned
    rcnn: Learned | None
    """Left out where the grid would be large."""


def measure(
    sizes: Sequence[int] = SIZES,
    runs: int = 12,
    descent: Descent = DESCENT,
    hidden: int = HIDDEN,
    largest_grid: int = 8,
    seed: int = 0,
) -> list[NoisyParities]:
    """One row for each number of bits; `largest_grid` is the most bits that rcnn is asked for."""
    return [_measured(n, runs, descent, hidden, n <= largest_grid, seed) for n in sizes]


def _measured(n: int, runs: int, descent: Descent, hidden: int, grid: bool, seed: int) -> NoisyParities:
    subsets = np.random.default_rng([seed, n]).integers(0, 2, (runs, n))
    shares, flow, weights = on_parities(descent, subsets, hidden, (seed + n, seed + 2, seed + 1))
    cp = float(of_parities(n))
    return NoisyParities(
        n=n,
        weights=weights,
        accuracy=Estimated(float(shares.mean()), float(shares.std(ddof=1) / sqrt(runs))),
        junk_flow=flow,
        theorem_3=theorem_3(flow, descent.noise, cp),
        corollary_2=corollary_2(descent.largest, descent.noise, weights, descent.steps, None, cp),
        theorem_6=theorem_6_bound(flow, descent.noise, n),
        emulator=by_emulator(subsets[0], seed),
        rcnn=by_rcnn(subsets[0], seed) if grid else None,
    )


@dataclass(frozen=True)
class Limits:
    """All experiments of one run."""

    parities: list[NoisyParities]
    images: Images
    connectivity: list[Connectivity]
    arithmetic: list[Arithmetic]
    cross_predictability: dict[int, Estimated]
    """Of sums in unknown symbols, by base."""


def limits(long: bool = False, seed: int = 0) -> Limits:
    """Runs them, in one or two minutes on two cores; `long` adds larger sizes."""
    sizes = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18) if long else (2, 3, 4, 6, 8, 12, 14, 16)
    rng = np.random.default_rng(seed)
    graphs = [connectivity(24, 7, 3, seed=seed), connectivity(24, 7, 4, seed=seed)]
    return Limits(
        parities=measure(sizes, runs=24 if long else 12, largest_grid=10 if long else 6, seed=seed),
        images=images(seed=seed) if long else images(9, 600, 40, seed),
        connectivity=[*graphs, connectivity(40, 8, 3, seed=seed)] if long else graphs,
        arithmetic=[arithmetic(base, seed=seed) for base in ((3, 4) if long else (3,))],
        cross_predictability={
            base: estimated(hidden_digit_sums(base), 2000 if long else 400, 2000, rng) for base in (3, 4, 5)
        },
    )


def rows(found: Limits) -> list[dict[str, Any]]:
    """The table, a row for each measurement; values are accuracies in percent."""
    table: list[dict[str, Any]] = []
    for row in found.parities:
        bound = (
            f"at most {100 * row.theorem_6:.1f}% by Theorem 6" if row.theorem_6 < 1 else "no bound below 100%"
        )
        beside = {
            "rival": f"noisy descent ({bound})",
            "rival_value": 100 * row.accuracy.value,
            "rival_error": 100 * row.accuracy.error,
            "theorem_6": 100 * row.theorem_6,
            "theorem_3": 100 * row.theorem_3,
            "corollary_2": 100 * row.corollary_2,
            "junk_flow": row.junk_flow,
            "descent": f"rate {DESCENT.rate}, noise {DESCENT.noise}, {DESCENT.steps} steps",
        }
        for name, learned in (("emulator", row.emulator), ("rcnn", row.rcnn)):
            if learned is not None:
                what = f"parities of {row.n} bits: {name}"
                table.append(_row(what, 100 * learned.accuracy) | {"samples": learned.samples} | beside)
    shown = found.images
    table.append(
        _row(f"parity of {shown.side} x {shown.side} images: emulator", 100 * shown.emulator.accuracy)
        | {"samples": shown.emulator.samples, **_rival(shown.perceptron.test, shown.images)}
    )
    for graphs in found.connectivity:
        table.append(
            _row(
                f"one graph or two halves, n = {graphs.vertices}, r = {graphs.shortest:g}: search",
                100 * graphs.compiled,
            )
            | {"agrees_with_search": graphs.agrees, "edges_alone": 100 * graphs.edges}
            | _rival(graphs.perceptron.test, 1000)
        )
    for sums in found.arithmetic:
        table.append(
            _row(f"sums in base {sums.base} with hidden digits: emulator", 100 * sums.emulator.accuracy)
            | {"samples": sums.emulator.samples, **_rival(sums.perceptron.test, sums.perceptron_samples)}
        )
    for base, cp in found.cross_predictability.items():
        table.append(
            {
                "what": f"cross-predictability of sums in base {base}",
                "value": cp.value,
                "unit": "",
                "error": cp.error,
            }
        )
    return table


def _row(what: str, percent: float) -> dict[str, Any]:
    return {"what": what, "value": percent, "unit": "%"}


def _rival(error: float, samples: int) -> dict[str, Any]:
    return {
        "rival": "3 x 128 ReLU network, SGD 0.1",
        "rival_value": 100 * (1 - error),
        "rival_samples": samples,
    }


def figure(found: Limits, folder: str | Path) -> Path:
    """Parities: accuracy against the number of bits, with the bound; gives the path of `limits.png`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused("figures need matplotlib", advice="Install tapegrad[plot].") from error
    drawing = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = drawing.subplots()
    bits = [row.n for row in found.parities]
    bound = [100 * min(1, row.theorem_6) for row in found.parities]
    axes.plot(bits, bound, "k--", label="noisy descent, bound of Theorem 6")
    accuracy = [row.accuracy for row in found.parities]
    axes.errorbar(
        bits,
        [100 * a.value for a in accuracy],
        [200 * a.error for a in accuracy],
        fmt="o-",
        capsize=3,
        label="noisy descent, measured",
    )
    axes.plot(
        bits, [100 * row.emulator.accuracy for row in found.parities], "s-", label="emulator, plain SGD"
    )
    grids = [(row.n, 100 * row.rcnn.accuracy) for row in found.parities if row.rcnn is not None]
    axes.plot(*zip(*grids, strict=True), "x", markersize=10, label="rcnn, plain SGD")
    axes.axhline(50, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlabel="bits", ylabel="accuracy, %", ylim=(40, 104), title="Parity of a hidden subset")
    axes.legend(loc="center", bbox_to_anchor=(0.5, 0.6))
    path = Path(folder) / "limits.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=150)
    return path
