"""What a filter's last ReLU layer sees, as tables over single cells, and sums of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, Refused

Arrays = dict[str, NDArray[Any]]
Offset = tuple[int, int]
HERE: Offset = (0, 0)
NEIGHBOURS: tuple[Offset, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))
LEAST_MARGIN = 0.2
"""How far a sum must stay from the threshold of a unit."""


MOST_ENTRIES = 1 << 28
"""Numbers in all tables together, of 8 bytes each."""


def require_room(units: int, contents: int) -> None:
    """Refuses a filter whose tables would not fit: values and derivatives for five cells."""
    if 10 * units * contents > MOST_ENTRIES:
        raise Refused(
            f"a filter of {units:,} units for {contents:,} contents of a cell is too large to be checked",
            advice="Use fewer states.",
        )


class Contents:
    """The contents of a cell, numbered as in the file, and the numbers that stand for them."""

    outside, memory = 0, 1

    def __init__(self, symbols: int, states: int, encoding: str) -> None:
        self.symbols, self.states, self.modes = symbols, states, 2 + states
        self.count = 2 + 2 * symbols * self.modes
        self.ternary = encoding == "ternary"
        self.further = _digits(symbols - 3)
        self.width = 1 if self.ternary else 4 + symbols - 1 + states
        self.values = np.array([self.value(number) for number in range(self.count)])
        self.computing = [n for n in range(2, self.count) if (n - 2) % self.modes >= 1]
        unused = {self.number(1, a, 0) for a in range(1, symbols)}
        unused |= {self.number(0, a, 0) for a in range(3, symbols)}
        self.possible = np.array([n for n in range(self.count) if n not in unused])

    def number(self, work: int, symbol: int, mode: int, state: int = -1) -> int:
        return 2 + (work * self.symbols + symbol) * self.modes + (2 + state if state >= 0 else mode)

    def facts(self, number: int) -> tuple[int, int, int]:
        """Work cell, symbol, state (-1 without head)."""
        rest, mode = divmod(number - 2, self.modes)
        return (*divmod(rest, self.symbols), mode - 2 if mode >= 2 else -1)

    def describe(self, number: int) -> str:
        work, symbol, state = self.facts(number)
        return f"(work {work}, symbol {symbol}, {'no head' if state < 0 else f'state {state}'})"

    def value(self, number: int) -> NDArray[np.float64]:
        """The numbers of a content."""
        found = np.zeros(self.width)
        if number < 2:
            found[0 if self.ternary else 2] = (1 / 6, -1 / 9)[number] if self.ternary else number
            return found
        (work, symbol, state), mode = self.facts(number), (number - 2) % self.modes
        head = self.head(state) if state >= 0 else 0
        if self.ternary:
            first = (0, 1, -1)[symbol] / 3 if symbol < 3 else _word(symbol - 3, self.further, 4)
            return np.array([work + first + (mode >= 1) / 9]) + head
        found[0], found[1] = work, mode >= 1
        if symbol:
            found[3 + symbol] = 1
        return found + head

    def head(self, state: int) -> NDArray[np.float64]:
        """What the head in this state adds."""
        found = np.zeros(self.width)
        if not self.ternary:
            found[3 + self.symbols + state] = 1
            return found
        found[0] = 1 / 27
        if state:
            found[0] += _word(state - 1, _digits(self.states - 1), 4 + self.further)
        return found


def _digits(words: int) -> int:
    """How long words over -1 and +1 must be for this many."""
    return max(1, (words - 1).bit_length()) if words > 0 else 0


def _word(number: int, digits: int, first: int) -> float:
    """A number's bits as digits -1 and +1 of a ternary fraction, from place `first` on."""
    return sum((1 if number >> i & 1 else -1) / 3 ** (first + i) for i in range(digits))


@dataclass(frozen=True)
class Tables:
    """`out @ relu(bias + sum over cells of seen[cell][:, content])`, and the derivatives of `seen`."""

    seen: dict[Offset, NDArray[np.float64]]
    slope: dict[Offset, NDArray[np.float64]]
    bias: NDArray[np.float64]
    out: NDArray[np.float64]
    gradient_out: NDArray[np.float64]

    def activations(self, patch: dict[Offset, int]) -> NDArray[np.float64]:
        return np.maximum(self.bias + sum(self.seen[at][:, n] for at, n in patch.items()), 0)

    def output(self, patch: dict[Offset, int]) -> NDArray[np.float64]:
        return self.out @ self.activations(patch)

    def derivative(self, patch: dict[Offset, int], at: Offset) -> NDArray[np.float64]:
        """Of the value (or the trace) of the centre by that of the cell at this offset."""
        active = self.activations(patch) > 0
        return self.gradient_out @ (active * self.slope[at][:, patch[at]])

    def additive(self, computing: list[int]) -> tuple[NDArray[np.float64], dict[Offset, NDArray[np.float64]]]:
        """For patches whose centre computes and whose other cells compute or lie outside, with one head at
        most: constant and functions of single cells that add up to the filter.

        A unit that is off for every content stays off, one that only one cell can change is a function of
        that cell; the others must all be on, and their contributions cancel.
        """
        around = [*computing, 0]
        domain = {at: computing if at == HERE else around for at in self.seen}
        low = {at: self.seen[at][:, domain[at]].min(axis=1) for at in self.seen}
        high = {at: self.seen[at][:, domain[at]].max(axis=1) for at in self.seen}
        least, most = self.bias + sum(low.values()), self.bias + sum(high.values())
        off = most < -LEAST_MARGIN
        varies = np.stack([(high[at] - low[at] > LEAST_MARGIN) & ~off for at in self.seen])
        single, joint = varies.sum(axis=0) <= 1, varies.sum(axis=0) > 1
        parts = {}
        for i, at in enumerate(self.seen):
            others = self.bias + sum(low[other] for other in self.seen if other != at)
            mine = np.where(single & varies[i], 1.0, 0.0)
            active = np.maximum(others[:, None] + self.seen[at], 0) * mine[:, None]
            parts[at] = (self.out @ active).T
        fixed = np.where(varies.any(axis=0), 0.0, np.maximum(least, 0))
        base = self.out @ fixed
        if joint.any():
            ends = [self.out[:, joint] @ np.maximum(bound[joint], 0) for bound in (least, most)]
            if (least[joint] < LEAST_MARGIN).any() or not np.allclose(*ends, atol=1e-9):
                raise BrokenNet("a unit depends on several cells at once while all of them compute")
            base = base + ends[0]
        return base, parts


def channel_tables(
    arrays: Arrays, contents: Contents, certificate: dict[str, Any]
) -> tuple[Tables, list[str]]:
    """Tables of the practical filter, whose weights must be whole numbers."""
    kernel, bias, mix = (arrays[name].astype(np.float64) for name in ("kernel", "bias", "mix"))
    if any((array != np.rint(array)).any() for array in (kernel, bias, mix)):
        raise BrokenNet("a weight of the channels is no whole number")
    largest = int((np.abs(kernel).sum(axis=(1, 2, 3)) + np.abs(bias)).max())
    if largest != certificate["largest_sum"] or largest >= 1 << 24:
        raise BrokenNet(f"sums reach {largest}, not {certificate['largest_sum']}")
    _only_neighbours(np.asarray(kernel.any(axis=(0, 1))))
    trace = 3
    seen, slope = {}, {}
    for at in (HERE, *NEIGHBOURS):
        weights = kernel[:, :, at[0] + 1, at[1] + 1]
        seen[at] = weights @ contents.values.T
        slope[at] = np.repeat(weights[:, [trace]], contents.count, axis=1)
    tables = Tables(seen, slope, bias, mix, mix[trace])
    return tables, [f"all weights are whole numbers and no sum exceeds {largest:,}, so float32 is exact"]


def ternary_tables(
    arrays: Arrays, contents: Contents, certificate: dict[str, Any]
) -> tuple[Tables, list[str]]:
    """Tables of the paper's filter: answers to questions about one cell first, which must be 0 or 1 and flat
    (or passing), then the sums of them."""
    values = contents.values[:, 0]
    kinks = -arrays["V1.bias"]
    cell = np.zeros(len(kinks), dtype=np.int64)
    cell[arrays["V1.rows"]] = arrays["V1.columns"]
    if len(arrays["V1.rows"]) != len(kinks) or (arrays["V1.values"] != 1).any():
        raise BrokenNet("a unit of the first layer does not read one cell with weight 1")
    _only_neighbours(np.isin(np.arange(9), cell).reshape(3, 3))
    ordered = np.sort(values[contents.possible])
    above = np.clip(np.searchsorted(ordered, kinks), 1, len(ordered) - 1)
    margin = float(np.minimum(np.abs(kinks - ordered[above - 1]), np.abs(ordered[above] - kinks)).min())
    if not margin >= certificate["kink_margin"] * (1 - 1e-9) > 0:
        raise BrokenNet(f"a value is {margin:.3g} from a kink, nearer than the claim")
    rows, columns, weights = (arrays[f"V2.{part}"] for part in ("rows", "columns", "values"))
    questions = len(arrays["V2.bias"])
    answers = np.repeat(arrays["V2.bias"][:, None], contents.count, axis=1)
    slopes = np.zeros_like(answers)
    np.add.at(answers, rows, weights[:, None] * np.maximum(values[None, :] - kinks[columns, None], 0))
    np.add.at(slopes, rows, weights[:, None] * (values[None, :] > kinks[columns, None]))
    usable = answers[:, contents.possible]
    rounding = float(np.abs(usable - np.rint(usable)).max())
    if rounding > certificate["bump_rounding"] or (np.abs(2 * usable - 1) > 1.001).any():
        raise BrokenNet("a question about a cell is not answered by 0 or 1")
    asked = np.zeros(questions, dtype=np.int64)
    asked[rows] = cell[columns]
    if (asked[rows] != cell[columns]).any():
        raise BrokenNet("a question asks about two cells")
    third = [arrays[f"V3.{part}"] for part in ("rows", "columns", "values")]
    seen, slope = {}, {}
    for at in (HERE, *NEIGHBOURS):
        mine = asked[third[1]] == 3 * (at[0] + 1) + at[1] + 1
        seen[at], slope[at] = (np.zeros((len(arrays["V3.bias"]), contents.count)) for _ in range(2))
        np.add.at(seen[at], third[0][mine], third[2][mine, None] * answers[third[1][mine]])
        np.add.at(slope[at], third[0][mine], third[2][mine, None] * slopes[third[1][mine]])
    fourth = np.zeros((len(arrays["V4.bias"]), len(arrays["V3.bias"])))
    np.add.at(fourth, (arrays["V4.rows"], arrays["V4.columns"]), arrays["V4.values"])
    fifth = np.zeros((1, len(arrays["V4.bias"])))
    np.add.at(fifth, (arrays["V5.rows"], arrays["V5.columns"]), arrays["V5.values"])
    if arrays["V4.bias"].any() or arrays["V5.bias"].any():
        raise BrokenNet("the last two maps have a bias")
    out = fifth @ fourth
    return Tables(seen, slope, arrays["V3.bias"], out, out[0]), [
        f"{questions:,} questions about one cell are answered by 0 or 1 for each of the "
        f"{len(contents.possible):,} contents, to {rounding:.3g}; no value is nearer than {margin:.3g} to "
        "a kink",
    ]


def _only_neighbours(used: NDArray[np.bool_]) -> None:
    if used[0, 0] or used[0, 2] or used[2, 0] or used[2, 2]:
        raise BrokenNet("the filter reads a diagonal neighbour")
