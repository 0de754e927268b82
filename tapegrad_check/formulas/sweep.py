"""Proving that formulas are the same though they are built differently: nodes are merged, from the inputs up.

All nodes are computed on a few thousand inputs. Two that agree on all of them may be the same function. If
they are, it can mostly be seen from near by: over a few nodes below both, their truth tables are the same. So
node by node, in order, each is built again from what its operands have become, and takes the place of an
earlier one if it is proved to be that. Formulas of one algorithm grow together in this way from adder to
adder. What is not proved stays apart; nothing is ever believed because it agreed on some inputs.

Some bits are almost never 1 on random inputs, or almost never 0: that a word is 93, that an address is in
memory. What depends on them would all look alike. Where both sides depend on such a bit, it is first taken to
be free: what holds whatever it is, holds. Which bits these are depends on what is left to prove, so it is
tried again with that, as long as something is gained.
"""

import random
from collections.abc import Iterable, Sequence
from functools import cache, reduce
from heapq import heappop, heappush
from operator import and_, or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapegrad_check.formulas.nodes import Nodes

PATTERNS, BANDS = 4096, 16
RARE = PATTERNS // 64
ROUNDS = 6
LEAVES, INNER, CANDIDATES, FAILURES = 12, 64, 8, 1 << 10
"""Nodes below, and in between, that a proof looks at; how many nodes one is compared with; and how many times
that may fail altogether."""

Pairs = Sequence[tuple[int, int]]


def unproved(nodes: "Nodes", pairs: Pairs) -> Pairs:
    """Which of these pairs of literals are not proved to be the same function."""
    near_by = _Merging(nodes, 0)
    pairs = [pair for pair in pairs if near_by.failures >= FAILURES or not near_by.same(*pair)]
    frees = True
    for attempt in range(ROUNDS if pairs else 0):
        before = len(pairs)
        sides = [below(nodes, (pair[side] >> 1 for pair in pairs)) for side in (0, 1)]
        merged = _Merging(nodes.__class__(4 * len(sides[0] | sides[1]) + 4), attempt)
        become = {0: 0}
        for node in sorted(sides[0] | sides[1]):
            operands = nodes.operands[node]
            if operands is None:
                become[node] = merged.variable()
                continue
            a, b = (become[literal >> 1] ^ literal & 1 for literal in operands)
            found = merged.gate(nodes.is_xor[node], a, b)
            frees_it = frees and node in sides[0] and node in sides[1] and merged.is_rare(found)
            become[node] = merged.variable() if frees_it else found
        pairs = [(a, b) for a, b in pairs if not merged.same(become[a >> 1] ^ a & 1, become[b >> 1] ^ b & 1)]
        if not pairs or (len(pairs) == before and not frees):
            break
        frees = len(pairs) < before
    return pairs


def below(nodes: "Nodes", roots: Iterable[int]) -> set[int]:
    """All nodes that these depend on, and they themselves, but for the constant."""
    seen = {0}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += (literal >> 1 for literal in nodes.operands[node] or ())
    return seen - {0}


class _Merging:
    """Nodes of which no two, as far as can be seen, are the same function."""

    def __init__(self, nodes: "Nodes", seed: int) -> None:
        self.nodes, self.random = nodes, random.Random(seed)
        self.every = (1 << PATTERNS) - 1
        self.values, self.alike = [0], {0: [0]}
        """What every node is on all patterns; and nodes by that, or by its complement if that is smaller."""
        self.failures = 0
        self.proved: dict[int, int] = {}
        """Nodes that are an earlier literal."""

    def variable(self) -> int:
        """A new one. On each band of the patterns it is 1 with another probability, from 1/256 to 255/256,
        because words of zeros and of ones are what programs are about."""
        value = 0
        for band in range(BANDS):
            drawn = [self.random.getrandbits(PATTERNS // BANDS) for _ in range(1 + band // 2)]
            value = value << PATTERNS // BANDS | reduce(and_ if band % 2 else or_, drawn)
        (literal,) = self.nodes.variables(1)
        self.values.append(value)
        self._remember(literal)
        return literal

    def is_rare(self, literal: int) -> bool:
        """Whether it is 1, or 0, on a few of the patterns only; a constant is not."""
        ones = self.values[literal >> 1].bit_count()
        return literal > 1 and min(ones, PATTERNS - ones) < RARE

    def gate(self, is_xor: bool, a: int, b: int) -> int:
        """The AND or XOR of two literals, or what it is the same as."""
        known = len(self.values)
        literal = self.nodes.xor(a, b) if is_xor else self.nodes.and_(a, b)
        if literal >> 1 < known:
            return self.proved.get(literal >> 1, literal & ~1) ^ literal & 1
        x, y = (self.values[own >> 1] ^ (self.every if own & 1 else 0) for own in (a, b))
        value = (x ^ y if is_xor else x & y) ^ (self.every if literal & 1 else 0)
        self.values.append(value)
        alike = self.alike.get(min(value, value ^ self.every), [])
        for other in alike[:CANDIDATES] if self.failures < FAILURES else ():
            candidate = other ^ (self.values[other >> 1] != value)
            if self.same(literal & ~1, candidate):
                self.proved[literal >> 1] = candidate
                return candidate ^ literal & 1
        self._remember(literal & ~1)
        return literal

    def _remember(self, literal: int) -> None:
        value = self.values[literal >> 1]
        self.alike.setdefault(min(value, value ^ self.every), []).append(literal)

    def same(self, a: int, b: int) -> bool:
        """Whether it can be seen from near by. What to look at is a guess, so there are two: wherever it
        takes no more nodes, or down to what both have in common."""
        if a == b or self._same_over(a, b, set()):
            return True
        found = self._same_over(a, b, self._near(a >> 1) & self._near(b >> 1))
        self.failures += not found
        return found

    def _same_over(self, a: int, b: int, last: set[int]) -> bool:
        """Over a few nodes below both, the truth tables are the same. Nodes are opened whose operands are
        there already, or else the highest, as long as there are few enough; some of them last."""
        operands = self.nodes.operands
        leaves, inner = {a >> 1, b >> 1} - {0}, []
        while len(inner) < INNER:
            new = [
                (node in last, len({own[0] >> 1, own[1] >> 1} - leaves), -node)
                for node in leaves
                if (own := operands[node]) is not None
            ]
            if not new or len(leaves) + min(new)[1] - 1 > LEAVES:
                break
            top = min(new)[2]
            own = operands[-top]
            assert own is not None
            leaves = leaves - {-top} | {own[0] >> 1, own[1] >> 1}
            inner.append(-top)
        tables = {0: 0} | dict(zip(sorted(leaves), columns(len(leaves)), strict=True))
        every = (1 << (1 << len(leaves))) - 1
        for node in sorted(inner):
            own = operands[node]
            assert own is not None
            x, y = (tables[literal >> 1] ^ (every if literal & 1 else 0) for literal in own)
            tables[node] = x ^ y if self.nodes.is_xor[node] else x & y
        return tables[a >> 1] ^ tables[b >> 1] == (every if (a ^ b) & 1 else 0)

    def _near(self, node: int) -> set[int]:
        """A node and those below it, the highest first, as far as a proof looks."""
        found: set[int] = set()
        waiting = [-node]
        while waiting and len(found) < 2 * INNER:
            top = -heappop(waiting)
            if top not in found:
                found.add(top)
                for literal in self.nodes.operands[top] or ():
                    heappush(waiting, -(literal >> 1))
        return found


@cache
def columns(count: int) -> list[int]:
    """The columns of a truth table of so many variables."""
    every = (1 << (1 << count)) - 1
    return [every // ((1 << (1 << i)) + 1) << (1 << i) for i in range(count)]
