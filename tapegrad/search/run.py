"""Turing-optimal learning in practice: every small machine tried, the best on fresh problems kept."""

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import GridMachine
from tapegrad.search.family import Family, machine_of, table_text
from tapegrad.search.shards import (
    Quest,
    Shard,
    ShardResult,
    Store,
    enumeration,
    on_ray,
    on_threads,
    random_search,
)
from tapegrad.search.tasks import Instances, draw_instances, task_named
from tapegrad.search.tree import NONE, evaluate

ENGINES = ("threads", "gpu", "ray")
VALIDATED = 64
"""Tables that reach the validation set."""


@dataclass(frozen=True)
class SearchOptions:
    """How a search goes about it."""

    single: int = 2
    pairs: int = 0
    mirrored: bool = False
    writes: bool = False
    exponent: int = 2
    """A machine has `(2 d m)^exponent` steps on m samples of d features (the k of Corollary 2)."""
    samples: int | None = None
    """Random candidates; None enumerates all of them."""
    instances: int = 24
    """Problems that every candidate meets."""
    allowed_errors: int = 1
    validation: int = 4000
    """Fresh problems for the best candidates."""
    confidence: float = 0.99
    seed: int = 0
    engine: str = "threads"
    workers: int | None = None
    file: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        bounds = {
            "exponent": (1, 4),
            "samples": (1, 10**9),
            "instances": (1, 10_000),
            "allowed_errors": (0, self.instances),
            "validation": (1, 10**6),
            "seed": (0, 1 << 60),
            "workers": (1, 10_000),
        }
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise InputError(f"{name} must lie between {least:,} and {most:,}, and it is {value:,}")
        require_probability(self.confidence, "confidence")
        if self.engine not in ENGINES:
            raise Refused(f"there is no engine {self.engine!r}", advice=f"Engines are {', '.join(ENGINES)}.")

    def family(self) -> Family:
        return Family(self.single, self.pairs, self.mirrored, self.writes)


class SearchProgress(NamedTuple):
    """Where a search stands."""

    shards_done: int
    shards: int
    candidates: int
    per_second: float
    """Candidates of this run, not of earlier ones that it goes on from."""
    fewest_errors: int | None


@dataclass(frozen=True)
class SearchResult:
    """What a search found. `error` is that of the winner on fresh problems, and with the confidence given
    its true error is at most `error + bound`, all validated candidates taken together."""

    task: str
    family: Family
    table: NDArray[np.int64]
    error: float
    bound: float
    validated: int
    complete: int
    pruned: int
    discarded: int
    seconds: float
    resumed: int
    """Shards that were found finished."""

    @property
    def machine(self) -> GridMachine:
        """The winner with the epilogue: a learner for the network."""
        return machine_of(self.table, self.family, f"found for {self.task}")

    @property
    def candidates(self) -> int:
        return self.complete + self.pruned + self.discarded

    def __str__(self) -> str:
        return (
            f"{self.task}: error {self.error:.4g} (at most {self.error + self.bound:.4g}) among "
            f"{self.candidates:,} machines of {self.family}\n{table_text(self.table, self.family)}"
        )

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON."""
        return asdict(self) | {"table": self.table.tolist(), "text": table_text(self.table, self.family)}


def run(
    task: str, options: SearchOptions | None = None, progress: Callable[[SearchProgress], None] | None = None
) -> SearchResult:
    """Searches for a machine that solves the task. With a file, a stopped search goes on from there."""
    options = options or SearchOptions()
    began = time.perf_counter()
    family, chosen = options.family(), task_named(task)
    instances = draw_instances(chosen, options.instances, options.seed)
    quest = Quest(family.code(), instances.problems(options.exponent), options.allowed_errors)
    shards = enumeration(quest) if options.samples is None else random_search(options.samples, options.seed)
    store = Store(options.file, _identity(task, options, instances))
    try:
        finished = store.finished()
        left = [shard for shard in shards if shard.number not in finished]
        before = candidates = sum(store.counts())
        done, fewest = len(finished), min((errors for errors, _ in store.best(1)), default=None)
        for number, result in _worked(left, quest, options):
            store.add(number, result)
            done += 1
            candidates += sum(result.counts)
            least = int(result.errors.min())
            if least < NONE:
                fewest = least if fewest is None else min(fewest, least)
            if progress is not None:
                rate = (candidates - before) / (time.perf_counter() - began)
                progress(SearchProgress(done, len(shards), candidates, rate, fewest))
        best, counts = store.best(VALIDATED), store.counts()
    finally:
        store.close()
    if not best:
        raise Refused(
            f"none of {sum(counts):,} machines solves {task!r} with at most {options.allowed_errors} errors",
            advice="Allow more states, or more errors.",
        )
    table, error = _validated(task, options, [table for _, table in best])
    bound = deviation_bound(len(best), options.validation, 1 - options.confidence)
    seconds = time.perf_counter() - began
    return SearchResult(task, family, table, error, bound, len(best), *counts, seconds, len(finished))


def deviation_bound(candidates: int, validation: int, failure: float) -> float:
    """`sqrt(log(2 M / delta) / (2 N))`: with probability `1 - delta` no candidate's error on N problems is
    further from its true error (Goel et al., appendix B.5, by Hoeffding and a union bound)."""
    return math.sqrt(math.log(2 * candidates / failure) / (2 * validation))


def require_probability(value: float, name: str) -> None:
    if not 0 < value < 1:
        raise InputError(f"the {name} must lie between 0 and 1, and it is {value}")


def _worked(left: list[Shard], quest: Quest, options: SearchOptions) -> Iterator[tuple[int, ShardResult]]:
    if options.engine == "threads":
        return on_threads(left, quest, options.workers)
    if options.engine == "gpu":
        from tapegrad.search.on_gpu import on_gpu  # what numba needs for a GPU is loaded with it

        return on_gpu(left, quest)
    return on_ray(left, quest)


def _validated(
    task: str, options: SearchOptions, tables: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], float]:
    """The table with the least error on fresh problems; of several, the one with the fewest entries."""
    fresh = draw_instances(task_named(task), options.validation, options.seed + 1_000_000_007)
    right = evaluate(np.stack(tables), options.family().states, fresh.problems(options.exponent))
    size = [int((table[:, 1] >= 0).sum()) for table in tables]
    winner = min(range(len(tables)), key=lambda i: (-right[i], size[i], i))
    return tables[winner], 1 - right[winner] / options.validation


def _identity(task: str, options: SearchOptions, instances: Instances) -> dict[str, Any]:
    """What a file must agree with, the problems themselves included, for a task may be defined anew; where
    and on how many cores it ran does not matter."""
    unimportant = {"file", "engine", "workers", "validation", "confidence"}
    named = {"task": task, "problems": instances.digest()}
    return named | {k: v for k, v in asdict(options).items() if k not in unimportant}
