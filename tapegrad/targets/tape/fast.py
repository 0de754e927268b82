"""The fast engine: the same gradient steps, using that s and H are one-hot.

It reads the compiled arrays only (weights of vertices and edges, the maps T_down, T_next and S, the
constants) and never the machine. At s = e_v the gradient of (21) in s is, coordinate by coordinate,

    4 w_vu on edges v -> u,  2 w_uv on edges u -> v,  4 w_v at v itself,  0 elsewhere,
    plus 4 b^2 (t_v - n) . T_down e_u everywhere, where n are the symbols at the next places of the heads,

by the slopes of `directed` and `corner`. In T it is (symbol - symbol to write) under the heads, in H it is
-1 at the new and +1 at the old place of each head; everything else is 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.descent.loss import SLOPE_BACKWARD, SLOPE_FORWARD

HALTED, OUT_OF_BUDGET, LEFT_TAPE = 0, 1, 2

_CORNER_SLOPE = 4.0  # of corner(x, 1/4) at its vertex


class FastArrays(NamedTuple):
    """The compiled arrays, edges sorted by where they start, with the slope that each gives."""

    down: NDArray[np.float64]
    written: NDArray[np.float64]
    moves: NDArray[np.int64]
    vertex_weight: NDArray[np.float64]
    first_edge: NDArray[np.int64]
    edge_to: NDArray[np.int64]
    forward: NDArray[np.float64]
    edge_from: NDArray[np.int64]
    backward: NDArray[np.float64]
    others: NDArray[np.float64]
    """For each vertex v a lower bound, without the read term, of coordinates that no edge from v reaches."""


def prepare(
    down: NDArray,
    written: NDArray,
    moves: NDArray,
    vertex_weight: NDArray,
    edge_from: NDArray,
    edge_to: NDArray,
    edge_weight: NDArray,
) -> FastArrays:
    """Sorts the edges and bounds what lies beside them."""
    order = np.argsort(edge_from, kind="stable")
    counts = np.bincount(edge_from, minlength=len(down))
    others = np.minimum(0.0, _CORNER_SLOPE * vertex_weight)
    np.minimum.at(others, edge_to, SLOPE_BACKWARD * edge_weight)
    return FastArrays(
        down=np.ascontiguousarray(down, np.float64),
        written=np.ascontiguousarray(written, np.float64),
        moves=np.ascontiguousarray(moves, np.int64),
        vertex_weight=np.ascontiguousarray(vertex_weight, np.float64),
        first_edge=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        edge_to=edge_to[order].astype(np.int64),
        forward=SLOPE_FORWARD * edge_weight[order],
        edge_from=edge_from[order].astype(np.int64),
        backward=SLOPE_BACKWARD * edge_weight[order],
        others=others,
    )


@njit()
def run(net, v, T, heads, read_only, b, c, low, budget):
    """Gradient steps until the loss is at most B_low, the budget is spent or a head would leave its tape.
    Changes `T` and `heads` in place; returns vertex, steps taken, status and the tape concerned."""
    tapes = T.shape[1]
    pull = np.empty(tapes)
    for taken in range(budget + 1):
        loss = c + net.vertex_weight[v]
        reading = 0.0
        for i in range(tapes):
            move = net.moves[v, i]
            place = heads[i] + move
            if place < 0 or place >= T.shape[0]:
                return v, taken, LEFT_TAPE, i
            change = T[heads[i], i] - net.written[v, i]
            pull[i] = 4 * b * b * (net.down[v, i] - T[place, i])
            reading -= abs(pull[i])
            loss += 0.5 * change * change + pull[i] * pull[i] / (8 * b * b) + move * move
        if loss <= low:
            return v, taken, HALTED, 0
        if taken == budget:
            break
        best, best_slope = v, np.inf
        for edge in range(net.first_edge[v], net.first_edge[v + 1]):
            w = net.edge_to[edge]
            slope = net.forward[edge]
            for i in range(tapes):
                slope += pull[i] * net.down[w, i]
            if slope < best_slope:
                best, best_slope = w, slope
        if best_slope >= net.others[v] + reading:  # something beside the edges might be as good: look at all
            best = _steepest(simplex_gradient(net, v, pull), v)
        for i in range(tapes):
            if i >= read_only:
                T[heads[i], i] -= T[heads[i], i] - net.written[v, i]
            heads[i] += net.moves[v, i]
        v = best
    return v, budget, OUT_OF_BUDGET, 0


@njit()
def simplex_gradient(net, v, pull):
    """The gradient in s, every coordinate of it."""
    gradient = np.zeros(len(net.vertex_weight))
    gradient[v] = _CORNER_SLOPE * net.vertex_weight[v]
    for edge in range(len(net.edge_to)):
        if net.edge_from[edge] == v:
            gradient[net.edge_to[edge]] += net.forward[edge]
        if net.edge_to[edge] == v:
            gradient[net.edge_from[edge]] += net.backward[edge]
    for w in range(len(gradient)):
        for i in range(len(pull)):
            gradient[w] += pull[i] * net.down[w, i]
    return gradient


@njit()
def _steepest(gradient, v):
    """The vertex of steepest descent; v itself unless another is strictly better, as the optimiser has it."""
    best = np.argmin(gradient)
    return best if gradient[best] < gradient[v] else v


def loss(net: FastArrays, v: int, T: NDArray, heads: NDArray, b: float, c: float) -> float:
    """The loss (21) that `run` compares with B_low, where the next places of the heads are on the tape."""
    tape = np.arange(T.shape[1])
    change = T[heads, tape] - net.written[v]
    reading = net.down[v] - T[heads + net.moves[v], tape]
    return float(
        c + net.vertex_weight[v] + (change**2 / 2 + 2 * b * b * reading**2 + net.moves[v] ** 2).sum()
    )


def gradient(
    net: FastArrays, v: int, T: NDArray, heads: NDArray, read_only: int, b: float
) -> tuple[NDArray, NDArray, NDArray]:
    """The gradients in s, T and H that `run` acts on, written out in full for comparison."""
    tape = np.arange(T.shape[1])
    places = heads + net.moves[v]
    pull = 4 * b * b * (net.down[v] - T[places, tape])
    in_tapes, in_heads = np.zeros_like(T), np.zeros_like(T)
    in_tapes[heads, tape] = T[heads, tape] - net.written[v]
    in_heads[heads, tape] += 1
    in_heads[places, tape] -= 1
    return simplex_gradient(net, v, pull), in_tapes[:, read_only:], in_heads
