"""A search cut into shards that can be worked on anywhere, in any order."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.search.family import Family
from tapegrad.search.store import ShardResult
from tapegrad.search.tasks import Instances
from tapegrad.search.tree import SKIPPED, explore, sample

KEPT = 8
"""Tables that a shard hands back."""
MOST_SHARDS = 1 << 16
SAMPLES = 1 << 14
"""Candidates in a shard of a random search."""


@dataclass(frozen=True)
class Shard:
    """The candidates that begin with these choices; or, in a random search, those of this seed."""

    number: int
    prefix: tuple[int, ...] = ()
    seed: int | None = None


def enumeration(family: Family, instances: Instances, allowed: int, depth: int) -> list[Shard]:
    """The tree of candidates, cut `depth` choices below its root."""
    none = np.zeros(0, dtype=np.int64)
    code, grids, starts, answers = _arguments(family, instances)
    counts, kept, lengths, found = explore(code, grids, starts, answers, allowed, none, depth, MOST_SHARDS)
    if found > MOST_SHARDS:
        raise Refused(f"cut at depth {depth} the search has {found:,} shards", advice="Take a smaller depth.")
    assert counts[SKIPPED] <= found
    return [Shard(i, tuple(kept[i, : int(lengths[i]), 0].tolist())) for i in range(found)]


def random_search(count: int, seed: int) -> list[Shard]:
    """At least `count` random candidates."""
    return [Shard(i, seed=(seed * 1_000_003 + i) % (1 << 32)) for i in range(-(-count // SAMPLES))]


def work(shard: Shard, family: Family, instances: Instances, allowed: int) -> ShardResult:
    """All candidates of a shard."""
    code, grids, starts, answers = _arguments(family, instances)
    if shard.seed is not None:
        found = sample(code, grids, starts, answers, allowed, shard.seed, SAMPLES, KEPT)
    else:
        prefix = np.array(shard.prefix, dtype=np.int64)
        found = explore(code, grids, starts, answers, allowed, prefix, 0, KEPT)
    counts, tables, errors, _ = found
    return ShardResult((int(counts[0]), int(counts[1]), int(counts[2])), tables, errors)


def on_threads(
    shards: list[Shard], family: Family, instances: Instances, allowed: int, workers: int | None
) -> Iterator[tuple[int, ShardResult]]:
    """Shards as they are finished, on all cores; compiled code lets other threads run."""
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        waiting = {pool.submit(work, shard, family, instances, allowed): shard.number for shard in shards}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            for future in waiting:
                future.cancel()


def _arguments(
    family: Family, instances: Instances
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    return family.code(), instances.grids, instances.start, instances.answer
