"""Shards on a GPU (extra `cuda`): the very loop of `tree.walk`, compiled for it, one branch to a thread."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numba.cuda
import numpy as np
from numba import int8, int32
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.search.family import MOST_STATES
from tapegrad.search.shards import KEPT, Quest, Shard, ShardResult, branches
from tapegrad.search.tree import GO_ON, NONE, Problems, walk

# The kernel of the GPU search: every thread takes one branch after the other and walks it.


cuda: Any = numba.cuda  # its decorators are not typed
ENTRIES = 3 * MOST_STATES
MOST_CELLS = 512
"""Room for a grid in the memory of a thread."""


@cuda.jit
def walk_branches(
    code: Any, grids: Any, width: int, start: Any, wanted: Any, limit: Any, allowed: int,
    prefixes: Any, lengths: Any, counts: Any, tables: Any, errors: Any, taken: Any, stop: Any,
) -> None:  # fmt: skip
    """`tree.walk` on every branch: its first choices are a row of `prefixes`; counts, best table and errors
    go to the branch's place. `taken` counts the branches handed out."""
    table = cuda.local.array((ENTRIES, 3), int8)
    used = cuda.local.array(2, int32)
    stack = cuda.local.array((ENTRIES, 9), int32)
    grid = cuda.local.array(MOST_CELLS, int8)
    saved = cuda.local.array(MOST_CELLS, int8)
    problems = Problems(grids, width, start, wanted, limit)
    entries, cells = 3 * code[0], grids.shape[1]
    branch = cuda.atomic.add(taken, 0, 1)
    while branch < len(prefixes):
        walk(
            code, problems, allowed, prefixes[branch, : lengths[branch]], 0,
            table[:entries], used, stack, grid[:cells], saved[:cells],
            counts[branch], tables[branch], errors[branch], stop,
        )  # fmt: skip
        branch = cuda.atomic.add(taken, 0, 1)


WANTED_BRANCHES, MOST_BRANCHES = 1 << 19, 1 << 24
"""Branches of one launch: so many that no long one keeps the others waiting at the end."""
AT_ONCE = 128
"""Shards of one launch: after each launch they are noted, and the search can be stopped."""
THREADS, BLOCKS = 128, 1024


def on_gpu(shards: list[Shard], quest: Quest) -> Iterator[tuple[int, ShardResult]]:
    """Shards as they are finished. Each is cut into branches, some thousands of threads take one branch after
    the other, and the branches of a shard are put together again."""
    _require_gpu()
    if quest.problems.grids.shape[1] > MOST_CELLS:
        raise Refused(f"grids of more than {MOST_CELLS} cells do not fit a thread of the GPU")
    if any(shard.seed is not None for shard in shards):
        raise Refused("random candidates are drawn on the CPU", advice="Take the engine threads.")
    for first in range(0, len(shards), AT_ONCE):
        together = shards[first : first + AT_ONCE]
        cut = _cut(together, quest)
        found = _launch(cut, quest)
        for shard, part in zip(together, cut.parts, strict=True):
            yield shard.number, _joined([array[part] for array in found])


class Cut(NamedTuple):
    """Branches of some shards: the first choices of each, how many they are, and which belong to which
    shard."""

    choices: NDArray[np.int8]
    lengths: NDArray[np.int32]
    parts: list[slice]


def _cut(shards: list[Shard], quest: Quest) -> Cut:
    """Branches deep enough to keep the GPU busy."""
    depth = max(1, *(len(shard.prefix) for shard in shards))
    cut = _cut_at(shards, quest, depth)
    while len(cut.lengths) < WANTED_BRANCHES and (cut.lengths == depth).any():
        depth += 1
        cut = _cut_at(shards, quest, depth)
    return cut


def _cut_at(shards: list[Shard], quest: Quest, depth: int) -> Cut:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(lambda shard: branches(quest, shard.prefix, depth, MOST_BRANCHES), shards))
    choices = np.concatenate([choices[:, :depth].astype(np.int8) for choices, _ in parts])
    lengths = np.concatenate([lengths for _, lengths in parts])
    ends = np.cumsum([0, *(len(lengths) for _, lengths in parts)]).tolist()
    return Cut(choices, lengths.astype(np.int32), [slice(*pair) for pair in pairwise(ends)])


def _launch(cut: Cut, quest: Quest) -> list[NDArray[Any]]:
    """Counts, best table and its errors of every branch."""
    many = len(cut.lengths)
    counts = cuda.to_device(np.zeros((many, 4), np.int32))
    tables = cuda.device_array((many, 1, 3 * int(quest.code[0]), 3), np.int8)
    errors = cuda.to_device(np.full((many, 1), NONE, np.int32))
    taken = cuda.to_device(np.zeros(1, np.int64))
    blocks = min(BLOCKS, -(-many // THREADS))
    walk_branches[blocks, THREADS](
        quest.code.astype(np.int32), *_narrow(quest.problems), quest.allowed, cut.choices, cut.lengths,
        counts, tables, errors, taken, GO_ON,
    )  # fmt: skip
    return [counts.copy_to_host(), tables.copy_to_host()[:, 0], errors.copy_to_host()[:, 0]]


def _narrow(problems: Problems) -> Problems:
    """With numbers of 32 bits, which a GPU handles faster."""
    numbers: list[Any] = [array.astype(np.int32) for array in problems[2:]]
    return Problems(problems.grids, problems.width, *numbers)


def _joined(found: list[NDArray[Any]]) -> ShardResult:
    """The result of a shard from those of its branches. A branch keeps one table, so a shard has its best one
    for certain, and of the others some."""
    counts, tables, errors = found
    best = np.argsort(errors, kind="stable")[:KEPT]
    complete, pruned, discarded = counts.sum(axis=0, dtype=np.int64)[:3].tolist()
    return ShardResult((complete, pruned, discarded), tables[best].astype(np.int64), errors[best])


def _require_gpu() -> None:
    if not cuda.is_available():
        raise Refused(
            "there is no GPU that numba can use",
            advice="Take the engine threads, or install a driver and the extra cuda.",
        )
