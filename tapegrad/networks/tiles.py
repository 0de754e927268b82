"""The rows of a node `layers` in tiles of one shape, for backends that run a loop over equal pieces; and the
units of a node `units` level by level, and in blocks of one length."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.networks.network import Network, Node

HEIGHT = 32
"""Rows that are computed together."""


class Tiles(NamedTuple):
    """Places in the arrays of the node. Padding names what is behind the last entry, row or slot."""

    entries: Int[np.ndarray, "tiles height fan_in"]
    reads: Int[np.ndarray, "tiles height fan_in"]
    rows: Int[np.ndarray, "tiles height"]
    to: Int[np.ndarray, "tiles height"]


def tiles_of(network: Network, node: Node, height: int = HEIGHT) -> Tiles:
    """Rows of a layer in tiles of this height; the last tile of each is filled up."""
    bounds, starts, columns, to = (
        network.array(node, part) for part in ("bounds", "starts", "columns", "to")
    )
    slots, counts, sizes = node.whole("slots"), np.diff(starts), np.diff(bounds)
    first = np.concatenate([[0], np.cumsum(-(-sizes // height))])
    fan_in, total = max(1, int(counts.max(initial=0))), int(first[-1])
    layer = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(to)) - bounds[layer]
    tile, row = first[layer] + within // height, within % height
    made = Tiles(
        np.full((total, height, fan_in), len(columns), np.int64),
        np.full((total, height, fan_in), slots, np.int64),
        np.full((total, height), len(to), np.int64),
        np.full((total, height), slots, np.int64),
    )
    made.rows[tile, row] = np.arange(len(to))
    made.to[tile, row] = to
    of = np.repeat(np.arange(len(to)), counts)
    which = np.arange(len(of)) - starts[of]
    made.entries[tile[of], row[of], which] = np.arange(len(of))
    made.reads[tile[of], row[of], which] = columns
    return made


SMALLEST_ROOM = 64
FINE = 1024
"""Up to this width padding costs less than what is not arithmetic."""


def round_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


def room(width: int) -> int:
    """Rows that hold so many, padding included: the next power of two; or, where that would be much, the next
    eighth of one."""
    whole = max(SMALLEST_ROOM, 1 << (width - 1).bit_length())
    return round_up(width, whole >> 4) if width > FINE else whole


class Levels(NamedTuple):
    """Units that read none of each other are a level: level l has the units and entries from `units_to[l]`
    and `entries_to[l]` up to the next."""

    units_to: list[int]
    entries_to: list[int]
    columns: Int[np.ndarray, " units"]
    """Where each unit stands."""
    entries: Int[np.ndarray, " entries"]
    ends: Int[np.ndarray, " entries"]
    """Of each entry the unit that it leads to, counted within its level."""


def levels_of(starts: NDArray[np.integer], columns: NDArray[np.integer], given: int) -> Levels:
    """The levels of units behind so many given columns."""
    level = depths(given, starts, columns)[given:]
    own = np.repeat(np.arange(len(level)), np.diff(starts))
    order, entries = np.argsort(level, kind="stable"), np.argsort(level[own], kind="stable")
    units_to = np.cumsum([0, *np.bincount(level)[1:]])
    entries_to = np.cumsum([0, *np.bincount(level[own], minlength=len(units_to))[1:]])
    within = np.empty(len(level), np.int64)
    within[order] = np.arange(len(level)) - units_to[level[order] - 1]
    return Levels(units_to.tolist(), entries_to.tolist(), given + order, entries, within[own[entries]])


@njit()
def depths(given, starts, columns):
    """For every column the length of the longest way that leads to it."""
    levels = np.zeros(given + len(starts) - 1, np.int32)
    for v in range(given, len(levels)):
        for e in range(starts[v - given], starts[v - given + 1]):
            levels[v] = max(levels[v], levels[columns[e]])
        levels[v] += 1
    return levels


class Blocks(NamedTuple):
    """The entries of a node `units`, sorted by level and cut into blocks, none of which spans two levels, so
    that one after the other can be computed. A block has room for at least half, and at most all, of the
    entries of an average level; so there are at most three times as many blocks as levels, and, sizes being
    rounded up, at most six times as many places as entries (but for small networks). Padding names an entry
    and a column behind the last, which are 0 and stay so. All sizes are powers of two, so that networks of
    similar size share one compiled program."""

    entries: Int[np.ndarray, "blocks length"]
    reads: Int[np.ndarray, "blocks length"]
    ends: Int[np.ndarray, "blocks length"]
    finished: Int[np.ndarray, "blocks length"]
    """Columns of the units whose last entry is in the block."""


def power_of_two(count: int) -> int:
    """The next power of two beyond `count`, and at least 64."""
    return max(64, 1 << count.bit_length())


def blocks_of(starts: NDArray[np.integer], columns: NDArray[np.integer], given: int) -> Blocks:
    """The blocks of units behind so many given columns."""
    count, width = len(columns), given + len(starts) - 1
    level, ends = depths(given, starts, columns), np.repeat(np.arange(given, width), np.diff(starts))
    order = np.argsort(level[ends], kind="stable")
    sizes = np.bincount(level[ends])
    length = power_of_two(count // max(1, int(np.count_nonzero(sizes))) // 2)
    firsts = np.cumsum(sizes) - sizes  # of each level, among the sorted entries
    within = np.arange(count) - firsts[level[ends[order]]]
    counts = -(-sizes // length)
    block = (np.cumsum(counts) - counts)[level[ends[order]]] + within // length
    entries = np.full((power_of_two(int(counts.sum())), length), count, np.int32)
    entries[block, within % length] = order
    targets = np.append(ends, width).astype(np.int32)[entries]
    is_last = np.append(np.isin(np.arange(count), starts[1:] - 1), False)[entries]
    reads = np.append(columns, width).astype(np.int32)[entries]
    return Blocks(entries, reads, targets, np.where(is_last, targets, np.int32(width)))
