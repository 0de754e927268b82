"""Linear algebra, beside which the emulator of the parity learner is measured."""

import numpy as np


def eliminated(x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """The subset whose parity explains the labels, by Gaussian elimination on whole columns; None if the
    samples contradict each other or leave several subsets."""
    system = np.column_stack([x, y]).astype(bool)
    n, rank = x.shape[1], 0
    for column in range(n):
        pivots = np.flatnonzero(system[rank:, column])
        if len(pivots) == 0:
            return None
        system[[rank, rank + pivots[0]]] = system[[rank + pivots[0], rank]]
        others = system[:, column].copy()
        others[rank] = False
        system[others] ^= system[rank]
        rank += 1
    return None if system[rank:, n].any() else system[:n, n].astype(int)
