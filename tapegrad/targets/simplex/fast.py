"""The fast engine: at s = e_v only v and its neighbours have a gradient, so it looks at nothing else.

By the slopes of `corner` and `edge`, coordinate v of the gradient is 2 (w_v - B), a neighbour's is
2 (w_vu - B), and everything else is 0; all of the former are negative, B being above every weight.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.simplex.loss import SimplexLoss

_SLOPE = 2.0


class FastArrays(NamedTuple):
    """The neighbours of each vertex, along edges in either direction, with the gradient towards each."""

    own: NDArray[np.float64]
    first: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    slope: NDArray[np.float64]
    vertex_weight: NDArray[np.float64]


def prepare(loss: SimplexLoss) -> FastArrays:
    """Sorts the edges, each seen from both of its ends."""
    ends = np.concatenate([loss.edge_from, loss.edge_to])
    others = np.concatenate([loss.edge_to, loss.edge_from])
    slopes = _SLOPE * (np.concatenate([loss.edge_weight, loss.edge_weight]) - loss.outside)
    order = np.argsort(ends, kind="stable")
    counts = np.bincount(ends, minlength=len(loss.vertex_weight))
    return FastArrays(
        own=_SLOPE * (loss.vertex_weight - loss.outside),
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        neighbour=others[order].astype(np.int64),
        slope=slopes[order],
        vertex_weight=np.asarray(loss.vertex_weight, np.float64),
    )


@njit()
def run(net, v, low, budget):
    """Gradient steps until the loss is at most B_low or the budget is spent; returns vertex and steps."""
    for taken in range(budget):
        if net.vertex_weight[v] <= low:
            return v, taken
        best, best_slope = v, net.own[v]
        for place in range(net.first[v], net.first[v + 1]):
            if net.slope[place] < best_slope:
                best, best_slope = net.neighbour[place], net.slope[place]
        v = best
    return v, budget


def gradient(net: FastArrays, v: int) -> NDArray[np.float64]:
    """The gradient in s that `run` acts on, written out in full for comparison."""
    full = np.zeros(len(net.own))
    full[v] = net.own[v]
    places = slice(net.first[v], net.first[v + 1])
    full[net.neighbour[places]] += net.slope[places]
    return full
