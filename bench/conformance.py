"""Tables of the documentation from results that were saved: `python -m bench.conformance FILE.json ...`.

A file is what `tapegrad conformance --json`, the same with `--speed`, or `python -m bench.packed --json`
printed; those in `docs/measured` are in the pages.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FORMATS = ("float64", "float32", "float16", "bfloat16", "int8")
Rows = Sequence[dict[str, Any]]


def outcomes(rows: Rows) -> list[str]:
    """A line for each runtime and level: networks that are exact in every format, and those that are not."""
    lines = [_line("runtime", "level", *FORMATS), "|---|---|" + "---:|" * len(FORMATS)]
    for runtime, version, level in dict.fromkeys((r["runtime"], r["version"], r["level"]) for r in rows):
        own = [row for row in rows if (row["runtime"], row["level"]) == (runtime, level)]
        lines.append(_line(f"{runtime} {version}", level, *(_cell(own, name) for name in FORMATS)))
    return lines


def _cell(rows: Rows, name: str) -> str:
    found = [row["outcome"] for row in rows if row["format"] == name]
    parts = [str(found.count("exact"))] if "exact" in found else []
    for other in ("fault", "crash", "timeout", "absent"):
        parts += [f"**{found.count(other)} {other}**"] if other in found else []
    return ", ".join(parts) or "-"


def speeds(rows: Rows) -> list[str]:
    """Patterns a second of the processor, the fastest first."""
    there = [row for row in rows if "patterns_per_cpu_second" in row]
    order = sorted(there, key=lambda row: -row["patterns_per_cpu_second"])
    lines = [_line("runtime", "level", "patterns/s"), "|---|---|---:|"]
    for row in order:
        figure = f"{row['patterns_per_cpu_second']:,.0f}"
        lines.append(_line(f"{row['runtime']} {row['version']}", row["level"], figure))
    return lines


def engines(rows: Rows) -> list[str]:
    """Patterns a second by the clock, a line for each engine and a column for each network."""
    nets = list(dict.fromkeys(row["what"] for row in rows))
    gates = [net.split(", ")[1] for net in nets]
    lines = [_line("engine", *gates), "|---|" + "---:|" * len(nets)]
    for engine in dict.fromkeys(row["engine"] for row in rows):
        own = {row["what"]: row["patterns_per_second"] for row in rows if row["engine"] == engine}
        lines.append(_line(engine, *(f"{own[net]:,.0f}" for net in nets)))
    return lines


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def table(paths: Sequence[Path]) -> list[str]:
    """The table of some files of one kind."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        found = json.loads(path.read_text())
        rows += found if isinstance(found, list) else found["rows"]
    if "engine" in rows[0]:
        return engines(rows)
    return speeds(rows) if any("patterns_per_second" in row for row in rows) else outcomes(rows)


if __name__ == "__main__":
    print("\n".join(table([Path(own) for own in sys.argv[1:]])))
