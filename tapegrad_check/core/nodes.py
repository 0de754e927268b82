"""Boolean functions as shared nodes: two that are built alike are the same number.

A literal is twice the number of a node, plus one if it is negated; 0 and 1 are the constants. Nodes are
variables, ANDs and XORs. Negations are pulled to the front, operands sorted, constants and repeated operands
folded away; so the twelve ways to write a gate down become one, and equal literals are equal functions. The
converse does not hold: unequal literals may still be the same function.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.sources import Circuit

FALSE, TRUE = 0, 1
PATTERNS = 1 << 14
"""So many random inputs look for a difference between functions that are built differently."""
MOST_VALUES = 1 << 26
"""Words of 64 of them, for all nodes together."""

Likely = Callable[[np.random.Generator, int], Mapping[int, NDArray[np.uint64]]]
"""Draws so many words of inputs, 64 to a word, for some of the variables, by their nodes."""


class Nodes:
    """All nodes so far. More than `most` of them are refused, so that work is bounded by what was read; a
    circuit gives no more nodes than it has inputs and gates, and needs no bound."""

    def __init__(self, most: float = math.inf) -> None:
        self.most = most
        self.operands: list[tuple[int, int] | None] = [None]
        """Of an AND or XOR; None for a variable. Which it is: `is_xor`."""
        self.is_xor: list[bool] = [False]
        self._known: dict[tuple[bool, int, int], int] = {}

    def variables(self, count: int) -> list[int]:
        """New variables, as literals."""
        return [self._new(None, False) for _ in range(count)]

    def and_(self, a: int, b: int) -> int:
        """1 if both are 1."""
        if a > b:
            a, b = b, a
        if a == FALSE or a ^ b == 1:
            return FALSE
        if a in (TRUE, b):
            return b
        return self._shared(False, a, b)

    def or_(self, a: int, b: int) -> int:
        """1 if one is 1."""
        return self.and_(a ^ 1, b ^ 1) ^ 1

    def xor(self, a: int, b: int) -> int:
        """1 if they differ; a xor (a xor z) is z."""
        negated = (a ^ b) & 1
        a, b = sorted((a & ~1, b & ~1))
        if a == b:
            return negated
        if a == FALSE:
            return b ^ negated
        for one, other in ((a, b), (b, a)):
            inner = self.operands[other >> 1]
            if self.is_xor[other >> 1] and inner is not None and one in inner:
                return (inner[0] if inner[1] == one else inner[1]) ^ negated
        return self._shared(True, a, b) ^ negated

    def gate(self, kind: int, a: int, b: int) -> int:
        """The gate whose truth table is `kind`: bit 2a + b is its value for operands a, b."""
        low, high = kind & 3, kind >> 2
        if low == high:  # b alone matters
            return (FALSE, b ^ 1, b, TRUE)[low]
        if low == high ^ 3:  # a, xor b if that matters
            return self.xor(a, (TRUE, b ^ 1, b, FALSE)[low]) if low in (1, 2) else a ^ (low == 3)
        if kind.bit_count() == 3:
            return self.gate(kind ^ 15, a, b) ^ 1
        at = kind.bit_length() - 1
        return self.and_(a ^ (at < 2), b ^ (at % 2 == 0))

    def tree(self, gate: Callable[[int, int], int], literals: Sequence[int], empty: int) -> int:
        """Many literals joined in pairs, pairs of pairs and so on, in order."""
        level = list(literals)
        while len(level) > 1:
            paired = [gate(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
            level = paired + level[len(level) // 2 * 2 :]
        return level[0] if level else empty

    def any_of(self, literals: Sequence[int]) -> int:
        """1 if one is 1."""
        return self.tree(self.or_, literals, FALSE)

    def all_of(self, literals: Sequence[int]) -> int:
        """1 if all are 1."""
        return self.tree(self.and_, literals, TRUE)

    def wires(self, circuit: Circuit, inputs: Sequence[int]) -> list[int]:
        """The literal of every wire of a circuit on these inputs."""
        found = list(inputs)
        rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
        for kind, left, right in rows:
            constant = kind in (0, 15)  # its operands are 0, and there may be no wire 0
            found.append(kind & 1 if constant else self.gate(kind, found[left], found[right]))
        return found

    def outputs(self, circuit: Circuit, inputs: Sequence[int]) -> list[int]:
        """The literals of a circuit's outputs."""
        wires = self.wires(circuit, inputs)
        return [wires[wire] for wire in circuit.output_wires.tolist()]

    def assuming(self, literal: int, value: int, literals: Sequence[int]) -> list[int]:
        """What these become if the literal is taken to be a constant. If two formulas are the same with 0 and
        with 1, they are the same: it is one or the other."""
        become = {literal >> 1: value ^ literal & 1}
        for node in sorted(below(self, (own >> 1 for own in literals))):
            operands = self.operands[node]
            if node not in become and operands and any(own >> 1 in become for own in operands):
                a, b = (become.get(own >> 1, own & ~1) ^ own & 1 for own in operands)
                become[node] = self.xor(a, b) if self.is_xor[node] else self.and_(a, b)
        return [become.get(own >> 1, own & ~1) ^ own & 1 for own in literals]

    def require_same(
        self,
        found: Sequence[int],
        wanted: Sequence[int],
        what: str,
        names: Sequence[str] = (),
        likely: Likely | None = None,
    ) -> None:
        """The same functions. Those that are not built alike are computed on inputs, some of them drawn by
        `likely`: one on which they differ is a proof that they are not. Else they become functions of the
        core, of which no two are the same as far as can be proved, from the inputs up."""
        from tapegrad_check.core.functions import Functions  # functions are nodes of another kind

        differing = [number for number, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b]
        if not differing:
            return
        at = [f", at {names[number]}" if names else "" for number in differing]
        pairs = [(found[number], wanted[number]) for number in differing]
        for drawn in (None, likely) if likely else (None,):
            values = self._values(np.random.default_rng(0), drawn)
            for (a, b), where in zip(pairs, at, strict=True):
                if (_signed(values[a >> 1], a) != _signed(values[b >> 1], b)).any():
                    raise CheckError(f"{what}{where}")
        functions = Functions()
        functions.sweeps = True
        become = self._built_again(functions, pairs)
        for (a, b), where in sorted(zip(pairs, at, strict=True)):  # the smallest first
            differ = functions.differ(become[a >> 1] ^ a & 1, become[b >> 1] ^ b & 1)
            if differ:
                raise CheckError(f"{what}{where}")
            if differ is None:
                raise NotProved(f"{what}, or is built in a way that the checker does not know{where}")

    def _built_again(self, functions: "Nodes", pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
        """What these literals depend on, node by node."""
        nodes = sorted(below(self, (own >> 1 for pair in pairs for own in pair)))
        free = [node for node in nodes if self.operands[node] is None]
        become = {0: FALSE} | dict(zip(free, functions.variables(len(free)), strict=True))
        for node in nodes:
            if (operands := self.operands[node]) is not None:
                a, b = (become[own >> 1] ^ own & 1 for own in operands)
                become[node] = functions.xor(a, b) if self.is_xor[node] else functions.and_(a, b)
        return become

    def _values(self, random: np.random.Generator, likely: Likely | None) -> list[NDArray[np.uint64]]:
        """Every node on random inputs, 64 to a word; on fewer of them where there are many nodes."""
        words = max(1, min(PATTERNS // 64, MOST_VALUES // len(self.operands)))
        zero = np.zeros(words, np.uint64)
        drawn = likely(random, words) if likely else {}
        values: list[NDArray[np.uint64]] = []
        for node, (operands, is_xor) in enumerate(zip(self.operands, self.is_xor, strict=True)):
            if operands is None:
                own = random.integers(1 << 64, size=words, dtype=np.uint64)
                values.append(drawn.get(node, own) if node else zero)
                continue
            x, y = (_signed(values[operand >> 1], operand) for operand in operands)
            values.append(x ^ y if is_xor else x & y)
        return values

    def _shared(self, is_xor: bool, a: int, b: int) -> int:
        key = is_xor, a, b
        if key not in self._known:
            self._known[key] = self._new((a, b), is_xor)
        return self._known[key]

    def _new(self, operands: tuple[int, int] | None, is_xor: bool) -> int:
        if len(self.operands) > self.most:
            raise CheckError("what would have to be followed is out of proportion to the size of the files")
        self.operands.append(operands)
        self.is_xor.append(is_xor)
        return 2 * (len(self.operands) - 1)


def _signed(values: NDArray[np.uint64], literal: int) -> NDArray[np.uint64]:
    return ~values if literal & 1 else values


def below(nodes: Nodes, roots: Iterable[int]) -> set[int]:
    """All nodes that these depend on, and they themselves, but for the constant."""
    seen = {0}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += (literal >> 1 for literal in nodes.operands[node] or ())
    return seen - {0}
