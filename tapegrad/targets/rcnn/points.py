"""The engine `fast` on many test points: compiled, and dealt out to all cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.outcomes import Outcomes, judged

MOST_AT_ONCE = 256
"""Test points between two reports of progress and two looks at the keyboard."""

Progress = Callable[[int], None]


def distinct_points(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different test points, each with a last 1, and which of them each point is: equal points end
    alike, and need be run only once."""
    points, which = np.unique(X, axis=0, return_inverse=True)
    return np.column_stack([points, np.ones(len(points))]), which.reshape(-1)


def outcomes_on(network: Rcnn, roller: Roller, memory: NDArray[Any], Z: NDArray[Any]) -> Outcomes:
    """How the network ends on each test point (rows of `Z`, each with a last 1), on this thread."""
    top, left = network.frame.top, network.frame.left
    main = top, top + network.rows, left, left + network.columns
    answers = np.asarray(network.head(roller.code.table.T[:, :, None]), dtype=np.float64).ravel()
    answers[network.encoding.cells.stray] = np.nan
    ends = roller.run_points(network.start_numbers(memory, Z), network.layers, main, answers)
    return judged(ends.sums, ends.running, ends.lost, ends.layers)


def on_all_cores(
    network: Rcnn, roller: Roller, memory: NDArray[Any], Z: NDArray[Any], progress: Progress | None = None
) -> Outcomes:
    """The same on all cores, in the order of the points. The first point is run alone; what it teaches of
    patches is known to every thread from the start. `progress` is told the points done so far."""
    workers = os.cpu_count() or 1
    size = max(1, min(MOST_AT_ONCE, len(Z) // (4 * workers)))
    parts = [slice(0, 1), *(slice(i, min(i + size, len(Z))) for i in range(1, len(Z), size))]
    found = [outcomes_on(network, roller, memory, Z[parts[0]])]
    rollers: SimpleQueue[Roller] = SimpleQueue()
    for copy in range(workers):
        rollers.put(roller.copy() if copy else roller)

    def work(part: slice) -> Outcomes:
        mine = rollers.get()
        try:
            return outcomes_on(network, mine, memory, Z[part])
        finally:
            rollers.put(mine)

    pool = ThreadPoolExecutor(workers)
    try:
        for part, outcomes in zip(parts[1:], pool.map(work, parts[1:]), strict=True):
            found.append(outcomes)
            if progress is not None:
                progress(part.stop)
    finally:
        pool.shutdown(cancel_futures=True)
    return Outcomes(*(np.concatenate(column) for column in zip(*found, strict=True)))
