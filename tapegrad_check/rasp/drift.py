"""How far a residual stream may be from what it should be, in single precision: linear algebra with bounds.

The stream is y = B (x + e). The columns of B are directions: those of features that are there, then others
that make a basis of them. x is what the features should be, by the proof of the plain net; of e there is a
bound for each feature, absolute, and for what heads bring one relative to its value as well.

- A row r of weights reads r y = (r B)(x + e). What r B should be is known from the plain net. The difference
  times x, and r B times e, is how far the row is off, apart from rounding.
- What is written off the mark by d, in y, is off by B^-1 d in terms of features. The inverse is computed in
  double precision, and its own error is bounded by the residual I - C B.

What rounding adds to this, that of the net and that of the products here, is in `arithmetic`.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tapegrad_check.arithmetic import DOUBLE, UP, Matrix, product, rounding, step_of
from tapegrad_check.folder import require
from tapegrad_check.products import times

MOST_COLUMNS = 1 << 12


class Drift:
    """The stream at one place in the net: directions, bounds, and how large features can be."""

    def __init__(self, directions: Matrix, features: Sequence[int], bits: Sequence[Sequence[int]]) -> None:
        """All features by their directions; those that are there; the bits of each group, in the order in
        which they rise."""
        self.directions, self.groups = directions, bits
        width = directions.shape[1]
        require(width <= MOST_COLUMNS, "the stream is too wide")
        self.off, self.relative, self.most = (np.zeros(width) for _ in range(3))
        self.grid = 1.0
        """A power of two that all of y is a multiple of; 0 if there is none."""
        self.loose = False
        """Whether bits of a group may be set that do not belong together."""
        self.take(features)

    def take(self, features: Sequence[int]) -> None:
        """These features are there, and no others."""
        self.features = list(features)
        self.place = {feature: column for column, feature in enumerate(self.features)}
        own = self.directions[self.features].T
        width, count = own.shape
        require(count <= width, "more features are there at once than there are dimensions")
        others = np.linalg.qr(own, mode="complete")[0][:, count:]
        self.basis: Matrix = np.concatenate([own, others], axis=1)
        self.inverse: Matrix = np.linalg.inv(self.basis).astype(np.float64)
        found, error = product(self.inverse, self.basis)
        rest = float((np.abs(found - np.eye(width)) + error).sum(axis=1).max()) * UP
        require(rest < 2.0**-20, "directions of features are too near each other")
        self.rest = rest / (1 - rest) * UP
        self.__dict__.pop("step", None)

    @cached_property
    def step(self) -> float:
        """A power of two that all directions are multiples of."""
        return step_of(self.basis[:, : len(self.features)])

    def replaced(self, features: Sequence[int], more: Matrix) -> None:
        """Some features have gone, of which so much is left in terms of columns, and others come."""
        before, basis, off = list(self.features), self.basis, (self.off + more) * UP
        relative, most = self.relative, self.most
        self.take(features)
        self.off, self.relative, self.most = (np.zeros(len(off)) for _ in range(3))
        kept = [column for column, feature in enumerate(before) if feature in self.place]
        for column in kept:
            to = self.place[before[column]]
            self.off[to], self.relative[to], self.most[to] = off[column], relative[column], most[column]
        lost = np.setdiff1d(np.arange(len(off)), kept)
        self.off += times(self.in_features(basis[:, lost], np.zeros((len(off), len(lost)))), off[lost])
        self.off *= UP

    @property
    def whole(self) -> Matrix:
        """How far features may be off, absolutely."""
        return self.off + self.relative * self.most

    def largest(self, rows: Matrix) -> Matrix:
        """For each row the largest magnitude of its product with what the features should be. Bits of a group
        are 1 up to one of them, and 0 after it."""
        if self.loose:
            return times(np.abs(rows), self.most) * UP
        high, low = np.zeros(len(rows)), np.zeros(len(rows))
        single = self.most > 0
        for group in self.groups:
            columns = [self.place[own] for own in group if own in self.place and single[self.place[own]]]
            if columns:
                single[columns] = False
                sums = np.cumsum(rows[:, columns], axis=1)
                high += np.maximum(sums.max(axis=1), 0)
                low += np.minimum(sums.min(axis=1), 0)
        alone = rows[:, single] * self.most[single]
        high, low = high + np.maximum(alone, 0).sum(axis=1), low + np.minimum(alone, 0).sum(axis=1)
        spare = times(np.abs(rows), self.most) * (rows.shape[1] * DOUBLE.u)
        return (np.maximum(high, -low) + spare) * UP

    @property
    def size(self) -> Matrix:
        """How large coordinates of y can be."""
        return (self.largest(self.basis) + times(np.abs(self.basis), self.whole)) * UP

    def read(self, weights: Matrix) -> tuple[Matrix, Matrix]:
        """What columns of weights read, as rows over features, and how far these may be off."""
        return product(np.ascontiguousarray(weights.T), self.basis)

    def total(self, weights: Matrix) -> Matrix:
        """The sums of the magnitudes of all terms of the products of y with columns of weights, at most."""
        return times(np.abs(weights).T, self.size)

    def rounding(self, weights: Matrix) -> Matrix:
        """How far the products of y with columns of weights are rounded."""
        total = self.total(weights)
        return rounding(np.count_nonzero(weights, axis=0), total, self.grid * step_of(weights, axis=0))

    def off_by(self, rows: Matrix, error: Matrix, wanted: Matrix) -> Matrix:
        """How far rows over features may be from those that are wanted, without rounding."""
        apart = self.largest(rows - wanted) + times(error, self.most)
        return (apart + times(np.abs(rows) + error, self.whole)) * UP

    def magnitude(self, weights: Matrix) -> Matrix:
        """How large the products of y with columns of weights can be, as they are computed."""
        rows, error = self.read(weights)
        drift = times(np.abs(rows) + error, self.whole) + times(error, self.most)
        return (self.largest(rows) + drift + self.rounding(weights)) * UP

    def in_features(self, columns: Matrix, error: Matrix) -> Matrix:
        """Vectors of y in terms of features: the magnitudes of their components, at most."""
        found, own = product(self.inverse, columns)
        most = np.abs(found) + own + times(np.abs(self.inverse), error)
        return (most + self.rest * most.max(axis=0, initial=0.0)) * UP

    def signed(self, columns: Matrix, error: Matrix) -> tuple[Matrix, Matrix]:
        """Vectors of y in terms of features, and how far that may be off."""
        found, own = product(self.inverse, columns)
        off = own + times(np.abs(self.inverse), error)
        most = np.abs(found) + off
        return found, (off + self.rest * most.max(axis=0, initial=0.0)) * UP

    def adds(self, bound: Matrix) -> None:
        """Errors of coordinates of y, up to a bound for each."""
        if bound.any():
            columns = np.diag(bound)
            self.off = (self.off + self.in_features(columns, np.zeros_like(columns)).sum(axis=1)) * UP
            self.grid = 0.0
