"""From clauses to the filter, in both encodings.

Ternary (Goel et al., B.1, B.4): one real number for each cell, five linear maps and two ReLUs,
`V5 (V4 relu(V3 V2 relu(V1 patch)))`. What is asked of a cell is whether its number lies in one of a few
intervals, and costs a few ReLUs: flat bumps on the line of the values that it can have.

Channels: one channel for each fact, small integer weights, an ordinary convolution. The same clauses: a
question about a cell is a linear form in its channels, 1 where it holds and at most 0 where it does not, so
one layer of ReLUs decides a clause: `relu(n) - relu(n - 1)` with `n = 4 * (sum - needs) + 2`, which is 2 or
more, or -2 or less. All numbers are small integers, exact in any precision that holds `largest_sum`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, Refused
from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.form import Activation, Affine, Dense, Matrix, Rows
from tapegrad.networks.network import Network
from tapegrad.networks.saving import same_network
from tapegrad.targets.rcnn.encoding import (
    COMPUTING,
    MEMORISING,
    PADDING,
    SYMBOLS,
    TRACE,
    WORK,
    Cells,
    Clause,
    Encoding,
    Predicate,
    cell_values,
    channel_names,
    digit_names,
    effect_digits,
)

MAPS = ("V1", "V2", "V3", "V4", "V5")
"""The paper's names of the maps."""
ACTIVATIONS: tuple[Activation, ...] = ("relu", "linear", "relu", "linear", "linear")
PASSING_SLOPE = -9 / 2
"""A passing unit adds `-1/9 * 2 relu(...)` to the value, so this slope makes the derivative 1."""


LARGEST_FILTER = 1 << 27
"""Most weights of a filter that is built."""


def form(predicate: Predicate, cells: Cells) -> tuple[dict[int, int], int]:
    """The linear form of a question: weights by channel, and a constant."""
    symbols = {SYMBOLS + a: 1 for a in range(cells.symbols - 1)}
    heads = {SYMBOLS + cells.symbols - 1 + q: 1 for q in range(cells.states)}
    symbol, head = SYMBOLS + predicate.symbol - 1, SYMBOLS + cells.symbols - 1 + predicate.state
    not_open = {WORK: -1, COMPUTING: -1, MEMORISING: -1}
    match predicate.kind:
        case "work":
            return {WORK: 1}, 0
        case "memory":
            return {MEMORISING: 1}, 0
        case "compute":
            return {COMPUTING: 1}, 0
        case "symbol":
            return {symbol: 1} | dict.fromkeys(heads, -1), 0
        case "head" if predicate.symbol > 0:
            return {head: 1, symbol: 1}, -1
        case "head":
            return {head: 1} | dict.fromkeys(symbols, -1), 0
        case "empty":
            return not_open | dict.fromkeys(symbols, -1), 1
        case "open":
            return not_open, 1
        case "data":
            return symbols | {WORK: -1, COMPUTING: -1}, 0
        case _:
            return symbols | {WORK: 1, COMPUTING: -2, MEMORISING: -1}, 0


@dataclass(frozen=True, eq=False)
class Filter:
    """Dense layers, which are applied to the 3x3 patch of every cell, again and again. Inputs are numbered
    channel by channel, and for each by the cells of the patch that are read."""

    layers: tuple[Dense, ...]
    channels: int
    """Numbers of a cell."""
    padding: float
    """The numbers of the cells outside."""
    rule_units: Int[np.ndarray, " rules"]
    """The units of the last ReLU layer of which one is active where the head stands on a rule."""
    cells: tuple[int, ...] = tuple(range(9))
    """The cells of the patch that are read, counted row by row."""

    @classmethod
    def of(cls, network: Network) -> "Filter":
        """The filter that a network is; one that is anything else is refused."""
        layers = list[Dense]()
        nodes = {node.operation: node for node in network.nodes}
        if not nodes.keys() >= {"patches", "affine", "relu", "take"} or network.state.keys() != {"grid"}:
            raise BrokenNet("the network is no filter on a grid")
        channels, cells = network.state["grid"].port.shape[0], nodes["patches"].list("cells")
        if not isinstance(channels, int):
            raise BrokenNet("the network does not say how many numbers a cell has")
        width = channels * len(cells)
        for node in network.nodes:
            if node.operation == "affine":
                layers.append(Dense(network.map(node, width), "linear"))
                width = len(layers[-1].map)
            elif node.operation == "relu" and layers:
                layers[-1] = Dense(layers[-1].map, "relu")
        rules, padding = network.array(nodes["take"], "index"), nodes["patches"].number("padding")
        made = cls(tuple(layers), channels, padding, rules, cells)
        if width != channels or not same_network(made.network(), network):
            raise BrokenNet("the network does something else than a filter and its rules")
        return made

    def network(self) -> Network:
        """The grid (channels, rows, columns) after one application, and in how many ways a rule applies at
        each cell: 1 where a head stands on a rule, nowhere if the machine has halted."""
        graph = Builder("rcnn", self.dtype)
        first = np.zeros((self.channels, 1, 1), self.dtype)
        grid = graph.state("grid", first, self.channels, "rows", "columns")
        cells = graph.node("transpose", grid, name="cells", order=(1, 2, 0))
        after, deciding = self.applied(graph, cells)
        rules = graph.take(deciding, self.rule_units, "rules")
        half = graph.constant(np.array(0.5, self.dtype), "half")
        applies = graph.node("greater", rules, half, name="applies")
        graph.output("running", graph.node("total", applies, name="running", axes=1))
        graph.hand_on("grid", graph.node("transpose", after, name="next", order=(2, 0, 1)))
        return graph.network()

    def applied(self, graph: Builder, cells: Value) -> tuple[Value, Value]:
        """A grid (rows, columns, channels) after one application, and the units of the last ReLU layer."""
        padding = float(self.padding)
        x = graph.node("patches", cells, name="patches", cells=self.cells, padding=padding)
        deciding = x
        for number, layer in enumerate(self.layers):
            x = graph.affine(x, layer.map, f"filter.{number}")
            if layer.activation == "relu":
                x = deciding = graph.node("relu", x, name=f"filter.{number}.relu")
        return x, deciding

    @property
    def maps(self) -> tuple[Affine | Matrix, ...]:
        """The affine maps, in order."""
        return tuple(layer.map for layer in self.layers)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that it runs in."""
        return np.dtype(self.maps[0].bias.dtype)

    @property
    def deciding(self) -> int:
        """Layers up to the last ReLU."""
        activations = [layer.activation for layer in self.layers]
        return len(activations) - activations[::-1].index("relu")


def build_filter(encoding: Encoding, clauses: Sequence[Clause]) -> tuple[Filter, dict[str, list[str]]]:
    """The filter of these clauses, with the names of its units."""
    build = ternary_filter if encoding.name == "ternary" else channel_filter
    return build(encoding.cells, clauses)


def _of_maps(maps: Sequence[Affine], rule_units: Int[np.ndarray, " rules"]) -> Filter:
    layers = tuple(Dense(own, activation) for own, activation in zip(maps, ACTIVATIONS, strict=True))
    return Filter(layers, 1, PADDING, rule_units)


@dataclass(frozen=True)
class Bump:
    """`constant + sum(slopes[i] * relu(v - kinks[i]))`."""

    kinks: tuple[float, ...]
    slopes: tuple[float, ...]
    constant: float = 0.0

    def __call__(self, v: float) -> float:
        pairs = zip(self.kinks, self.slopes, strict=True)
        return self.constant + sum(slope * max(v - kink, 0.0) for kink, slope in pairs)


def indicator(ordered: NDArray[np.float64], places: NDArray[np.int64]) -> list[Bump]:
    """Flat bumps, one for each run of neighbouring values, that add up to 1 at the values in these places of
    the (ordered) list and to 0 at the others.

    Each edge lies in the gap between a value inside and its neighbour outside: a third of the gap flat at
    0, a third rising, a third flat at 1. So errors up to a third of the gap change nothing, and the
    derivative is 0 at every value.
    """
    runs: list[list[int]] = []
    for place in places.tolist():
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [_flat(ordered, run[0], run[-1]) for run in runs]


def _flat(ordered: NDArray[np.float64], first: int, last: int) -> Bump:
    kinks: list[float] = []
    slopes: list[float] = []
    constant = 1.0
    if first > 0:
        constant = 0.0
        kinks, slopes = _ramp(ordered[first - 1], ordered[first], +1)
    if last < len(ordered) - 1:
        falling = _ramp(ordered[last], ordered[last + 1], -1)
        kinks, slopes = kinks + falling[0], slopes + falling[1]
    return Bump(tuple(kinks), tuple(slopes), constant)


def _ramp(low: float, high: float, sign: int) -> tuple[list[float], list[float]]:
    third = (high - low) / 3
    return [float(low + third), float(high - third)], [float(sign / third), float(-sign / third)]


def passing(ordered: NDArray[np.float64], place: int, slope: float) -> Bump:
    """The bump that is 1 at the value in this place, with this derivative there, and flat 0 elsewhere."""
    centre = float(ordered[place])
    width = float(min(np.diff(ordered[max(place - 1, 0) : place + 2]))) / 3
    rise, fall = (1 - slope * width) / width, -(1 + slope * width) / width
    kinks = (centre - 2 * width, centre - width, centre + width, centre + 2 * width)
    return Bump(kinks, (rise, slope - rise, fall - slope, -fall))


MOST_TERMS = 32
"""Kinks that the answer to a question has, at most: four for each of eight runs of values."""
ANSWER_MARGIN = 1 / 20
"""A clause adds up at most five answers, and is decided with 1/4 to spare."""


class Questions:
    """The bumps that answer questions. They depend on the contents of a cell alone, not on the machine, and
    are kept: machines with as many symbols and states share them."""

    def __init__(self, cells: Cells) -> None:
        values = cell_values(cells)
        possible = np.flatnonzero(cells.possible)
        order = possible[np.argsort(values[possible])]
        self.cells = cells
        self.ordered: NDArray[np.float64] = values[order]
        self.place = np.full(cells.count, -1)
        self.place[order] = np.arange(len(order))
        self._known: dict[tuple[Predicate, float | None], list[Bump]] = {}
        self._require_precision()

    def bumps(self, predicate: Predicate, slope: float | None) -> list[Bump]:
        """What adds up to the answer; with a slope, the one value of a yes is passed on with it."""
        key = (predicate, slope)
        if key not in self._known:
            places = np.sort(self.place[predicate.contents(self.cells)])
            places = places[places >= 0]
            flat = slope is None
            self._known[key] = (
                indicator(self.ordered, places) if flat else [passing(self.ordered, int(places[0]), slope)]
            )
        return self._known[key]

    def _require_precision(self) -> None:
        """The steepest ramp rises by 1 on a third of the least gap; each term of an answer is rounded, and is
        no larger than slope times range."""
        gap, span = float(np.diff(self.ordered).min()), float(np.ptp(self.ordered))
        rounding = MOST_TERMS * float(np.finfo(np.float64).eps) * span * 3 / gap
        if not rounding < ANSWER_MARGIN:
            raise Refused(
                f"{self.cells.symbols:,} symbols and {self.cells.states:,} states need numbers that differ "
                f"by {gap:.3g}, too little for double precision",
                advice="Choose form=practical, or use fewer states.",
            )


@lru_cache(maxsize=8)
def questions_about(cells: Cells) -> Questions:
    """The questions about a cell with these contents."""
    return Questions(cells)


def channel_filter(cells: Cells, clauses: Sequence[Clause]) -> tuple[Filter, dict[str, list[str]]]:
    """The filter, and the names of its units and channels."""
    channels = channel_names(cells)
    units = 2 * len(clauses) + sum(clause.passes for clause in clauses)
    if units * (10 * len(channels) + 1) > LARGEST_FILTER:
        raise Refused(
            f"the filter would have {units:,} units for {len(channels):,} channels, and as a whole more than "
            f"{LARGEST_FILTER:,} weights",
            advice="Use fewer states, or choose form=paper, which keeps only weights that are not 0.",
        )
    first, second, rule_units = Rows(), Rows(len(channels)), list[int]()
    for clause in clauses:
        weights, constant = linear_form(clause, cells)
        effect, spare = effect_channels(clause, cells), constant - clause.needs
        unit = len(first.bias)
        for offset, sign in ((2, 1), (1, -1)):
            entries = [(place, 4.0 * weight) for place, weight in weights.items()]
            added = first.add(entries, 4 * spare + offset, clause.reason)
            for channel in effect:
                second.entries[channel][added] = sign
        if clause.rule:
            rule_units.append(unit)
        if clause.passes:
            entries = [*((place, 2.0 * weight) for place, weight in weights.items()), (CENTRE, 1.0)]
            added = first.add(entries, 2 * spare + 1, f"{clause.reason}: gradient")
            second.entries[TRACE] |= {added: 1, unit: -1, unit + 1: 1}
    maps = first.affine(9 * len(channels), np.float32), second.affine(units, np.float32)
    layers = Dense(maps[0], "relu"), Dense(maps[1], "linear")
    found = Filter(layers, len(channels), 0.0, np.array(rule_units, dtype=np.int64))
    return found, {"units": first.reasons, "channels": channels}


CENTRE = 9 * TRACE + 4
"""The place of a patch that holds the trace of the cell itself."""


def linear_form(clause: Clause, cells: Cells) -> tuple[dict[int, int], int]:
    """What a clause adds up: weights by place of the patch, in order, and a constant."""
    weights, constant = dict[int, int](), 0
    signed = [(literal, 1) for literal in clause.when] + [(literal, -1) for literal in clause.unless]
    for literal, sign in signed:
        per_channel, extra = form(literal.predicate, cells)
        constant += sign * extra
        cell = 3 * (literal.at[0] + 1) + literal.at[1] + 1
        for channel, weight in per_channel.items():
            place = 9 * channel + cell
            weights[place] = weights.get(place, 0) + sign * weight
    return {place: weights[place] for place in sorted(weights) if weights[place]}, constant


def effect_channels(clause: Clause, cells: Cells) -> list[int]:
    """The channels that a clause sets."""
    effect = clause.effect
    found = [
        channel
        for channel, set_ in ((WORK, effect.work), (COMPUTING, effect.compute), (MEMORISING, effect.memory))
        if set_
    ]
    if effect.symbol:
        found.append(SYMBOLS + effect.symbol - 1)
    if effect.head is not None:
        found.append(SYMBOLS + cells.symbols - 1 + effect.head)
    return found


def ternary_filter(cells: Cells, clauses: Sequence[Clause]) -> tuple[Filter, dict[str, list[str]]]:
    """The filter, and the names of its units, map by map."""
    questions = questions_about(cells)
    kinks, bumps, units = _Kinks(), Rows(), Rows()
    digits: list[tuple[int, ...]] = []
    weights: list[float] = []
    rule_units: list[int] = []
    known: dict[tuple[Any, ...], int] = {}

    def question(at: tuple[int, int], predicate: Predicate, slope: float | None) -> int:
        key = (at, predicate, slope)
        if key not in known:
            found = questions.bumps(predicate, slope)
            known[key] = _add_bumps(found, at, f"{predicate} at {at}", kinks, bumps)
        return known[key]

    for clause in clauses:
        row = []
        for i, literal in enumerate(clause.when):
            slope = PASSING_SLOPE if clause.passes and i == 0 else None
            row.append((question(literal.at, literal.predicate, slope), 1.0))
        row += [(question(literal.at, literal.predicate, None), -1.0) for literal in clause.unless]
        effect = effect_digits(clause.effect, cells)
        thresholds = [(clause.needs - 1 / 2, 2.0)] if clause.passes else _clip(clause.needs)
        for threshold, weight in thresholds:
            unit = units.add(row, -threshold, clause.reason)
            if clause.rule and weight > 0:
                rule_units.append(unit)
            digits.append(effect)
            weights.append(weight)
    names = digit_names(cells)
    place = 3.0 ** -np.arange(len(names))
    maps = [
        kinks.affine(),
        bumps.affine(len(kinks.kinks)),
        units.affine(len(bumps.bias)),
        Affine.of((np.array(digits) * np.array(weights)[:, None]).T, np.zeros(len(names))),
        Affine.of(place[None], np.zeros(1)),
    ]
    reasons = (kinks.reasons, bumps.reasons, units.reasons, names, ["cell value"])
    return _of_maps(maps, np.array(rule_units, dtype=np.int64)), dict(zip(MAPS, reasons, strict=True))


def _clip(needs: int) -> list[tuple[float, float]]:
    """`2 relu(sum - (needs - 3/4)) - 2 relu(sum - (needs - 1/4))`: 0 or 1, flat with margin 1/4 at every
    integer sum, so neither rounding nor gradient gets through."""
    return [(needs - 3 / 4, 2.0), (needs - 1 / 4, -2.0)]


class _Kinks:
    """The first map in the making: each unit reads one cell, with weight 1."""

    def __init__(self) -> None:
        self.cells: list[int] = []
        self.kinks: list[float] = []
        self.reasons: list[str] = []

    def affine(self) -> Affine:
        """The map on the nine cells of a patch."""
        count = len(self.kinks)
        return Affine(
            np.arange(count), np.array(self.cells, np.int64), np.ones(count), -np.array(self.kinks), 9
        )


def _add_bumps(found: list[Bump], at: tuple[int, int], name: str, kinks: _Kinks, bumps: Rows) -> int:
    cell = 3 * (at[0] + 1) + at[1] + 1
    first = len(kinks.kinks)
    for bump in found:
        kinks.kinks += bump.kinks
        kinks.cells += [cell] * len(bump.kinks)
        kinks.reasons += [f"{name}: kink at {kink:.6g}" for kink in bump.kinks]
    slopes = [slope for bump in found for slope in bump.slopes]
    return bumps.add(enumerate(slopes, first), sum(bump.constant for bump in found), name)
