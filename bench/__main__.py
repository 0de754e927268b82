"""Runs every benchmark and writes one table: `python -m bench [NAME ...]` (or `make bench`).

Results go to `bench/out/results.md` and `bench/out/results.json`, with machine, versions and commit; when all
were run, also to `docs/benchmarks.md`.
Each benchmark runs in a process of its own, one after the other.
"""

import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = ("tapegrad", "jax", "equinox", "numpy", "numba")
RUN_ONE = (
    "import json, sys, importlib; print(json.dumps(importlib.import_module('bench.' + sys.argv[1]).rows()))"
)


def names() -> list[str]:
    """Every module of this folder that has rows to give."""
    return sorted(path.stem for path in HERE.glob("*.py") if "\ndef rows(" in path.read_text())


def circumstances() -> dict[str, Any]:
    """Where and with what the figures were measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
    }


def measured(name: str) -> list[dict[str, Any]]:
    """The rows of one benchmark."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_ONE, name], capture_output=True, text=True, cwd=HERE.parent
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return [{"what": "FAILED", "value": None, "unit": done.stderr.strip().splitlines()[-1]}]
    return json.loads(done.stdout.splitlines()[-1])


def as_markdown(results: dict[str, list[dict[str, Any]]], where: dict[str, Any]) -> str:
    """One table for people."""
    packages = ", ".join(f"{name} {number}" for name, number in where["packages"].items())
    lines = [
        "# Benchmarks",
        "",
        f"Measured by `make bench` on {where['date']}, commit {where['commit']}: {where['processor']}, "
        f"{where['cores']} cores, Python {where['python']}, {packages}. "
        "`python -m bench` is in the repository and not installed: it needs a clone. "
        "Ratios were measured side by side; absolute figures depend on the machine. What needs a large "
        "GPU has its own page, [On an accelerator](accelerator.md): speed of `relu`, and a language model "
        "that writes 100,000 tokens by `generate()` and is compared over a million.",
        "",
        "How the cost of a step grows (`python -m bench.growth`; short runs carry their set-up):",
        "",
        "![Microseconds a step against size, for every target and engine](images/growth.svg)",
    ]
    for name, rows in results.items():
        lines += ["", f"## {name}", "", "| what | value | unit | rival | ratio |", "|---|---:|---|---|---:|"]
        for row in rows:
            rival, theirs = row.get("rival") or "", row.get("rival_value")
            if theirs is not None:
                rival = f"{rival}: {_figure(theirs)}"
            cells = (row["what"], _figure(row["value"]), row["unit"], rival, _figure(row.get("ratio")))
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _figure(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main() -> None:
    """Runs the benchmarks named on the command line, or all."""
    unknown = set(sys.argv[1:]) - set(names())
    if unknown:
        sys.exit(f"there is no benchmark {min(unknown)!r}; there are {', '.join(names())}")
    results = {}
    for name in sys.argv[1:] or names():
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = measured(name)
    where = circumstances()
    text = as_markdown(results, where)
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "results.md").write_text(text)
    if len(results) == len(names()):
        (HERE.parent / "docs" / "benchmarks.md").write_text(text)
    (out / "results.json").write_text(
        json.dumps({"circumstances": where, "results": results}, indent=1) + "\n"
    )
    print(text)
    if any(row["what"] == "FAILED" for rows in results.values() for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
