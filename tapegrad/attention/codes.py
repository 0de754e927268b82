"""Sequences as bits of the residual stream, what these mean, and functions of them.

A sequence with values v_0, v_1, ..., v_m has m bits: the k-th is 1 where its value is v_k or one further on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.conditions import indicator
from tapegrad.attention.steps import Form
from tapegrad.networks.form import Rows
from tapegrad.rasp.functions import Value

START, WORD, MIXED = 0, 1, 2
"""Coordinates: 1 at the first position alone; 1 at tokens; where values differ that should be the same."""


@dataclass(frozen=True, eq=False)
class Code:
    """A sequence as bits: the k-th is 1 where the value is the k-th or one further on."""

    values: tuple[Value, ...]
    bits: tuple[Form, ...]
    """As many as there are values, less one."""


@dataclass(frozen=True)
class Group:
    """What the bits of a group say: each that a label is at least its number. The label belongs to the value
    of a node; or to the values of several nodes, whose labels count as digits, the last one fastest."""

    nodes: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]
    """For each node a label for each of its values."""


Meaning = tuple[str, int, int]
"""`bit` of a group and number; `raw` of a node that a head finds, and row; `number` of a node that is a sum;
or `given`."""


@dataclass
class Filling:
    """Heads, units, and what becomes of them, in the making."""

    heads: list[tuple[int, Rows, Rows, Rows, list[int]]] = field(default_factory=list)
    units: Rows = field(default_factory=Rows)
    sums: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    purposes: list[str] = field(default_factory=list)


def relabelled(code: Code, labels: Sequence[Value], wanted: tuple[Value, ...]) -> Code:
    """A function of a code, as a code for the wanted values: a label for each value."""
    numbers = {value: number for number, value in enumerate(wanted)}
    places = np.array([numbers[label] for label in labels])
    bits = tuple(indicator(code.bits, places >= number, WORD) for number in range(1, len(wanted)))
    return Code(wanted, bits)


def corners(table: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Where a table of numbers is not a sum of a function of rows and one of columns, with its first row and
    column: only there it needs a unit."""
    padded = np.pad(table, ((1, 0), (1, 0)))
    here, left, above, both = padded[1:, 1:], padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
    same = np.sort(np.stack([here, both]), axis=0) == np.sort(np.stack([left, above]), axis=0)
    return [(int(x), int(y)) for x, y in zip(*np.nonzero(~same.all(axis=0)), strict=True)]
