"""Few gates for a truth table of a few inputs: how a cover of BLIF becomes a circuit.

A table of n inputs is a number of 2^n bits; bit p is the value where input i has bit i of p. Its halves for
x = 0 and x = 1, called low and high, are tables of one input less, and it is made of them by the cheapest of

    x & high, ~x & low, x | low, ~x | high    where the other half is constant
    x ^ low                                   where the halves are each other's negation
    low | x & high, high | ~x & low           where one half implies the other
    x & high | ~x & low                       always
    low ^ x & (low ^ high)                    always, and tried up to four inputs

over all inputs x. What turns up again is shared. An XOR counts as two gates, since it is three ANDs and often
more units of a network than one.
"""

from functools import cache, lru_cache
from typing import NamedTuple

from tapegrad.circuits.model import Gate

MOST_INPUTS = 6
"""Covers of more inputs are taken as they are written."""
MOST_WITH_DIFFERENCES = 4
"""Inputs up to which the difference of the halves is tried: there are few tables, found again and again."""
XOR_COST = 2


class Step(NamedTuple):
    """A gate of a plan. Operands are numbered: inputs first, then earlier steps; `~` means the negation."""

    kind: Gate
    left: int
    right: int


class Plan(NamedTuple):
    """Steps, and the number of what is the result, an input or a step, perhaps negated."""

    steps: tuple[Step, ...]
    result: int


@lru_cache(maxsize=1 << 12)
def plan_of(inputs: int, table: int) -> Plan | bool:
    """The gates of a table, or the constant that it is."""
    if table in (0, _full(inputs)):
        return bool(table)
    planning = _Planning(inputs)
    result = planning.built(tuple(range(inputs)), table)
    return Plan(tuple(planning.steps), result)


class _Planning:
    """Puts a plan together, with equal gates and equal tables once."""

    def __init__(self, inputs: int) -> None:
        self.steps: list[Step] = []
        self._inputs = inputs
        self._gates: dict[Step, int] = {}
        self._done: dict[tuple[tuple[int, ...], int], int] = {}

    def built(self, places: tuple[int, ...], table: int) -> int:
        """The number of what computes a table, not a constant one, of the inputs at these places."""
        kept, table = _without_idle(len(places), table)
        places = tuple(places[own] for own in kept)
        if (negation := self._done.get((places, _full(len(places)) ^ table))) is not None:
            return ~negation
        if (places, table) not in self._done:
            self._done[places, table] = self._made(places, table)
        return self._done[places, table]

    def _made(self, places: tuple[int, ...], table: int) -> int:
        if len(places) == 1:
            return places[0] if table == 0b10 else ~places[0]
        _, own, way = _best(len(places), table)
        x, others = places[own], places[:own] + places[own + 1 :]
        low, high = _halves(len(places), table, own)
        if way == "^":
            return self._gate(Gate.XOR, x, self.built(others, low))
        if way == "&":
            return self._gate(Gate.AND, ~x if low else x, self.built(others, low or high))
        if way == "|":
            filled = low == _full(len(others))
            return self._gate(Gate.OR, ~x if filled else x, self.built(others, high if filled else low))
        if way == "^&":
            difference = self._gate(Gate.AND, x, self.built(others, low ^ high))
            return self._gate(Gate.XOR, self.built(others, low), difference)
        one = self.built(others, high) if way == "|~&" else self._gate(Gate.AND, x, self.built(others, high))
        zero = self.built(others, low) if way == "|&" else self._gate(Gate.AND, ~x, self.built(others, low))
        return self._gate(Gate.OR, one, zero)

    def _gate(self, kind: Gate, a: int, b: int) -> int:
        step = Step(kind, min(a, b), max(a, b))
        if step not in self._gates:
            self._gates[step] = self._inputs + len(self.steps)
            self.steps.append(step)
        return self._gates[step]


def _full(inputs: int) -> int:
    """The table that is 1 everywhere."""
    return (1 << (1 << inputs)) - 1


@cache
def variable(inputs: int, place: int) -> int:
    """The table of an input."""
    return sum(1 << row for row in range(1 << inputs) if row >> place & 1)


@cache
def _joining(inputs: int, place: int) -> tuple[tuple[int, int], ...]:
    """How the rows where an input is 0, blocks with gaps of their own size, are moved together: pairs of
    blocks, then pairs of pairs. By how much, and what is kept."""
    return tuple(
        (1 << level, _full(inputs) & ~variable(inputs, level + 1)) for level in range(place, inputs - 1)
    )


@lru_cache(maxsize=1 << 16)
def _halves(inputs: int, table: int, place: int) -> tuple[int, int]:
    """The tables of the other inputs where this one is 0, and where it is 1."""
    ones = table & variable(inputs, place)
    low, high = table ^ ones, ones >> (1 << place)
    for shift, mask in _joining(inputs, place):
        low, high = (low | low >> shift) & mask, (high | high >> shift) & mask
    return low, high


@lru_cache(maxsize=1 << 16)
def _without_idle(inputs: int, table: int) -> tuple[tuple[int, ...], int]:
    """The inputs that a table depends on, and the table of these alone."""
    kept = list(range(inputs))
    for place in reversed(range(inputs)):
        low, high = _halves(len(kept), table, place)
        if low == high:
            table = low
            del kept[place]
    return tuple(kept), table


@lru_cache(maxsize=1 << 16)
def _cost(inputs: int, table: int) -> int:
    """What the gates of a table cost."""
    if table in (0, _full(inputs)):
        return 0
    kept, own = _without_idle(inputs, table)
    return 0 if len(kept) == 1 else _best(len(kept), own)[0]


@lru_cache(maxsize=1 << 16)
def _best(inputs: int, table: int) -> tuple[int, int, str]:
    """The cost of a table of at least two inputs, all of which count; which input to divide it by; and how to
    join the halves."""
    rest, every = inputs - 1, _full(inputs - 1)
    ways: list[tuple[int, int, str]] = []
    for place in range(inputs):
        low, high = _halves(inputs, table, place)
        if low == every ^ high:
            ways.append((XOR_COST + _cost(rest, low), place, "^"))
        elif 0 in (low, high):
            ways.append((1 + _cost(rest, low | high), place, "&"))
        elif every in (low, high):
            ways.append((1 + _cost(rest, low & high), place, "|"))
        else:
            both = _cost(rest, low) + _cost(rest, high)
            way = "|&" if low & ~high == 0 else "|~&" if high & ~low == 0 else "if"
            ways.append((both + (3 if way == "if" else 2), place, way))
            if inputs <= MOST_WITH_DIFFERENCES:
                difference = 1 + XOR_COST + _cost(rest, low) + _cost(rest, low ^ high)
                ways.append((difference, place, "^&"))
    return min(ways)
