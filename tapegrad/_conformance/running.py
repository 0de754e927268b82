"""Runtimes on the kit, each in processes of its own with limits, and a row for whatever happens."""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tapegrad._conformance.judging import ABSENT, CRASH, TIMEOUT
from tapegrad._conformance.kit import read_kit, write_kit
from tapegrad._conformance.runtimes import RUNTIMES
from tapegrad._limits import Ended, run_limited
from tapegrad.errors import InputError

SINGLE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
LAST_WORDS = 300

Job = dict[str, str]
Progress = Callable[[int, int], None]


def jobs_of(
    runtimes: Sequence[str], levels: Sequence[str] | None, formats: Sequence[str], nets: Sequence[str]
) -> list[list[Job]]:
    """All jobs, in groups that share a process: those of one runtime and level. No levels: the first of each
    runtime; an unknown one is refused."""
    groups = []
    for runtime in runtimes:
        own = RUNTIMES[runtime].levels
        chosen = own[:1] if levels is None else own if list(levels) == ["all"] else tuple(levels)
        for level in chosen:
            if level not in own:
                raise InputError(f"{runtime} has no level {level!r}", advice=f"Its levels: {', '.join(own)}.")
            pairs = [(net, name) for net in nets for name in formats if name in RUNTIMES[runtime].formats]
            groups.append(
                [{"runtime": runtime, "level": level, "net": net, "format": name} for net, name in pairs]
            )
    return groups


def version_of(runtime: str) -> str | None:
    """The version that is installed; None where there is none."""
    try:
        return metadata.version(RUNTIMES[runtime].package)
    except metadata.PackageNotFoundError:
        return None


def run_all(
    groups: Sequence[Sequence[Job]],
    *,
    seconds: float,
    memory: int,
    speed: bool = False,
    kit: Path | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """A row for every job: the job, its outcome and the reason."""
    rows: list[dict[str, Any]] = []
    total = sum(map(len, groups))
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        nets = dict.fromkeys(job["net"] for group in groups for job in group)
        if kit is None:
            kit = folder / "kit"
            write_kit(kit, nets, onnx=False)
        else:
            missing = set(nets) - {own.name for own in read_kit(kit, nets)}
            if missing:
                raise InputError(f"the kit has no network {min(missing)!r}", where=str(kit))
        for group in groups:
            rows += _group(group, folder, kit, seconds, memory, speed)
            if progress is not None:
                progress(len(rows), total)
    return rows


def _group(
    group: Sequence[Job], folder: Path, kit: Path, seconds: float, memory: int, speed: bool
) -> list[dict[str, Any]]:
    """A job is only blamed for an end of its process if it was the first in it: what was done before it may
    have used up time or memory. So the process is begun anew from there."""
    if not group:
        return []
    version = version_of(group[0]["runtime"])
    if version is None:
        reason = f"pip install {RUNTIMES[group[0]['runtime']].package}"
        return [_row(job, None, {"outcome": ABSENT, "reason": reason}) for job in group]
    rows: list[dict[str, Any]] = []
    while len(rows) < len(group):
        left = group[len(rows) :]
        found, ended = _process(left, folder, kit, seconds, memory, speed)
        rows += [_row(job, version, own) for job, own in zip(left, found, strict=False)]
        if not found:
            rows.append(_row(left[0], version, _blame(ended)))
    return rows


def _process(
    jobs: Sequence[Job], folder: Path, kit: Path, seconds: float, memory: int, speed: bool
) -> tuple[list[dict[str, Any]], Ended]:
    order, results = folder / "jobs.json", folder / "results.jsonl"
    order.write_text(json.dumps({"kit": str(kit), "jobs": list(jobs), "speed": speed}))
    results.write_text("")
    command = [sys.executable, "-P", "-m", "tapegrad._conformance.worker", str(order), str(results)]
    ended = run_limited(command, seconds=seconds, memory=memory, environment=SINGLE)
    lines = results.read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")], ended


def _blame(ended: Ended) -> dict[str, Any]:
    if ended.stopped == "time":
        return {"outcome": TIMEOUT, "reason": f"stopped after {ended.seconds:.0f} s of the processor"}
    if ended.stopped == "memory":
        return {"outcome": CRASH, "reason": f"stopped at {ended.memory >> 20:,} MiB of memory"}
    how = f"signal {-ended.code}" if ended.code and ended.code < 0 else f"exit code {ended.code}"
    words = " ".join(ended.printed.split())[-LAST_WORDS:]
    return {"outcome": CRASH, "reason": f"{how}: {words}" if words else how}


def _row(job: Job, version: str | None, found: dict[str, Any]) -> dict[str, Any]:
    return {**job, "version": version, **found}
