"""Boolean functions as ordered decision diagrams: equal functions are equal literals.

A node has a level, a literal where its variable is 0 and one where it is 1; as in `nodes`, a literal is twice
the number of a node, plus one if it is negated, and 0 and 1 are the constants. The literal of the 1-side is
never negated. Everything that is written for `Nodes` (words, the pages of instruction sets) works on these
too. What `nodes` must prove is here a comparison of numbers; but functions such as the product of two words
have no small diagram, and beyond a number of nodes it is given up.

Words should be interleaved, the lowest bits first: then sums, differences and comparisons stay small.
"""

from typing import Any

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import NotProved

BOTTOM = 1 << 60
"""The level of the constants."""


class Diagrams(Nodes):
    """All nodes so far."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._level, self._low, self._high = [BOTTOM], [FALSE], [FALSE]
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._ands: dict[tuple[int, int], int] = {}
        self._xors: dict[tuple[int, int], int] = {}
        self._cofactors: dict[tuple[int, int], int] = {}
        self._disjoint: set[tuple[int, int]] = set()

    def variable(self, level: int) -> int:
        """The variable of a level; the same each time."""
        return self._node(level, FALSE, TRUE)

    def and_(self, a: int, b: int) -> int:
        """1 if both are 1."""
        if a > b:
            a, b = b, a
        if a == FALSE or a ^ b == 1:
            return FALSE
        if a in (TRUE, b):
            return b
        key = a, b
        found = self._ands.get(key)
        if found is None:
            level, (a_low, a_high), (b_low, b_high) = self._opened(a, b)
            found = self._node(level, self.and_(a_low, b_low), self.and_(a_high, b_high))
            self._ands[key] = found
        return found

    def xor(self, a: int, b: int) -> int:
        """1 if they differ."""
        negated = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        if a > b:
            a, b = b, a
        if a == b:
            return negated
        if a == FALSE:
            return b ^ negated
        key = a, b
        found = self._xors.get(key)
        if found is None:
            level, (a_low, a_high), (b_low, b_high) = self._opened(a, b)
            found = self._node(level, self.xor(a_low, b_low), self.xor(a_high, b_high))
            self._xors[key] = found
        return found ^ negated

    def disjoint(self, a: int, b: int) -> bool:
        """Whether two functions are never both 1. No node is made, and the first place where both are 1
        decides."""
        if FALSE in (a, b) or a ^ b == 1:
            return True
        if a == b or TRUE in (a, b):
            return False
        key = (a, b) if a < b else (b, a)
        if key in self._disjoint:
            return True
        _, (a_low, a_high), (b_low, b_high) = self._opened(a, b)
        if self.disjoint(a_low, b_low) and self.disjoint(a_high, b_high):
            self._disjoint.add(key)
            return True
        return False

    def within(self, function: int, condition: int) -> int:
        """A function that is the same wherever the condition is 1, and mostly smaller: where it is 0, the
        value at some other place is taken (the generalised cofactor). So functions of which one is 1
        wherever the condition is, and no two, are so everywhere afterwards."""
        if condition == TRUE or function in (FALSE, TRUE):
            return function
        assert condition != FALSE
        if function >> 1 == condition >> 1:
            return TRUE if function == condition else FALSE
        key = function, condition
        found = self._cofactors.get(key)
        if found is None:
            level, (low, high), (c_low, c_high) = self._opened(function, condition)
            if c_low == FALSE:
                found = self.within(high, c_high)
            elif c_high == FALSE:
                found = self.within(low, c_low)
            else:
                found = self._node(level, self.within(low, c_low), self.within(high, c_high))
            self._cofactors[key] = found
        return found

    def example(self, function: int) -> set[int]:
        """Levels of variables that are 1, all others 0, where the function is 1; it must not be 0."""
        ones = set()
        while function != TRUE:
            level, (low, high), _ = self._opened(function, function)
            if low == FALSE:
                ones.add(level)
            function = high if low == FALSE else low
        return ones

    def mark(self) -> tuple[int, ...]:
        """How far it has come, for `forget`."""
        return len(self._level), len(self._ands), len(self._xors), len(self._cofactors)

    def forget(self, mark: tuple[int, ...]) -> None:
        """Drops the nodes since that mark. No literal of one may be used afterwards. What was worked out
        before it stays: dictionaries keep the order in which they grew."""
        count, *known = mark
        for own in (self._level, self._low, self._high):
            del own[count:]
        for table, size in zip((self._ands, self._xors, self._cofactors), known, strict=True):
            _cut(table, size)
        _cut(self._nodes, count - 1)
        self._disjoint.clear()

    def _opened(self, a: int, b: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
        """The higher of the levels of two literals, and both sides of each."""
        levels = self._level[a >> 1], self._level[b >> 1]
        level = min(levels)
        sides = [
            (self._low[own >> 1] ^ own & 1, self._high[own >> 1] ^ own & 1) if at == level else (own, own)
            for own, at in zip((a, b), levels, strict=True)
        ]
        return level, sides[0], sides[1]

    def _node(self, level: int, low: int, high: int) -> int:
        if low == high:
            return low
        if high & 1:
            return self._node(level, low ^ 1, high ^ 1) ^ 1
        key = level, low, high
        found = self._nodes.get(key)
        if found is None:
            if len(self._level) > self.most:
                raise NotProved("the formulas of the table grow too large")
            found = self._nodes[key] = 2 * len(self._level)
            self._level.append(level)
            self._low.append(low)
            self._high.append(high)
        return found


def _cut(table: dict[Any, int], size: int) -> None:
    while len(table) > size:
        table.popitem()
