"""What a filter of an `rcnn` net makes of a patch, worked out from its weights alone.

A unit of the last ReLU layer adds up one number for each cell of its patch. While all cells compute, there
are some six contents of a cell for each state, and some twelve units. A table of both would grow with the
square of the states; but a unit of a rule tells one content from all others. So what units see is kept as a
usual number, and the contents where it is another one. While cells memorise, there are five contents, and
full tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import exact
from tapegrad_check.folder import Unchecked, require
from tapegrad_check.graph import Graph, Node
from tapegrad_check.products import times

Offset = tuple[int, int]
HERE: Offset = (0, 0)
NEIGHBOURS: tuple[Offset, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))
CELLS: tuple[Offset, ...] = (HERE, *NEIGHBOURS)
LEAST_MARGIN = 0.2
"""How far a sum must stay from the threshold of a unit."""
MOST_ENTRIES, MOST_WEIGHTS = 1 << 26, 1 << 27
"""Numbers in one table, of 8 bytes each, and weights of a filter of channels written out, of 4 each."""
BLOCK = 1 << 21
"""Numbers of the practical filter that are looked at together."""
CLOSE = 1e-6
"""Largest difference that counts as rounding, where numbers are nowhere nearer to each other than that."""

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


class Contents:
    """The contents of a cell, numbered as in the file, and the numbers that stand for them."""

    outside, memory = 0, 1

    def __init__(self, symbols: int, states: int, encoding: str) -> None:
        self.symbols, self.states, self.modes = symbols, states, 2 + states
        self.count = 2 + 2 * symbols * self.modes
        self.ternary = encoding == "ternary"
        self.further = _digits(symbols - 3)
        self.width = 1 if self.ternary else 4 + symbols - 1 + states
        computing = (np.arange(self.count) - 2) % self.modes >= 1
        computing[:2] = False
        self.computing: Places = np.flatnonzero(computing)
        unused = {self.number(1, a, 0) for a in range(1, symbols)}
        unused |= {self.number(0, a, 0) for a in range(3, symbols)}
        self.possible = np.setdiff1d(np.arange(self.count), list(unused))
        self.first = np.array([self._first(symbol) for symbol in range(symbols)])
        self.heads = np.array([*(self.head(state)[1] for state in range(states)), 0.0])
        """What symbols, and the head in each state and nowhere, add to the ternary number of a cell."""
        data = [self.number(0, a, 0) for a in range(1, min(symbols, 3))]
        self.memorising = [self.number(0, 0, 0), *data, self.memory, self.number(1, 0, 0)]
        """Empty, written, memorising and the frame."""

    def _first(self, symbol: int) -> float:
        return (0, 1, -1)[symbol] / 3 if symbol < 3 else _word(symbol - 3, self.further, 4)

    def number(self, work: int, symbol: int, mode: int, state: int = -1) -> int:
        return int(self.numbers(work, symbol, 2 + state if state >= 0 else mode))

    def numbers(self, work: Any, symbol: Any, mode: Any) -> Any:
        """The numbers of many contents."""
        return 2 + (work * self.symbols + symbol) * self.modes + mode

    def facts(self, number: Any) -> tuple[Any, Any, Any]:
        """Work cell, symbol, state (-1 without head), of one content or of many."""
        rest, mode = np.divmod(number - 2, self.modes)
        return (*np.divmod(rest, self.symbols), np.maximum(mode - 2, -1))

    def describe(self, number: int) -> str:
        if number < 2:
            return "the padding" if number == self.outside else "a memorising cell"
        work, symbol, state = self.facts(number)
        return f"content (work {work}, symbol {symbol}, {'no head' if state < 0 else f'state {state}'})"

    def value(self, number: int) -> Numbers:
        """The numbers of a content."""
        found = np.zeros(self.width)
        _, rows, values = self.entries(np.array([number]))
        found[rows] = values
        return found

    def entries(self, numbers: Places) -> tuple[Places, Places, Numbers]:
        """The numbers of many contents that are not 0: which of them, channel and value."""
        special, rest = numbers < 2, np.maximum(numbers, 2)
        (work, symbol, state), computes = self.facts(rest), (rest - 2) % self.modes >= 1
        which = np.arange(len(numbers))
        if self.ternary:
            found = work + self.first[symbol] + computes / 9 + self.heads[state]
            found = np.where(special, np.array([1 / 6, -1 / 9])[np.minimum(numbers, 1)], found)
            return which, np.zeros(len(numbers), np.int64), found
        rows = np.stack([0 * work, 0 * work + 1, 3 + symbol, 3 + self.symbols + state], axis=1)
        there = np.stack([work == 1, computes, symbol > 0, state >= 0], axis=1) & ~special[:, None]
        rows[:, 0], there[:, 0] = (
            np.where(numbers == self.memory, 2, 0),
            there[:, 0] | (numbers == self.memory),
        )
        return np.repeat(which, 4)[there.ravel()], rows[there], np.ones(int(there.sum()))

    def head(self, state: int) -> tuple[int, float]:
        """What the head in this state adds: channel and number."""
        if not self.ternary:
            return 3 + self.symbols + state, 1.0
        word = _word(state - 1, _digits(self.states - 1), 4 + self.further) if state else 0.0
        return 0, 1 / 27 + word


def _digits(words: int) -> int:
    """How long words over -1 and +1 must be for this many."""
    return max(1, (words - 1).bit_length()) if words > 0 else 0


def _word(number: int, digits: int, first: int) -> float:
    """A number's bits as digits -1 and +1 of a ternary fraction, from place `first` on."""
    return sum((1 if number >> i & 1 else -1) / 3 ** (first + i) for i in range(digits))


class Seen(NamedTuple):
    """While all cells compute, unit `first + i` adds up `base[i]`, and `amount` more for each cell that has
    the content; each unit, cell and content once. (A base that no content leads to does no harm.)"""

    first: int
    base: Numbers
    unit: Places
    at: Places
    content: Places
    amount: Numbers


class Active(NamedTuple):
    """What units give while all cells compute, as a sum of functions of single cells: `base` and, for each
    cell that has the content, `more`; and the same for whether they are on, 0 or 1."""

    base: Numbers
    on: Numbers
    unit: Places
    at: Places
    content: Places
    more: Numbers
    turned: Numbers


def active(seen: Seen) -> Active:
    """For patches whose centre computes and whose other cells compute or lie outside.

    A unit that is off for every patch gives 0. One that is on for every patch gives what it adds up. Any
    other one must be changed by one cell alone.
    """
    low, high = (np.zeros((len(CELLS), len(seen.base))) for _ in range(2))
    unit = seen.unit - seen.first
    np.minimum.at(low, (seen.at, unit), seen.amount)
    np.maximum.at(high, (seen.at, unit), seen.amount)
    off = seen.base + high.sum(axis=0) < -LEAST_MARGIN
    on = seen.base + low.sum(axis=0) > LEAST_MARGIN
    cells = ((low < 0) | (high > 0)).sum(axis=0)
    require(
        (on | off | (cells <= 1)).all(), "a unit depends on several cells at once while all of them compute"
    )
    after = seen.base[unit] + seen.amount
    unclear = np.abs(after) <= LEAST_MARGIN
    unclear &= ~(on | off)[unit]
    near = (np.abs(seen.base) <= LEAST_MARGIN) & ~(on | off)
    require(not (unclear.any() or near.any()), "a unit is neither on nor off while all cells compute")
    was, now = (seen.base > 0) & ~off, (after > 0) & ~off[unit]
    base, turned = np.where(was, seen.base, 0.0), now * 1.0 - was[unit]
    more = np.where(now, after, 0.0) - base[unit]
    kept = (more != 0) | (turned != 0)
    return Active(
        base, was * 1.0, seen.unit[kept], seen.at[kept], seen.content[kept], more[kept], turned[kept]
    )


class Weights(NamedTuple):
    """Weights that are not 0 behind the units, unit by unit."""

    start: Places
    row: Places
    value: Numbers

    @classmethod
    def of(cls, unit: Places, row: Places, value: Numbers, units: int) -> "Weights":
        order = np.argsort(unit, kind="stable")
        start = np.searchsorted(unit[order], np.arange(units + 1))
        return cls(start, row[order], value[order])

    def beyond(self, unit: Places) -> tuple[Places, Places]:
        """For a list of units: the place in the list and the weight, for all weights of each."""
        return spread(self.start[unit], self.start[unit + 1])


def spread(first: Places, end: Places) -> tuple[Places, Places]:
    """All whole numbers from each `first` up to its `end`, with the place of their range in the list."""
    sizes = end - first
    if sizes.sum() > MOST_ENTRIES:
        raise Unchecked("the units of the filter look at too many contents for it to be checked")
    which = np.repeat(np.arange(len(first)), sizes)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[which]


def summed(keys: Places, values: Numbers) -> tuple[Places, Numbers]:
    """Each key once, with the sum of its values."""
    different, place = np.unique(keys, return_inverse=True)
    return different, totals(place, values, len(different))


def totals(places: Places, values: Numbers, count: int) -> Numbers:
    """The sum of the values at each place."""
    return np.bincount(places, values, count).astype(np.float64)


@dataclass(frozen=True)
class Tables:
    """`out @ relu(bias + sum over cells of seen[cell][:, kind])` for the kinds of cells of the memorising
    phase, and the derivatives of `seen`."""

    seen: dict[Offset, Numbers]
    slope: dict[Offset, Numbers]
    bias: Numbers
    out: Numbers
    gradient_out: Numbers

    def output(self, patch: dict[Offset, int]) -> tuple[Numbers, Numbers]:
        """The new content of the centre, and the derivatives of its value (or its trace) by those of the
        cells, in the order of the patch."""
        sums = self.bias + sum(self.seen[at][:, kind] for at, kind in patch.items())
        require((np.abs(sums) > LEAST_MARGIN).all(), "a unit is neither on nor off while cells memorise")
        slopes = np.stack([self.slope[at][:, kind] for at, kind in patch.items()], axis=1)
        return times(self.out, np.maximum(sums, 0)), times(self.gradient_out * (sums > 0), slopes)


def tables_of(
    seen: dict[Offset, Numbers], slope: dict[Offset, Numbers], bias: Numbers, out: Weights, contents: Contents
) -> Tables:
    """Only of the units that some patch of the memorising phase turns on."""
    most = bias + sum(own.max(axis=1) for own in seen.values())
    used = np.flatnonzero(most >= -LEAST_MARGIN)
    place, weight = out.beyond(used)
    dense = np.zeros((contents.width, len(used)))
    dense[out.row[weight], place] = out.value[weight]
    trace = 0 if contents.ternary else TRACE
    seen, slope = ({at: own[used] for at, own in table.items()} for table in (seen, slope))
    return Tables(seen, slope, bias[used], dense, dense[trace])


@dataclass(frozen=True)
class Filter:
    """A filter as the checker knows it."""

    active: Active
    out: Weights
    tables: Tables
    close: float
    """How near a new value must be to the one that is prescribed."""
    statements: list[str]


WORK, COMPUTING, MEMORISING, TRACE = range(4)
"""Channels, before those of the symbols and states."""


class Form(NamedTuple):
    """What a filter looks like in an encoding: its precision, the number outside the grid, and after which of
    its maps there is a ReLU."""

    dtype: Any
    padding: float
    rectified: tuple[bool, ...]


CHANNELS = Form(np.float32, 0.0, (True, False))


class Map(NamedTuple):
    """`x -> A x + b`, by the entries of A, row by row, each place once."""

    rows: Places
    columns: Places
    values: NDArray[Any]
    bias: NDArray[Any]

    def dense(self, width: int) -> NDArray[Any]:
        """The matrix."""
        found = np.zeros((len(self.bias), width), self.values.dtype)
        found[self.rows, self.columns] = self.values
        return found


class Layers(NamedTuple):
    """All that the graph of a filter holds."""

    maps: tuple[Map, ...]
    rules: Places
    """The units of the last ReLU layer that say whether a rule applies."""


def layers_of(graph: Graph, contents: Contents, form: Form) -> Layers:
    """The maps of a graph that is a filter in this form, and nothing else: node by node, the grid by cells,
    the patch of each, the maps with their ReLUs, the grid again; and how many units of rules are above 1/2.
    """
    nodes = iter(graph.nodes)

    def following(operation: str, *reads: str, **settings: Any) -> Node:
        node = next(nodes, None)
        require(node is not None, "the network ends before its filter does")
        assert node is not None
        fits = (node.operation, node.reads, dict(node.settings)) == (operation, reads, settings)
        node.refused(fits, f"is not the {operation} that a filter has there")
        return node

    state = graph.state.get("grid")
    require(state is not None and len(graph.state) == 1 and not graph.inputs, "the network is no filter")
    assert state is not None
    sizes = state.port.sizes
    named = len(sizes) == 3 and isinstance(sizes[1], str) and isinstance(sizes[2], str)
    require(named and sizes[1] != sizes[2], "the grid is not of any height and any width")
    require(sizes[0] == contents.width, "a cell has another number of channels")
    require(state.port.dtype == np.dtype(form.dtype).name, "the grid is of another type")
    require(not state.first.any() and not graph.columns, "the grid begins as something else, or has names")
    value = following("transpose", "grid", order=(1, 2, 0)).name
    deciding = value = following("patches", value, cells=tuple(range(9)), padding=form.padding).name
    maps, width = [], 9 * contents.width
    for rectified in form.rectified:
        node = following("affine", value)
        maps.append(_map(node, width))
        value, width = node.name, len(maps[-1].bias)
        if rectified:
            deciding = value = following("relu", value).name
    require(width == contents.width, "the filter gives another number of channels")
    taken = following("take", deciding)
    taken.refused(taken.arrays["index"].ndim == 1, "has units of rules in several rows")
    half = following("constant")
    half.refused(half.arrays["value"].ndim == 0 and half.arrays["value"] == 0.5, "is not 1/2")
    above = following("greater", taken.name, half.name)
    running = following("total", above.name, axes=1)
    after = following("transpose", value, order=(2, 0, 1))
    require(next(nodes, None) is None, "the network has more than a filter")
    require(graph.outputs == {"running": running.name}, "the network says something else")
    require(state.next == after.name, "the grid is handed on as something else")
    return Layers(tuple(maps), taken.arrays["index"].astype(np.int64))


def _map(node: Node, width: int) -> Map:
    rows, columns = (node.arrays[part].astype(np.int64) for part in ("rows", "columns"))
    node.refused(len(np.unique(rows * width + columns)) == len(rows), "has two entries at one place")
    return Map(rows, columns, node.arrays["values"], node.arrays["bias"])


def channel_filter(layers: Layers, contents: Contents, certificate: dict[str, Any]) -> Filter:
    """The practical filter, whose weights must be whole numbers."""
    first, second = layers.maps
    units, width = len(first.bias), contents.width
    if units * (10 * width + 1) > MOST_WEIGHTS:
        raise Unchecked(f"a filter of {units:,} units for {width:,} channels is too large to be checked")
    kernel, mix = first.dense(9 * width).reshape(units, width, 3, 3), second.dense(units)
    require(not second.bias.any(), "the last map has a bias")
    bias = first.bias.astype(np.float64)
    integers = all((weights == np.rint(weights)).all() for weights in (kernel, bias, mix))
    require(integers, "a weight of the channels is no whole number")
    sizes = np.abs(kernel).sum(axis=(1, 2, 3), dtype=np.float64)
    largest = float((sizes + np.abs(bias)).max(initial=0.0))
    claims = {"encoding": "channels", "integers": True, "largest_sum": largest}
    require(certificate == claims and exact(largest, 1), f"sums reach {largest:g}, or another claim fails")
    only_neighbours(np.asarray(kernel.any(axis=(0, 1))))
    views = {at: kernel[:, :, at[0] + 1, at[1] + 1] for at in CELLS}
    most = np.maximum(bias + sum(_most(own, contents) for own in views.values()), 0)
    passed = np.abs(kernel[:, TRACE]).sum(axis=(1, 2))
    heavy = np.maximum(most, passed)  # values go forward through the units, and derivatives back
    fits = all(exact(times(np.abs(row).astype(np.float64), heavy), 1) for row in mix)
    require(fits, "sums of units are too large for single precision")
    parts = [active(block) for block in _channels_seen(views, bias, contents)]
    kinds = np.array([contents.value(kind) for kind in contents.memorising])
    seen = {at: times(own.astype(np.float64), kinds.T) for at, own in views.items()}
    slope = {
        at: np.repeat(own[:, [TRACE]].astype(np.float64), len(kinds), axis=1) for at, own in views.items()
    }
    row, unit = np.nonzero(mix)
    out = Weights.of(unit, row, mix[row, unit].astype(np.float64), units)
    return Filter(
        Active(*(np.concatenate(own) for own in zip(*parts, strict=True))),
        out,
        tables_of(seen, slope, bias, out, contents),
        CLOSE,
        [f"all weights are whole numbers and no sum exceeds {largest:,g}, so float32 is exact"],
    )


def _most(view: NDArray[np.float32], contents: Contents) -> Numbers:
    """The largest number that each unit sees in a cell, whatever it holds."""
    symbols = view[:, 4 : 3 + contents.symbols].max(axis=1, initial=0)
    heads = view[:, 3 + contents.symbols :].max(axis=1, initial=0)
    cell = np.maximum(view[:, WORK], 0) + symbols + np.maximum(view[:, COMPUTING] + heads, 0)
    return np.maximum(cell, np.maximum(view[:, MEMORISING], 0)).astype(np.float64)


def _channels_seen(
    views: dict[Offset, NDArray[np.float32]], bias: Numbers, contents: Contents
) -> Iterator[Seen]:
    """What units see, some at a time: beside a blank cell that computes, what any other content adds."""
    step = max(1, BLOCK // (len(CELLS) * contents.count))
    for first in range(0, max(len(bias), 1), step):
        base, found = bias[first : first + step].copy(), []
        for number, view in enumerate(views.values()):
            own = view[first : first + step].astype(np.float64)
            work = np.stack([0 * own[:, WORK], own[:, WORK]], axis=1)
            symbols = np.concatenate([np.zeros((len(own), 1)), own[:, 4 : 3 + contents.symbols]], axis=1)
            heads = np.concatenate([np.zeros((len(own), 1)), own[:, 3 + contents.symbols :]], axis=1)
            more = work[:, :, None, None] + symbols[:, None, :, None] + heads[:, None, None, :]
            base += own[:, COMPUTING]
            unit, place = np.nonzero(more.reshape(len(own), -1))
            found.append(
                (unit, 0 * unit + number, contents.computing[place], more.reshape(len(own), -1)[unit, place])
            )
            if number:
                unit = np.flatnonzero(own[:, COMPUTING])
                found.append((unit, 0 * unit + number, 0 * unit + contents.outside, -own[unit, COMPUTING]))
        unit, at, content, amount = (np.concatenate(part) for part in zip(*found, strict=True))
        yield Seen(first, base, first + unit, at, content, amount)


def only_neighbours(used: NDArray[np.bool_]) -> None:
    require(not used[::2, ::2].any(), "the filter reads a diagonal neighbour")
