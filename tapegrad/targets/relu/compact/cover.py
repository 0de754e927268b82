"""Which gates of up to four inputs a graph of ANDs and XORs is made of.

A cut of a node is a set of nodes below it, its leaves, without which it cannot be computed; over them it is a
gate, with a truth table. Cuts of a node come from pairs of cuts of its operands. A cut with a leaf on which the
table does not depend is none: without it the others would do, but that they do could no longer be seen from the
gates between them and the node, as a proof from near by must. For each node the cheapest
few are kept, by the cost of the gate and a fair share of the cost of what it reads (area flow). A cover
chooses a cut for each output, for the leaves of these cuts, and so on. Where a cover is known, sharing is
known, and nodes choose again: first by flow with the true number of readers, then by what a choice would
really add to the cover.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from tapegrad._jit import njit
from tapegrad.targets.relu.compact.graph import Graph
from tapegrad.targets.relu.compact.recipes import Catalogue

LEAVES = 4
KEPT = 8
"""Cuts of each node that are kept, besides the one that is the node itself."""
FLOW_ROUNDS, EXACT_ROUNDS = 2, 2


class Cover(NamedTuple):
    """The gates, in an order in which what they read comes first."""

    node: Int[np.ndarray, " gates"]
    leaves: Int[np.ndarray, "gates four"]
    """Nodes, -1 where there are fewer."""
    table: Int[np.ndarray, " gates"]


def cover(graph: Graph, catalogue: Catalogue) -> Cover:
    """Gates that compute all outputs, few and cheap."""
    first = graph.inputs + 1
    roots = np.unique(graph.outputs >> 1)
    roots = roots[roots >= first]
    costs = catalogue.cost.astype(np.float32)
    leaves, tables, counts = _cuts(graph.left, graph.right, graph.is_xor, first, costs)
    chosen = _choose(leaves, tables, counts, first, roots, costs, _fanout(graph, roots))
    node = np.flatnonzero(chosen >= 0)
    return Cover(node, leaves[node, chosen[node]], tables[node, chosen[node]].astype(np.int64))


def _fanout(graph: Graph, roots: Int[np.ndarray, " roots"]) -> Int[np.ndarray, " nodes"]:
    count = np.zeros(len(graph.left), np.int32)
    for side in (graph.left, graph.right):
        count += np.bincount(side[graph.inputs + 1 :] >> 1, minlength=len(count)).astype(np.int32)
    count[roots] += 1
    return np.maximum(count, 1)


@njit()
def _spread(table, own, merged, count):
    """A truth table over some leaves, as one over more of them. Leaves that are not there are -1."""
    place = np.zeros(LEAVES, np.int64)
    used = 0
    for i in range(LEAVES):
        if own[i] >= 0:
            used += 1
            for j in range(count):
                if merged[j] == own[i]:
                    place[i] = j
    found = 0
    for row in range(1 << LEAVES):
        entry = 0
        for i in range(used):
            entry |= (row >> place[i] & 1) << i
        found |= (table >> entry & 1) << row
    return found


@njit()
def _merged(one, two, into):
    """The union of two sorted sets of leaves; its size, or -1 if there are too many."""
    i = j = count = 0
    while True:
        a = one[i] if i < LEAVES and one[i] >= 0 else -1
        b = two[j] if j < LEAVES and two[j] >= 0 else -1
        if a < 0 and b < 0:
            break
        if count == LEAVES:
            return -1
        if b < 0 or 0 <= a <= b:
            into[count] = a
            i += 1
            j += a == b
        else:
            into[count] = b
            j += 1
        count += 1
    for k in range(count, LEAVES):
        into[k] = -1
    return count


@njit()
def _depends_on_all(table, count):
    """Whether a table over so many leaves depends on each of them."""
    for i in range(count):
        depends = False
        for row in range(1 << LEAVES):
            if row >> i & 1 == 0 and (table >> row ^ table >> (row | 1 << i)) & 1:
                depends = True
        if not depends:
            return False
    return True


@njit()
def _cuts(left, right, is_xor, first, costs):
    """For each node its cuts and their tables: cut 0 is the node itself, the others are sorted by flow."""
    nodes = len(left)
    leaves = np.full((nodes, KEPT + 1, LEAVES), -1, np.int32)
    tables = np.zeros((nodes, KEPT + 1), np.uint16)
    counts = np.ones(nodes, np.int64)
    flow = np.zeros(nodes, np.float32)
    readers = np.zeros(nodes, np.float32)
    for node in range(first, nodes):
        readers[left[node] >> 1] += 1
        readers[right[node] >> 1] += 1
    rank = np.zeros(KEPT + 1, np.float32)
    into = np.zeros(LEAVES, np.int32)
    for node in range(nodes):
        leaves[node, 0, 0] = node
        tables[node, 0] = 0xAAAA
        if node < first:
            continue
        a, b = left[node] >> 1, right[node] >> 1
        count = 1
        for one in range(counts[a]):
            for two in range(counts[b]):
                size = _merged(leaves[a, one], leaves[b, two], into)
                if size < 0:
                    continue
                x = _spread(np.int64(tables[a, one]), leaves[a, one], into, size)
                y = _spread(np.int64(tables[b, two]), leaves[b, two], into, size)
                x ^= 0xFFFF if left[node] & 1 else 0
                y ^= 0xFFFF if right[node] & 1 else 0
                table = x ^ y if is_xor[node] else x & y
                if not _depends_on_all(table, size):
                    continue
                price = costs[table]
                for i in range(size):
                    price += flow[into[i]]
                count = _insert(leaves[node], tables[node], rank, count, into, table, price)
        counts[node] = count
        flow[node] = rank[1] / max(readers[node], np.float32(1))
    return leaves, tables, counts


@njit()
def _insert(leaves, tables, rank, count, into, table, price):
    """Among the best few, unless the same leaves are there already."""
    for known in range(1, count):
        if (leaves[known] == into).all():
            return count
    if count == KEPT + 1:
        if price >= rank[KEPT]:
            return count
        count -= 1
    at = count
    while at > 1 and rank[at - 1] > price:
        leaves[at], tables[at], rank[at] = leaves[at - 1], tables[at - 1], rank[at - 1]
        at -= 1
    leaves[at], tables[at], rank[at] = into, table, price
    return count + 1


@njit()
def _choose(leaves, tables, counts, first, roots, costs, fanout):
    """The cut of each node of the cover, -1 for other nodes."""
    nodes = len(leaves)
    best = np.ones(nodes, np.int64)
    share = fanout.astype(np.float32)
    readers = np.zeros(nodes, np.int32)
    for _ in range(FLOW_ROUNDS):
        flow = np.zeros(nodes, np.float32)
        for node in range(first, nodes):
            cheapest = np.float32(np.inf)
            for cut in range(1, counts[node]):
                price = costs[tables[node, cut]]
                for leaf in leaves[node, cut]:
                    price += flow[leaf] if leaf >= 0 else 0
                if price < cheapest:
                    cheapest, best[node] = price, cut
            flow[node] = cheapest / max(share[node], np.float32(1))
        readers[:] = 0
        for root in roots:
            readers[root] += 1
        for node in range(nodes - 1, first - 1, -1):
            if readers[node]:
                for leaf in leaves[node, best[node]]:
                    if leaf >= 0:
                        readers[leaf] += 1
        share = (share + 2 * readers.astype(np.float32)) / 3
    stack = np.zeros(nodes, np.int32)
    for _ in range(EXACT_ROUNDS):
        for node in range(first, nodes):
            if readers[node]:
                _change(leaves, tables, best, node, readers, costs, first, stack, -1)
                cheapest, found = np.float32(np.inf), best[node]
                for cut in range(1, counts[node]):
                    best[node] = cut
                    price = _change(leaves, tables, best, node, readers, costs, first, stack, 1)
                    _change(leaves, tables, best, node, readers, costs, first, stack, -1)
                    if price < cheapest:
                        cheapest, found = price, cut
                best[node] = found
                _change(leaves, tables, best, node, readers, costs, first, stack, 1)
    for node in range(nodes):
        if node < first or not readers[node]:
            best[node] = -1
    return best


@njit()
def _change(leaves, tables, best, node, readers, costs, first, stack, sign):
    """Takes the gate of a node into the cover (sign 1) or out of it (-1), with everything that it alone
    needs; what that costs."""
    stack[0], top = node, 1
    price = np.float32(0)
    while top:
        top -= 1
        own = stack[top]
        price += costs[tables[own, best[own]]]
        for leaf in leaves[own, best[own]]:
            if leaf >= first:
                before = readers[leaf]
                readers[leaf] += sign
                if before == 0 or readers[leaf] == 0:
                    stack[top] = leaf
                    top += 1
    return price
