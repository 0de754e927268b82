"""A search cut into shards that can be worked on anywhere, in any order."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.search.store import ShardResult
from tapegrad.search.tree import GO_ON, Problems, explore, sample

KEPT = 8
"""Tables that a shard hands back."""
MOST_SHARDS = 1 << 16
LARGEST_SHARD = 20_000_000
"""Candidates of a shard on average, at most: some seconds of work, which a killed search loses."""
MOST_CANDIDATES = 10**11
SAMPLES = 1 << 14
"""Candidates in a shard of a random search."""


@dataclass(frozen=True)
class Shard:
    """The candidates that begin with these choices; or, in a random search, so many of this seed."""

    number: int
    prefix: tuple[int, ...] = ()
    seed: int | None = None
    count: int = 0


class Quest(NamedTuple):
    """What the candidates of every shard are tried on: the family's code, the problems, and the errors that
    are allowed."""

    code: NDArray[np.int64]
    problems: Problems
    allowed: int


def expected_candidates(quest: Quest, draws: int = 20_000) -> float:
    """About how many candidates the tree has: an estimate without bias, by Knuth's method."""
    *_, weights = sample(*quest, 0, draws, 1, GO_ON)
    return float(weights.mean())


def enumeration(quest: Quest) -> list[Shard]:
    """The tree of candidates, cut near its root into shards that do not take long."""
    expected = expected_candidates(quest)
    if expected > MOST_CANDIDATES:
        raise Refused(
            f"the family has about {expected:.2g} candidates, too many to try them all",
            advice="Take fewer states, mirrored machines, or a number of random candidates.",
        )
    depth = 2
    choices, lengths = branches(quest, (), depth, MOST_SHARDS)
    while expected > LARGEST_SHARD * len(lengths):
        depth += 1
        choices, lengths = branches(quest, (), depth, MOST_SHARDS)
    return [Shard(i, tuple(choices[i, : lengths[i]].tolist())) for i in range(len(lengths))]


def branches(
    quest: Quest, prefix: tuple[int, ...], depth: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The branches below some first choices, cut `depth` choices below the root: the choices of each, and
    how many they are."""
    first = np.array(prefix, dtype=np.int64)
    *_, found = explore(*quest, first, depth, 0, GO_ON)
    if found > most:
        raise Refused(
            f"cut after {depth} choices the search has {found:,} branches", advice="Take fewer states."
        )
    _, kept, lengths, _ = explore(*quest, first, depth, found, GO_ON)
    return kept[:, :, 0], lengths


def random_search(count: int, seed: int) -> list[Shard]:
    """`count` random candidates."""
    sizes = [min(SAMPLES, count - first) for first in range(0, count, SAMPLES)]
    return [Shard(i, seed=(seed * 1_000_003 + i) % (1 << 32), count=size) for i, size in enumerate(sizes)]


def work(shard: Shard, quest: Quest, stop: NDArray[np.int8] = GO_ON) -> ShardResult:
    """All candidates of a shard; or nothing of use, if it was stopped."""
    if shard.seed is not None:
        counts, tables, errors, _ = sample(*quest, shard.seed, shard.count, KEPT, stop)
    else:
        counts, tables, errors, _ = explore(*quest, np.array(shard.prefix, dtype=np.int64), 0, KEPT, stop)
    return ShardResult((int(counts[0]), int(counts[1]), int(counts[2])), tables, errors)


def on_threads(shards: list[Shard], quest: Quest, workers: int | None) -> Iterator[tuple[int, ShardResult]]:
    """Shards as they are finished, on all cores; compiled code lets other threads run. Whoever stops asking
    for more stops the threads too, wherever they are."""
    stop = np.zeros(1, np.int8)
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        waiting: dict[Any, int] = {pool.submit(work, shard, quest, stop): shard.number for shard in shards}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            stop[0] = 1
            for future in waiting:
                future.cancel()


# Shards on a Ray cluster (extra `ray`).


AHEAD = 4
"""Shards handed out for each processor of the cluster, so that none waits."""


def on_ray(shards: list[Shard], quest: Quest) -> Iterator[tuple[int, ShardResult]]:
    """Shards as they are finished, on the cluster that is running, or on a local one started here."""
    try:
        import ray
    except ImportError as error:
        raise Refused("Ray is not installed", advice="pip install 'tapegrad[ray]'.") from error
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False)
    try:
        remote = ray.remote(_work)
        shared = ray.put(quest)
        room = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        left, waiting = list(reversed(shards)), {}
        while left or waiting:
            while left and len(waiting) < room:
                shard = left.pop()
                waiting[remote.remote(shard, shared)] = shard.number
            (ready, *_), _ = ray.wait(list(waiting))
            yield waiting.pop(ready), ray.get(ready)
    finally:
        if started:
            ray.shutdown()


def _work(shard: Shard, quest: Quest) -> ShardResult:
    """`work`, with grids of its own: Ray's are for reading only, and a machine may write."""
    grids = quest.problems.grids.copy()
    return work(shard, quest._replace(problems=quest.problems._replace(grids=grids)))
