"""Scores as a table and as a picture: solved against size."""

import io
from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table

from tapegrad._vnn.scoring import OUTCOMES, RIGHT, SCORES, read_scores
from tapegrad.errors import InputError, Refused

EDGES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000)
"""Sizes are put together up to these."""


def table(scores: dict[str, Any]) -> Table:
    """Outcomes by family, and the greatest network that was answered right."""
    rows = scores["rows"]
    shown = [own for own in OUTCOMES if any(row["outcome"] == own for row in rows)]
    found = Table(title=None, box=None, pad_edge=False)
    found.add_column("family")
    for own in (*shown, "most ReLUs right", "seconds"):
        found.add_column(own, justify="right")
    for family in [*dict.fromkeys(row["family"] for row in rows), "all"]:
        of = [row for row in rows if family in (row["family"], "all")]
        counts = Counter(row["outcome"] for row in of)
        most = max((row["relus"] for row in of if row["outcome"] == RIGHT), default=None)
        seconds = sum(row["seconds"] or 0 for row in of)
        cells = [str(counts[own]) for own in shown]
        found.add_row(family, *cells, "-" if most is None else f"{most:,}", f"{seconds:,.0f}")
    return found


def plotted(folder: Path) -> bytes:
    """A picture of all tools that were scored in a folder, as SVG."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused("figures need matplotlib", advice="Install tapegrad[plot].") from error
    paths = sorted((folder / SCORES).glob("*.json"))
    if not paths:
        raise InputError(f"no tool was scored in {folder}", advice="Score one first.")
    with rc_context({"svg.hashsalt": "tapegrad", "svg.fonttype": "path"}):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for path in paths:
            scores = read_scores(path)
            points = by_size(scores["rows"])
            axes.plot(*zip(*points, strict=True), marker="o", label=scores["tool"])
        axes.set(xscale="log", xlabel="ReLUs", ylabel="answered right, of a hundred", ylim=(-5, 105))
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
        written = io.BytesIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def by_size(rows: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Mean size and percentage right of the instances of like size."""
    points, low = [], 0
    for high in EDGES:
        of = [row for row in rows if low < row["relus"] <= high]
        if of:
            right = sum(row["outcome"] == RIGHT for row in of)
            points.append((sum(row["relus"] for row in of) / len(of), 100 * right / len(of)))
        low = high
    return points
