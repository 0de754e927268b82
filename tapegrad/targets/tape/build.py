"""The graph of section 4.4: a vertex for each control state and symbols under the heads; and the
constants of the loss (21)."""

from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, Refused
from tapegrad.machines.model import STAY, TuringMachine

# The constants b, gamma and c of the loss (21), and the bounds that tell running from halted.


GAMMA = 1
"""With gamma = 1 the rate 1 / gamma and every gradient of a tape or head weight are whole numbers."""

_LARGEST_LOSS = 2**50
"""Whole numbers and their thirds stay exact in double precision below this."""

_TRIES = 1 << 17


@dataclass(frozen=True)
class Constants:
    """b, c, B_low (which is also B_stop) and B_high for machines with `tapes` tapes; gamma is 1."""

    tapes: int
    b: int
    c: int
    low: int
    high: int
    exact: bool
    """Whether the chain rule through the square root is free of rounding at every loss that occurs."""

    @classmethod
    def of(cls, tapes: int, b: float, c: float, low: float) -> Self:
        """Those with this b and c and this B_low, which lies twice as far below c as B_high."""
        if not all(0 <= own <= _LARGEST_LOSS and own == int(own) for own in (b, c, low)):
            raise BrokenNet(f"no loss has the constants b = {b:g}, c = {c:g} and B_low = {low:g}")
        whole_b, whole_c = int(b), int(c)
        exact = bool(_is_exact(np.array([whole_c]), tapes, whole_b)[0])
        return cls(tapes, whole_b, whole_c, int(low), (int(low) + whole_c) // 2, exact)

    @property
    def halted_at_most(self) -> int:
        """The second line of (23): no halted state has a larger loss."""
        return self.c + 8 * self.b**2 * self.tapes + 3 * self.tapes - self.b**3


@cache
def choose(tapes: int, final_loss: float) -> Constants:
    """Constants for a machine with this many tapes, whose primary network ends with at most this loss.

    b is the smallest power of two that leaves a gap between halted and running, b^3 > 8 b^2 d + 3 d, so that
    it satisfies (18) in the stricter of the two forms of its second line, b^3 - 2 d b >= 4 d b^2. The gap is
    cut into thirds by B_low and B_high. c is large enough for the loss to stay positive (c > b^3) and for
    B_stop = B_low to exceed the final loss of the primary network. From there on up we take the first c for
    which the chain rule of sqrt(2 l) rounds nowhere, if there is one nearby; otherwise tapes and heads are
    off by some 1e-16, which every later write corrects.
    """
    b = 2
    while b**3 <= 8 * b**2 * tapes + 3 * tapes + 3:
        b *= 2
    third = (b**3 - 8 * b**2 * tapes - 3 * tapes) // 3
    least = max(b**3 + 1, int(np.ceil(final_loss)) + 2 * third + 1)
    if least + 16 * b**3 > _LARGEST_LOSS:
        raise Refused(
            f"the primary network may end with a loss of {final_loss:.3g}, too large for double precision",
            advice="Use a number format with fewer bits before the point.",
        )
    offset = _first_exact(least, tapes, b)
    c = least + (offset or 0)
    return Constants(tapes, b, c, low=c - 2 * third, high=c - third, exact=offset is not None)


def _first_exact(least: int, tapes: int, b: int) -> int | None:
    """The first offset from there on at which no loss that occurs makes the chain rule round."""
    for first in range(0, _TRIES, 1 << 12):
        good = _is_exact(least + np.arange(first, first + (1 << 12)), tapes, b)
        if good.any():
            return first + int(np.argmax(good))
    return None


def _is_exact(c: NDArray[np.int64], tapes: int, b: int) -> NDArray[np.bool_]:
    """Automatic differentiation computes d sqrt(u) as (1/2) / sqrt(u), times the incoming a = sqrt(u). The
    product is exactly 1/2 for most u but not for all. While the machine runs, only (d + 1)^2 values of the
    loss occur: d for the moving heads, 2 for each changed symbol, 8 b^2 for each symbol read anew."""
    counts = np.arange(tapes + 1)
    values = (tapes + 2 * counts[:, None] + 8 * b**2 * counts[None, :]).ravel()
    root = np.sqrt(2.0 * (c[:, None] + values[None, :]))
    return np.all(root * (0.5 / root) == 0.5, axis=1)


MOST_VERTICES, MOST_EDGES = 1 << 22, 1 << 24


@dataclass(frozen=True)
class Graph:
    """What the network knows of a machine: numbers for each vertex and each edge, no names. Vertex
    `q 2^d + code` is control state q with symbols `code`, bit i of which is 1 where head i reads +1."""

    down: NDArray[np.int8]
    """T_down: the symbols (-1 or +1) under the heads, one row for each vertex."""
    written: NDArray[np.int8]
    """T_next: the symbols to write."""
    moves: NDArray[np.int8]
    """By how much the heads move: -1 or +1, and 0 at vertices that halt."""
    vertex_weight: NDArray[np.float64]
    edge_from: NDArray[np.int32]
    edge_to: NDArray[np.int32]
    edge_weight: NDArray[np.float64]

    def checked(self) -> Self:
        """Itself, if its arrays fit together: engines look up what stands at these numbers unasked."""
        vertices, edges = len(self.vertex_weight), len(self.edge_weight)
        per_vertex, per_edge = (self.down, self.written, self.moves), (self.edge_from, self.edge_to)
        numbers = self.vertex_weight, self.edge_weight
        if (
            any(array.ndim != 2 or array.shape != self.down.shape for array in per_vertex)
            or any(array.shape != (edges,) for array in per_edge)
            or any(array.ndim != 1 or array.dtype.kind != "f" for array in numbers)
            or any(array.dtype.kind != "i" for array in (*per_vertex, *per_edge))
            or len(self.down) != vertices
        ):
            raise BrokenNet("the arrays of the graph do not fit together")
        if (np.abs(self.moves.astype(np.int64)) > 1).any():
            raise BrokenNet("a head moves by more than a cell")
        if any(((array < 0) | (array >= vertices)).any() for array in per_edge):
            raise BrokenNet("an edge of the graph leads to no vertex")
        return self


def sizes(machine: TuringMachine) -> tuple[int, int]:
    """Numbers of vertices and edges, without building them."""
    symbols = 2**machine.tapes
    return len(machine.states) * symbols, len(machine.rules) * symbols


def has_two_cycle(machine: TuringMachine) -> bool:
    """Whether two states lead to each other, or one to itself: what (20) forbids."""
    steps = {(state, rule.state) for (state, _), rule in machine.rules.items()}
    return any((after, before) in steps for before, after in steps)


def build_graph(machine: TuringMachine, constants: Constants) -> Graph:
    """The vertices, their maps and the weights (17) of a binary, stay-free machine without two-cycles.

    A vertex halts where the machine has no rule: there the weight is -b^3, nothing is written or moved, and
    no edge leaves. From any other vertex edges lead to its successor state with every combination of
    symbols, and weigh -(b^3 + b * number of symbols that stay as they are).
    """
    _check(machine)
    tapes, b = machine.tapes, constants.b
    codes = np.arange(2**tapes)
    signs = np.where(codes[:, None] >> np.arange(tapes) & 1, 1, -1).astype(np.int8)
    down = np.tile(signs, (len(machine.states), 1))
    written, moves = down.copy(), np.zeros_like(down)
    vertex_weight = np.full(len(down), -float(b**3))
    number = {state: index for index, state in enumerate(machine.states)}
    sources = np.empty(len(machine.rules), np.int64)
    targets = np.empty(len(machine.rules), np.int64)
    for row, ((state, read), rule) in enumerate(machine.rules.items()):
        code = sum((symbol != machine.blank) << tape for tape, symbol in enumerate(read))
        vertex = number[state] * len(codes) + code
        written[vertex] = [1 if symbol != machine.blank else -1 for symbol in rule.write]
        moves[vertex] = rule.moves
        vertex_weight[vertex] = 0.0
        sources[row], targets[row] = vertex, number[rule.state] * len(codes)
    edge_from = np.repeat(sources, len(codes))
    edge_to = (targets[:, None] + codes[None, :]).ravel()
    unchanged = np.sum(down[edge_from] == down[edge_to], axis=1)
    return Graph(
        down=down,
        written=written,
        moves=moves,
        vertex_weight=vertex_weight,
        edge_from=edge_from.astype(np.int32),
        edge_to=edge_to.astype(np.int32),
        edge_weight=-(b**3 + unchanged * b).astype(float),
    )


def _check(machine: TuringMachine) -> None:
    if len(machine.alphabet) > 2:
        raise Refused(
            f"the machine {machine.name!r} has {len(machine.alphabet)} symbols; this loss knows two",
            advice="Rewrite it with binary_tracks first.",
        )
    if any(STAY in rule.moves for rule in machine.rules.values()):
        raise Refused(
            f"a head of the machine {machine.name!r} may stay in its place",
            advice="Rewrite it with stay_free first: the next cell is read before the write lands.",
        )
    if has_two_cycle(machine):
        raise Refused(
            f"two states of the machine {machine.name!r} lead to each other, which condition (20) forbids",
            advice="Rewrite it with triple_states first.",
        )
    vertices, edges = sizes(machine)
    if vertices > MOST_VERTICES or edges > MOST_EDGES:
        raise Refused(
            f"the graph would have {vertices:,} vertices and {edges:,} edges; "
            f"the limits are {MOST_VERTICES:,} and {MOST_EDGES:,}",
            advice="Use fewer tapes or a smaller alphabet: both numbers double with each binary tape.",
        )
