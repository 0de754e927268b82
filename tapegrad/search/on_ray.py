"""Shards on a Ray cluster (extra `ray`)."""

from collections.abc import Iterator

from tapegrad.errors import Refused
from tapegrad.search.shards import Quest, Shard, work
from tapegrad.search.store import ShardResult

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
