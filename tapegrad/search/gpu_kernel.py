"""The kernel of the GPU search: every thread takes one branch after the other and walks it."""

from typing import Any

import numba.cuda
from numba import int8, int32

from tapegrad.search.family import MOST_STATES
from tapegrad.search.running import Problems
from tapegrad.search.tree import walk

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
