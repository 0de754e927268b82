"""The circuit of a learner as vertices of a practical network, ANDs and ORs of many operands joined in one.

Lemma 1 has a vertex for a gate with two operands. Its proof does as well for k: with operands at -2 and 2,
their sum plus 2(k - 1) is 2 or more if one of them is true and -2 otherwise (OR), and their sum less
2(k - 1) is 2 if all are and -2 or less otherwise (AND). So a tree of ORs whose inner gates are read by
nothing else is one vertex with k + 1 edges instead of k - 1 vertices with 3 edges each, and where one of its
operands changes, one vertex is visited instead of log k. A word of memory is read by such a tree.

Only trees of one shape are joined, that of `circuits.words`: pairs, pairs of pairs, and so on, an odd one at
the end left as it is. In this shape the larger half is a full binary tree; and from the operands alone, in
their order, the tree can be built again, as the checker does.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.targets.emulator.graph import COMPARED, CONSTANT, NEVER, flip_wires

MOST = 128
"""Operands of one vertex: a memory of 2^14 words is read in two levels, and sums stay below 2^10."""

FALSE, TRUE, ID, NOT = (int(gate) for gate in (Gate.FALSE, Gate.TRUE, Gate.ID, Gate.NOT))
AND, NAND, OR, NOR = (int(gate) for gate in (Gate.AND, Gate.NAND, Gate.OR, Gate.NOR))
XOR, XNOR = int(Gate.XOR), int(Gate.XNOR)

INNER = np.full(16, -1, np.int8)
"""The kind of gate that may be joined to one of this kind."""
INNER[[AND, NAND]], INNER[[OR, NOR]] = AND, OR


class Joined(NamedTuple):
    """Gates of which some are joined to the one that reads them."""

    given: int
    """Wires before the first gate."""
    kinds: NDArray[np.uint8]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    """Where one of the operands has more of its own joined, this is not the one."""
    used: NDArray[np.int32]
    """How many read the wire of each gate; a gate that none does has no vertex."""
    sizes: NDArray[np.int32]
    """Operands of each gate, with those of the gates joined to it."""
    joins: NDArray[np.uint8]
    """Whether the left operand is joined to the gate (1), and the right (2)."""
    is_joined: NDArray[np.bool_]
    answer: int
    finished: int
    flips: NDArray[np.int64]
    """The wires that say: the answer, whether the learner has finished, which cells are to change."""

    @property
    def has_vertex(self) -> NDArray[np.bool_]:
        """Which gates are vertices of their own."""
        return (self.used > 0) & ~self.is_joined

    def counts(self) -> tuple[int, int]:
        """How many vertices and edges there are."""
        kinds, sizes = self.kinds[self.has_vertex], self.sizes[self.has_vertex]
        is_xor = (kinds == XOR) | (kinds == XNOR)
        edges = np.where(is_xor, 7, np.where(INNER[kinds] >= 0, sizes + 1, 1))
        return len(kinds) + int(is_xor.sum()), int(edges.sum())

    def vertices(
        self, inputs: NDArray[np.int64], first: int, scale: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """From the vertices of the circuit's inputs, and the number of the first vertex: how many edges each
        vertex has, where they come from, their weights; and the vertex of every wire that has one."""
        vertices, edges = self.counts()
        counts, sources = np.zeros(vertices, np.int64), np.zeros(edges, np.int64)
        weights, wires = np.zeros(edges), np.append(inputs, np.full(len(self.kinds), -1))
        gates = self.given, self.kinds, self.left, self.right, self.joins
        _emit(*gates, self.sizes, self.has_vertex, first, scale, counts, sources, weights, wires)
        return counts, sources, weights, wires


def joined(circuit: Circuit, cells: int) -> Joined:
    """The gates that answer, finished and flips need. Where a flip is not a wire of the circuit, a gate that
    compares old and new is added, and one that is always 0 for all bits that never change."""
    given = len(circuit.inputs)
    flips = flip_wires(circuit, cells)
    compared, never = np.flatnonzero(flips == COMPARED), np.flatnonzero(flips == NEVER)
    extra = circuit.wires + np.arange(len(compared) + 1)
    flips[compared], flips[never] = extra[:-1], extra[-1]
    kinds = np.concatenate([circuit.kinds, np.full(len(compared), XOR), [FALSE]]).astype(np.uint8)
    left = np.concatenate([circuit.left, compared, [0]]).astype(np.int64)
    right = np.concatenate([circuit.right, circuit.output_wires[2:][compared], [0]]).astype(np.int64)
    answer, finished = circuit.output_wires[:2].tolist()
    used = np.bincount(np.append(flips, [answer, finished]), minlength=extra[-1] + 1).astype(np.int32)
    _use(given, kinds, ARITY, left, right, used)
    sizes, joins = np.zeros(len(kinds), np.int32), np.zeros(len(kinds), np.uint8)
    is_joined = np.zeros(len(kinds), np.bool_)
    _join(given, kinds, left, right, used, sizes, joins, is_joined)
    return Joined(given, kinds, left, right, used[given:], sizes, joins, is_joined, answer, finished, flips)


@njit()
def _use(given, kinds, arity, left, right, used):
    for g in range(len(kinds) - 1, -1, -1):
        if used[given + g] > 0:
            if arity[kinds[g]] >= 1:
                used[left[g]] += 1
            if arity[kinds[g]] == 2:
                used[right[g]] += 1


@njit()
def _join(given, kinds, left, right, used, sizes, joins, is_joined):
    """Joins gates, the first first. A full tree has a power of two of operands, and is never the smaller
    part of a tree in the wrong place: so its size says that it is full."""
    full = np.zeros(len(kinds), np.bool_)
    for g in range(len(kinds)):
        inner = INNER[kinds[g]]
        if used[given + g] == 0 or inner < 0:
            continue
        a, b = left[g] - given, right[g] - given
        size_a = sizes[a] if a >= 0 and kinds[a] == inner and used[given + a] == 1 else 1
        size_b = sizes[b] if b >= 0 and kinds[b] == inner and used[given + b] == 1 else 1
        full_a, full_b = size_a == 1 or full[a], size_b == 1 or full[b]
        if size_a < size_b or (size_a == size_b and not full_a):  # the larger part first
            left[g], right[g] = right[g], left[g]
            a, b, size_a, size_b, full_a, full_b = b, a, size_b, size_a, full_b, full_a
        if not full_a or size_a + size_b > MOST:
            size_a = size_b = 1
            full_a = full_b = True
        sizes[g] = size_a + size_b
        full[g] = size_a == size_b and full_a and full_b
        if size_a > 1:
            joins[g] |= 1
            is_joined[a] = True
        if size_b > 1:
            joins[g] |= 2
            is_joined[b] = True


@njit()
def _emit(
    given, kinds, left, right, joins, sizes, has_vertex, first, scale, counts, sources, weights, wires
):  # fmt: skip
    e = v = 0
    ahead = np.zeros(MOST, np.int64)
    for g in range(len(kinds)):
        if not has_vertex[g]:
            continue
        kind, begin = kinds[g], e
        if INNER[kind] >= 0:
            sign = -scale if kind in (NAND, NOR) else scale
            ahead[0], count = g, 1
            while count > 0:  # operands from left to right; a wire is -1 less its number
                count -= 1
                one = ahead[count]
                if one < 0:
                    sources[e], weights[e] = wires[-1 - one], sign
                    e += 1
                    continue
                ahead[count] = right[one] - given if joins[one] & 2 else -1 - right[one]
                ahead[count + 1] = left[one] - given if joins[one] & 1 else -1 - left[one]
                count += 2
            constant = 2 * (sizes[g] - 1) * sign
            sources[e], weights[e] = CONSTANT, constant if INNER[kind] == OR else -constant
            e += 1
        elif kind in (XOR, XNOR):
            # a + b - 3 (a and b) - 4 is -2, 2, 2, -6 for 00, 01, 10, 11.
            sign = scale if kind == XOR else -scale
            a, b = wires[left[g]], wires[right[g]]
            for source, weight in ((a, scale), (b, scale), (CONSTANT, -2 * scale)):
                sources[e], weights[e] = source, weight
                e += 1
            counts[v] = 3
            for source, weight in ((a, sign), (b, sign), (first + v, -3 * sign), (CONSTANT, -4 * sign)):
                sources[e], weights[e] = source, weight
                e += 1
            v, begin = v + 1, begin + 3
        else:
            sources[e] = CONSTANT if kind in (FALSE, TRUE) else wires[left[g]]
            size = 2 * scale if kind in (FALSE, TRUE) else scale
            weights[e] = -size if kind in (FALSE, NOT) else size
            e += 1
        counts[v] = e - begin
        wires[given + g] = first + v
        v += 1
