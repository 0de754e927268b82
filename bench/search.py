"""Search: candidates per second on a core, on all cores and on a GPU, and how many machines there are.

python -m bench.search
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import cuda

from tapegrad.search import Family, canonical_machines
from tapegrad.search.shards import Quest, Shard, ShardResult, enumeration, on_threads, work
from tapegrad.search.tasks import TASKS, draw_instances

Row = dict[str, Any]
SMALL, LARGE = Family(2, 1, mirrored=True), Family(3, 1, mirrored=True)
"""1.3 million candidates, and 257 million."""


def rows() -> list[Row]:
    """All of it, in a minute."""
    return [*growth(), *cores(), *writing(), *gpu()]


def growth() -> list[Row]:
    """Canonical tables of machines that only read, exactly."""
    return [
        {"what": f"canonical machines, s = {s}", "value": canonical_machines(Family(s)), "unit": "tables"}
        for s in range(1, 6)
    ]


def cores() -> list[Row]:
    """The whole mirrored family of four states, on one core and on all."""
    one = _rate(SMALL, lambda shards, quest: on_threads(shards, quest, 1))
    every = _rate(SMALL, lambda shards, quest: on_threads(shards, quest, None))
    return [
        {"what": "candidates, 1 core", "value": one, "unit": "per s"},
        {"what": f"candidates, {os.cpu_count()} cores", "value": every, "unit": "per s"}
        | {"rival": "1 core", "rival_value": one, "ratio": every / one},
    ]


def writing() -> list[Row]:
    """The first part of the family that also writes: 20 million candidates in all."""
    family = Family(2, 1, mirrored=True, writes=True)
    rate = _rate(family, lambda shards, quest: on_threads(shards[:100], quest, 1))
    return [{"what": "candidates that write, 1 core", "value": rate, "unit": "per s"}]


def gpu() -> list[Row]:
    """A family of five states on the GPU, beside all cores of the same machine; nothing without a GPU."""
    if not cuda.is_available():
        return []
    from tapegrad.search.on_gpu import on_gpu

    there = _rate(LARGE, on_gpu)
    here = _rate(LARGE, lambda shards, quest: on_threads(shards, quest, None))
    rival = {"rival": f"{os.cpu_count()} cores", "rival_value": here, "ratio": there / here}
    return [{"what": "candidates, GPU, 5 states", "value": there, "unit": "per s"} | rival]


Engine = Callable[[list[Shard], Quest], Iterator[tuple[int, ShardResult]]]


def _rate(family: Family, engine: Engine) -> float:
    """Candidates per second; the second time, when everything is compiled."""
    quest = Quest(family.code(), draw_instances(TASKS["single-coordinate"], 24, 0).problems(2), 2)
    shards = enumeration(quest)
    work(shards[0], quest)
    if family == LARGE:
        list(engine(shards[:1], quest))
    began = time.perf_counter()
    counts = np.sum([result.counts for _, result in engine(shards, quest)])
    return float(counts) / (time.perf_counter() - began)


if __name__ == "__main__":
    for row in rows():
        beside = (
            f"   {row['rival']}: {row['rival_value']:,.4g} ({row['ratio']:.3g})" if "rival" in row else ""
        )
        print(f"{row['what']:<40} {row['value']:>20,.6g} {row['unit']:<14}{beside}")
