"""Boolean functions, of which no two are the same as far as can be proved: bits of networks and of sources.

A literal is twice the number of a node, plus one if it is negated; 0 and 1 are the constants. Nodes are
variables, ANDs and XORs, numbered so that operands come first. All are computed on thousands of inputs. A new
one that agrees with an earlier one on all of these may be the same function, and is replaced by it if that is
proved: by a truth table over a few nodes, or by a solver, whose proof is checked. So functions that are
computed in two ways grow together from the inputs up ("SAT sweeping": Kuehlmann and Krohm, 1997). Where they
are not the same, the solver may find an input that tells them apart, which joins the others. Nothing is ever
believed because it agreed on inputs.
"""

import random
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache, reduce
from itertools import chain
from operator import and_, or_
from typing import NamedTuple

from tapegrad_check.core.lrat import Clause
from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.core.solver import solve
from tapegrad_check.folder import CheckError, NotProved

AND, XOR, SAME = 0b1000, 0b0110, 0b10
"""Truth tables: in row r, variable i is bit i of r."""
PATTERNS, BANDS = 2048, 16
"""Inputs on which all is computed. In each band of them bits are 1 with another probability, from 1/256 to
255/256, because words of zeros and ones are what programs are about."""
EXTRA, MOST_PATTERNS = 128, 1 << 14
"""Inputs that join when two functions were told apart: that one, and others near to it."""
CANDIDATES = 4
"""Earlier nodes that one is compared with."""
WINDOW, MOST_COLUMNS = 24, 8
"""Nodes that are looked at for a truth table, and variables that it may have."""
SIZES, CONFLICTS = (32, 128, 512, 2048), 1000
"""Nodes that the solver is given: few, then more. What these depend on is taken to be anything, so that what
is proved holds all the same."""
MOST_ASKED = 6
"""Variables of a truth table that the solver is given as it is."""
MOST_KNOWN = 3
"""Ways to compute a node that are remembered beside its own."""
LOST, LOST_PER_WON = 64, 4
"""How often so many nodes may have been too few to tell, or others been compared in vain; after that they are
not tried again."""
PATIENCE = 1 << 16
"""Conflicts for what has to be proved."""

Known = tuple[int, tuple[int, ...]]
"""A truth table, and literals."""


class Effort(IntEnum):
    """What may be spent on a proof: a look near by; some questions to the solver; or what has to be known."""

    LOOK, ASK, SETTLE = range(3)


class Cone(NamedTuple):
    """Nodes below some others: those that say what they are of their operands, and those that could be
    anything."""

    inner: Sequence[int]
    leaves: Iterable[int]


class Functions(Nodes):
    """All nodes so far."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.patterns, self.every = PATTERNS, (1 << PATTERNS) - 1
        self.values: list[int] = [0]
        """What each node is on the inputs."""
        self.alike: dict[int, list[int]] = {0: [FALSE]}
        """Literals by what they are on the inputs, or by its complement: the first input gives 0."""
        self.also: dict[int, list[Known]] = {}
        """What nodes are beside what they say themselves, as was proved."""
        self.sweeps = False
        """Whether the solver is asked about functions that nothing is hinted of: not while the source is
        built, whose functions need not be merged."""
        self.in_vain: dict[int, int] = {}
        """How often a node was compared in vain with others that agree on the inputs, by what they are on
        these: many functions are 0 on all of them and are not the same."""
        self.questions = 0
        self.margin = dict.fromkeys(SIZES, LOST)

    # Building

    def variables(self, count: int) -> list[int]:
        """New ones. On half of the inputs those before some variable and after another are 0: so words are
        small and large."""
        ends = [sorted(self.random.randrange(count + 1) for _ in range(2)) for _ in range(self.patterns // 2)]
        found = []
        for number in range(count):
            value = 0
            for band in range(BANDS):
                drawn = [self.random.getrandbits(PATTERNS // BANDS) for _ in range(1 + band // 2)]
                value = value << PATTERNS // BANDS | reduce(and_ if band % 2 else or_, drawn)
            value |= self.random.getrandbits(self.patterns - PATTERNS + 1) << PATTERNS
            within = int("".join("1" if first <= number < last else "0" for first, last in ends), 2)
            literal = self._added(None, False, value & (within | self.every ^ (1 << len(ends)) - 1))
            self.alike.setdefault(self._key(literal), []).append(literal)
            found.append(literal)
        return found

    def where(self, condition: int, yes: int, no: int) -> int:
        """One of two."""
        if yes == no:
            return yes
        if yes == no ^ 1:
            return self.xor(condition, no)
        return self.or_(self.and_(condition, yes), self.and_(condition ^ 1, no))

    def table(self, table: int, leaves: Sequence[int], hint: int | None = None) -> int:
        """The function of these literals with this truth table; perhaps the one that is hinted at."""
        table, leaves = _needed(table, leaves)
        if len(leaves) < 2:
            return leaves[0] ^ (table & 1) if leaves else table
        if len(leaves) == 2 and (found := self._computed(table, *leaves)) is not None:
            return found
        found = self._earlier(table, leaves, self._on_inputs(table, leaves), hint)
        return self._built(table, leaves) if found is None else found

    def _computed(self, table: int, a: int, b: int) -> int | None:
        """A truth table of two literals, both of which matter, if there is a node for it."""
        if table in (XOR, XOR ^ 15):
            negated = (a ^ b) & 1 ^ (table != XOR)
            a, b = a & ~1, b & ~1
            found = self._known.get((True, min(a, b), max(a, b)))
        else:
            negated = table.bit_count() == 3
            row = (table ^ 15 if negated else table).bit_length() - 1
            a, b = a ^ 1 ^ row & 1, b ^ 1 ^ row >> 1
            found = self._known.get((False, min(a, b), max(a, b)))
        return None if found is None else found ^ negated

    def _built(self, table: int, leaves: Sequence[int]) -> int:
        """A truth table as nodes, by cases of one variable after the other."""
        table, leaves = _needed(table, leaves)
        if len(leaves) < 2:
            return leaves[0] ^ (table & 1) if leaves else table
        half = 1 << len(leaves) - 1
        high, low = table >> half, table & (1 << half) - 1
        *rest, top = leaves
        if high == low ^ (1 << half) - 1:
            return self.xor(top, self._built(low, rest))
        return self.where(top, self._built(high, rest), self._built(low, rest))

    # Asking

    def value(self, literal: int) -> int:
        """What a literal is on the inputs."""
        own = self.values[literal >> 1]
        return own ^ self.every if literal & 1 else own

    def occurs(self, literals: Sequence[int]) -> bool:
        """Whether these are 1 at once on one of the inputs."""
        return reduce(and_, map(self.value, literals), self.every) != 0

    def possible(self, literals: Sequence[int], effort: Effort) -> bool:
        """Whether these may be 1 at once; if not, that is proved."""
        if self.occurs(literals):
            return True
        joined = len(literals) - MOST_ASKED + 1
        few = [self.all_of(literals[:joined]), *literals[joined:]] if joined > 1 else literals
        never = FALSE, 1 << (1 << len(few)) - 1, few
        if self._is_seen(*never) or (effort > Effort.LOOK and self._is_asked(*never)):
            return False
        return effort < Effort.SETTLE or self.differ(self.all_of(few), FALSE) is not False

    def require_equal(
        self, found: Sequence[int], wanted: Sequence[int], what: str, names: Sequence[str]
    ) -> None:
        """These are the same functions: `CheckError` if not, `NotProved` if that cannot be told."""
        for a, b, name in zip(found, wanted, names, strict=True):
            differ = self.differ(a, b)
            if differ is None:
                raise NotProved(f"{what} {name!r} could not be compared with the source")
            if differ:
                raise CheckError(f"{what} {name!r} differs from the source")

    def differ(self, a: int, b: int) -> bool | None:
        """Whether two functions differ; None if that cannot be told. The solver is given all
        the time it takes, within reason."""
        if a == b or self.value(a) != self.value(b):
            return a != b
        size, complete = SIZES[-1], False
        while not complete:
            cone = self._around((a, b), size)
            complete, size = all(self.operands[node] is None for node in cone.leaves), 8 * size
            answer = solve(self._clauses(cone, a, SAME, [b]), PATIENCE)
            if answer.refuted:
                return False
            if answer.solution is None:
                return None
        return True

    def _is_seen(self, literal: int, table: int, leaves: Sequence[int]) -> bool:
        """Whether a truth table of nodes near by proves that a literal has this one over others."""
        cones = (self._below((literal, *leaves), ends) for ends in (leaves, ()))
        return any(self._holds(cone, literal, table, leaves) for cone in cones)

    def _is_asked(self, literal: int, table: int, leaves: Sequence[int]) -> bool:
        """Whether the solver proves that a literal has this truth table over others."""
        many = len(leaves) > MOST_ASKED
        if many or self.value(literal) != self._on_inputs(table, leaves):
            return False
        self.questions += 1
        for size in SIZES:
            if size > SIZES[0] and self.margin[size] < 0:
                continue
            cone = self._around((literal, *leaves), size)
            answer = solve(self._clauses(cone, literal, table, leaves), CONFLICTS)
            if answer.refuted:
                self.margin[size] += LOST_PER_WON
                return True
            if answer.solution is not None and all(self.operands[node] is None for node in cone.leaves):
                self._learn(cone, answer.solution)
                return False
            self.margin[size] -= 1
        return False

    # Nodes

    def _shared(self, is_xor: bool, a: int, b: int) -> int:
        key = is_xor, a, b
        if key not in self._known:
            x, y = self.value(a), self.value(b)
            self._known[key] = self._merged(self._added((a, b), is_xor, x ^ y if is_xor else x & y))
        return self._known[key]

    def _added(self, operands: tuple[int, int] | None, is_xor: bool, value: int) -> int:
        self.values.append(value)
        return self._new(operands, is_xor)

    def _key(self, literal: int) -> int:
        value = self.values[literal >> 1]
        return value ^ self.every if value & 1 else value

    def _merged(self, literal: int) -> int:
        """A new node, or an earlier one that is the same."""
        operands = self.operands[literal >> 1]
        assert operands is not None
        found = self._earlier(XOR if self.is_xor[literal >> 1] else AND, operands, self.values[literal >> 1])
        if found is None:
            self.alike.setdefault(self._key(literal), []).append(literal)
            return literal
        return found

    def _earlier(self, table: int, leaves: Sequence[int], value: int, hint: int | None = None) -> int | None:
        """A literal that is proved to have this truth table over others, of those next to these."""
        key = value ^ self.every if value & 1 else value
        near: list[int] = []
        if hint is not None:
            near = [hint] if self.value(hint) == value else []
        elif self.in_vain.get(key, 0) < LOST:
            alike = self.alike.get(key, ())
            at = max(0, bisect(alike, max(leaves)) - CANDIDATES // 2)
            near = [own ^ ((self.values[own >> 1] ^ value) & 1) for own in alike[at : at + CANDIDATES]]
        asks = hint is not None or self.sweeps
        for proof in (self._is_seen, self._is_asked) if asks else (self._is_seen,):
            for found in near:
                if proof(found, table, leaves):
                    self._remember(found, table, leaves)
                    self.in_vain[key] = self.in_vain.get(key, 0) - LOST_PER_WON
                    return found
        if near:
            self.in_vain[key] = self.in_vain.get(key, 0) + 1
        return None

    def _remember(self, literal: int, table: int, leaves: Sequence[int]) -> None:
        """A literal is also this: what it has to do with others may be near by on this way only."""
        known = self.also.setdefault(literal >> 1, [])
        if len(known) < MOST_KNOWN and literal >> 1 not in {0, *(leaf >> 1 for leaf in leaves)}:
            every = (1 << (1 << len(leaves))) - 1
            known.append((table ^ every if literal & 1 else table, tuple(leaves)))

    def _on_inputs(self, table: int, leaves: Sequence[int]) -> int:
        """What a truth table over literals is on the inputs."""
        return _composed(table, [self.value(leaf) for leaf in leaves], self.every)

    def _learn(self, cone: Cone, solution: Sequence[int]) -> None:
        """An input joins the others, with some near to it."""
        if self.patterns + EXTRA > MOST_PATTERNS:
            return
        ones = {number for number in solution if number > 0}
        taken = {node for number, node in enumerate(cone.leaves, 1) if number in ones}
        every = (1 << EXTRA) - 1
        added: list[int] = []
        for node, (operands, is_xor) in enumerate(zip(self.operands, self.is_xor, strict=True)):
            if operands is None:
                flips = reduce(and_, (self.random.getrandbits(EXTRA) for _ in range(5))) & ~1
                added.append((every if node in taken else 0) ^ flips if node else 0)
                continue
            x, y = (added[own >> 1] ^ (every if own & 1 else 0) for own in operands)
            added.append(x ^ y if is_xor else x & y)
        shift, self.patterns = self.patterns, self.patterns + EXTRA
        self.every = (1 << self.patterns) - 1
        self.values = [new << shift | old for new, old in zip(added, self.values, strict=True)]
        before, self.alike, self.in_vain = self.alike, {}, {}
        for literal in chain.from_iterable(before.values()):
            self.alike.setdefault(self._key(literal), []).append(literal)

    # Near by

    def _below(self, literals: Sequence[int], ends: Sequence[int]) -> Cone:
        """Nodes below these that end in few others; some are not opened. Next is the one with the fewest
        operands that were not met yet, so that ways which part and meet again are followed to where they
        part."""
        closed = {literal >> 1 for literal in ends}
        met = {literal >> 1 for literal in literals if literal > 1}
        columns, inner = len(met), []
        waiting = {node: own for node in met - closed if (own := self.operands[node])}
        while waiting and len(inner) < WINDOW:
            fewest, next = 3, 0
            for node, (a, b) in waiting.items():
                new = (a >> 1 not in met) + (b >> 1 not in met)
                if new < fewest or (new == fewest and node > next):
                    fewest, next = new, node
            columns += fewest - 1
            if columns > MOST_COLUMNS:
                break
            inner.append(next)
            for literal in waiting.pop(next):
                node = literal >> 1
                if node not in met and node not in closed and (own := self.operands[node]):
                    waiting[node] = own
                met.add(node)
        return Cone(sorted(inner, reverse=True), met.difference(inner))

    def _holds(self, cone: Cone, literal: int, table: int, leaves: Sequence[int]) -> bool:
        """Whether a literal has this truth table over others in all cases of what the cone ends in."""
        ends = list(cone.leaves)
        if len(ends) > MOST_COLUMNS:
            return False
        every = (1 << (1 << len(ends))) - 1
        tables = {0: 0} | dict(zip(ends, columns(len(ends)), strict=True))
        for node in reversed(cone.inner):
            operands = self.operands[node]
            assert operands is not None
            a, b = operands
            x = tables[a >> 1] ^ (every if a & 1 else 0)
            y = tables[b >> 1] ^ (every if b & 1 else 0)
            tables[node] = x ^ y if self.is_xor[node] else x & y
        own = [tables[leaf >> 1] ^ (every if leaf & 1 else 0) for leaf in leaves]
        return tables[literal >> 1] ^ (every if literal & 1 else 0) == _composed(table, own, every)

    def _around(self, literals: Sequence[int], size: int) -> Cone:
        """The nodes nearest below these, by all that they are known to be."""
        seen = {literal >> 1: None for literal in literals if literal > 1}
        inner: list[int] = []
        for node in (waiting := list(seen)):  # which grows
            if len(inner) >= size:
                break
            operands = self.operands[node]
            if operands is None:
                continue
            inner.append(node)
            for literal in chain(operands, *(own for _, own in self.also.get(node, ()))):
                if literal >> 1 not in seen:
                    seen[literal >> 1] = None
                    waiting.append(literal >> 1)
        return Cone(inner, [node for node in seen.keys() - set(inner) if node])

    def _clauses(self, cone: Cone, literal: int, table: int, leaves: Sequence[int]) -> list[Clause]:
        """What nodes say of their operands, and that a literal is not what a truth table says."""
        number = {node: at for at, node in enumerate((*cone.leaves, *cone.inner), 1)}
        clauses = _equation(table, (literal ^ 1, *leaves), number)
        for node in cone.inner:
            operands = self.operands[node]
            assert operands is not None
            clauses += _equation(XOR if self.is_xor[node] else AND, (2 * node, *operands), number)
            for known, own in self.also.get(node, ()):
                clauses += _equation(known, (2 * node, *own), number)
        return clauses


# Truth tables


@cache
def columns(count: int) -> tuple[int, ...]:
    """The columns of a truth table of so many variables."""
    every = (1 << (1 << count)) - 1
    return tuple(every // ((1 << (1 << i)) + 1) << (1 << i) for i in range(count))


def _composed(table: int, given: Sequence[int], every: int) -> int:
    """What a truth table makes of columns."""
    if not given:
        return every if table else 0
    half = 1 << len(given) - 1
    high, low = table >> half, table & (1 << half) - 1
    *rest, top = given
    no = _composed(low, rest, every)
    return no if high == low else no ^ top & (no ^ _composed(high, rest, every))


def _needed(table: int, leaves: Sequence[int]) -> tuple[int, Sequence[int]]:
    """The same function without literals that it does not depend on."""
    table, kept = _support(table, len(leaves))
    return table, leaves if len(kept) == len(leaves) else [leaves[at] for at in kept]


@cache
def _support(table: int, count: int) -> tuple[int, tuple[int, ...]]:
    kept: list[int] = []
    for at in reversed(range(count)):
        zeros = columns(count)[at] >> (1 << at)
        if table >> (1 << at) & zeros == table & zeros:
            rows = [row for row in range(1 << count) if not row >> at & 1]
            table = sum((table >> row & 1) << i for i, row in enumerate(rows))
            count -= 1
        else:
            kept.append(at)
    return table, tuple(reversed(kept))


def _equation(table: int, literals: Sequence[int], number: Mapping[int, int]) -> list[Clause]:
    """The first literal is what a truth table makes of the others, in clauses over the numbers of nodes.
    Those that hold anyway, because two literals have to do with each other, are left out."""
    clauses: list[Clause] = []
    plain = len({0, *(literal >> 1 for literal in literals)}) > len(literals)
    own = [-number[at >> 1] if at & 1 else number[at >> 1] for at in literals] if plain else []
    for clause in _clauses_of(table, len(literals) - 1):
        if plain:
            clauses.append([own[at] if at >= 0 else -own[~at] for at in clause])
            continue
        met = {literals[at] if at >= 0 else literals[~at] ^ 1 for at in clause}
        if TRUE not in met and not any(literal ^ 1 in met for literal in met):
            clauses.append([-number[at >> 1] if at & 1 else number[at >> 1] for at in met - {FALSE}])
    return clauses


@cache
def _clauses_of(table: int, count: int) -> tuple[tuple[int, ...], ...]:
    """What it is to be the value of a truth table, in clauses: 0 stands for the value, i for variable i - 1,
    and ~i for the negation. Rows that differ in variables of no matter are taken together (Quine, 1952)."""
    found = []
    for value in (0, 1):
        cubes = {(0, row) for row in range(1 << count) if table >> row & 1 == value}
        while cubes:
            pairs = {
                (free, row, 1 << at)
                for free, row in cubes
                for at in range(count)
                if not free >> at & 1 and (free, row ^ 1 << at) in cubes
            }
            for free, row in sorted(cubes - {(free, row) for free, row, _ in pairs}):
                bits = [~(at + 1) if row >> at & 1 else at + 1 for at in range(count) if not free >> at & 1]
                found.append((0 if value else ~0, *bits))
            cubes = {(free | bit, row & ~bit) for free, row, bit in pairs}
    return tuple(found)
