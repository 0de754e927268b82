"""Shards on a Ray cluster (extra `ray`)."""

from collections.abc import Iterator

from tapegrad.errors import Refused
from tapegrad.search.family import Family
from tapegrad.search.shards import Shard, work
from tapegrad.search.store import ShardResult
from tapegrad.search.tasks import Instances

AHEAD = 4
"""Shards handed out for each processor of the cluster, so that none waits."""


def on_ray(
    shards: list[Shard], family: Family, instances: Instances, allowed: int
) -> Iterator[tuple[int, ShardResult]]:
    """Shards as they are finished, on the cluster that is running, or on a local one started here."""
    try:
        import ray
    except ImportError as error:
        raise Refused("Ray is not installed", advice="pip install 'tapegrad[ray]'.") from error
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False)
    try:
        remote = ray.remote(work)
        shared = ray.put(instances)
        room = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        left, waiting = list(reversed(shards)), {}
        while left or waiting:
            while left and len(waiting) < room:
                shard = left.pop()
                waiting[remote.remote(shard, family, shared, allowed)] = shard.number
            (ready, *_), _ = ray.wait(list(waiting))
            yield waiting.pop(ready), ray.get(ready)
    finally:
        if started:
            ray.shutdown()
