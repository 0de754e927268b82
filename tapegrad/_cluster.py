"""Jobs on processes of this machine, or on a Ray cluster (extra `ray`). Both give results as they are
finished, and take a job only when there is somebody to work on it, so that jobs may be without end."""

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import chdir, contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from tapegrad.errors import InputError, Refused

Job = TypeVar("Job")
Result = TypeVar("Result")

AHEAD = 4
"""Jobs handed out for each processor of the cluster, so that none waits."""


def on_processes(
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    workers: int,
    prepare: Callable[[], None] | None = None,
) -> Generator[tuple[Job, Result]]:
    """Jobs with their results, by processes of their own, which end when this one does. As many as there are
    cores have one core each."""
    context, left = multiprocessing.get_context("spawn"), iter(jobs)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    served: dict[Connection, tuple[Any, Job]] = {}
    try:
        for number, job in zip(range(workers), left, strict=False):
            here, there = context.Pipe()
            core = cores[number] if workers == len(cores) else None
            process = context.Process(target=_serve, args=(there, work, prepare, core), daemon=True)
            with _nothing_from_this_folder(), _ctrl_c_left_to_us():
                process.start()
            there.close()
            served[here] = process, job
            here.send(job)
        while served:
            for here in wait(list(served)):
                assert isinstance(here, Connection)
                process, job = served[here]
                try:
                    found = here.recv()
                except EOFError:
                    served.pop(here)
                    process.join()
                    raise InputError("a worker was stopped", advice="Start it again.") from None
                try:
                    following = next(left)
                    here.send(following)
                    served[here] = process, following
                except StopIteration:
                    here.close()
                    served.pop(here)
                    process.join()
                yield job, found
    finally:
        for process, _ in served.values():
            process.terminate()
        for process, _ in served.values():
            process.join()


@contextmanager
def _nothing_from_this_folder() -> Iterator[None]:
    """A Python that is started in this block imports no modules that lie in the current folder."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


@contextmanager
def _ctrl_c_left_to_us() -> Iterator[None]:
    """A terminal sends Ctrl-C to all processes of a command. Those that are started in this block never hear
    of it: this one does, once they are started, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # which the first process would start, and hear Ctrl-C again for it
    came: list[int] = []
    heard = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a new process inherits
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, heard)
        for number in came:
            signal.raise_signal(number)


def _serve(
    here: Connection, work: Callable[..., Any], prepare: Callable[[], None] | None, core: int | None
) -> None:
    """A worker. It waits for its parent in a thread, and ends with it, however that ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    if core is not None:  # before JAX and numba are loaded, which count the cores
        os.sched_setaffinity(0, {core})
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # an accelerator is shared by all
    if prepare is not None:
        prepare()
    with suppress(EOFError, ConnectionError):  # the parent has gone, or is going
        while True:
            here.send(work(here.recv()))


def on_cluster(
    work: Callable[..., Result], jobs: Iterable[Job], *shared: object
) -> Generator[tuple[Job, Result]]:
    """Jobs with their results, on the cluster that is running, or on a local one started here. All of them
    work with what is shared, which is sent once."""
    try:
        import ray
    except ImportError as error:
        raise Refused("Ray is not installed", advice="pip install 'tapegrad[ray]'.") from error
    started = not ray.is_initialized()
    elsewhere = tempfile.TemporaryDirectory(prefix="tapegrad-")
    if started:  # Ray's workers import from the folder in which it is started
        with _nothing_from_this_folder(), chdir(elsewhere.name):
            ray.init(log_to_driver=False)
    try:
        remote: Any = ray.remote(work)
        kept = [ray.put(one) for one in shared]
        room = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        left, waiting = iter(jobs), dict[Any, Job]()
        while True:
            for job in left if len(waiting) < room else ():
                waiting[remote.remote(job, *kept)] = job
                if len(waiting) == room:
                    break
            if not waiting:
                return
            (ready, *_), _ = ray.wait(list(waiting))
            yield waiting.pop(ready), ray.get(ready)
    finally:
        if started:
            ray.shutdown()
        elsewhere.cleanup()
