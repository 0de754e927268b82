"""RASP programs as the checker sees them: nodes, and the values that each can take, worked out from the file.

Values stand in the order that the file format has: None, numbers, strings, tuples, each in rising order; an
aggregate that moves values has its default first and the values it moves after that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import gcd, isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import NotProved, require

Value = Any
MOST_VALUES, MOST_CASES, MOST_TABLE = 1 << 20, 1 << 22, 1 << 26
"""Of a sequence; of a function that Python works out case by case; of one that is worked out as a table."""
MOST_IN_ALL = 1 << 30
"""Of all that is done for one program: numbers in tables. A case that Python works out by itself takes as
long as `ONE` of them."""
ONE = 1 << 9
LONGEST = 1 << 12
READS = {
    "tokens": 0, "indices": 0, "full": 0, "apply": None, "table": None, "select": 2, "pairs": 2,
    "combine": None, "width": 1, "mean": 2, "move": 2,
}  # fmt: skip
"""How many nodes each kind reads; one or two where it depends."""
SELECTORS = ("select", "pairs", "combine")
SIGNS = ("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "not")
IN_ARRAYS: dict[Any, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "==": np.equal, "!=": np.not_equal, "<": np.less,
    "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
"""Signs that are worked out for all pairs at once."""
COMPARED = ("==", "!=", "<", "<=", ">", ">=", "true", "false")


@dataclass(frozen=True)
class Node:
    """A kind, what it has besides, and the nodes that it reads."""

    kind: str
    what: Any
    reads: tuple[int, ...]


class Work:
    """How much may still be done for a program, before it is given up."""

    def __init__(self) -> None:
        self.left = MOST_IN_ALL

    def allow(self, size: int) -> None:
        """As much more as nets of so many bytes need: n tokens have n units, with tables of n^2 numbers."""
        self.left += size**3 >> 20

    def spend(self, amount: float) -> None:
        """So many numbers are worked out: `NotProved` if that is too much altogether."""
        self.left -= amount
        if self.left < 0:
            raise NotProved("there are too many cases in all")


@dataclass(frozen=True)
class Rasp:
    """A program."""

    nodes: tuple[Node, ...]
    output: int
    vocabulary: tuple[Value, ...]
    length: int
    causal: bool
    data: dict[str, Any]
    work: Work = field(default_factory=Work, compare=False, repr=False)

    @cached_property
    def values(self) -> list[list[Value]]:
        """What each sequence can be."""
        found: list[list[Value]] = []
        for node in self.nodes:
            found.append(self._values(node, found))
            self.work.spend(ONE * len(found[-1]))
            require(len(found[-1]) <= MOST_VALUES, "a sequence has too many values")
        return found

    def _values(self, node: Node, known: list[list[Value]]) -> list[Value]:
        inner = [known[own] for own in node.reads]
        if node.kind == "tokens":
            return list(self.vocabulary)
        if node.kind == "indices":
            return list(range(self.length))
        if node.kind == "full":
            return [node.what]
        if node.kind == "width":
            return list(range(self.length + 1))
        if node.kind == "move":
            return list(dict.fromkeys([node.what, *inner[1]]))
        if node.kind == "mean":
            return in_order([node.what, *means(inner[1], self.length, self.work)])
        if node.kind in SELECTORS:
            return []
        count = self._cases(inner, 16)
        if _at_once(node, inner):
            return np.unique(_calculated(node.what, *inner)).tolist()
        self.work.spend(ONE * count)
        if count > MOST_CASES:
            raise NotProved("a function has too many cases")
        return in_order(result(node, *own) for own in product(*inner))

    @cached_property
    def places(self) -> list[dict[Value, int]]:
        """For each sequence where its values stand."""
        return [{value: place for place, value in enumerate(own)} for own in self.values]

    def function(self, number: int) -> NDArray[np.int64]:
        """For all values of the sequences that a function reads, the place of what it gives."""
        node = self.nodes[number]
        inner = [self.values[own] for own in node.reads]
        count = self._cases(inner, 16)
        if _at_once(node, inner):
            return np.searchsorted(np.array(self.values[number]), _calculated(node.what, *inner))
        self.work.spend(ONE * count)
        shape = [len(own) for own in inner]
        if count > MOST_CASES:
            raise NotProved("a function has too many cases")
        places = self.places[number]
        return np.array([places[result(node, *own)] for own in product(*inner)], np.int64).reshape(shape)

    def selected(self, number: int) -> NDArray[np.bool_]:
        """For all values of keys and queries, whether the one is selected by the other."""
        node = self.nodes[number]
        keys, queries = (self.values[own] for own in node.reads)
        count = self._cases((keys, queries), 1)
        self.work.spend(ONE * (len(keys) + len(queries)))
        if node.kind == "pairs":
            self.work.spend(ONE * len(node.what))
            found = np.zeros((len(keys), len(queries)), bool)
            first, second = ({value: place for place, value in enumerate(own)} for own in (keys, queries))
            for key, query in node.what:
                if key is not None and query is not None and key in first and query in second:
                    found[first[key], second[query]] = True
            return found
        if node.what in ("true", "false"):
            return np.full((len(keys), len(queries)), node.what == "true")
        if all(isinstance(own, int | Fraction | float) for own in (*keys, *queries)):
            places = {own: place for place, own in enumerate(in_order([*keys, *queries]))}
            first, second = (np.array([places[own] for own in side]) for side in (keys, queries))
            return IN_ARRAYS[node.what](first[:, None], second[None, :])
        self.work.spend(ONE * count)
        if count > MOST_CASES:
            raise NotProved("a selector has too many cases")
        there = [
            [k is not None and q is not None and bool(calculated(node.what, k, q)) for q in queries]
            for k in keys
        ]
        return np.array(there, bool).reshape(len(keys), len(queries))

    def _cases(self, inner: Sequence[Sequence[Value]], each: int) -> int:
        """How many there are, which take as long as so many numbers each."""
        count = prod(map(len, inner))
        if count > MOST_TABLE:
            raise NotProved("a table has too many cases")
        self.work.spend(each * count)
        return count


def _at_once(node: Node, inner: Sequence[Sequence[Value]]) -> bool:
    return node.kind == "apply" and node.what in IN_ARRAYS and all(map(_small, inner))


def _calculated(sign: str, first: Sequence[Value], second: Sequence[Value]) -> NDArray[np.int64]:
    """A sign of all pairs of small numbers."""
    return IN_ARRAYS[sign](np.array(first, np.int64)[:, None], np.array(second, np.int64))


def _small(values: Sequence[Value]) -> bool:
    return all(type(own) in (int, bool) and abs(own) < 1 << 30 for own in values)


def in_order(values: Any) -> list[Value]:
    """Different values in the order of the file format."""
    return sorted(dict.fromkeys(values), key=_rank)


def _rank(value: Value) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, int | float | Fraction):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, tuple(map(_rank, value)))


def calculated(sign: str, *values: Value) -> Value:
    """A sign of one or two values, none of them None."""
    if sign == "not":
        return not values[0]
    x, y = values
    if sign == "and":
        return x and y
    if sign == "or":
        return x or y
    if sign == "/":
        return Fraction(x) / y if isinstance(x, int) and isinstance(y, int) else x / y
    if sign in ("+", "-", "*", "//", "%"):
        return {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "//": lambda: x // y,
                "%": lambda: x % y}[sign]()  # fmt: skip
    return {"==": lambda: x == y, "!=": lambda: x != y, "<": lambda: x < y, "<=": lambda: x <= y,
            ">": lambda: x > y, ">=": lambda: x >= y}[sign]()  # fmt: skip


def result(node: Node, *values: Value) -> Value:
    """What a function gives: None for None, and where arithmetic has no answer."""
    if None in values:
        return None
    if node.kind == "table":
        require(values in node.what, "a table lacks a value")
        return node.what[values]
    try:
        found = calculated(node.what, *values)
    except ArithmeticError:
        return None
    if isinstance(found, Fraction) and found.denominator == 1:
        return found.numerator
    require(not isinstance(found, float) or isfinite(found), "a value is not finite")
    return found


def means(values: Sequence[Value], length: int, work: Work | None = None) -> list[Value]:
    """The means of up to so many values: every sum that there can be, by every count."""
    require(all(isinstance(own, int | float | Fraction) for own in values), "a mean is not of numbers")
    exact = [Fraction(own) for own in values]
    base = 1
    for own in exact:
        base = base * own.denominator // gcd(base, own.denominator)
    whole = [int(own * base) for own in exact]
    shift, unit = min(whole), gcd(*(own - min(whole) for own in whole)) or 1
    steps = sorted({(own - shift) // unit for own in whole})
    if max(steps) * length * length > 8 * MOST_VALUES:
        raise NotProved("a mean has too many values")
    work = work or Work()
    work.spend(length * len(steps) * (max(steps) * length + ONE))
    there = np.zeros(max(steps) * length + 1, bool)
    there[0] = True
    found: set[Fraction] = set()
    for count in range(1, length + 1):
        there = np.any([np.concatenate([np.zeros(s, bool), there[: len(there) - s]]) for s in steps], axis=0)
        totals = np.flatnonzero(there)
        work.spend(4 * ONE * len(totals))
        common = np.gcd(totals, count)
        for total, by in set(zip((totals // common).tolist(), (count // common).tolist(), strict=True)):
            found.add(Fraction(total, by))
    return [_plain((shift + unit * own) / base) for own in found]


def _plain(value: Fraction) -> Value:
    return value.numerator if value.denominator == 1 else value


# Reading


def rasp_of(data: Any, arrays: Any) -> Rasp:
    """The program of a file, in which everything is in bounds and written in one way only."""
    require(isinstance(data["nodes"], list) and 0 < len(data["nodes"]) <= 1 << 14, "the nodes are not a list")
    require(type(data["length"]) is int and 1 <= data["length"] <= LONGEST, "the length is out of range")
    require(type(data["causal"]) is bool, "the program is neither causal nor not")
    vocabulary = tuple(value_of(own) for own in data["vocabulary"])
    require(1 <= len(vocabulary) <= 1 << 12 and None not in vocabulary, "the vocabulary is out of range")
    require(len(set(vocabulary)) == len(vocabulary), "two tokens are equal")
    nodes: list[Node] = []
    for number, own in enumerate(data["nodes"]):
        nodes.append(_node(own, number))
        selectors = {"combine": (0, 1), "width": (0,), "mean": (0,), "move": (0,)}.get(nodes[-1].kind, ())
        for place, read in enumerate(nodes[-1].reads):
            require(
                (nodes[read].kind in SELECTORS) == (place in selectors), "a node reads one of another kind"
            )
    output = data["output"]
    require(type(output) is int and 0 <= output < len(nodes), "the output is no node")
    require(nodes[output].kind not in SELECTORS, "the output is a selector")
    names = data["names"]
    require(
        isinstance(names, dict) and all(isinstance(own, str) for own in names.values()), "names are not text"
    )
    require(set(names) <= set(map(str, range(len(nodes)))), "a name is of no node")
    return Rasp(tuple(nodes), output, vocabulary, data["length"], data["causal"], dict(data))


def _node(data: Any, number: int) -> Node:
    require(isinstance(data, list) and data and data[0] in READS, "a node is of no known kind")
    kind, count = data[0], READS[data[0]]
    what = None if kind in ("tokens", "indices", "width") else data[1]
    reads = tuple(data[1:] if kind == "width" else data[2:])
    require(
        all(type(own) is int and 0 <= own < number for own in reads), "a node reads what is not before it"
    )
    if count is None:
        one = what == "not" if kind != "table" else len(reads) == 1
        count = 1 if one else 2
    require(len(reads) == count, "a node reads too much or too little")
    if kind == "apply":
        require(what in SIGNS, "a function is not known")
    elif kind == "select":
        require(what in COMPARED, "a comparison is not known")
    elif kind == "combine":
        require(what in ("and", "or", "not"), "selectors are combined in an unknown way")
    elif kind == "table":
        require(isinstance(what, list), "a table is not a list")
        assert isinstance(what, list)
        entries = [(tuple(value_of(own) for own in values), value_of(gives)) for values, gives in what]
        require(all(len(values) == count for values, _ in entries), "a table has other arguments")
        what = dict(entries)
        require(len(what) == len(entries), "a table has an entry twice")
    elif kind == "pairs":
        require(isinstance(what, list), "pairs are not a list")
        assert isinstance(what, list)
        what = [(value_of(key), value_of(query)) for key, query in what]
    elif kind in ("full", "mean", "move"):
        what = value_of(what)
    return Node(kind, what, reads)


def value_of(data: Any) -> Value:
    """A value as files have it."""
    if isinstance(data, list):
        return tuple(value_of(own) for own in data)
    if isinstance(data, dict):
        require(len(data) == 1, "a value is of no known form")
        if "float" in data:
            found = float.fromhex(data["float"])
            require(isfinite(found) and found.hex() == data["float"], "a float is not as it is written")
            return found
        first, second = data["fraction"]
        made = Fraction(int(first), int(second))
        written = [str(made.numerator), str(made.denominator)]
        require([first, second] == written and made.denominator > 1, "a fraction is not reduced")
        return made
    require(data is None or type(data) in (bool, int, str), "a value is of no known form")
    return data
