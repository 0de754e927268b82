"""Claim 3.5: the margin of a chain of d weights, with and without rounding in between.

The chain is `W_d ... W_1 x - 1/2` at x = 1 with all weights 1; only the W_i are parameters (as in the paper).
"""

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tapegrad._files import write_atomically
from tapegrad._precision import in_double
from tapegrad.errors import Refused
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.problems import Parameters, Problem, corrected

GRID = 3000
"""Points of the grid for values between 0 and 1: a multiple of 6, so that 1/3, 1/2 and 2/3 are on it."""


@dataclass(frozen=True)
class ChainMargins:
    """One row of the experiment; the attacks are upper bounds that know nothing of the formulas."""

    depth: int
    without_rounding: float
    without_rounding_attacked: float
    with_rounding: float
    with_rounding_attacked: float

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)


def margin_without_rounding(depth: int) -> float:
    """`sqrt(d) (1 - 2^(-1/d))`, about `ln 2 / sqrt(d)`.

    The least sum of `(1 - w_i)^2` with product 1/2 has `w (1 - w)` the same for all (Lagrange); with all
    weights equal that is `w = 2^(-1/d)`. The tests compare with brute force.
    """
    return float(np.sqrt(depth) * -np.expm1(-np.log(2) / depth))


def margin_with_rounding(depth: int) -> float:
    """By dynamic programming. J_k(h) is the least sum of squares that brings a value h below 1/2 in k more
    weights: `J_1(h) = max(0, 1 - 1/(2h))^2` and `J_k(h) = min over w of (1 - w)^2 + J_{k-1}(round(w h))`.
    Values are on a grid, and the minimum runs over the w that lead from one value to the next."""
    values = np.arange(1, GRID + 1) / GRID
    rounded = np.clip(3 * values - 1, 0, 1)
    costs = np.maximum(0, 1 - 0.5 / values) ** 2
    steps = np.maximum(0, 1 - values[None, :] / values[:, None]) ** 2  # from a value to one below it
    for _ in range(depth - 1):
        after = np.interp(rounded, np.append(0, values), np.append(0, costs))
        improved = (steps + after[None, :]).min(axis=1)
        if np.allclose(improved, costs, rtol=0, atol=1e-15):
            break
        costs = improved
    return float(np.sqrt(costs[-1]))


@in_double
def chain_problem(depth: int, rounding: bool) -> Problem:
    """The chain as a function of its weights; (3.1) with rounding."""

    def margins(weights: Parameters, guide: float) -> Array:
        value = jnp.ones(())
        for number in range(depth):
            value = weights[number] * value
            if rounding:
                value = corrected(
                    value, 3 * jnp.maximum(value - 1 / 3, 0) - 3 * jnp.maximum(value - 2 / 3, 0), guide
                )
        return (value - 0.5)[None]

    ones = jnp.ones(depth)
    windows = tuple(jnp.eye(depth)) if rounding else (ones,)
    return Problem(ones, ones, margins, lambda weights: margins(weights, 0.0) > 0, windows)


def claim_3_5(depths: Iterable[int] = (1, 2, 4, 8, 16, 32, 64)) -> list[ChainMargins]:
    """The experiment: the margin falls like `1 / sqrt(d)` without rounding, and stays above 1/3 with it."""
    return [
        ChainMargins(
            depth,
            margin_without_rounding(depth),
            attack(chain_problem(depth, rounding=False)).radius,
            margin_with_rounding(depth),
            attack(chain_problem(depth, rounding=True)).radius,
        )
        for depth in depths
    ]


def plot_claim_3_5(rows: Sequence[ChainMargins], path: str | os.PathLike[str]) -> None:
    """Draws the rows to a file whose extension names the format."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused("figures need matplotlib", advice="Install tapegrad[plot].") from error

    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    depths = [row.depth for row in rows]
    axes.loglog(depths, [row.without_rounding for row in rows], "C0-", label="without rounding")
    axes.loglog(depths, [row.without_rounding_attacked for row in rows], "C0o", label="... by attack")
    axes.loglog(depths, [row.with_rounding for row in rows], "C1-", label="with rounding")
    axes.loglog(depths, [row.with_rounding_attacked for row in rows], "C1s", label="... by attack")
    axes.axhline(1 / 3, color="grey", linestyle=":", label="1/3, the paper's bound")
    axes.set(xlabel="depth d", ylabel="all-layer margin", title="Claim 3.5")
    axes.legend(fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=os.fspath(path).rpartition(".")[2] or "png", dpi=110)
    write_atomically(path, buffer.getvalue())
