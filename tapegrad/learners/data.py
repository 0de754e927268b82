"""Data as users have them, as bits: one convention for everything that fits and predicts.

- **Features** are bits: 0 and 1, or -1 and +1. Other numbers are taken with a `threshold`, above which they
  count as 1: a number, or "mean" for the mean of each feature in the first samples.
- **Cuts** make several bits of a feature: whether it lies above each of some places between its values.
- **Labels** are any values; the classes are these in order, and the first one stands for 0. Where only one
  occurs it must tell which it is (0, 1 or -1).
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import DataError


def thresholds_of(X: NDArray[Any], threshold: float | str | None) -> NDArray[np.float64] | None:
    """One for each feature; None if the features are bits."""
    if threshold is None:
        return None
    if isinstance(threshold, str) and threshold == "mean":
        return X.mean(axis=0)
    if isinstance(threshold, str):
        raise DataError(f"the threshold is a number or 'mean', not {threshold!r}")
    return np.full(X.shape[1], float(threshold))


def bits_of(X: NDArray[Any], thresholds: NDArray[np.float64] | None) -> NDArray[np.uint8]:
    """The features as bits."""
    if thresholds is not None:
        return (thresholds < X).astype(np.uint8)
    lower = 0 if (X == 0).any() else -1
    good = np.isin(X, (lower, 1))
    if not good.all():
        row, column = np.argwhere(~good)[0]
        coding = "0 or 1" if lower == 0 else "-1 or +1, or 0 or 1"
        raise DataError(
            f"features must be {coding}, not {X[row, column].item()!r}",
            where=f"sample {row + 1}, feature {column + 1}",
            advice="Give a threshold, above which a feature counts as 1.",
        )
    return (X == 1).astype(np.uint8)


def cuts_of(column: NDArray[Any], most: int) -> NDArray[np.float64]:
    """Where a feature is cut into bits, each saying whether it lies above: between distinct values, at all
    places if there are no more than `most`, else at those nearest to the quantiles 1 / (most + 1), ... So
    bits pass as they are, and only a feature that never varies becomes a bit that never does."""
    values, counts = np.unique(np.asarray(column, float), return_counts=True)
    if np.isin(values, (0, 1)).all():
        return np.array([0.5])
    if len(values) == 1:
        return values
    places = np.arange(len(values) - 1)
    if len(places) > most:
        wanted = len(column) * np.arange(1, most + 1)
        places = np.unique(np.abs(np.cumsum(counts[:-1]) * (most + 1) - wanted[:, None]).argmin(axis=1))
    below, next_up = values[places], values[places + 1]
    middle = below / 2 + next_up / 2
    return np.where((below <= middle) & (middle < next_up), middle, below)


def labels_of(y: ArrayLike) -> NDArray[Any]:
    """Labels as an array. Integers stay integers: NumPy would make floats of such as no type of its own holds
    all of."""
    labels = np.asarray(y)
    rounded = labels.dtype.kind == "f" and not hasattr(y, "dtype") and np.ndim(y) == 1
    whole = rounded and all(isinstance(own, int | np.integer) for own in cast(Sequence[Any], y))
    return np.array(y, object) if whole else labels


def classes_of(y: NDArray[Any], zero_one: bool, most: int | None = None) -> NDArray[Any]:
    """The classes in order, `most` of them at most. If only one occurs it must tell which it is; the other is
    then possible as an answer too. Beside a 1 alone it is called as the lower value of the features is."""
    found = np.unique(y)
    if len(found) == 1 and y.dtype.kind in "biuf":
        other = {-1: 1, 0: 1, 1: 0 if zero_one or y.dtype.kind in "bu" else -1}.get(found[0].item())
        if other is not None:
            found = np.sort(np.append(found, np.array(other, dtype=y.dtype)))
    if len(found) < 2:
        raise DataError(
            f"there must be at least two classes, not {len(found)} class(es)",
            advice="Labels of -1 and +1, or 0 and 1, may all be the same.",
        )
    if most is not None and len(found) > most:
        what = "Only binary classification is supported: there must be two classes"
        raise DataError(
            f"{what if most == 2 else f'at most {most} classes can be told apart'}, not {len(found)}"
        )
    return found


def numbers_of(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The labels as the numbers of their classes."""
    known = np.isin(y, classes)
    if not known.all():
        listed = ", ".join(repr(own.item()) for own in classes[:10])
        raise DataError(f"y holds the label {y[~known][0].item()!r}, which is none of the classes {listed}")
    return np.searchsorted(classes, y)
