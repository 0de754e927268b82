"""Jobs on a Ray cluster (extra `ray`)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tapegrad.errors import Refused

Job = TypeVar("Job")
Result = TypeVar("Result")

AHEAD = 4
"""Jobs handed out for each processor of the cluster, so that none waits."""


def on_cluster(
    work: Callable[..., Result], jobs: Sequence[Job], *shared: object
) -> Iterator[tuple[Job, Result]]:
    """Jobs with their results as they are finished, on the cluster that is running, or on a local one started
    here. All of them work with what is shared, which is sent once."""
    try:
        import ray
    except ImportError as error:
        raise Refused("Ray is not installed", advice="pip install 'tapegrad[ray]'.") from error
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False)
    try:
        remote: Any = ray.remote(work)
        kept = [ray.put(one) for one in shared]
        room = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        left, waiting = list(reversed(jobs)), {}
        while left or waiting:
            while left and len(waiting) < room:
                job = left.pop()
                waiting[remote.remote(job, *kept)] = job
            (ready, *_), _ = ray.wait(list(waiting))
            yield waiting.pop(ready), ray.get(ready)
    finally:
        if started:
            ray.shutdown()
