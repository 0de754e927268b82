"""Checks a transformer of gates and heads from its arrays alone: every unit, every score, every bit.

What is proved: each layer sets coordinates that were 0 before, each to a function of bits that are known,
with its truth table; heads compare bits and copy bits of the place that fits, the latest of several; scores
are integers that single precision holds; what softmax adds is rounded away. So a step of the network is, bit
for bit, this circuit with these look-ups, for as many steps as are claimed. That it is a step of the saved
machine is proved for Turing machines in `tapes`, for programs in `heads`.
"""

import math
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tapegrad_check.arithmetic import SINGLE, evaluated, finite, step_of
from tapegrad_check.fields import whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.graph import Graph
from tapegrad_check.maps import Map, Row
from tapegrad_check.sources import Model
from tapegrad_check.targets import clock, heads, tapes
from tapegrad_check.targets.steps import QUARTERS, Steps

EXACT = 1 << SINGLE.digits
"""Integers up to this are exact in single precision; no step has a larger number, and no score is larger."""
CUTS = [([1.0], -0.25), ([1.0], -0.75)]
MOST_READ = 4
"""Bits that one coordinate may be set from."""


def check(
    config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    require(config.keys() == {"form", "machine", "banks", "steps"}, "the net has other entries")
    require(not arrays, "the net has arrays beside its network")
    steps, own = whole(config["steps"], "the number of steps", 1, EXACT), Steps(graph)
    names = [_name(text) for text in own.names]
    require(not own.start.any(), "the first vector is something else than zeros")
    time = [place for place, (group, _) in enumerate(names) if group == "step"]
    require(own.time == time, "the digits of the step's number stand elsewhere")
    require(steps <= 1 << len(time), "the step's number has too few bits")
    *layers, end = own.layers
    require(end.correction == QUARTERS and not end.heads, "the last layer hands on something else than bits")
    last = end.units
    carried = sorted({place for place in range(len(names)) if last.row(place)[0]})
    net = Walk(set(carried) | set(time), time, _stray(config, own.temperature, steps))
    require(not set(carried) & set(time), "the number of a step is handed on")
    for layer in layers:
        require(len(layer.heads) <= 1, "a layer has two heads")
        for head in layer.heads:
            require(not any(head.null_value), "the null place has a value")
            net.head(head.query, head.key, head.value, head.null_key, head.own_steps)
        require(layer.sums is not None, "a layer in between makes a new vector")
        assert layer.sums is not None
        net.layer(layer.units, layer.sums, layer.to)
    net.hand_on(last, carried)
    require(len(own.halting) == 1 and len(own.halting[0]) == 1, "the end is not one sum")
    columns, values, bias = own.halting[0].row(0)
    require(
        set(columns) <= set(carried) and set(values) == {1.0} and bias == 0, "the end is not a sum of bits"
    )
    heads_found = sum(len(layer.heads) for layer in layers)
    statements = [
        f"{len(net.tables):,} coordinates are set once a step, each as a gate of {MOST_READ} bits at most",
        f"{heads_found} heads compare bits; a place that fits scores more than the null key, and that more "
        "than any other, by 1 at least; of several steps the latest wins",
        f"scores are integers of at most {net.largest:,}, which single precision holds",
        f"what is copied is off by at most {net.stray:.3g}, and rounded to the bit itself",
        f"a step hands on {len(carried)} bits and nothing else: nothing accumulates in {steps:,} steps",
    ]
    groups: dict[str, list[int]] = {}
    for place, (group, number_) in enumerate(names):
        require(number_ == len(groups.setdefault(group, [])), "coordinates are not in order")
        groups[group].append(place)
    require(isinstance(config["machine"], dict), "the net has no machine")
    kind = {tapes.KIND: tapes, clock.KIND: clock}.get(config["machine"].get("kind"), heads)
    proved = kind.check(config, net, groups, columns, steps, source)
    _claims(claims, config, own.temperature, len(own.layers), net)
    return Checked([*statements, *proved.statements], proved.verdict)


Pair = tuple[tuple[int | None, int], tuple[int | None, int]]
"""What is compared, here and there: a coordinate, or None and a constant."""


class Look(NamedTuple):
    """A head that copies: what it compares, which coordinate takes which of the place found, and those that
    say that one was."""

    own_steps: bool
    compared: tuple[Pair, ...]
    copies: dict[int, int]
    found: list[int]


class Walk:
    """What is known of each coordinate on the way through the layers."""

    def __init__(self, bits: set[int], time: list[int], stray: float) -> None:
        self.bits, self.time, self.stray = set(bits), time, stray
        self.set = set(bits)
        """Coordinates that are not 0 for sure."""
        self.copied: set[int] = set()
        """Near bits, off by what softmax adds."""
        self.digits: dict[int, int] = {}
        """Which bit of the step's number, of the latest step that fits, a coordinate holds."""
        self.asked: dict[int, tuple[Any, ...]] = {}
        """What that step was asked to fit. The latest that fits is the same for all who ask the same."""
        self.largest = 0
        self.tables: dict[int, tuple[list[int], int]] = {}
        """What every gate reads, and its table: bit i is its value where that is the bits of i. A coordinate
        that holds what another one copies, rounded, is a gate of one input."""
        self.looks: list[Look] = []
        self.next: dict[int, int] = {}
        """From what is handed on to where it comes from."""

    def head(self, query: Map, key: Map, value: Map, null: list[float], own_steps: bool) -> None:
        """Rows of signs, then the digit, then the null key."""
        compared = len(key) - 2
        require(len(query) == len(key) and compared >= 1, "a head compares nothing")
        columns, weights, bias = key.row(compared)
        require(
            bias == 0 and weights == [float(1 << bit) for bit in range(len(columns))], "a digit is no number"
        )
        digit = [self.time.index(column) for column in columns]
        require(all(b == a + 1 for a, b in pairwise(digit)) and (own_steps or not digit), "a digit is torn")
        scale = 1 << len(digit)
        require(query.row(compared) == ([], [], 1.0) == query.row(compared + 1), "the digit is asked about")
        require(key.row(compared + 1) == ([], [], 0.0), "a key reaches the row of the null key")
        require(
            null[:-1] == [0.0] * (compared + 1) and null[-1] == scale * (compared - 1), "the null key is off"
        )
        pairs = []
        for row in range(compared):
            asks, answers = self._sign(query.row(row), 1), self._sign(key.row(row), scale)
            require(asks[0] is None or asks[0] in self.bits, "a head asks with what is no bit")
            require(not own_steps or answers[0] is None or answers[0] in self.bits, "a key is no bit")
            pairs.append((asks, answers))
        self.largest = max(self.largest, scale * (compared + 1))
        require(self.largest <= EXACT, "scores are too large for single precision")
        self._latest(pairs, digit, value, own_steps)

    def _latest(self, pairs: list[Pair], digit: list[int], value: Map, own_steps: bool) -> None:
        """Digits are found from the highest down, and the last head of a search copies."""
        known = [(asks[0], answers[0]) for asks, answers in pairs if asks[0] in self.digits]
        plain = tuple(pair for pair in pairs if pair[0][0] not in self.digits)
        rest = len(self.time)
        if own_steps:
            for asks, answers in known:
                require(self.asked[asks] == plain, "digits of one search are used in another")
                require(self.time[self.digits[asks]] == answers, "a digit is compared with another")
            rest -= len(known)
            highest = {self.digits[asks] for asks, _ in known}
            require(
                highest == set(range(rest, len(self.time))), "a search goes on without its highest digits"
            )
            require(digit == list(range(rest - len(digit), rest)), "a search leaves out a bit")
        targets = np.flatnonzero(np.diff(value.starts) + (np.array(value.bias) != 0)).tolist()
        require(not self.set & set(targets), "a head adds to what is not 0")
        self.set |= set(targets)
        self.copied |= set(targets)
        searching = own_steps and len(digit) < rest
        for row in targets:
            columns, weights, bias = value.row(row)
            one = (not columns and bias == 1) or (len(columns) == 1 and weights == [1.0] and bias == 0)
            require(one, "a head copies something else than a bit")
            require(not own_steps or not columns or columns[0] in self.bits, "a value is no bit")
            if searching:
                require(columns and columns[0] in self.time, "a search copies something else than its digit")
                self.digits[row], self.asked[row] = self.time.index(columns[0]), plain
        if searching:
            require(sorted(self.digits[row] for row in targets) == digit, "a search copies another digit")
        else:
            places = {row: value.row(row)[0][0] for row in targets if value.row(row)[0]}
            found = [row for row in targets if not value.row(row)[0]]
            self.looks.append(Look(own_steps, plain, places, found))

    @staticmethod
    def _sign(row: Row, scale: int) -> tuple[int | None, int]:
        columns, weights, bias = row
        if not columns:
            require(abs(bias) == scale, "a constant is no sign")
            return None, int(bias > 0)
        require(len(columns) == 1 and weights == [2.0 * scale] and bias == -scale, "a bit is no sign")
        return columns[0], 0

    def layer(self, units: Map, sums: Map, to: list[int]) -> None:
        """Every coordinate that the layer adds to, by its truth table, or as a bit that is rounded."""
        require(len(set(to)) == len(to) and not self.set & set(to), "a layer adds to what is not 0")
        for row, place in enumerate(to):
            hidden, weights, bias = sums.row(row)
            read = [units.row(unit) for unit in hidden]
            inputs = sorted({column for columns, _, _ in read for column in columns})
            if set(inputs) & self.copied:
                shape = [(values, own) for _, values, own in read]
                require(len(inputs) == 1 and shape == CUTS and weights == [2.0, -2.0] and bias == 0,
                        "what a head copies is used before it is rounded")  # fmt: skip
                self.tables[place] = inputs, 0b10
                if inputs[0] in self.digits:
                    self.digits[place], self.asked[place] = self.digits[inputs[0]], self.asked[inputs[0]]
            else:
                require(set(inputs) <= self.bits and len(inputs) <= MOST_READ, "a gate reads what is no bit")
                slots = {column: slot for slot, column in enumerate(inputs)}
                own = tuple(
                    (tuple(slots[column] for column in columns), tuple(w), b) for columns, w, b in read
                )
                self.tables[place] = inputs, _table(len(inputs), own, (tuple(weights), bias))
        self.set |= set(to)
        self.bits |= set(to)

    def hand_on(self, last: Map, carried: list[int]) -> None:
        """The last layer copies bits, and nothing else is left."""
        for place in range(len(last)):
            columns, weights, bias = last.row(place)
            require(bias == 0, "the last layer adds a constant")
            copies = len(columns) == 1 and weights == [1.0] and columns[0] in self.bits
            require(copies or not columns, "what is handed on is no bit")
            if columns:
                self.next[place] = columns[0]
        digits = set(self.digits) & {last.row(place)[0][0] for place in carried}
        require(not digits, "digits of a search are handed on")


@cache
def _table(inputs: int, units: tuple[Any, ...], out: tuple[tuple[float, ...], float]) -> int:
    """What a sum of units is, for all bits that they read: most gates of a net are alike, so few are worked
    out. Units have slots of what they read, weights and biases."""
    weights, bias = np.zeros((len(units), inputs)), np.array([own for *_, own in units], np.float64)
    for row, (slots, values, _) in zip(weights, units, strict=True):
        row[list(slots)] = values
    bits = np.arange(1 << inputs)[:, None] >> np.arange(inputs) & 1
    z, off = evaluated(weights, bias, bits.astype(np.float64))
    active = np.maximum(z, 0.0)
    found, more = evaluated(np.array([out[0]]), np.array([out[1]]), active, step_of(active))
    require(not (off.any() or more.any()), "a gate is rounded in single precision")
    require(np.isin(found, (0, 1)).all(), "a gate gives something else than a bit")
    return sum(int(bit) << row for row, bit in enumerate(found[:, 0]))


def _name(text: str) -> tuple[str, int]:
    group, mark, number = text.rpartition("[")
    plain = mark and number.endswith("]") and number[:-1].isascii() and number[:-1].isdecimal()
    require(plain and text == f"{group}[{int(number[:-1])}]", f"the coordinate {text!r} is no bit of a group")
    return group, int(number[:-1])


def _stray(config: dict[str, Any], temperature: float | None, steps: int) -> float:
    """How far what a head copies can be from a bit."""
    if temperature is None:
        return 0.0
    require(temperature > 0 and math.frexp(temperature)[0] == 0.5, "the temperature is no power of two")
    require(finite(temperature * EXACT), "softmax overflows at this temperature")
    stray = 4 * _keys(config, steps) * math.exp(-temperature) + 2.0**-23
    require(stray <= 1 / 8, "softmax strays further than the rounding allows")
    return stray


def _keys(config: dict[str, Any], steps: int) -> int:
    words = [whole(bank["words"], "the words of a bank", 0, 1 << 40) for bank in config["banks"]]
    return 1 + max(steps, sum(words))


def _claims(
    claims: dict[str, Any], config: dict[str, Any], temperature: float | None, layers: int, net: Walk
) -> None:
    """Every claim of the certificate, worked out again."""
    found: dict[str, Any] = {
        "dtype": "float32",
        "steps": config["steps"],
        "layers": layers,
        "largest_score": float(net.largest),
        "score_gap": 1.0,
        "attention": "hardmax" if temperature is None else "softmax",
    }
    if temperature is not None:
        found |= {"temperature": temperature, "softmax_error": net.stray}
    require(claims == found, "the certificate claims something else than what holds")
