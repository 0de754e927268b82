"""Shared nodes that look one step further: an AND is compared with the operands of what it joins.

Circuits as they are written hold the same value more than once, in forms that `Nodes` keeps apart: a and (a
and b), a and not (a and b), a XOR out of ANDs. A compiler that simplifies makes one value of them. Here they
are one node too. Every rule is an identity of Boolean algebra, in terms of nodes that exist.
"""

from tapegrad_check.formulas.nodes import FALSE, Nodes


class Folded(Nodes):
    """Nodes with more identities of AND."""

    def and_(self, a: int, b: int) -> int:
        """1 if both are 1."""
        for x, y in ((a, b), (b, a)):
            inner = self.operands[y >> 1]
            if inner is None or x >> 1 == y >> 1 or x < 2:
                continue
            if self.is_xor[y >> 1]:
                mine = [own for own in inner if own >> 1 == x >> 1]
                if mine:  # where x is 1, x xor z is not z
                    z = inner[0] if inner[1] == mine[0] else inner[1]
                    return self.and_(x, z ^ (y & 1) ^ 1 ^ (x & 1))
            elif y & 1:
                if x ^ 1 in inner:  # x and not (not x and z)
                    return x
                if x in inner:  # x and not (x and z)
                    return self.and_(x, (inner[0] if inner[1] == x else inner[1]) ^ 1)
            elif x in inner:  # x and (x and z)
                return y
            elif x ^ 1 in inner:  # x and (not x and z)
                return FALSE
        first, second = self._of_and(a), self._of_and(b)
        if first and second and (a ^ b) & 1 == 0:
            opposed = [own for own in first if own ^ 1 in second]
            if a & 1 and len(opposed) == 2:  # not (p and q), not (not p and not q)
                return self.xor(*first)
            if not a & 1 and opposed:
                return FALSE
        return super().and_(a, b)

    def _of_and(self, literal: int) -> tuple[int, int] | None:
        return None if self.is_xor[literal >> 1] else self.operands[literal >> 1]
