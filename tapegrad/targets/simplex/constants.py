"""The weights (10) and (15) of vertices and edges, from the number of steps that are left to the halt."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused, SourceError

_LARGEST_LOSS = 2**50


@dataclass(frozen=True)
class Levels:
    """W_k = unit (1 + 3 k): the weight of a configuration k steps before its halt. B_low = 2 unit and
    B_high = 3 unit cut the gap between W_0 and W_1 into thirds; B = W_K lies above all that occur."""

    unit: int
    most: int
    """The largest k."""

    @property
    def low(self) -> int:
        """B_low, which is also B_stop."""
        return 2 * self.unit

    @property
    def high(self) -> int:
        """B_high."""
        return 3 * self.unit

    @property
    def outside(self) -> int:
        """B: the weight of pairs that no step joins."""
        return self.unit * (1 + 3 * (self.most + 1))


def choose(most: int, final_loss: float) -> Levels:
    """The smallest unit, a power of two, for which B_stop exceeds the final loss of the primary network."""
    unit = 1
    while 2 * unit <= final_loss:
        unit *= 2
    levels = Levels(unit, most)
    if levels.outside > _LARGEST_LOSS:
        raise Refused(f"{most:,} steps and a loss of {final_loss:.3g} are too much for double precision")
    return levels


def steps_left(successor: NDArray[np.int32]) -> NDArray[np.int64]:
    """k(v): how many steps lead from each vertex to its halt, by looking 1, 2, 4, ... steps ahead."""
    ahead = np.array(successor)
    left = (ahead != np.arange(len(ahead))).astype(np.int64)
    for _ in range(len(ahead).bit_length()):
        left += left[ahead]
        ahead = ahead[ahead]
    if not np.array_equal(successor[ahead], ahead):
        raise SourceError("the successors of some configuration go round in a circle")
    return left


def weighted(successor: NDArray[np.int32], levels: Levels) -> dict[str, NDArray]:
    """w_v = W_k(v) for vertices, the mean of both ends for edges."""
    weight = levels.unit * (1.0 + 3.0 * steps_left(successor))
    running = np.flatnonzero(successor != np.arange(len(successor)))
    return {
        "vertex_weight": weight,
        "edge_from": running.astype(np.int32),
        "edge_to": successor[running],
        "edge_weight": (weight[running] + weight[successor[running]]) / 2,
    }
