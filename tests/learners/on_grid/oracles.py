"""The learning algorithms again, over numpy and Python, without a grid."""

import numpy as np


def majority(X, y, x):
    return 1 if y.sum() >= 0 else -1


def single_coordinate(X, y, x):
    fitting = [j for j in range(X.shape[1]) if (X[:, j] == y).all()]
    return int(x[fitting[-1]]) if fitting else 1


def conjunction(X, y, x):
    literals = {(j, sign) for j in range(X.shape[1]) for sign in (-1, 1)}
    for row in X[y == 1]:
        literals = {(j, sign) for j, sign in literals if row[j] == sign}
    return 1 if all(x[j] == sign for j, sign in literals) else -1


def nearest_neighbour(X, y, x):
    distances = (x != X).sum(axis=1)
    return int(y[np.flatnonzero(distances == distances.min())[-1]])


def parity(X, y, x):
    """Row after row as integers: bits of a row, its label in the bit above them."""
    d = X.shape[1]
    rows = [
        sum(int(v < 0) << j for j, v in enumerate([*row, label])) for row, label in zip(X, y, strict=True)
    ]
    test = sum(int(v < 0) << j for j, v in enumerate(x))
    for i in range(len(rows)):
        features = rows[i] & ((1 << d) - 1)
        if features:
            pivot = features & -features
            rows = [row ^ rows[i] if k != i and row & pivot else row for k, row in enumerate(rows)]
            test = test ^ rows[i] if test & pivot else test
    return -1 if test >> d else 1


ORACLES = {
    "majority": majority,
    "single-coordinate": single_coordinate,
    "conjunction": conjunction,
    "nearest-neighbour": nearest_neighbour,
    "parity": parity,
}


def problem(name, m, d, rng):
    """Samples that suit the algorithm half of the time, and coin tosses otherwise."""
    X = rng.choice([-1, 1], (m, d))
    chosen = rng.random(d) < 0.5
    labels = {
        "single-coordinate": X[:, int(rng.integers(d))],
        "conjunction": np.where(((X == 1) | ~chosen).all(axis=1), 1, -1),
        "parity": np.where(chosen, X, 1).prod(axis=1),
    }
    y = labels.get(name) if rng.random() < 0.5 else None
    return X, rng.choice([-1, 1], m) if y is None else y, rng.choice([-1, 1], d)
