"""The size of a filter, counted from the machine's table without building it."""

from dataclasses import dataclass

from tapegrad.machines.grid import GridMachine
from tapegrad.targets.rcnn.cells import Cells
from tapegrad.targets.rcnn.channels import channel_names
from tapegrad.targets.rcnn.clauses import Clause, clauses_of
from tapegrad.targets.rcnn.digits import digit_names, effect_digits
from tapegrad.targets.rcnn.questions import questions_about
from tapegrad.targets.rcnn.ternary import PASSING_SLOPE


@dataclass(frozen=True)
class FilterSize:
    """`dense` counts every place of the filter's matrices, the paper's O(s^2); `weights` those that are not
    zero, O(s); `parameters` the numbers that a saved net consists of."""

    width: int
    depth: int
    dense: int
    weights: int
    parameters: int
    bytes: int


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
    parameters = 3 * sum(weights) + sum(biases) + len(shapes) + rules
    dense = sum(rows * (columns + 1) for rows, columns in shapes)
    width = max(rows for rows, _ in shapes)
    return FilterSize(width, 5, dense, sum(weights) + sum(biases), parameters, 8 * parameters)


def _channels(cells: Cells, clauses: list[Clause], rules: int) -> FilterSize:
    channels = len(channel_names(cells))
    units = 2 * len(clauses) + sum(clause.passes for clause in clauses)
    dense = units * channels * 10 + units
    return FilterSize(units, 2, dense, dense, dense + rules, 4 * dense + 8 * rules)
