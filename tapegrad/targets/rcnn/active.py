"""Which units of a ternary filter can be active in a patch, so that no others are computed.

A filter of s states has some 6 s units that decide clauses, and in any patch a handful are above 0. Each is
`relu(bias + sum of weight * answer)`, and an answer depends on one cell: it is piecewise linear in the cell's
number, with few kinks. So the arrays alone say for every content of a cell which answers may be further than
`NEAR` from 0: between two kinks an answer is affine, and its ends decide for all contents there. A unit that
adds up none of these is at most `bias + (NEAR + rounding) * sum |weight|`. Where that is below 0, the unit is
0, and leaving it out changes nothing. The others are computed as they are, with every weight of theirs.
Filters of another form are left to `run_columns`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.networks.form import Affine, Dense
from tapegrad.targets.rcnn.build import ACTIVATIONS, Filter
from tapegrad.targets.rcnn.exactness import bump_rounding

NEAR = 1e-3
"""What counts as near 0: far above rounding, far below the quarter that thresholds have to spare."""
MOST_TOUCHED = 256
"""Units that may be active in a patch; with more, all are computed."""


class ColumnLayers(NamedTuple):
    """Maps one below the other, each as the entries of its columns. A map reads the places from `inputs[i]`
    on and writes those from `outputs[i]` on."""

    column_start: Int[np.ndarray, " columns"]
    rows: Int[np.ndarray, " entries"]
    values: Float[np.ndarray, " entries"]
    bias: Float[np.ndarray, " rows"]
    inputs: Int[np.ndarray, " maps"]
    outputs: Int[np.ndarray, " maps"]
    relu: Bool[np.ndarray, " layers"]


class RowsOf(NamedTuple):
    """A map as the entries of its rows."""

    start: Int[np.ndarray, " rows_and_end"]
    columns: Int[np.ndarray, " entries"]
    values: Float[np.ndarray, " entries"]
    bias: Float[np.ndarray, " rows"]


class Ready(NamedTuple):
    """A filter made ready for compiled loops."""

    columns: ColumnLayers
    watched: Int[np.ndarray, " rules"]
    by_answers: bool
    """Whether what follows is known; if not, all units are computed."""
    cell: Int[np.ndarray, " kinks"]
    slope: Float[np.ndarray, " kinks"]
    kink: Float[np.ndarray, " kinks"]
    """The first layer: the cell that each unit reads, with which weight, and its bias."""
    answers: RowsOf
    clauses: RowsOf
    away: Int[np.ndarray, " contents_and_end"]
    """Where the list of answers begins that may be away from 0, by cell of the patch and content."""
    answers_away: Int[np.ndarray, " pairs"]
    always: Int[np.ndarray, " few"]
    """Units that may be active whatever the answers."""
    is_always: Bool[np.ndarray, " units"]
    is_watched: Bool[np.ndarray, " units"]


def ready(filter: Filter, numbers: Float[np.ndarray, "contents channels"]) -> Ready:
    """What the loops need of a filter whose cells have these numbers, by content."""
    columns, watched = column_layers(filter.layers), np.asarray(filter.rule_units)
    activations = tuple(layer.activation for layer in filter.layers)
    maps = [own.entries() for own in filter.maps]
    if filter.channels == 1 and activations == ACTIVATIONS and _of_single_cells(maps[0], maps[1]):
        return _by_answers(filter, maps, numbers[:, 0], columns, watched)
    none, flat = np.zeros(0, np.int64), np.zeros(0)
    rows = RowsOf(none, none, flat, flat)
    return Ready(columns, watched, False, none, flat, flat, rows, rows, none, none, none, none > 0, none > 0)


def column_layers(layers: Sequence[Dense]) -> ColumnLayers:
    """Dense layers in the form that `run_columns` reads."""
    maps = [layer.map.entries() for layer in layers]
    inputs = np.concatenate([[0], np.cumsum([own.width for own in maps])])
    columns = np.concatenate([start + own.columns for start, own in zip(inputs, maps, strict=False)])
    order = np.argsort(columns, kind="stable")
    return ColumnLayers(
        np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=inputs[-1]))]),
        np.concatenate([own.rows for own in maps])[order],
        np.concatenate([own.values for own in maps]).astype(np.float64)[order],
        np.concatenate([own.bias for own in maps]).astype(np.float64),
        inputs,
        np.concatenate([[0], np.cumsum([len(own) for own in maps])]),
        np.array([layer.activation == "relu" for layer in layers]),
    )


def _of_single_cells(first: Affine, second: Affine) -> bool:
    """Whether every unit of the first map reads one cell, and every row of the second units of one cell, one
    at least."""
    if not np.array_equal(np.asarray(first.rows), np.arange(len(first))) or not np.all(second.reads()):
        return False
    cells = np.asarray(first.columns)[np.asarray(second.columns)]
    rows, size = np.asarray(second.rows), len(second)
    least, most = np.full(size, len(cells)), np.full(size, -1)
    np.minimum.at(least, rows, cells)
    np.maximum.at(most, rows, cells)
    return np.array_equal(least, most) and bool(np.all(np.asarray(first.values) != 0))


def _rows_of(own: Affine) -> RowsOf:
    order = np.argsort(own.rows, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(own.rows, minlength=len(own)))])
    columns, values = np.asarray(own.columns)[order], np.asarray(own.values, np.float64)[order]
    return RowsOf(start, columns, values, np.asarray(own.bias, np.float64))


def _by_answers(
    filter: Filter,
    maps: list[Affine],
    numbers: NDArray[np.float64],
    columns: ColumnLayers,
    watched: NDArray[np.int64],
) -> Ready:
    first, second, third, *_ = maps
    cell, slope = np.asarray(first.columns), np.asarray(first.values, np.float64)
    kink, answers, clauses = np.asarray(first.bias, np.float64), _rows_of(second), _rows_of(third)
    order = np.argsort(numbers, kind="stable")
    places, contents, which = _away_from_0(cell, slope, kink, answers, numbers[order], order)
    lists = places * len(numbers) + contents
    by_content = np.argsort(lists, kind="stable")
    away = np.concatenate([[0], np.cumsum(np.bincount(lists, minlength=9 * len(numbers)))])
    slack = NEAR + 2 * bump_rounding(filter, numbers)
    sizes = np.bincount(third.rows, np.abs(third.values), len(third))
    is_always = clauses.bias + slack * sizes >= 0
    is_watched = np.zeros(len(third), bool)
    is_watched[watched[watched < len(third)]] = True
    return Ready(
        columns,
        watched,
        True,
        cell,
        slope,
        kink,
        answers,
        clauses,
        away,
        which[by_content],
        np.flatnonzero(is_always),
        is_always,
        is_watched,
    )


@njit(nogil=True)
def _away_from_0(cell: Any, slope: Any, kink: Any, answers: Any, numbers: Any, contents: Any) -> Any:
    """All triples of a cell of the patch, a content and an answer that may be away from 0 there; the numbers
    of the contents come in rising order."""
    places, found, which = [0], [0], [0]
    for answer in range(len(answers.bias)):
        entries = slice(answers.start[answer], answers.start[answer + 1])
        units = answers.columns[entries]
        cuts = np.sort(np.searchsorted(numbers, -kink[units] / slope[units]))
        first = 0
        for k in range(len(cuts) + 1):
            last = cuts[k] if k < len(cuts) else len(numbers)  # no kink between contents first to last - 1
            if first < last and (
                abs(_answer(slope, kink, answers, answer, numbers[first])) > NEAR
                or abs(_answer(slope, kink, answers, answer, numbers[last - 1])) > NEAR
            ):
                for i in range(first, last):
                    places.append(cell[units[0]])
                    found.append(contents[i])
                    which.append(answer)
            first = last
    return np.array(places[1:]), np.array(found[1:]), np.array(which[1:])


@njit(nogil=True)
def _answer(slope: Any, kink: Any, answers: Any, answer: int, number: float) -> float:
    """The answer where its cell has this number."""
    total = answers.bias[answer]
    for e in range(answers.start[answer], answers.start[answer + 1]):
        unit = answers.columns[e]
        total += answers.values[e] * max(slope[unit] * number + kink[unit], 0.0)
    return total


@njit(nogil=True)
def run_columns(layers: Any, x: Any, watched: Any) -> Any:
    """The layers on one vector, what is 0 skipped; and whether one of the units `watched` of the last ReLU
    layer is above 1/2."""
    active = False
    for i in range(len(layers.relu)):
        after = layers.bias[layers.outputs[i] : layers.outputs[i + 1]].copy()
        for place in range(len(x)):
            if x[place] != 0:
                column = layers.inputs[i] + place
                for e in range(layers.column_start[column], layers.column_start[column + 1]):
                    after[layers.rows[e]] += layers.values[e] * x[place]
        if layers.relu[i]:
            after = np.maximum(after, 0.0)
            active = False  # the last ReLU decides
            for unit in watched:
                active |= unit < len(after) and after[unit] > 0.5
        x = after
    return x, active


@njit(nogil=True)
def evaluate(own: Any, contents: Any, numbers: Any) -> Any:
    """What the filter makes of a patch, given by the contents of its nine cells and the numbers of every
    content; and whether a unit of a rule is active."""
    touched = np.empty(MOST_TOUCHED, np.int64)
    count = _touched(own, contents, len(numbers), touched) if own.by_answers else -1
    if count < 0:
        patch = np.empty(9 * numbers.shape[1])
        for k in range(9):
            for channel in range(numbers.shape[1]):
                patch[9 * channel + k] = numbers[contents[k], channel]
        return run_columns(own.columns, patch, own.watched)
    layers = own.columns
    after = layers.bias[layers.outputs[3] : layers.outputs[4]].copy()
    active = False
    for i in range(len(own.always) + count):
        unit = own.always[i] if i < len(own.always) else touched[i - len(own.always)]
        total = own.clauses.bias[unit]
        for e in range(own.clauses.start[unit], own.clauses.start[unit + 1]):
            answer = own.clauses.columns[e]
            cell = own.cell[own.answers.columns[own.answers.start[answer]]]
            number = numbers[contents[cell], 0]
            total += own.clauses.values[e] * _answer(own.slope, own.kink, own.answers, answer, number)
        if total > 0:
            active |= own.is_watched[unit] and total > 0.5
            column = layers.inputs[3] + unit
            for e in range(layers.column_start[column], layers.column_start[column + 1]):
                after[layers.rows[e]] += layers.values[e] * total
    value = layers.bias[layers.outputs[4] : layers.outputs[5]].copy()
    for digit in range(len(after)):
        column = layers.inputs[4] + digit
        for e in range(layers.column_start[column], layers.column_start[column + 1]):
            value[layers.rows[e]] += layers.values[e] * after[digit]
    return value, active


@njit(nogil=True)
def _touched(own: Any, contents: Any, count: int, touched: Any) -> int:
    """The units that add up an answer away from 0, each once, without those that are computed always; how
    many, or -1 if there is no room for them."""
    layers, found = own.columns, 0
    for k in range(9):
        here = k * count + contents[k]
        for a in range(own.away[here], own.away[here + 1]):
            column = layers.inputs[2] + own.answers_away[a]
            for e in range(layers.column_start[column], layers.column_start[column + 1]):
                unit = layers.rows[e]
                if own.is_always[unit]:
                    continue
                known = False
                for i in range(found):
                    known |= touched[i] == unit
                if known:
                    continue
                if found == len(touched):
                    return -1
                touched[found] = unit
                found += 1
    return found
