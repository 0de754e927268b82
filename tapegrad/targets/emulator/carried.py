"""What is carried from step to step while differences are followed, and how it is made from a graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.emulator.graph import CONSTANT, Graph
from tapegrad.targets.emulator.ordered_sets import NONE, add, at, empty_set

WIDE = 8
"""Vertices with more edges than this are wide: their sums are kept up to date instead of computed again."""
BIG = 6
"""Vertices with more successors than this let them sleep."""
SIZE = 8
"""Of the record of a vertex, which has what is needed when an input of it changes: its flags, its level, the
vertex pending after it, where its fan begins, how many of that are awake, and its three sources (of a wide
vertex, first its number among these)."""
FLAGS, LEVEL, NEXT, FAN, AWAKE, SOURCES = range(6)
INDEX, ODD, MAY_SLEEP = 8, 11, 13
"""Flags: a table of 8 bits; from these bits on, the inputs as an index into it, how many inputs are neither
-2 nor 2, and which sources let the vertex sleep."""
IS_TABLE, ASLEEP, PENDING, IS_WIDE, FEEDS_WIDE = (1 << bit for bit in range(16, 21))
CODE = 21
"""From this bit on, the code of the vertex's own value."""
IDLE, TIRED = 1 << 23, 1 << 26
"""Between these bits, how often the vertex was told of changes in vain since it woke; then it is tired."""
NO_SLOT = 3
OTHER = 2
"""The code of a value that is neither -2, which has code 0, nor 2, which has code 1."""

ALIKE = np.array(
    [[sum(1 << j for j in range(8) if not (i ^ j) & ~mask) for i in range(8)] for mask in range(8)], np.int32
)
"""The places of a table that differ from place i in the bits of a mask only."""


class Carried(NamedTuple):
    """Everything that goes from one step to the next. Compiled functions take the arrays one by one: numba
    counts references whenever it takes one out of a tuple."""

    offsets: NDArray[np.int64]
    sources: NDArray[np.int32]
    weights: NDArray[np.floating]
    values: NDArray[np.floating]
    """Only those of code OTHER."""
    errors: NDArray[np.floating]
    """All 0 between two steps."""
    records: NDArray[np.int32]
    fan: NDArray[np.int32]
    """The successors of each vertex that are not wide: first those that never sleep, last those asleep; each
    four times, plus which of the successor's sources the vertex is. The constant, which stays, has none."""
    places: NDArray[np.int32]
    """Of the three sources of a vertex: where it is in their fans, if they let it sleep."""
    to_wide_offsets: NDArray[np.int64]
    to_wide: NDArray[np.int32]
    """The edges of each vertex to wide ones."""
    to_wide_numbers: NDArray[np.int32]
    """Which wide vertices these lead to."""
    wide: NDArray[np.int32]
    """The vertices with many edges."""
    totals: NDArray[np.floating]
    """Their sums."""
    units: NDArray[np.floating]
    """1 over the power of two of which all terms of a wide vertex are multiples, or 0 if they are not."""
    vanishing: NDArray[np.floating]
    """Up to this derivative, all changes of edges to a wide vertex round away."""
    pending: NDArray[np.int32]
    """Of each level, the first vertex that is to be computed."""
    levels: NDArray[np.uint64]
    """The set of levels that have one."""
    passing: NDArray[np.uint64]
    """The set of vertices to pass a derivative on, the last one as 0."""
    sloping: NDArray[np.uint64]
    """The set of edges to wide vertices from vertices whose slope is not 0."""
    computed: NDArray[np.int64]
    """How many vertices were computed, in all steps together; and how many steps."""

    def every_value(self) -> NDArray[np.floating]:
        """The values of all vertices at the last step."""
        codes = self.records[FLAGS::SIZE] >> CODE & 3
        return np.where(codes == OTHER, self.values, 4 * codes.astype(self.values.dtype) - 2)


def carried(graph: Graph, weights: NDArray[np.floating]) -> Carried:
    """The state before a first step: all values are 0, but for the constant, and all vertices pending."""
    kind, vertices, inputs = weights.dtype, graph.vertices, graph.inputs
    ends = graph.ends.astype(np.int32)
    wide = np.append(np.zeros(inputs, bool), np.diff(graph.offsets) > WIDE)
    is_counted = graph.sources != CONSTANT
    narrow_edges = np.flatnonzero(is_counted & ~wide[ends])
    to_wide = np.flatnonzero(is_counted & wide[ends])
    to_wide = to_wide[np.argsort(graph.sources[to_wide], kind="stable")].astype(np.int32)
    fan_counts = np.bincount(graph.sources[narrow_edges], minlength=vertices)
    records = np.zeros((vertices, SIZE), np.int32)
    records[:, LEVEL] = graph.levels()
    records[:, FAN] = np.cumsum(fan_counts) - fan_counts
    records[:, AWAKE] = fan_counts
    records[:, FLAGS] = OTHER << CODE
    records[graph.sources[to_wide], FLAGS] |= FEEDS_WIDE
    records[wide, FLAGS] |= IS_WIDE
    records[wide, SOURCES] = np.arange(wide.sum())
    depth = int(records[:, LEVEL].max()) + 1
    state = Carried(
        offsets=graph.offsets,
        sources=graph.sources,
        weights=weights.copy(),
        values=np.zeros(vertices, kind),
        errors=np.zeros(vertices, kind),
        records=records.ravel(),
        fan=np.zeros(len(narrow_edges), np.int32),
        places=np.zeros(3 * vertices, np.int32),
        to_wide_offsets=np.append(0, np.cumsum(np.bincount(graph.sources[to_wide], minlength=vertices))),
        to_wide=to_wide,
        to_wide_numbers=records[ends[to_wide], SOURCES],
        wide=np.flatnonzero(wide).astype(np.int32),
        totals=np.zeros(wide.sum(), kind),
        units=np.zeros(wide.sum(), kind),
        vanishing=np.zeros(wide.sum(), kind),
        pending=np.full(depth, NONE, np.int32),
        levels=empty_set(depth),
        passing=empty_set(vertices),
        sloping=empty_set(graph.edges),
        computed=np.zeros(2, np.int64),
    )
    state.values[CONSTANT] = 1
    room = kind.type(2.0 ** np.finfo(kind).nmant)
    next_asleep, next_awake = (records[:, FAN].astype(np.int64) for _ in range(2))
    _prepare(inputs, room, narrow_edges, ends, next_asleep, next_awake, *state)
    return state


@njit(_nrt=False)
def _prepare(
    given, room, narrow_edges, ends, next_asleep, next_awake, offsets, sources, weights, values,
    errors, records, fan, places, to_wide_offsets, to_wide, to_wide_numbers, wide, totals, units, vanishing,
    pending, levels, passing, sloping, computed,
):  # fmt: skip
    for v in range(given, len(values)):
        if records[SIZE * v + FLAGS] & IS_WIDE == 0:
            _tabulate(offsets[v - given], offsets[v - given + 1], sources, weights, records, v)
        put(records, pending, levels, v)
    for e in narrow_edges:
        if not _lets_sleep(records, ends[e], _slot(records, ends[e], sources[e])):
            next_asleep[sources[e]] += 1
    for e in narrow_edges:
        s, v = sources[e], ends[e]
        slot = _slot(records, v, s)
        if _lets_sleep(records, v, slot):
            fan[next_asleep[s]] = 4 * v + slot
            places[3 * v + slot] = next_asleep[s]
            next_asleep[s] += 1
        else:
            fan[next_awake[s]] = 4 * v + slot
            next_awake[s] += 1
    for k in range(len(wide)):
        bound = weights.dtype.type(0)
        for e in range(offsets[wide[k] - given], offsets[wide[k] - given + 1]):
            bound += 2 * abs(weights[e])
            if sources[e] == CONSTANT:
                totals[k] += weights[e]
        power = weights.dtype.type(1)
        while power < 1.01 * bound and power < 1e30:  # the bound has been rounded itself
            power *= 2
        multiple = totals[k] * (room / power)
        if power < 1e30 and multiple == np.floor(multiple):
            units[k] = room / power
    for e in to_wide:
        add(sloping, e)  # at first all values are 0


@njit(_nrt=False)
def _tabulate(begin, end, sources, weights, records, v):
    """Gives a vertex its sources and its table, if it has one."""
    own = SIZE * v + SOURCES
    slots = 0
    for e in range(begin, end):
        if sources[e] == CONSTANT:
            continue
        for slot in range(slots):
            if records[own + slot] == sources[e]:
                return
        if slots == 3:
            return
        records[own + slots] = sources[e]
        slots += 1
    table = 0
    for i in range(1 << slots):
        total = weights.dtype.type(0)
        slot = 0
        for e in range(begin, end):
            if sources[e] == CONSTANT:
                total += weights[e]
            else:
                total += weights[e] * weights.dtype.type(4 * (i >> slot & 1) - 2)
                slot += 1
        if not abs(total) >= 2:
            return
        if total > 0:
            table |= 1 << i
    # The source with the fewest successors always wakes the vertex; others let it sleep if they have many.
    may_sleep, first = 0, 0
    for slot in range(1, slots):
        if records[SIZE * records[own + slot] + AWAKE] < records[SIZE * records[own + first] + AWAKE]:
            first = slot
    for slot in range(slots):
        if slot != first and records[SIZE * records[own + slot] + AWAKE] > BIG:
            may_sleep |= 1 << slot
    records[SIZE * v + FLAGS] |= IS_TABLE | table | slots << ODD | may_sleep << MAY_SLEEP
    if may_sleep:
        records[SIZE * v + FLAGS] |= TIRED


@njit(_nrt=False)
def _slot(records, v, source):
    """Which source of a vertex with a table this is."""
    if records[SIZE * v + FLAGS] & IS_TABLE != 0:
        for slot in range(3):
            if records[SIZE * v + SOURCES + slot] == source:
                return slot
    return NO_SLOT


@njit(_nrt=False)
def _lets_sleep(records, v, slot):
    return slot != NO_SLOT and records[SIZE * v + FLAGS] >> (MAY_SLEEP + slot) & 1 != 0


@njit(_nrt=False, inline="always")
def put(records, pending, levels, v):
    """Makes a vertex pending."""
    record = SIZE * v
    flags = records[at(record + FLAGS)]
    if flags & PENDING == 0:
        records[at(record + FLAGS)] = flags | PENDING
        level = records[at(record + LEVEL)]
        first = pending[at(level)]
        records[at(record + NEXT)] = first
        pending[at(level)] = v
        if first == NONE:
            add(levels, level)
