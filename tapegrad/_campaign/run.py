"""A campaign: its programs in chunks, worked on by processes or a Ray cluster, and the folder that keeps what
came of them.

A chunk is a target, an engine and consecutive seeds, and depends on nothing else: whoever works on it, and in
which order, the result is the same. Finished chunks are lines of one file, each written to the disk before
the next is begun, so that a campaign that was killed goes on where it was.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tapegrad._cluster import on_cluster, on_processes
from tapegrad._files import write_atomically, writing
from tapegrad._sources import written
from tapegrad.errors import FormatError, InputError
from tapegrad.source import shortened

CHUNK = 128
"""Programs of a chunk: some seconds of work, which a killed campaign loses."""
RESULTS, SUMMARY, FAILURES, COMPILED = "results.jsonl", "summary.json", "failures", "compiled"
"""What is in the folder: chunks, the summary, one file for each failure, and what XLA has compiled."""


@dataclass(frozen=True)
class Plan:
    """What a campaign consists of: so many programs for every target and engine, from a first seed on."""

    targets: tuple[str, ...]
    engines: tuple[str, ...]
    programs: int
    seed: int = 0
    kind: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def chunks(self) -> "list[Chunk]":
        """All of them, with their numbers; targets in turn, so that all are under way from the beginning."""
        firsts = range(0, self.programs, CHUNK)
        parts = [
            (target, engine, self.seed + first, min(CHUNK, self.programs - first))
            for first, target, engine in product(firsts, self.targets, self.engines)
        ]
        return [Chunk(number, *part, self.kind, dict(self.options)) for number, part in enumerate(parts)]


class Chunk(NamedTuple):
    """Programs of consecutive seeds through one target and engine."""

    number: int
    target: str
    engine: str
    first: int
    programs: int
    kind: str | None
    options: dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A program whose net and source part, made smaller."""

    seed: int
    where: str
    source: bytes
    """A text that `tapegrad run` reads."""


@dataclass(frozen=True)
class Done:
    """What came of a chunk."""

    number: int
    target: str
    engine: str
    programs: int
    agreed: int
    states: int
    refused: Mapping[str, int]
    failures: tuple[Failure, ...]
    seconds: float


def work(chunk: Chunk) -> Done:
    """Makes the programs of a chunk and judges them."""
    from tapegrad._campaign.judging import judge, shrunk  # brings JAX
    from tapegrad._campaign.programs import program

    began = time.perf_counter()
    seeds = range(chunk.first, chunk.first + chunk.programs)
    programs = [program(chunk.target, chunk.kind, seed, chunk.options) for seed in seeds]
    refused: dict[str, int] = {}
    failures = []
    states = 0
    for seed, one, verdict in zip(seeds, programs, judge(programs, chunk.engine), strict=True):
        states += verdict.states
        if verdict.refused:
            reason = re.sub(r"\d[\d,.]*", "N", verdict.refused)
            refused[reason] = refused.get(reason, 0) + 1
        if verdict.mismatch:
            smaller, found = shrunk(one, chunk.engine)
            failures.append(Failure(seed, found.mismatch or verdict.mismatch, written(smaller.source)))
    agreed = chunk.programs - sum(refused.values()) - len(failures)
    which = chunk.number, chunk.target, chunk.engine, chunk.programs
    return Done(*which, agreed, states, refused, tuple(failures), time.perf_counter() - began)


# Workers


def keep_compiled(folder: Path | None) -> None:
    """What XLA compiles is kept here, for all workers and for the next time."""
    if folder is not None:
        import jax  # slow to load

        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


# The folder, and the campaign


class Store:
    """The folder of a campaign; without one, memory. The first line of its file is the plan; a line that was
    not written to its end is written again."""

    def __init__(self, folder: Path | None, plan: Plan) -> None:
        self.folder, self.done = folder, dict[int, dict[str, Any]]()
        if folder is None:
            return
        identity = json.loads(json.dumps(asdict(plan)))
        with writing(folder):
            (folder / FAILURES).mkdir(parents=True, exist_ok=True)
            self.file = (folder / RESULTS).open("a+b")
            self.file.seek(0)
            lines = self.file.read().split(b"\n")
            self.file.truncate(sum(len(line) + 1 for line in lines[:-1]))
        try:
            found = [json.loads(line) for line in lines[:-1]]
            self.done = {int(line["number"]): line for line in found[1:]}
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{folder} cannot be used as the folder of a campaign: {error}") from error
        if not found:
            self._append(identity)
        elif found[0] != identity:
            raise InputError(
                "the folder belongs to another campaign",
                where=str(folder),
                advice="Give another folder, or the options of the campaign it belongs to.",
            )

    def add(self, done: Done) -> None:
        """Notes a chunk, its failures first."""
        line = asdict(done)
        line["failures"] = [
            {"seed": one.seed, "where": one.where, "file": self._kept(done, one)} for one in done.failures
        ]
        self.done.setdefault(done.number, line)
        if self.folder is not None:
            self._append(line)

    def _kept(self, done: Done, failure: Failure) -> str:
        name = f"{done.target}-{done.engine}-{failure.seed}.json"
        if self.folder is not None:
            write_atomically(self.folder / FAILURES / name, failure.source)
        return name

    def _append(self, line: Mapping[str, Any]) -> None:
        self.file.write(json.dumps(line).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


Progress = Callable[[int, int, int], None]
"""Called with the programs done, those of all, and the mismatches so far."""


def run(
    plan: Plan,
    folder: Path | None = None,
    *,
    workers: int | None = None,
    ray: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The whole campaign, or what is left of it; gives the summary."""
    from tapegrad._campaign.programs import program  # brings JAX

    began = time.perf_counter()
    for target in plan.targets:
        program(target, plan.kind, plan.seed, plan.options)  # a wrong name is refused here, not by a worker
    store, chunks = Store(folder, plan), plan.chunks()
    left = [chunk for chunk in chunks if chunk.number not in store.done]
    total, new = sum(chunk.programs for chunk in chunks), sum(chunk.programs for chunk in left)
    if progress is not None:
        progress(total - new, total, _mismatches(store))
    for done in _worked(left, folder, workers, ray):
        store.add(done)
        if progress is not None:
            finished = sum(line["programs"] for line in store.done.values())
            progress(finished, total, _mismatches(store))
    summary = _summary(plan, store, new, time.perf_counter() - began)
    if folder is not None:
        write_atomically(folder / SUMMARY, (json.dumps(summary, indent=1) + "\n").encode())
    return summary


def _worked(left: list[Chunk], folder: Path | None, workers: int | None, ray: bool) -> Iterator[Done]:
    compiled = None if folder is None else (folder / COMPILED).absolute()
    if ray:
        return (done for _, done in on_cluster(work, left))
    if workers is None:  # a few programs are done before a second process has loaded JAX
        workers = 1 if len(left) < 8 else os.cpu_count() or 1
    if workers > 1:
        return (done for _, done in on_processes(work, left, workers, partial(keep_compiled, compiled)))
    keep_compiled(compiled)
    return map(work, left)


def _mismatches(store: Store) -> int:
    return sum(len(line["failures"]) for line in store.done.values())


def _summary(plan: Plan, store: Store, new: int, seconds: float) -> dict[str, Any]:
    """The table that the campaign was for. `seconds` of a row are of one core each; `programs_per_second` are
    those of this run, by the clock on the wall."""
    rows = []
    for target, engine in product(plan.targets, plan.engines):
        own = [line for line in store.done.values() if (line["target"], line["engine"]) == (target, engine)]
        refused: dict[str, int] = {}
        for line in own:
            for reason, many in line["refused"].items():
                refused[reason] = refused.get(reason, 0) + many
        sums = {name: sum(line[name] for line in own) for name in ("programs", "agreed", "states", "seconds")}
        rows.append(
            {
                "target": target,
                "engine": engine,
                **sums,
                "programs_per_core_second": sums["programs"] / max(sums["seconds"], 1e-9),
                "refused": refused,
                "mismatches": sorted(
                    (one for line in own for one in line["failures"]), key=lambda one: one["seed"]
                ),
            }
        )
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": metadata.version("tapegrad"),
        "commit": _commit(),
        **asdict(plan),
        "options": dict(plan.options),
        "rows": rows,
        "mismatches": sum(len(row["mismatches"]) for row in rows),
        "seconds": seconds,
        "programs_per_second": new / seconds,
    }


def _commit() -> str | None:
    """The commit of this source tree, if it is one."""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return shortened(found.stdout.strip(), 64)
    return None
