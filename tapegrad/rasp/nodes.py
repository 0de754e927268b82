"""RASP without Python: expressions as numbered nodes, functions as signs or tables, and what values they
take.

Nodes stand in a list, each after those that it reads. Their sets of values are found for a vocabulary and a
greatest length: every value that can occur is among them, though not every one of them may occur.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import product
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused, SourceError
from tapegrad.rasp.functions import (
    COMPARISONS,
    OPERATIONS,
    Value,
    applied,
    compared,
    is_number,
    ordered,
    plain,
    shown,
)

MOST_VALUES = 1 << 20
"""Of a sequence."""
MOST_CASES = 1 << 22
"""Pairs of values that a function or a predicate is asked about."""
MOST_WORK = MOST_CASES
"""Of all functions of a program together."""


@dataclass(frozen=True)
class Tokens:
    """The input."""


@dataclass(frozen=True)
class Indices:
    """Numbers of positions."""


@dataclass(frozen=True)
class Full:
    """One value everywhere."""

    value: Value


@dataclass(frozen=True)
class Table:
    """A function by all its values."""

    entries: tuple[tuple[tuple[Value, ...], Value], ...]
    """Arguments, then what they give."""

    @cached_property
    def lookup(self) -> Mapping[tuple[Value, ...], Value]:
        """From arguments to the value."""
        return dict(self.entries)

    def __hash__(self) -> int:
        return hash((len(self.entries), self.entries[:8]))


@dataclass(frozen=True)
class Apply:
    """A function of one or two sequences, position by position."""

    function: str | Table
    arguments: tuple[int, ...]

    def at(self, *values: Value) -> Value:
        """The value of the function."""
        if isinstance(self.function, Table):
            return None if None in values else self.function.lookup[values]
        return applied(OPERATIONS[self.function], *values)


@dataclass(frozen=True)
class Pairs:
    """A predicate by all pairs of key and query that it holds for."""

    listed: frozenset[tuple[Value, Value]]


@dataclass(frozen=True)
class Select:
    """Keys for which the predicate holds."""

    keys: int
    queries: int
    predicate: str | Pairs

    def at(self, key: Value, query: Value) -> bool:
        """Whether the query selects the key."""
        if isinstance(self.predicate, Pairs):
            return (key, query) in self.predicate.listed
        return compared(self.predicate, key, query)


@dataclass(frozen=True)
class Combine:
    """`and`, `or` of two selectors, or `not` of one."""

    sign: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Width:
    """How many are selected."""

    selector: int


@dataclass(frozen=True)
class Aggregate:
    """What is selected: the mean of numbers, or values that are moved."""

    selector: int
    sequence: int
    default: Value
    mean: bool


Node = Tokens | Indices | Full | Apply | Select | Combine | Width | Aggregate
Sequence_ = (Tokens, Indices, Full, Apply, Width, Aggregate)
"""Nodes that are sequences; the others are selectors."""


def read_by(node: Node) -> tuple[int, ...]:
    """The nodes that a node reads."""
    if isinstance(node, Apply | Combine):
        return node.arguments
    if isinstance(node, Select):
        return node.keys, node.queries
    if isinstance(node, Width):
        return (node.selector,)
    return (node.selector, node.sequence) if isinstance(node, Aggregate) else ()


def check_nodes(nodes: Sequence[Node]) -> None:
    """Refuses nodes that do not make a program."""
    for number, node in enumerate(nodes):
        if any(not 0 <= own < number for own in read_by(node)):
            raise SourceError(f"node {number} reads one that does not stand before it")
        of_selectors = {Combine: 2, Width: 1, Aggregate: 1}.get(type(node), 0)
        selectors, sequences = read_by(node)[:of_selectors], read_by(node)[of_selectors:]
        if any(isinstance(nodes[own], Sequence_) for own in selectors) or not all(
            isinstance(nodes[own], Sequence_) for own in sequences
        ):
            raise SourceError(f"node {number} takes a sequence for a selector, or the other way round")
        if isinstance(node, Apply) and len(node.arguments) not in (1, 2):
            raise SourceError(f"node {number} is a function of {len(node.arguments)} sequences")
        if isinstance(node, Apply) and isinstance(node.function, str):
            arity = 1 if node.function == "not" else 2
            if node.function not in OPERATIONS or len(node.arguments) != arity:
                raise SourceError(f"node {number} is no known function of {len(node.arguments)} sequences")
        if isinstance(node, Select) and isinstance(node.predicate, str) and node.predicate not in COMPARISONS:
            raise SourceError(f"node {number} compares by {node.predicate!r}, which is no comparison")
        pairs = getattr(node.predicate, "listed", ()) if isinstance(node, Select) else ()
        if any(None in pair for pair in pairs):
            raise SourceError(
                f"node {number} selects pairs with none, about which no predicate is asked",
                advice="Give the aggregate before it a default that is a value.",
            )
        if isinstance(node, Combine) and (
            node.sign not in ("and", "or", "not") or len(node.arguments) != (1 if node.sign == "not" else 2)
        ):
            raise SourceError(f"node {number} combines selectors by {node.sign!r}")  # fmt: skip


def cases_of(node: Node, known: Sequence[Sequence[Value]]) -> int:
    """How many values or pairs of values a function is asked about."""
    if not isinstance(node, Apply) or _by_numpy(node, [known[own] for own in node.arguments]):
        return 0
    return int(np.prod([len(known[own]) for own in node.arguments]))


def _by_numpy(node: Apply, arguments: Sequence[Sequence[Value]]) -> bool:
    return len(arguments) == 2 and node.function in ("+", "-", "*") and all(map(_all_whole, arguments))


def values_of(
    node: Node, known: Sequence[Sequence[Value]], vocabulary: Sequence[Value], length: int, name: str
) -> tuple[Value, ...]:
    """All values that a sequence can take, in order. An aggregate that moves values has its default first;
    a selector has none."""
    if isinstance(node, Tokens):
        return tuple(vocabulary)
    if isinstance(node, Indices):
        return tuple(range(length))
    if isinstance(node, Full):
        return (node.value,)
    if isinstance(node, Width):
        return tuple(range(length + 1))
    if isinstance(node, Apply):
        return _results(node, [known[own] for own in node.arguments], name)
    if isinstance(node, Aggregate):
        if not node.mean:
            return tuple(dict.fromkeys([node.default, *known[node.sequence]]))
        return tuple(ordered([node.default, *_means(tuple(known[node.sequence]), length, name)]))
    return ()


def _results(node: Apply, arguments: Sequence[Sequence[Value]], name: str) -> tuple[Value, ...]:
    cases = int(np.prod([len(own) for own in arguments]))
    if _by_numpy(node, arguments):
        first, second = (np.array(own, np.int64) for own in arguments)
        operation = {"+": np.add, "-": np.subtract, "*": np.multiply}[str(node.function)]
        few(cases, MOST_CASES * 4, name, "cases of its values")
        return tuple(np.unique(operation.outer(first, second)).tolist())
    few(cases, MOST_CASES, name, "cases of its values")
    found: dict[Value, None] = {}
    for values in product(*arguments):
        found[_asked(node.at, values, name)] = None
    few(len(found), MOST_VALUES, name, "values")
    return ordered(found)


def _all_whole(values: Sequence[Value]) -> bool:
    """Whether NumPy can compute with them without overflow."""
    return all(type(value) in (int, bool) and abs(value) < 1 << 30 for value in values)


def _asked(function: Any, values: tuple[Value, ...], name: str) -> Value:
    try:
        return function(*values)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        listed = " and ".join(shown(own) for own in values)
        raise Refused(
            f"{name!r} has no value for {listed}: {error}",
            advice="Every function must have a value for all that its arguments can be.",
        ) from error


def few(count: int, most: int, name: str, what: str) -> None:
    """Refuses what is too much to be looked at."""
    if count > most:
        raise Refused(
            f"{name!r} has {count:,} {what}, and at most {most:,} are looked at",
            advice="Ask for a shorter length or a smaller vocabulary, or map values to fewer.",
        )


@lru_cache(maxsize=32)
def _means(values: tuple[Value, ...], length: int, name: str) -> list[Value]:
    """The means of up to `length` values: for whole numbers times a unit, all their sums by their counts."""
    if not all(is_number(value) for value in values):
        missing = next(value for value in values if not is_number(value))
        raise Refused(
            f"{name!r} is a mean of values that may be {shown(missing)}, which is no number",
            advice="Give the aggregate before it a number as default, or map other values to numbers.",
        )
    exact = [Fraction(value) for value in values]
    first = min(exact)
    unit = reduce(_common, (own - first for own in exact))
    steps = sorted({int((own - first) / unit) if unit else 0 for own in exact})
    reach = max(steps) * length
    few(reach * length // 2, MOST_VALUES * 2, name, "means")
    sums = np.zeros(reach + 1, bool)
    sums[0] = True
    pairs: list[NDArray[np.int64]] = []
    for count in range(1, length + 1):
        following = np.zeros_like(sums)
        for step in steps:
            following[step:] |= sums[: len(sums) - step]
        sums = following
        totals = np.flatnonzero(sums)
        by = np.gcd(totals, count)
        pairs.append(np.stack([totals // by, count // by], axis=1))
    reduced = np.unique(np.concatenate(pairs), axis=0)
    few(len(reduced), MOST_VALUES, name, "means")
    # Fractions with such denominators are further apart than doubles are, so that these sort them.
    reduced = reduced[np.argsort(reduced[:, 0] / reduced[:, 1])]
    return [plain(first + unit * Fraction(*pair)) for pair in reduced.tolist()]


def _common(x: Fraction, y: Fraction) -> Fraction:
    """The greatest number that both are whole multiples of."""
    return Fraction(
        gcd(x.numerator * y.denominator, y.numerator * x.denominator), x.denominator * y.denominator
    )


def table_of(function: Any, arguments: Sequence[Sequence[Value]], name: str) -> Table:
    """A function of Python as a table."""
    few(int(np.prod([len(own) for own in arguments])), MOST_CASES, name, "cases of its values")
    return Table(
        tuple(
            (values, _asked(lambda *own: applied(function, *own), values, name))
            for values in product(*arguments)
            if None not in values
        )
    )


def predicate_of(selects: Any, keys: Sequence[Value], queries: Sequence[Value], name: str) -> str | Pairs:
    """A predicate of Python by its pairs; one of the comparisons, if it is the same."""
    few(len(keys) * len(queries), MOST_CASES, name, "pairs of values")
    listed = frozenset(
        (key, query) for key in keys for query in queries if _asked(selects, (key, query), name)
    )
    for sign in COMPARISONS:
        with suppress(TypeError):
            if all(compared(sign, *pair) == (pair in listed) for pair in product(keys, queries)):
                return sign
    return Pairs(listed)


def truth_table(
    node: Select, keys: Sequence[Value], queries: Sequence[Value], name: str
) -> NDArray[np.bool_]:
    """Whether each query (columns) selects each key (rows)."""
    if isinstance(node.predicate, str) and all(
        all(is_number(own) for own in side) for side in (keys, queries)
    ):
        # The places of numbers among all of them compare as they do.
        place = {own: number for number, own in enumerate(ordered([*keys, *queries]))}
        first, second = (np.array([place[own] for own in side]) for side in (keys, queries))
        return {
            "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal,
            ">": np.greater, ">=": np.greater_equal,
            "true": lambda x, y: np.broadcast_to(True, (len(keys), len(queries))),
            "false": lambda x, y: np.broadcast_to(False, (len(keys), len(queries))),
        }[node.predicate](first[:, None], second[None, :])  # fmt: skip
    if isinstance(node.predicate, Pairs):
        rows, columns = ({own: number for number, own in enumerate(side)} for side in (keys, queries))
        table = np.zeros((len(keys), len(queries)), bool)
        for key, query in node.predicate.listed:
            if key in rows and query in columns:
                table[rows[key], columns[query]] = True
        return table
    few(len(keys) * len(queries), MOST_CASES, name, "pairs of values")
    return np.array(
        [[_asked(node.at, (key, query), name) for query in queries] for key in keys], bool
    ).reshape(len(keys), len(queries))


def needed(nodes: Sequence[Node], output: int) -> set[int]:
    """The nodes that the output depends on."""
    found, waiting = set(), [output]
    while waiting:
        own = waiting.pop()
        if own not in found:
            found.add(own)
            waiting += read_by(nodes[own])
    return found


def renumbered(nodes: Sequence[Node], kept: Iterable[int]) -> tuple[list[Node], dict[int, int]]:
    """Those nodes alone, and their new numbers."""
    places = {own: number for number, own in enumerate(sorted(kept))}
    return [_moved(nodes[own], places) for own in places], places


def _moved(node: Node, places: Mapping[int, int]) -> Node:
    if isinstance(node, Apply):
        return Apply(node.function, tuple(places[own] for own in node.arguments))
    if isinstance(node, Combine):
        return Combine(node.sign, tuple(places[own] for own in node.arguments))
    if isinstance(node, Select):
        return Select(places[node.keys], places[node.queries], node.predicate)
    if isinstance(node, Width):
        return Width(places[node.selector])
    if isinstance(node, Aggregate):
        return Aggregate(places[node.selector], places[node.sequence], node.default, node.mean)
    return node
