"""Rows as tables for people, and as a picture."""

import io
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tapegrad._conformance.judging import EXACT, FAULT, OUTCOMES
from tapegrad.errors import Refused

Rows = Sequence[dict[str, Any]]
COLOURS = {
    "exact": "#4c9a6a",
    "fault": "#c8453c",
    "refused": "#b9b9b9",
    "beyond": "#e4e4e4",
    "absent": "#ffffff",
    "crash": "#7a3fa0",
    "timeout": "#d9a441",
}


def runs_of(rows: Rows) -> list[tuple[str, str]]:
    """Runtimes and levels, in order."""
    return list(dict.fromkeys((row["runtime"], row["level"]) for row in rows))


def table(rows: Rows) -> Table:
    """For every runtime, level and format how many networks had which outcome."""
    shown = [own for own in OUTCOMES if any(row["outcome"] == own for row in rows)]
    found = Table(title=None, box=None, pad_edge=False)
    for name in ("runtime", "version", "level", "format"):
        found.add_column(name)
    for name in shown:
        found.add_column(name, justify="right")
    for key in dict.fromkeys((row["runtime"], row["level"], row["format"]) for row in rows):
        own = [row for row in rows if (row["runtime"], row["level"], row["format"]) == key]
        counts = [sum(row["outcome"] == name for row in own) for name in shown]
        found.add_row(key[0], own[0]["version"] or "-", *key[1:], *(str(n) if n else "" for n in counts))
    return found


def speed_table(rows: Rows) -> Table:
    """Patterns a second of the processor."""
    found = Table(title=None, box=None, pad_edge=False)
    for name in ("runtime", "version", "level", "format", "network"):
        found.add_column(name)
    found.add_column("patterns/s", justify="right")
    for row in rows:
        figure = row.get("patterns_per_cpu_second")
        last = f"{figure:,.0f}" if figure is not None else row["outcome"]
        cells = (row["runtime"], row["version"] or "-", row["level"], row["format"], row["net"])
        found.add_row(*cells, last)
    return found


def said(rows: Rows) -> list[str]:
    """What there is to say beside the table: every fault, and once each what else happened."""
    faults = [
        f"fault: {row['runtime']} {row['version']}, {row['level']}, {row['format']}, {row['net']}: "
        f"{row['reason']}"
        for row in rows
        if row["outcome"] == FAULT
    ]
    others: dict[tuple[str, str, str], int] = {}
    for row in rows:
        if row["outcome"] not in (EXACT, FAULT):
            key = row["outcome"], row["runtime"], row["reason"]
            others[key] = others.get(key, 0) + 1
    return faults + [
        f"{outcome}: {runtime}, {count} time(s): {reason}"
        for (outcome, runtime, reason), count in others.items()
        if outcome != "beyond"
    ]


def plotted(rows: Rows) -> bytes:
    """A picture: a row for each runtime and level, a column for each network and format."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError as error:
        raise Refused("figures need matplotlib", advice="Install tapegrad[plot].") from error
    runs = runs_of(rows)
    columns = list(dict.fromkeys((row["net"], row["format"]) for row in rows))
    with rc_context({"svg.hashsalt": "tapegrad", "svg.fonttype": "path"}):
        figure = Figure(figsize=(2.5 + 0.28 * len(columns), 1.8 + 0.26 * len(runs)), layout="constrained")
        axes = figure.subplots()
        for row in rows:
            x = columns.index((row["net"], row["format"]))
            y = runs.index((row["runtime"], row["level"]))
            colour = COLOURS[row["outcome"]]
            axes.add_patch(_square(x, y, colour))
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(runs) - 0.5, -0.5), aspect="equal")
        axes.set_xticks(
            range(len(columns)), [f"{net} {name}" for net, name in columns], rotation=90, fontsize=7
        )
        axes.set_yticks(range(len(runs)), [f"{runtime} {level}" for runtime, level in runs], fontsize=7)
        there = [own for own in OUTCOMES if any(row["outcome"] == own for row in rows)]
        handles = [Patch(facecolor=COLOURS[own], edgecolor="#888888", label=own) for own in there]
        figure.legend(
            handles=handles, loc="outside upper center", ncols=len(there), fontsize=7, frameon=False
        )
        written = io.BytesIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def _square(x: int, y: int, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, facecolor=colour, edgecolor="#888888", linewidth=0.4)
