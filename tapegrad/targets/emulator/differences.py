"""Steps of SGD that follow differences: values are carried from step to step, and only what changes is computed.

Every weight and value is that of a whole pass, bit for bit. A vertex is computed anew, as the whole sum over
its edges in their order, when something that it depends on has changed. What is left out has no effect:

**Tables.** A vertex with up to three inputs whose sum is beyond 2 for all of them at -2 and 2 is a function of
bits. Its table is made by computing all these sums, and says what they would be, as long as its weights stay.

**Sleep.** Inputs with many successors (a bit of an address, say) need not tell those whose tables, given their
other inputs, do not depend on it: an AND with a 0. So a change of address is a matter of log N vertices.

**Sums of many terms** are kept up to date term by term, as long as all terms are multiples of one power of
two and so few of them that no sum can need more digits than there are: then all sums are exact, in any order.

**Gradients.** Backpropagation visits vertices with a derivative other than 0, from the last to the first. For
a vertex with many edges it is shown once that the largest change any edge could get rounds away (a change
that is smaller does too, rounding being monotone); from then on only edges from vertices with a slope are
visited.

All of this is found in the arrays of the graph, and nothing of it is taken for granted.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.emulator.graph import CONSTANT, Graph

WIDE = 8
"""Vertices with more edges than this are wide: their sums are kept up to date instead of computed again."""
BIG = 12
"""Vertices with more successors than this let them sleep."""
NONE = -1

SIZE = 8
"""Of the record of a vertex: three sources (of a wide vertex, its number among these), flags, places of the
three edges in the fans of their sources, and the vertex's level."""
FLAGS, PLACES, LEVEL = 3, 4, 7
TABLE, MAY_SLEEP = 0xFF, 8
"""Flags: the table; then three bits for the sources that let the vertex sleep."""
IS_TABLE, ASLEEP, PENDING, IS_WIDE, FEEDS_WIDE = (1 << bit for bit in range(11, 16))
OTHER = 2
"""The code of a value that is neither -2, which has code 0, nor 2, which has code 1."""

ALIKE = np.array(
    [[sum(1 << j for j in range(8) if not (i ^ j) & ~mask) for i in range(8)] for mask in range(8)], np.int32
)
"""The places of a table that differ from place i in the bits of a mask only."""


# Ordered sets of numbers below n: a bit for each, a bit for each word of bits that is not 0, and so on. The first
# words say where each of these levels begins.

HEAD = 8


def _empty_set(n: int) -> NDArray[np.uint64]:
    starts = [HEAD]
    while n > 1 or len(starts) == 1:
        n = -(-n // 64)
        starts.append(starts[-1] + n)
    numbers = np.zeros(starts[-1], np.uint64)
    numbers[: len(starts)] = starts
    return numbers


@njit(_nrt=False, inline="always")
def _add(numbers, i):
    at = 0
    while numbers[at + 1] != 0:
        word = np.int64(numbers[at]) + (i >> 6)
        before = numbers[word]
        numbers[word] = before | np.uint64(1) << np.uint64(i & 63)
        if before != 0:
            break
        i >>= 6
        at += 1


@njit(_nrt=False, inline="always")
def _remove(numbers, i):
    at = 0
    while numbers[at + 1] != 0:
        word = np.int64(numbers[at]) + (i >> 6)
        after = numbers[word] & ~(np.uint64(1) << np.uint64(i & 63))
        numbers[word] = after
        if after != 0:
            break
        i >>= 6
        at += 1


@njit(_nrt=False, inline="always")
def _following(numbers, i):
    """The smallest member that is at least i, or NONE."""
    at = 0
    while numbers[at + 1] != 0:
        word = np.int64(numbers[at]) + (i >> 6)
        if word >= np.int64(numbers[at + 1]):
            break
        rest = numbers[word] >> np.uint64(i & 63)
        if rest != 0:
            i += np.int64(trailing_zeros(rest))
            for below in range(at - 1, -1, -1):
                i = (i << 6) + np.int64(trailing_zeros(numbers[np.int64(numbers[below]) + i]))
            return i
        i = (i >> 6) + 1
        at += 1
    return NONE


class Carried(NamedTuple):
    """Everything that goes from one step to the next. Compiled functions take the arrays one by one: numba
    counts references whenever it takes one out of a tuple."""

    offsets: NDArray[np.int64]
    sources: NDArray[np.int32]
    weights: NDArray[np.floating]
    codes: NDArray[np.uint8]
    """Of the values, and one more that is 0, for sources that a record does not have."""
    values: NDArray[np.floating]
    """Only those of code OTHER."""
    errors: NDArray[np.floating]
    """All 0 between two steps."""
    records: NDArray[np.int32]
    fan_offsets: NDArray[np.int64]
    fan: NDArray[np.int32]
    """The successors of each vertex that are not wide: first those that never sleep, last those asleep. The
    constant has none here, for it never changes."""
    awake: NDArray[np.int32]
    """How many of them are awake."""
    to_wide_offsets: NDArray[np.int32]
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
    """The vertices to be computed, with room for all of each level."""
    rooms: NDArray[np.int64]
    """Where in `pending` the room of a level begins."""
    waiting: NDArray[np.int32]
    """How many vertices of a level are pending."""
    levels: NDArray[np.uint64]
    """The set of levels with some."""
    passing: NDArray[np.uint64]
    """The set of vertices to pass a derivative on, the last one as 0."""
    sloping: NDArray[np.uint64]
    """The set of edges to wide vertices from vertices whose slope is not 0."""
    computed: NDArray[np.int64]
    """How many vertices were computed, in all steps together."""

    def every_value(self) -> NDArray[np.floating]:
        """The values of all vertices at the last step."""
        codes = self.codes[:-1]
        return np.where(codes == OTHER, self.values, 4 * codes.astype(self.values.dtype) - 2)


def carried(graph: Graph, weights: NDArray[np.floating]) -> Carried:
    """The state before a first step: all values are 0, but for the constant, and all vertices pending."""
    kind, vertices, inputs = weights.dtype, graph.vertices, graph.inputs
    ends = graph.ends.astype(np.int32)
    wide = np.diff(graph.offsets, prepend=np.zeros(inputs, np.int64)) > WIDE
    is_counted = graph.sources != CONSTANT
    narrow_edges = np.flatnonzero(is_counted & ~wide[ends])
    to_wide = np.flatnonzero(is_counted & wide[ends])
    to_wide = to_wide[np.argsort(graph.sources[to_wide], kind="stable")].astype(np.int32)
    counts = np.bincount(graph.sources[narrow_edges], minlength=vertices)
    level = graph.levels()
    rooms = np.append(0, np.cumsum(np.bincount(level)))
    records = np.zeros((vertices, SIZE), np.int32)
    records[:, LEVEL] = level
    records[graph.sources[to_wide], FLAGS] = FEEDS_WIDE
    records[wide, FLAGS] |= IS_WIDE
    records[wide, 0] = np.arange(wide.sum())
    state = Carried(
        offsets=graph.offsets,
        sources=graph.sources,
        weights=weights.copy(),
        codes=np.append(np.full(vertices, OTHER, np.uint8), np.uint8(0)),
        values=np.zeros(vertices, kind),
        errors=np.zeros(vertices, kind),
        records=records.ravel(),
        fan_offsets=np.append(0, np.cumsum(counts)),
        fan=np.zeros(len(narrow_edges), np.int32),
        awake=counts.astype(np.int32),
        to_wide_offsets=np.append(0, np.cumsum(np.bincount(graph.sources[to_wide], minlength=vertices))),
        to_wide=to_wide,
        to_wide_numbers=records[ends[to_wide], 0],
        wide=np.flatnonzero(wide).astype(np.int32),
        totals=np.zeros(wide.sum(), kind),
        units=np.zeros(wide.sum(), kind),
        vanishing=np.zeros(wide.sum(), kind),
        pending=np.zeros(vertices, np.int32),
        rooms=rooms,
        waiting=np.zeros(len(rooms), np.int32),
        levels=_empty_set(len(rooms)),
        passing=_empty_set(vertices),
        sloping=_empty_set(graph.edges),
        computed=np.zeros(1, np.int64),
    )
    state.values[CONSTANT] = 1
    _prepare(inputs, kind.type(2.0 ** np.finfo(kind).nmant), narrow_edges, ends, *state)
    return state


@njit()
def _prepare(
    given, room, narrow_edges, ends, offsets, sources, weights, codes, values, errors, records, fan_offsets,
    fan, awake, to_wide_offsets, to_wide, to_wide_numbers, wide, totals, units, vanishing, pending, rooms,
    waiting, levels, passing, sloping, computed,
):  # fmt: skip
    for v in range(given, len(values)):
        if records[SIZE * v + FLAGS] & IS_WIDE == 0:
            _tabulate(offsets[v - given], offsets[v - given + 1], sources, weights, awake, records, v, len(values))
        _put(records, pending, rooms, waiting, levels, v)
    # Fans: counted once for those that never sleep, then filled.
    sleepers = fan_offsets[:-1].copy()
    for e in narrow_edges:
        if _sleeping_slot(records, sources[e], ends[e]) == NONE:
            sleepers[sources[e]] += 1
    others = fan_offsets[:-1].copy()
    for e in narrow_edges:
        slot = _sleeping_slot(records, sources[e], ends[e])
        if slot == NONE:
            fan[others[sources[e]]] = ends[e]
            others[sources[e]] += 1
        else:
            fan[sleepers[sources[e]]] = ends[e]
            records[SIZE * ends[e] + PLACES + slot] = sleepers[sources[e]]
            sleepers[sources[e]] += 1
    two = weights.dtype.type(2)
    for k in range(len(wide)):
        bound = weights.dtype.type(0)
        for e in range(offsets[wide[k] - given], offsets[wide[k] - given + 1]):
            bound += two * abs(weights[e])
            if sources[e] == CONSTANT:
                totals[k] += weights[e]
        power = weights.dtype.type(1)
        while power < 1.01 * bound and power < 1e30:  # the bound has been rounded itself
            power *= two
        exact = np.floor(totals[k] * (room / power)) == totals[k] * (room / power)
        units[k] = room / power if power < 1e30 and exact else 0
    for e in to_wide:
        _add(sloping, e)  # at first all values are 0


@njit(_nrt=False)
def _tabulate(begin, end, sources, weights, successors, records, v, nothing):
    """The record of a vertex with its table, if it has one."""
    slots = 0
    for e in range(begin, end):
        s = sources[e]
        if s == CONSTANT:
            continue
        for slot in range(slots):
            if records[SIZE * v + slot] == s:
                return
        if slots == 3:
            return
        records[SIZE * v + slots] = s
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
    for slot in range(slots, 3):
        records[SIZE * v + slot] = nothing
        table |= table << (1 << slot)
    may_sleep = 0
    for slot in range(slots):
        if successors[records[SIZE * v + slot]] > BIG:
            may_sleep |= 1 << slot
    if may_sleep == (1 << slots) - 1:
        may_sleep = 0
    records[SIZE * v + FLAGS] |= IS_TABLE | table | may_sleep << MAY_SLEEP


@njit(_nrt=False, inline="always")
def _sleeping_slot(records, source, v):
    """Which source of a vertex this is, if it may let the vertex sleep."""
    may_sleep = records[SIZE * v + FLAGS] >> MAY_SLEEP & 7
    for slot in range(3):
        if may_sleep >> slot & 1 and records[SIZE * v + slot] == source:
            return slot
    return NONE


# Forward


@njit(_nrt=False, inline="always")
def _put(records, pending, rooms, waiting, levels, v):
    """Makes a vertex pending."""
    flags = records[SIZE * v + FLAGS]
    if flags & PENDING == 0:
        records[SIZE * v + FLAGS] = flags | PENDING
        level = records[SIZE * v + LEVEL]
        count = waiting[level]
        pending[rooms[level] + count] = v
        waiting[level] = count + 1
        if count == 0:
            _add(levels, level)


@njit(_nrt=False, inline="always")
def _value(codes, values, v):
    code = codes[v]
    return values[v] if code == OTHER else values.dtype.type(4.0 * code - 2.0)


@njit(_nrt=False, inline="always")
def _turn(records, fan_offsets, fan, awake, v, flags):
    """Lets a vertex sleep that is awake, or the other way round: in the fans of the sources that this concerns,
    it changes places with the last one awake, or with the first one asleep."""
    for slot in range(3):
        if flags >> MAY_SLEEP >> slot & 1:
            s = records[SIZE * v + slot]
            if flags & ASLEEP == 0:
                awake[s] -= 1
            place, other = records[SIZE * v + PLACES + slot], fan_offsets[s] + awake[s]
            if flags & ASLEEP != 0:
                awake[s] += 1
            w = fan[other]
            fan[place], fan[other] = w, v
            records[SIZE * w + PLACES + _sleeping_slot(records, s, w)] = place
            records[SIZE * v + PLACES + slot] = other
    records[SIZE * v + FLAGS] = flags ^ ASLEEP


@njit(_nrt=False)
def _change_term(weights, totals, units, sloping, k, e, old, value):
    """Takes a new value of its source into the sum of a wide vertex."""
    if abs(value) < 2:
        _add(sloping, e)
    elif abs(old) < 2:
        _remove(sloping, e)
    term = weights[e] * value
    multiple = term * units[k]
    if multiple == np.floor(multiple):
        totals[k] += term - weights[e] * old
    else:
        units[k] = 0


@njit(_nrt=False, inline="always")
def _tell(
    v, old, value, weights, records, fan_offsets, fan, awake, to_wide_offsets, to_wide, to_wide_numbers, wide,
    totals, units, pending, rooms, waiting, levels, sloping,
):  # fmt: skip
    """Makes those pending that a changed value concerns."""
    for place in range(fan_offsets[v], fan_offsets[v] + awake[v]):
        _put(records, pending, rooms, waiting, levels, fan[place])
    if records[SIZE * v + FLAGS] & FEEDS_WIDE != 0:
        for i in range(to_wide_offsets[v], to_wide_offsets[v + 1]):
            k = to_wide_numbers[i]
            _change_term(weights, totals, units, sloping, k, to_wide[i], old, value)
            _put(records, pending, rooms, waiting, levels, wide[k])


@njit(_nrt=False)
def _forward(
    row, offsets, sources, weights, codes, values, records, fan_offsets, fan, awake, to_wide_offsets, to_wide,
    to_wide_numbers, wide, totals, units, pending, rooms, waiting, levels, sloping, computed,
):  # fmt: skip
    given = len(row)
    for v in range(1, given):
        if values[v] != row[v]:
            old, values[v] = values[v], row[v]
            _tell(
                v, old, row[v], weights, records, fan_offsets, fan, awake, to_wide_offsets, to_wide,
                to_wide_numbers, wide, totals, units, pending, rooms, waiting, levels, sloping,
            )  # fmt: skip
    level = _following(levels, 0)
    while level != NONE:
        _remove(levels, level)
        count = waiting[level]
        waiting[level] = 0
        computed[0] += count
        for at in range(rooms[level], rooms[level] + count):
            v = pending[at]
            record = SIZE * v
            flags = records[record + FLAGS] & ~PENDING
            records[record + FLAGS] = flags
            code, asleep = OTHER, False
            if flags & IS_TABLE != 0:
                a = codes[records[record]]
                b = codes[records[record + 1]]
                c = codes[records[record + 2]]
                if a | b | c < OTHER:
                    i = a + 2 * b + 4 * c
                    code = flags >> i & 1
                    alike = ALIKE[flags >> MAY_SLEEP & 7, i]
                    asleep = flags & alike == 0 or flags & alike == alike
            if flags >> MAY_SLEEP & 7 != 0 and asleep != (flags & ASLEEP != 0):
                _turn(records, fan_offsets, fan, awake, v, flags)
            total = weights.dtype.type(0)
            if code == OTHER:
                if flags & IS_WIDE != 0 and units[records[record]] != 0:
                    total = totals[records[record]]
                else:
                    for e in range(offsets[v - given], offsets[v - given + 1]):
                        total += weights[e] * _value(codes, values, sources[e])
                code = 1 if total >= 2 else 0 if total <= -2 else OTHER
            if code != codes[v] or (code == OTHER and total != values[v]):
                old = _value(codes, values, v)
                codes[v] = code
                values[v] = total
                _tell(
                    v, old, _value(codes, values, v), weights, records, fan_offsets, fan, awake,
                    to_wide_offsets, to_wide, to_wide_numbers, wide, totals, units, pending, rooms, waiting,
                    levels, sloping,
                )  # fmt: skip
        level = _following(levels, level + 1)


# Backward


@njit(_nrt=False)
def _vanishes(weights, begin, end, d, rate):
    """Whether with a derivative of this size no edge could change."""
    change = rate * (abs(d) * weights.dtype.type(2))
    for e in range(begin, end):
        if weights[e] - change != weights[e] or weights[e] + change != weights[e]:
            return False
    return True


@njit(_nrt=False, inline="always")
def _pass(sources, weights, codes, errors, given, passing, e, d):
    s = sources[e]
    if s >= given and codes[s] == OTHER:
        errors[s] += weights[e] * d
        _add(passing, len(errors) - 1 - s)


@njit(_nrt=False)
def _backward(
    slope_of_loss, rate, given, offsets, sources, weights, codes, values, errors, records, units, vanishing,
    pending, rooms, waiting, levels, passing, sloping,
):  # fmt: skip
    last = len(values) - 1
    if codes[last] != OTHER:
        return
    errors[last] = slope_of_loss
    _add(passing, 0)
    at = 0
    while at != NONE:
        _remove(passing, at)
        v = last - at
        d = errors[v]
        errors[v] = 0
        begin, end = offsets[v - given], offsets[v - given + 1]
        is_wide, k = records[SIZE * v + FLAGS] & IS_WIDE != 0, records[SIZE * v]
        if is_wide and abs(d) > vanishing[k] and _vanishes(weights, begin, end, d, rate):
            vanishing[k] = abs(d)
        if is_wide and abs(d) <= vanishing[k]:
            e = _following(sloping, begin)
            while e != NONE and e < end:
                _pass(sources, weights, codes, errors, given, passing, e, d)
                e = _following(sloping, e + 1)
        elif d != 0:
            changed = False
            for e in range(begin, end):
                _pass(sources, weights, codes, errors, given, passing, e, d)
                before = weights[e]
                weights[e] -= rate * (d * _value(codes, values, sources[e]))
                changed |= weights[e] != before
            if changed:  # then what was known of the vertex no longer holds
                if is_wide:
                    units[k] = vanishing[k] = 0
                records[SIZE * v + FLAGS] &= ~IS_TABLE
                _put(records, pending, rooms, waiting, levels, v)
        at = _following(passing, at)


@njit(_nrt=False)
def _advance(
    rows, labels, rate, watched, outputs, seen, offsets, sources, weights, codes, values, errors, records,
    fan_offsets, fan, awake, to_wide_offsets, to_wide, to_wide_numbers, wide, totals, units, vanishing, pending,
    rooms, waiting, levels, passing, sloping, computed,
):  # fmt: skip
    for t in range(len(rows)):
        _forward(
            rows[t], offsets, sources, weights, codes, values, records, fan_offsets, fan, awake,
            to_wide_offsets, to_wide, to_wide_numbers, wide, totals, units, pending, rooms, waiting, levels,
            sloping, computed,
        )  # fmt: skip
        outputs[t], seen[t] = _value(codes, values, len(values) - 1), _value(codes, values, watched)
        slope_of_loss = 2 * (outputs[t] - labels[t])
        if slope_of_loss != 0:
            _backward(
                slope_of_loss, rate, rows.shape[1], offsets, sources, weights, codes, values, errors, records,
                units, vanishing, pending, rooms, waiting, levels, passing, sloping,
            )  # fmt: skip


def advance(
    state: Carried, rows: NDArray[Any], labels: NDArray[Any], rate: float, watched: int
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """One step of SGD on (output - label)^2 for each row of inputs, which are between -2 and 2, in place; gives
    the values of the output and of the vertex `watched` at every step."""
    kind = state.weights.dtype
    outputs, seen = np.zeros(len(rows), kind), np.zeros(len(rows), kind)
    rows, labels = np.ascontiguousarray(rows, kind), np.ascontiguousarray(labels, kind)
    _advance(rows, labels, kind.type(rate), watched, outputs, seen, *state)
    return outputs, seen
