"""Steps of SGD that follow differences: values are carried from step to step, and computed if they change.

Every weight and value is that of a whole pass, bit for bit. A vertex is computed anew, as the whole sum over
its edges in their order, when something that it depends on has changed. What is left out has no effect:

**Tables.** A vertex with up to three inputs whose sum is beyond 2 for all of them at -2 and 2 is a function
of bits. Its table is made by computing all these sums, and holds as long as its weights stay.

A vertex that is told of a change and keeps its value, by its table, is not visited.

**Sleep.** A vertex with many successors (a bit of an address, say) need not tell those whose tables, given
their other inputs, do not depend on it: an AND with a 0. A change of address concerns log N vertices. (Values
between -2 and 2 are in no table; but sums are monotone in each term, and lie between those for -2 and 2.) To
fall asleep and to wake costs more than to be told in vain a few times; so a vertex sleeps once it is tired.

**Sums of many terms** are kept up to date term by term, as long as all terms are multiples of one power of
two and so few of them that no sum can need more digits than there are: then all sums are exact, in any order.

**Gradients.** Backpropagation visits vertices with a derivative other than 0, from the last to the first. For
a vertex with many edges it is shown once that the largest change any edge could get rounds away (a change
that is smaller does too, rounding being monotone); from then on only edges from vertices with a slope are
visited.

All of this is found in the arrays of the graph, and nothing of it is taken for granted.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.emulator.carried import (
    ALIKE,
    ASLEEP,
    AWAKE,
    CODE,
    FAN,
    FEEDS_WIDE,
    FLAGS,
    IDLE,
    INDEX,
    IS_TABLE,
    IS_WIDE,
    MAY_SLEEP,
    NEXT,
    NO_SLOT,
    ODD,
    OTHER,
    PENDING,
    SIZE,
    SOURCES,
    TIRED,
    Carried,
    put,
)
from tapegrad.targets.emulator.ordered_sets import NONE, add, at, following, remove

# Forward


@njit(_nrt=False, inline="always")
def _code(records, v):
    return records[at(SIZE * v + FLAGS)] >> CODE & 3


@njit(_nrt=False, inline="always")
def _value(values, records, v):
    code = _code(records, v)
    return values[at(v)] if code == OTHER else values.dtype.type(4.0 * code - 2.0)


@njit(_nrt=False)
def _turn(records, fan, places, v):
    """Lets a vertex sleep that is awake, or the other way round: in the fans of the sources that this
    concerns, it changes places with the last one awake, or the first one asleep. One that wakes looks at its
    inputs."""
    record = SIZE * v
    flags = records[at(record + FLAGS)] ^ ASLEEP
    for slot in range(3):
        if flags >> (MAY_SLEEP + slot) & 1 == 0:
            continue
        s = records[at(record + SOURCES + slot)]
        awake = SIZE * s + AWAKE
        if flags & ASLEEP != 0:
            records[at(awake)] -= 1
        place, other = places[at(3 * v + slot)], records[at(SIZE * s + FAN)] + records[at(awake)]
        moved = fan[at(other)]
        fan[at(place)], fan[at(other)] = moved, 4 * v + slot
        places[at(3 * (moved >> 2) + (moved & 3))] = place
        places[at(3 * v + slot)] = other
        if flags & ASLEEP == 0:
            records[at(awake)] += 1
            code = _code(records, s)
            flags = flags & ~(1 << (INDEX + slot)) | (code & 1) << (INDEX + slot)
            flags += code >> 1 << ODD
    records[at(record + FLAGS)] = flags


@njit(_nrt=False)
def _change_term(weights, totals, units, sloping, k, e, old, value):
    """Takes a new value of its source into the sum of a wide vertex."""
    if abs(value) < 2:
        add(sloping, e)
    elif abs(old) < 2:
        remove(sloping, e)
    term = weights[at(e)] * value
    multiple = term * units[at(k)]
    if multiple == np.floor(multiple):
        totals[at(k)] += term - weights[at(e)] * old
    else:
        units[at(k)] = 0


@njit(_nrt=False, inline="always")
def _take(
    v, code, value, weights, values, records, fan, to_wide_offsets, to_wide, to_wide_numbers, wide,
    totals, units, pending, levels, sloping,
):  # fmt: skip
    """Gives a vertex its new value, and makes those pending whom it concerns."""
    record = SIZE * v
    if records[at(record + FLAGS)] & FEEDS_WIDE != 0:
        for i in range(to_wide_offsets[at(v)], to_wide_offsets[at(v + 1)]):
            k = to_wide_numbers[at(i)]
            _change_term(
                weights, totals, units, sloping, k, to_wide[at(i)], _value(values, records, v), value
            )
            put(records, pending, levels, wide[at(k)])
    flags = records[at(record + FLAGS)]
    old = flags >> CODE & 3
    records[at(record + FLAGS)] = flags & ~(3 << CODE) | code << CODE
    if code == OTHER:
        values[at(v)] = value
    first = records[at(record + FAN)]
    for place in range(first, first + records[at(record + AWAKE)]):
        successor, slot = fan[at(place)] >> 2, fan[at(place)] & 3
        if slot != NO_SLOT:
            bit, its = INDEX + slot, at(SIZE * successor + FLAGS)
            flags = (records[its] & ~(1 << bit) | (code & 1) << bit) + (((code >> 1) - (old >> 1)) << ODD)
            if (
                flags & (IS_TABLE | ASLEEP | 3 << ODD) == IS_TABLE
                and flags >> (flags >> INDEX & 7) & 1 == flags >> CODE & 3
            ):  # it keeps its value
                flags += (flags >> (MAY_SLEEP + slot) & 1) * IDLE
                records[its] = flags
                if flags & TIRED == 0:
                    continue
            records[its] = flags
        put(records, pending, levels, successor)


@njit(_nrt=False)
def _forward(
    row, offsets, sources, weights, values, records, fan, places, to_wide_offsets, to_wide,
    to_wide_numbers, wide, totals, units, pending, levels, sloping, computed,
):  # fmt: skip
    given = len(row)
    for v in range(1, given):
        if values[at(v)] != row[v]:
            _take(
                v, OTHER, row[v], weights, values, records, fan, to_wide_offsets, to_wide,
                to_wide_numbers, wide, totals, units, pending, levels, sloping,
            )  # fmt: skip
    level = following(levels, 0)
    while level != NONE:
        remove(levels, level)
        v = pending[at(level)]
        pending[at(level)] = NONE
        while v != NONE:
            computed[0] += 1
            record = SIZE * v
            flags = records[at(record + FLAGS)] & ~PENDING
            records[at(record + FLAGS)] = flags
            if flags & (ASLEEP | TIRED) != 0:
                alike = ALIKE[flags >> MAY_SLEEP & 7, flags >> INDEX & 7]
                sleeps = flags & alike == 0 or flags & alike == alike
                sleeps &= flags & IS_TABLE != 0 and flags >> ODD & 3 == 0
                if sleeps != (flags & ASLEEP != 0):
                    _turn(records, fan, places, v)
                    flags = records[at(record + FLAGS)]
                flags &= ~(TIRED | TIRED - IDLE)
                records[at(record + FLAGS)] = flags
            if flags & IS_TABLE != 0 and flags >> ODD & 3 == 0:
                code = flags >> (flags >> INDEX & 7) & 1
                value = weights.dtype.type(4 * code - 2)
            else:
                if flags & IS_WIDE != 0 and units[at(records[at(record + SOURCES)])] != 0:
                    value = totals[at(records[at(record + SOURCES)])]
                else:
                    value = weights.dtype.type(0)
                    for e in range(offsets[at(v - given)], offsets[at(v - given + 1)]):
                        value += weights[at(e)] * _value(values, records, sources[at(e)])
                value = max(min(value, weights.dtype.type(2)), weights.dtype.type(-2))
                code = 1 if value == 2 else 0 if value == -2 else OTHER
            if code != flags >> CODE & 3 or (code == OTHER and value != values[at(v)]):
                _take(
                    v, code, value, weights, values, records, fan, to_wide_offsets, to_wide,
                    to_wide_numbers, wide, totals, units, pending, levels, sloping,
                )  # fmt: skip
            v = records[at(record + NEXT)]
        level = following(levels, level + 1)


# Backward


@njit(_nrt=False)
def _vanishes(weights, begin, end, d, rate):
    """Whether with a derivative of this size no edge could change."""
    change = rate * (abs(d) * weights.dtype.type(2))
    for e in range(begin, end):
        if weights[at(e)] - change != weights[at(e)] or weights[at(e)] + change != weights[at(e)]:
            return False
    return True


@njit(_nrt=False, inline="always")
def _pass(sources, weights, errors, records, given, passing, e, d):
    s = sources[at(e)]
    if s >= given and _code(records, s) == OTHER:
        errors[at(s)] += weights[at(e)] * d
        add(passing, len(errors) - 1 - s)


@njit(_nrt=False)
def _backward(
    slope_of_loss, rate, given, offsets, sources, weights, values, errors, records, units, vanishing,
    pending, levels, passing, sloping,
):  # fmt: skip
    last = len(values) - 1
    if _code(records, last) != OTHER:
        return
    errors[at(last)] = slope_of_loss
    add(passing, 0)
    place = 0
    while place != NONE:
        remove(passing, place)
        v = last - place
        d = errors[at(v)]
        errors[at(v)] = 0
        begin, end = offsets[at(v - given)], offsets[at(v - given + 1)]
        is_wide, k = records[at(SIZE * v + FLAGS)] & IS_WIDE != 0, records[at(SIZE * v + SOURCES)]
        if is_wide and abs(d) > vanishing[at(k)] and _vanishes(weights, begin, end, d, rate):
            vanishing[at(k)] = abs(d)
        if is_wide and abs(d) <= vanishing[at(k)]:
            e = following(sloping, begin)
            while e != NONE and e < end:
                _pass(sources, weights, errors, records, given, passing, e, d)
                e = following(sloping, e + 1)
        elif d != 0:
            changed = False
            for e in range(begin, end):
                _pass(sources, weights, errors, records, given, passing, e, d)
                before = weights[at(e)]
                weights[at(e)] -= rate * (d * _value(values, records, sources[at(e)]))
                changed |= weights[at(e)] != before
            if changed:  # then what was known of the vertex no longer holds
                if is_wide:
                    units[at(k)] = vanishing[at(k)] = 0
                records[at(SIZE * v + FLAGS)] &= ~IS_TABLE
                put(records, pending, levels, v)
        place = following(passing, place)


@njit(_nrt=False)
def _advance(
    rows, labels, rate, watched, outputs, seen, offsets, sources, weights, values, errors, records,
    fan, places, to_wide_offsets, to_wide, to_wide_numbers, wide, totals, units, vanishing, pending, levels,
    passing, sloping, computed,
):  # fmt: skip
    computed[1] += len(rows)
    for t in range(len(rows)):
        _forward(
            rows[t], offsets, sources, weights, values, records, fan, places, to_wide_offsets, to_wide,
            to_wide_numbers, wide, totals, units, pending, levels, sloping, computed,
        )  # fmt: skip
        outputs[t], seen[t] = _value(values, records, len(values) - 1), _value(values, records, watched)
        slope_of_loss = 2 * (outputs[t] - labels[t]) if len(labels) > 0 else rate * 0
        if slope_of_loss != 0:
            _backward(
                slope_of_loss, rate, rows.shape[1], offsets, sources, weights, values, errors, records,
                units, vanishing, pending, levels, passing, sloping,
            )  # fmt: skip


def advance(
    state: Carried, rows: NDArray[Any], labels: NDArray[Any], rate: float, watched: int
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """One step of SGD on (output - label)^2 for each row of inputs, which are between -2 and 2, in place;
    without labels, the forward passes alone. Gives the values of the output and of the vertex `watched` at
    every step."""
    kind = state.weights.dtype
    outputs, seen = np.zeros(len(rows), kind), np.zeros(len(rows), kind)
    rows, labels = np.ascontiguousarray(rows, kind), np.ascontiguousarray(labels, kind)
    _advance(rows, labels, kind.type(rate), watched, outputs, seen, *state)
    return outputs, seen
