"""What can be said of a filter from its arrays or from the machine's table alone: how far every threshold is
from being crossed, and how large it is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.model import GridMachine
from tapegrad.targets.rcnn.build import PASSING_SLOPE, Filter, effect_channels, linear_form, questions_about
from tapegrad.targets.rcnn.encoding import (
    Cells,
    Clause,
    Encoding,
    channel_names,
    clauses_of,
    digit_names,
    effect_digits,
)


def claims(filter: Filter, encoding: Encoding) -> dict[str, Any]:
    """The least distance of a meaningful value from a kink, and the largest sum of magnitudes in a row, which
    bounds rounding; both exact to check, so that no gain is taken on trust."""
    table = encoding.table()[encoding.cells.possible]
    if encoding.name == "channels":
        return {"encoding": "channels", "integers": True, "largest_sum": largest_sum(filter)}
    return {
        "encoding": "ternary",
        "least_gap": float(np.diff(np.unique(table[:, 0])).min()),
        "kink_margin": kink_margin(filter, table[:, 0]),
        "bump_rounding": bump_rounding(filter, table[:, 0]),
    }


def largest_sum(filter: Filter) -> int:
    """Bound on every pre-activation: channels are 0 or 1."""
    return int(filter.maps[0].entries().largest().max())


def kink_margin(filter: Filter, values: NDArray[np.float64]) -> float:
    """Least distance of a cell's value from a kink of the first layer."""
    ordered, kinks = np.sort(values), -filter.maps[0].bias
    above = np.clip(np.searchsorted(ordered, kinks), 1, len(ordered) - 1)
    return float(np.minimum(np.abs(kinks - ordered[above - 1]), np.abs(ordered[above] - kinks)).min())


def bump_rounding(filter: Filter, values: NDArray[np.float64]) -> float:
    """Bound on the rounding error of a question's answer: for each term one rounding in the difference, the
    product and the sum, of numbers no larger than slope times range."""
    span = float(values.max() - values.min())
    second = filter.maps[1].entries()
    largest = np.bincount(second.rows, np.abs(second.values) * span, len(second.bias)) + np.abs(second.bias)
    terms = np.bincount(second.rows, minlength=len(second.bias)) + 2
    return float((np.finfo(np.float64).eps * terms * largest).max())


@dataclass(frozen=True)
class FilterSize:
    """`dense` counts every place of the filter's matrices, the paper's O(s^2); `weights` those that are not
    zero, O(s), with the numbers that a cell begins as and the 1/2 that units of rules are compared with;
    `parameters` the numbers that a saved net consists of."""

    width: int
    depth: int
    dense: int
    weights: int
    parameters: int
    bytes: int

    @property
    def largest(self) -> int:
        """What is bounded: in channels every place is written out by some, as are the numbers of contents."""
        return self.dense if self.depth == 2 else self.parameters


def filter_size(machine: GridMachine, encoding: str) -> FilterSize:
    """The size of the filter of a machine."""
    cells = Cells(len(machine.alphabet), len(machine.states))
    clauses = clauses_of(machine)
    rules = sum(clause.rule for clause in clauses) + 3 * cells.states * cells.symbols
    return _ternary(cells, clauses, rules) if encoding == "ternary" else _channels(cells, clauses, rules)


def _ternary(cells: Cells, clauses: list[Clause], rules: int) -> FilterSize:
    questions = {
        (literal.at, literal.predicate, clause.passes and i == 0)
        for clause in clauses
        for i, literal in enumerate((*clause.when, *clause.unless))
    }
    about = questions_about(cells)
    kinks = sum(
        len(bump.kinks)
        for _, predicate, passes in questions
        for bump in about.bumps(predicate, PASSING_SLOPE if passes else None)
    )
    copies = [1 if clause.passes else 2 for clause in clauses]
    units = sum(copies)
    asked = sum(n * len((*c.when, *c.unless)) for n, c in zip(copies, clauses, strict=True))
    told = sum(
        n * sum(map(bool, effect_digits(c.effect, cells))) for n, c in zip(copies, clauses, strict=True)
    )
    place = len(digit_names(cells))
    weights = [kinks, kinks, asked, told, place]
    biases = [kinks, len(questions), units, place, 1]
    shapes = [(kinks, 9), (len(questions), kinks), (units, len(questions)), (place, units), (1, place)]
    dense = sum(rows * (columns + 1) for rows, columns in shapes)
    width = max(rows for rows, _ in shapes)
    return _size(width, 5, dense, sum(weights), sum(biases) + 2, rules, 8)


def _size(
    width: int, depth: int, dense: int, entries: int, others: int, rules: int, precision: int
) -> FilterSize:
    """An entry has a row and a column beside it; these, and what is said of rules, are words of 8 bytes."""
    whole = 2 * entries + rules
    fixed = entries + others
    return FilterSize(width, depth, dense, fixed, fixed + whole, precision * fixed + 8 * whole)


def _channels(cells: Cells, clauses: list[Clause], rules: int) -> FilterSize:
    channels = len(channel_names(cells))
    read, told, units = 0, 3 * sum(clause.passes for clause in clauses), 0
    for clause in clauses:
        weights, _ = linear_form(clause, cells)
        read += (2 + clause.passes) * len(weights) + clause.passes
        told += 2 * len(effect_channels(clause, cells))
        units += 2 + clause.passes
    dense = units * channels * 10 + units
    return _size(units, 2, dense, read + told, units + 2 * channels + 1, rules, 4)
