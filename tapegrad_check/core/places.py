"""Numbers of a network over bits: what maps make of them, in its format, whatever the order of sums.

The number at a place of the network depends on a few bits, its *leaves*, which are literals; so it is a
table. Its row r, in which leaf i is bit i of r, has the number itself where nothing is rounded: where it is a
multiple of a power of two that the format has room for. Else it has a number that is near, and how far the
network's may be from it. That distance has two parts. A place that is a bit, but not exactly, has a
deviation, a number of its own that is at most so large; what is computed from it has this deviation times a
factor, and two that cancel do so here as well (`3 relu(z - 1/3) - 3 relu(z - 2/3)` does not depend on how far
z is off). What rounding adds is the slack.

What is computed depends on the shape of a place only: the *form*, which has no names of leaves. Most units of
a network have one of few shapes, so each is worked out once.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import (
    DOUBLE,
    FEW,
    UP,
    Format,
    Term,
    exact,
    finite,
    rounding,
    rounding_of_few,
    step_of,
)
from tapegrad_check.core.functions import Effort, Functions
from tapegrad_check.folder import NotProved, require

MOST_LEAVES = 12
"""Bits that a number may depend on."""
NEAR = 2.0**-4
"""How far from 0 or 1 a bit may be, where numbers are not exact."""
Rows = NDArray[np.float64]


class Form:
    """A number over so many leaves, without their names."""

    def __init__(self, values: Rows, factors: tuple[Rows, ...], slack: Rows) -> None:
        self.values, self.factors, self.slack = values, factors, slack
        self.step = float(step_of(values)) if not factors and not slack.any() else 0.0
        """All numbers are multiples of this power of two; 0 where some are not exact."""

    @property
    def exact(self) -> bool:
        """Whether the network has these very numbers."""
        return self.step > 0

    def off(self, sizes: Sequence[float]) -> Rows:
        """How far the network's number may be off, where deviations are at most so large."""
        found = self.slack.copy()
        for factor, size in zip(self.factors, sizes, strict=True):
            found = (found + np.abs(factor) * size) * UP
        return found


class Place(NamedTuple):
    """A number: its form, and for it literals (not negated) and deviations by their numbers."""

    form: Form
    leaves: tuple[int, ...] = ()
    deviations: tuple[int, ...] = ()


class AsBit(NamedTuple):
    """Rows that are 1, as the bits of a number; how far all are from 0 or 1; and rows that are neither."""

    table: int
    off: float
    odd: tuple[int, ...]


def _form(*values: float) -> Form:
    return Form(np.array(values), (), np.zeros(len(values)))


ZERO, ONE, BIT, NEGATED = _form(0), _form(1), _form(0, 1), _form(1, 0)


class Numbers:
    """All places of a network, over the functions that its bits are."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.sizes = array("d")
        """How large each deviation is at most."""
        self.largest = 0.0
        """What no sum exceeds, whatever its order."""
        self.exact = True
        """Whether nothing was rounded."""
        self._forms: dict[object, Form] = {}
        self._bits: dict[tuple[Form, tuple[float, ...]], AsBit] = {}

    def bit(self, literal: int, off: float = 0.0) -> Place:
        """A bit, which is at most so far from 0 or 1."""
        if literal < 2:
            form, leaves = (ONE if literal else ZERO), ()
        else:
            form, leaves = (NEGATED if literal & 1 else BIT), (literal & ~1,)
        if not off:
            return Place(form, leaves)
        self.sizes.append(off)
        return Place(self.bit_form(form, off), leaves, (len(self.sizes) - 1,))

    def bit_form(self, form: Form, off: float) -> Form:
        """The form of a bit that has a deviation, if it may be off."""
        if not off:
            return form
        key = form, "off"
        if key not in self._forms:
            self._forms[key] = Form(form.values, (np.ones(len(form.values)),), form.slack)
        return self._forms[key]

    def constant(self, value: float) -> Place:
        """A number that is always the same."""
        key = "constant", value
        if key not in self._forms:
            self._forms[key] = _form(value)
        return Place(self._forms[key])

    def affine(
        self,
        weights: Sequence[float],
        places: Sequence[Place],
        bias: float,
        format: Format,
        rectified: bool,
        hint: int | None = None,
    ) -> Place:
        """The weighted sum of some places, or its positive part. It is made a bit where it is one, perhaps
        the one that is hinted at."""
        return self.closed(self.sum(weights, places, bias, format, rectified), hint)

    def sum(
        self,
        weights: Sequence[float],
        places: Sequence[Place],
        bias: float,
        format: Format,
        rectified: bool,
    ) -> Place:
        """The same, as it is."""
        leaves = sorted({leaf for place in places for leaf in place.leaves})
        deviations = sorted({own for place in places for own in place.deviations})
        if len(leaves) > MOST_LEAVES:
            raise NotProved(f"a number of the network depends on more than {MOST_LEAVES} bits")
        key = (
            tuple(weights),
            bias,
            tuple(
                (
                    place.form,
                    tuple(map(leaves.index, place.leaves)),
                    tuple(map(deviations.index, place.deviations)),
                )
                for place in places
            ),
            len(leaves),
            tuple(self.sizes[own] for own in deviations),
            format,
            rectified,
        )
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._summed(key)
        return Place(form, tuple(leaves), tuple(deviations))

    def _summed(self, key: tuple) -> Form:
        weights, bias, terms, count, sizes, format, rectified = key
        rows = np.arange(1 << count)
        values, slack = np.full(len(rows), bias), np.zeros(len(rows))
        factors = [np.zeros(len(rows)) for _ in sizes]
        total, step = np.full(len(rows), abs(bias)), float(step_of(bias))
        terms_of_sum = [Term(values, slack, True)] if bias else []
        for weight, (form, leaves, deviations) in zip(weights, terms, strict=True):
            at = sum(
                ((rows >> leaf & 1) << i for i, leaf in enumerate(leaves)), np.zeros(len(rows), np.int64)
            )
            values = values + weight * form.values[at]
            slack = slack + abs(weight) * form.slack[at]
            for factor, deviation in zip(form.factors, deviations, strict=True):
                factors[deviation] = factors[deviation] + weight * factor[at]
            off = form.off([sizes[own] for own in deviations])
            total = total + abs(weight) * (np.abs(form.values) + off)[at]
            step = min(step, float(step_of(weight)) * form.step)
            whole = abs(np.frexp(weight)[0]) == 0.5
            terms_of_sum.append(Term(weight * form.values[at], abs(weight) * off[at], bool(whole)))
        if not exact(total, step, DOUBLE).all():  # else they are what they are
            total = total * UP
        self.largest = max(self.largest, float(total.max()))
        require(finite(total * UP, format).all(), "a sum of the network may overflow")
        rounded = rounding(len(weights) + 1, total, step, format)
        self.exact = self.exact and not rounded.any()
        if rounded.any() and len(terms_of_sum) <= FEW:
            rounded = np.minimum(rounded, rounding_of_few(terms_of_sum, format))
        if rounded.any() or slack.any():  # then this program may have rounded as well, values and factors
            slack = (slack + rounded + 2 * rounding(len(weights) + 1, total, 0, DOUBLE)) * UP
        if rectified:
            values, factors, slack = _rectified(values, factors, slack, sizes)
        return Form(values, tuple(factors), slack)

    def closed(self, place: Place, hint: int | None = None) -> Place:
        """A place as a bit, if that is what it is in all rows that can occur; else as it is. Where nothing is
        hinted at, but at others, it may well be none, and little is spent on that."""
        form = place.form
        if form is BIT or form is NEGATED or (not place.leaves and form.exact):
            return place
        found = self.as_bit(form, self.sizes_of(place))
        effort = Effort.SETTLE if hint is not None else Effort.ASK if self.functions.sweeps else Effort.LOOK
        if any(self.functions.possible(self._row(place, row), effort) for row in found.odd):
            return place
        return self.bit(self.functions.table(found.table, place.leaves, hint), found.off)

    def sizes_of(self, place: Place) -> tuple[float, ...]:
        """How large its deviations are at most."""
        return tuple(self.sizes[own] for own in place.deviations)

    def as_bit(self, form: Form, sizes: tuple[float, ...]) -> AsBit:
        """What numbers of a form are of a bit."""
        if (form, sizes) not in self._bits:
            self._bits[form, sizes] = _as_bit(form, sizes)
        return self._bits[form, sizes]

    def _row(self, place: Place, row: int) -> list[int]:
        """The literals that are 1 where the leaves are those of the row."""
        return [leaf ^ 1 ^ (row >> i & 1) for i, leaf in enumerate(place.leaves)]

    def literal(self, place: Place, what: str) -> tuple[int, float]:
        """The function that a bit is, and how far it may be off."""
        found = self.as_bit(place.form, self.sizes_of(place))
        for row in found.odd:
            require(not self.functions.occurs(self._row(place, row)), f"{what} is no bit")
        if found.odd:
            raise NotProved(f"{what} could not be shown to be a bit")
        return self.functions.table(found.table, place.leaves), found.off


def _as_bit(form: Form, sizes: Sequence[float]) -> AsBit:
    off = form.off(sizes)
    ones = form.values > 0.5
    away = (np.abs(form.values - ones) + off) * (UP if off.any() else 1)
    near = away <= (0 if form.exact else NEAR)
    table = sum(1 << row for row in np.flatnonzero(near & ones).tolist())
    return AsBit(table, float(away[near].max(initial=0)), tuple(np.flatnonzero(~near).tolist()))


def _rectified(
    values: Rows, factors: Sequence[Rows], slack: Rows, sizes: Sequence[float]
) -> tuple[Rows, list[Rows], Rows]:
    """The positive part: the same, or nothing, or anything in between where the sign is not known."""
    off = Form(values, tuple(factors), slack).off(sizes)
    high = np.abs(values + off) * UP
    positive, either = values >= off, (values < off) & (values > -off)
    kept = np.where(positive, values, np.where(either, high / 2, 0))
    slack = np.where(positive, slack, np.where(either, high / 2, 0))
    return kept, [np.where(positive, factor, 0) for factor in factors], slack
