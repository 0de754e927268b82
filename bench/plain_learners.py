"""The algorithms of the ready learners once more, in plain Python and NumPy on whole data sets.

They share nothing with the learners: a tree is grown by recursion, probabilities are exact fractions,
neighbours are sorted. Each takes training points, labels (0 and 1, or numbers of classes) and points to be
classified, and gives a score for each of these: of class 1, or a column for each class.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]
Scorer = Callable[[Matrix, Matrix, Matrix], Matrix]


def decision_tree(X: Matrix, y: Matrix, T: Matrix, depth: int) -> Matrix:
    """The part of class 1 in the leaf of each point, by CART with Gini impurity; of several features that
    are equally good the first."""

    def impurity(labels: Matrix) -> Fraction:
        ones = int(labels.sum())
        return Fraction(2 * ones * (len(labels) - ones), len(labels))

    def grow(rows: Matrix, points: Matrix, deep: int) -> None:
        labels = y[rows]
        best, split = None, None
        for feature in range(X.shape[1] if deep else 0):
            right = X[rows, feature] == 1
            if right.all() or not right.any():
                continue
            left_over = impurity(labels[right]) + impurity(labels[~right])
            if best is None or left_over < best:
                best, split = left_over, feature
        if split is None:
            found[points] = labels.mean()
            return
        for side in (0, 1):
            grow(rows[X[rows, split] == side], points[T[points, split] == side], deep - 1)

    found = np.zeros(len(T))
    grow(np.arange(len(X)), np.arange(len(T)), depth)
    return found - 0.5


def naive_bayes(X: Matrix, y: Matrix, T: Matrix, alpha: float = 1.0) -> Matrix:
    """For each class, an exact fraction: its samples times the product of (agreeing + alpha) / (all + 2
    alpha) over the features."""
    exact, columns = Fraction(alpha), []
    for own in range(int(y.max()) + 1):
        mine = X[y == own]
        size, ones = len(mine), mine.sum(axis=0).tolist()
        likely = [
            [Fraction(n) + exact for n in (size - k, k)]  # of a bit that is 0, and of one that is 1
            for k in ones
        ]
        below = (size + 2 * exact) ** X.shape[1]
        column = []
        for point in T.tolist():
            product = Fraction(size)
            for bit, factors in zip(point, likely, strict=True):
                product *= factors[bit]
            column.append(product / below)
        columns.append(column)
    return np.array(columns, object).T


def nearest(X: Matrix, y: Matrix, T: Matrix, k: int) -> Matrix:
    """The votes for each class of the k nearest; of two as near the earlier."""
    distances = (T[:, None, :] != X[None, :, :]).sum(axis=2)
    chosen = y[np.argsort(distances, axis=1, kind="stable")[:, :k]]
    return np.column_stack([(chosen == own).sum(axis=1) for own in range(int(y.max()) + 1)])


def perceptron(X: Matrix, y: Matrix, T: Matrix, passes: int) -> Matrix:
    """w x + b, after correcting w and b wherever the sign was not right."""
    w, b = np.zeros(X.shape[1], int), 0
    for _ in range(passes):
        for point, sign in zip(X, 2 * y - 1, strict=True):
            if sign * (point @ w + b) <= 0:
                w, b = w + sign * point, b + sign
    return T @ w + b


def winnow(X: Matrix, y: Matrix, T: Matrix, passes: int, floor: int = 8) -> Matrix:
    """The sum of the weights of the literals that hold, less their number."""
    n, w = X.shape[1], np.ones(2 * X.shape[1])
    for _ in range(passes):
        for point, label in zip(X, y, strict=True):
            holds = np.append(point, 1 - point) == 1
            if (w[holds].sum() > n) != label:
                w[holds] = w[holds] * 2 if label else np.maximum(w[holds] / 2, 2.0**-floor)
    return np.column_stack([T, 1 - T]) @ w - n


def classified(scorer: Scorer, X: Matrix, y: Matrix, T: Matrix) -> Matrix:
    """The class of each point: the one with the highest score, the first of several; of scores for class 1
    alone, by a threshold at 0, or, for more than two classes, one against the rest."""
    classes = int(y.max()) + 1
    if classes > 2 and getattr(scorer, "func", scorer) not in (naive_bayes, nearest):
        columns = [scorer(X, (y == own).astype(int), T) for own in range(classes)]
        scores = np.column_stack(columns)
    else:
        scores = scorer(X, y, T)
    if scores.ndim == 1:
        return (scores > 0).astype(int)
    return np.array([max(range(len(row)), key=row.__getitem__) for row in scores.tolist()])
