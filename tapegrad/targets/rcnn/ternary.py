"""The paper's filter: one real number for each cell, five linear maps and two ReLUs (Goel et al., B.1, B.4).

A cell is a number in balanced ternary (`digits`), so what is asked of a cell is whether its number lies in
one of a few intervals, and costs a few ReLUs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.targets.rcnn.bumps import Bump
from tapegrad.targets.rcnn.cells import Cells, Predicate
from tapegrad.targets.rcnn.clauses import Clause
from tapegrad.targets.rcnn.digits import PADDING, digit_names, effect_digits
from tapegrad.targets.rcnn.questions import questions_about
from tapegrad.targets.rcnn.sparse import Affine

MAPS = ("V1", "V2", "V3", "V4", "V5")
RELU_AFTER = (True, False, True, False, False)
AT_ONCE = 1 << 25
"""Numbers of the widest layer that are computed together, of 8 bytes each and a few times over."""
PASSING_SLOPE = -9 / 2
"""A passing unit adds `-1/9 * 2 relu(...)` to the value, so this slope makes the derivative 1."""


@dataclass
class _Rows:
    """A linear map in the making: rows of (column, weight) pairs, each with a bias and a name."""

    rows: list[list[tuple[int, float]]] = field(default_factory=list)
    bias: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, row: list[tuple[int, float]], bias: float, name: str) -> int:
        self.rows.append(row)
        self.bias.append(bias)
        self.names.append(name)
        return len(self.rows) - 1


class TernaryFilter(eqx.Module):
    """`V5 (V4 relu(V3 V2 relu(V1 patch)))`, on the nine cells of a patch."""

    maps: tuple[Affine, ...]
    rule_units: NDArray[np.int64]
    """The units after the second ReLU of which one is active where the head stands on a rule."""

    channels = 1
    padding = PADDING
    dtype = np.float64

    def patches(self, grid: jax.Array) -> jax.Array:
        """The nine neighbours of every cell as columns, for grids of shape (1, rows, columns)."""
        rows, columns = grid.shape[1:]
        padded = jnp.pad(grid[0], 1, constant_values=self.padding)
        shifts = [padded[r : r + rows, c : c + columns] for r in range(3) for c in range(3)]
        return jnp.stack(shifts).reshape(9, -1)

    def hidden(self, patches: jax.Array) -> jax.Array:
        """The second layer of ReLUs: one pair of units for each clause."""
        for linear, relu in list(zip(self.maps, RELU_AFTER, strict=True))[:3]:
            patches = linear(patches)
            patches = jax.nn.relu(patches) if relu else patches
        return patches

    def __call__(self, grid: jax.Array) -> jax.Array:
        """One layer on the whole grid."""
        return self._in_blocks(lambda p: self.maps[4](self.maps[3](self.hidden(p))), grid).reshape(grid.shape)

    def rule_applies(self, grid: jax.Array) -> jax.Array:
        """Whether some cell holds a head on a rule: false once the machine has halted."""
        return self._in_blocks(lambda p: (self.hidden(p)[self.rule_units] > 0.5).any(axis=0), grid).any()

    def _in_blocks(self, function: Callable[[jax.Array], jax.Array], grid: jax.Array) -> jax.Array:
        """A function of patches on all those of the grid, as many at once as memory allows."""
        patches = self.patches(grid)
        size = max(1, AT_ONCE // len(self.maps[0].bias))
        if patches.shape[1] <= size:
            return function(patches)
        extra = -patches.shape[1] % size
        blocks = jnp.pad(patches, ((0, 0), (0, extra)), mode="edge").reshape(9, -1, size)
        found = jax.lax.map(lambda block: function(block).reshape(size), jnp.moveaxis(blocks, 1, 0))
        return found.reshape(-1)[: patches.shape[1]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        parts = [linear.arrays(name) for name, linear in zip(MAPS, self.maps, strict=True)]
        merged = {key: value for part in parts for key, value in part.items()}
        return merged | {"rule_units": self.rule_units}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "TernaryFilter":
        maps = tuple(Affine.from_arrays(arrays, name) for name in MAPS)
        return cls(maps, np.asarray(arrays["rule_units"]))


def ternary_filter(cells: Cells, clauses: Sequence[Clause]) -> tuple[TernaryFilter, dict[str, list[str]]]:
    """The filter, and the names of its units, map by map."""
    questions = questions_about(cells)
    relus, bumps, units = _Rows(), _Rows(), _Rows()
    contribution: list[tuple[int, int, float]] = []
    rule_units: list[int] = []
    known: dict[tuple[Any, ...], int] = {}

    def question(at: tuple[int, int], predicate: Predicate, slope: float | None) -> int:
        key = (at, predicate, slope)
        if key not in known:
            found = questions.bumps(predicate, slope)
            known[key] = _add_bumps(found, at, f"{predicate} at {at}", relus, bumps)
        return known[key]

    for clause in clauses:
        row = []
        for i, literal in enumerate(clause.when):
            slope = PASSING_SLOPE if clause.passes and i == 0 else None
            row.append((question(literal.at, literal.predicate, slope), 1.0))
        row += [(question(literal.at, literal.predicate, None), -1.0) for literal in clause.unless]
        thresholds = [(clause.needs - 1 / 2, 2.0)] if clause.passes else _clip(clause.needs)
        for threshold, weight in thresholds:
            unit = units.add(row, -threshold, clause.reason)
            if clause.rule and weight > 0:
                rule_units.append(unit)
            for digit, amount in enumerate(effect_digits(clause.effect, cells)):
                if amount:
                    contribution.append((digit, unit, weight * amount))
    maps = [_affine(relus, 9), _affine(bumps, len(relus.rows)), _affine(units, len(bumps.rows))]
    digits = digit_names(cells)
    place = 3.0 ** -np.arange(len(digits))
    maps.append(Affine.from_triples(contribution, (len(place), len(units.rows))))
    maps.append(Affine.from_triples([(0, i, float(p)) for i, p in enumerate(place)], (1, len(place))))
    names = {"V1": relus.names, "V2": bumps.names, "V3": units.names, "V4": digits, "V5": ["cell value"]}
    return TernaryFilter(tuple(maps), np.array(rule_units, dtype=np.int64)), names


def _clip(needs: int) -> list[tuple[float, float]]:
    """`2 relu(sum - (needs - 3/4)) - 2 relu(sum - (needs - 1/4))`: 0 or 1, flat with margin 1/4 at every
    integer sum, so neither rounding nor gradient gets through."""
    return [(needs - 3 / 4, 2.0), (needs - 1 / 4, -2.0)]


def _add_bumps(found: list[Bump], at: tuple[int, int], name: str, relus: _Rows, bumps: _Rows) -> int:
    cell = 3 * (at[0] + 1) + at[1] + 1
    row = []
    for bump in found:
        for kink, slope in zip(bump.kinks, bump.slopes, strict=True):
            row.append((relus.add([(cell, 1.0)], -kink, f"{name}: kink at {kink:.6g}"), slope))
    return bumps.add(row, sum(bump.constant for bump in found), name)


def _affine(rows: _Rows, columns: int) -> Affine:
    triples = [(r, c, w) for r, row in enumerate(rows.rows) for c, w in row]
    return Affine.from_triples(triples, (len(rows.rows), columns), np.array(rows.bias))
