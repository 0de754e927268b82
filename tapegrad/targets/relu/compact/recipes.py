"""Every way that is known to make a gate of up to four inputs out of ReLU units, and the cheapest for each.

A recipe is a short list of units. Each reads the gate's inputs and the units before it; the last gives the
gate's value. The families, for inputs x and a form z = w.x with small whole weights:

    a conjunction      relu(x1 + ... + xk - (k - 1))
    one hidden unit    relu(c0 + d.x + c relu(z - t)), by trying all small whole c0, c, d
    steps along z      relu(c0 + m z + sum of c_j relu(z - t_j)): a function of z alone, from kink to kink.
                       Where the gate is 1 the sum is 1, where it is 0 the sum is 0 or less
    disjoint cases     a sum of two or three conjunctions no two of which are 1 together
    the sum of three   s - 2 maj = s - 2 + 2 relu(1 - relu(s - 1)) for s = a + b + c: a full adder has the
                       negated majority, relu(1 - relu(s - 1)), anyway

All arithmetic is that of small whole numbers, so nothing rounds. Which is cheapest is counted in numbers that
are saved: for each unit one place and one weight for each input, its bias, how many inputs it has and what it
holds. Inputs may be negated and permuted. The negation of a gate is as good as the gate, since whoever reads
it can negate it.

Truth tables have 16 bits: bit i is the value where input j is bit j of i.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

POINTS = np.arange(16)[:, None] >> np.arange(4) & 1
"""The inputs of every row of a truth table."""
DIRECTIONS = ((1, 1, 0, 0), (1, 1, 1, 0), (1, 1, 1, 1), (2, 1, 1, 0), (2, 1, 1, 1), (2, 2, 1, 1))
"""The forms z; any other with weights up to 2 that could be of use is one of these, up to signs."""
LARGEST = 2
"""Weights of inputs that are tried beside a hidden unit."""
MOST_HIDDEN = 3
NUMBERS_PER_UNIT, NUMBERS_PER_READ = 3, 2
IMPOSSIBLE = 1 << 14


class Unit(NamedTuple):
    """`relu(inputs . x + units . (the units before it) + bias)`."""

    inputs: tuple[int, ...]
    units: tuple[int, ...]
    bias: int

    def reads(self) -> int:
        """How many values it reads."""
        return sum(weight != 0 for weight in (*self.inputs, *self.units))


Form = tuple[int, ...]
"""A weight for each input."""
Recipe = tuple[Unit, ...]


class Catalogue(NamedTuple):
    """For each of the 65,536 truth tables the cheapest recipe for it or for its negation."""

    cost: Int[np.ndarray, " tables"]
    layers: Int[np.ndarray, " tables"]
    """How many ReLU layers the recipe takes."""
    base: Int[np.ndarray, " tables"]
    """Which of the recipes, once its inputs are changed."""
    recipes: tuple[Recipe, ...]


def cost(recipe: Recipe) -> int:
    """The numbers that are saved."""
    return sum(NUMBERS_PER_UNIT + NUMBERS_PER_READ * unit.reads() for unit in recipe)


def layers(recipe: Recipe) -> int:
    """The longest way through its units."""
    level: list[int] = []
    for unit in recipe:
        below = [level[i] for i, weight in enumerate(unit.units) if weight]
        level.append(1 + max(below, default=0))
    return level[-1]


def table_of(recipe: Recipe) -> int | None:
    """Its truth table, by running it; None if some value is not a bit."""
    values: list[Int[np.ndarray, " 16"]] = []
    for unit in recipe:
        total = POINTS @ np.array(unit.inputs) + unit.bias
        for weight, value in zip(unit.units, values, strict=False):
            total = total + weight * value
        values.append(np.maximum(total, 0))
    return packed(values[-1]) if values[-1].max() <= 1 else None


def packed(bits: Int[np.ndarray, " 16"]) -> int:
    """A truth table from its rows."""
    return int(bits @ (1 << np.arange(16)))


# The families.


def _conjunction(signs: Sequence[int]) -> Unit:
    """1 where each input with sign +1 is 1 and each with sign -1 is 0."""
    return Unit(tuple(signs), (), 1 - sum(sign > 0 for sign in signs))


def _one_hidden(direction: Form, threshold: int) -> list[Recipe]:
    """relu(c0 + d.x + c relu(z - t)) for all c0, c and d at once, and the best for each truth table. Inputs
    that have the same weight in z may change places, so their weights in d are taken in order."""
    forms = np.array(
        [
            d
            for d in product(range(LARGEST, -LARGEST - 1, -1), repeat=4)
            if all(d[i] >= d[i + 1] for i in range(3) if direction[i] == direction[i + 1])
        ]
    )
    hidden = np.maximum(POINTS @ np.array(direction) - threshold, 0)
    slopes, biases = np.array([-1, 1, -2, 2, -3, 3]), np.array([0, -1, 1, -2, 2, -3, 3])
    values = (forms @ POINTS.T)[:, None, None] + slopes[:, None, None] * hidden + biases[:, None]
    at = np.argwhere((values <= 1).all(-1))
    form, slope, bias = at.T
    tables = (values[form, slope, bias] > 0) @ (1 << np.arange(16))
    size = np.abs(forms).sum(1)[form] + np.abs(slopes)[slope] + np.abs(biases)[bias]
    order = np.lexsort((size, (forms != 0).sum(1)[form], tables))
    best = order[np.unique(tables[order], return_index=True)[1]]
    first = Unit(direction, (), -threshold)
    return [
        (first, Unit(tuple(forms[d].tolist()), (int(slopes[c]),), int(biases[c0])))
        for d, c, c0 in at[best].tolist()
    ]


def _steps(direction: Form, wanted: dict[int, int]) -> Recipe | None:
    """The function of z with these values, with as few kinks as possible: over z, for each value and slope
    there the shortest list of kinks on the way."""
    top = sum(direction)
    states: dict[tuple[int, int], tuple[int, int, tuple[tuple[int, int], ...]]] = {
        (start, slope): (start, slope, ())
        for start, slope in product((0, 1, -1), (0, 1, -1))
        if _fits(start, wanted.get(0))
    }
    for z in range(1, top + 1):
        after: dict[tuple[int, int], tuple[int, int, tuple[tuple[int, int], ...]]] = {}
        for (value, slope), (start, first, kinks) in states.items():
            reached = value + slope
            if abs(reached) > 2 or not _fits(reached, wanted.get(z)):
                continue
            for change in (0, -1, 1, -2, 2) if z < top else (0,):
                own = (*kinks, (z, change)) if change else kinks
                key = reached, slope + change
                if len(own) <= MOST_HIDDEN and (key not in after or len(own) < len(after[key][2])):
                    after[key] = start, first, own
        states = after
    best = min(states.values(), key=lambda state: (len(state[2]), state[1] != 0), default=None)
    if best is None:
        return None
    start, slope, kinks = best
    hidden = [Unit(direction, (), -z) for z, _ in kinks]
    last = Unit(tuple(slope * w for w in direction), tuple(change for _, change in kinks), start)
    return (*hidden, last)


def _fits(value: int, wanted: int | None) -> bool:
    return wanted is None or (value == 1 if wanted else value <= 0)


def _cases() -> list[Recipe]:
    """Sums of disjoint conjunctions; the first without negations and on the first inputs."""
    cases = [_conjunction(s) for s in product((1, 0, -1), repeat=4) if sum(map(abs, s)) > 1]
    sets = [packed(np.maximum(POINTS @ np.array(case.inputs) + case.bias, 0)) for case in cases]
    found: list[Recipe] = []
    for first in (_conjunction((1,) * k + (0,) * (4 - k)) for k in (2, 3, 4)):
        own = sets[cases.index(first)]
        others = [i for i, table in enumerate(sets) if table & own == 0]
        found += [(first, cases[i], Unit((0,) * 4, (1, 1), 0)) for i in others]
        found += [
            (first, cases[i], cases[j], Unit((0,) * 4, (1, 1, 1), 0))
            for i, j in combinations(others, 2)
            if sets[i] & sets[j] == 0
        ]
    return found


def _families() -> list[Recipe]:
    found: list[Recipe] = [(_conjunction((1,) * k + (0,) * (4 - k)),) for k in (1, 2, 3, 4)]
    for direction in DIRECTIONS:
        for threshold in range(1, sum(direction)):
            found += _one_hidden(direction, threshold)
    for direction in DIRECTIONS[1:5]:
        levels = sorted(set((POINTS @ np.array(direction)).tolist()))
        for values in product((0, 1), repeat=len(levels)):
            recipe = _steps(direction, dict(zip(levels, values, strict=True)))
            if recipe is not None:
                found.append(recipe)
    s = (1, 1, 1, 0)
    full_adder = Unit(s, (), -1), Unit((0,) * 4, (-1,), 1), Unit(s, (0, 2), -2)
    return [*found, *_cases(), full_adder]


# All inputs negated and permuted.

CHANGES: tuple[tuple[tuple[int, ...], int], ...] = tuple(product(permutations(range(4)), range(16)))
"""An order of the inputs, and which are negated: input i of the recipe is input order[i] of the gate, negated
if bit i is set."""
ROWS = np.array(
    [
        ((POINTS[:, list(order)] ^ (flipped >> np.arange(4) & 1)) << np.arange(4)).sum(1)
        for order, flipped in CHANGES
    ]
)
"""Row r of the gate's table is this row of the recipe's."""


def changed(recipe: Recipe, change: int) -> Recipe:
    """The recipe on other inputs: w (1 - x) is w - w x."""
    order, negated = CHANGES[change]
    found = []
    for unit in recipe:
        inputs, bias = [0] * 4, unit.bias
        for i, weight in enumerate(unit.inputs):
            sign = -1 if negated >> i & 1 else 1
            inputs[order[i]] = sign * weight
            bias += weight if sign < 0 else 0
        found.append(Unit(tuple(inputs), unit.units, bias))
    return tuple(found)


@cache
def catalogue() -> Catalogue:
    """The cheapest recipe for every truth table that has one."""
    cheapest: dict[int, tuple[int, Recipe]] = {}
    for recipe in _families():
        table, rank = table_of(recipe), _rank(recipe)
        assert table is not None
        if table not in cheapest or rank < cheapest[table][0]:
            cheapest[table] = rank, recipe
    recipes = [recipe for _, recipe in cheapest.values()]
    ranks = np.array([rank for rank, _ in cheapest.values()])
    bits = np.array(list(cheapest))[:, None] >> np.arange(16) & 1

    # For every table the least of rank and recipe, in one number.
    own = ranks << 14 | np.arange(len(recipes))
    best = np.full(1 << 16, np.iinfo(np.int64).max)
    for number in range(len(CHANGES)):
        found = bits[:, ROWS[number]] @ (1 << np.arange(16))
        np.minimum.at(best, found, own)
        np.minimum.at(best, found ^ 0xFFFF, own)
    known = best < np.iinfo(np.int64).max
    base = np.where(known, best & 0x3FFF, 0)
    costs, depths = (np.array([of(recipe) for recipe in recipes]) for of in (cost, layers))
    return Catalogue(np.where(known, costs[base], IMPOSSIBLE), depths[base], base, tuple(recipes))


@cache
def ways(table: int) -> list[tuple[Recipe, bool]]:
    """The cheapest recipe of a gate in all the ways that its inputs can be changed, and whether each gives
    the gate's negation. One of them may have units that are there already."""
    known = catalogue()
    recipe = known.recipes[known.base[table]]
    own = table_of(recipe)
    assert own is not None
    found = (own >> ROWS & 1) @ (1 << np.arange(16))
    fitting = np.flatnonzero((found == table) | (found == table ^ 0xFFFF)).tolist()
    return list({changed(recipe, change): bool(found[change] != table) for change in fitting}.items())


def _rank(recipe: Recipe) -> int:
    """Cheap first, then shallow, then with small weights."""
    size = sum(map(abs, (number for unit in recipe for number in (*unit.inputs, *unit.units))))
    return (cost(recipe) << 3 | layers(recipe)) << 6 | size
