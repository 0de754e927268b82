"""What a selector asks for: conditions on a key and a query, all of which must hold.

A condition is a table over classes of values, of one sequence on each side or of several together. `and` puts
conditions side by side, and their scores add up; what `or` and `not` join becomes one condition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.rasp.nodes import MOST_CASES, Combine, Select, truth_table
from tapegrad.rasp.program import RaspProgram

Form = dict[int, float]


@dataclass(frozen=True)
class Condition:
    """Which classes of queries (columns) select which classes of keys (rows)."""

    keys: tuple[int, ...]
    """Nodes."""
    key_labels: tuple[tuple[int, ...], ...]
    """For each of these nodes the class of each of its values; with several nodes, pairs of classes are
    counted with the last one fastest."""
    queries: tuple[int, ...]
    query_labels: tuple[tuple[int, ...], ...]
    table: NDArray[np.bool_]

    def rows(self) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """The products that add up to the table: which keys answer, and which queries ask. A row for each
        class of keys that are selected alike, or of queries, whichever are fewer."""
        by_key, by_query = classes([self.table]), classes([self.table.T])
        swapped = max(by_query) < max(by_key)
        table, which = (self.table.T, by_query) if swapped else (self.table, by_key)
        firsts = {number: place for place, number in reversed(list(enumerate(which)))}
        numbers = np.array(which)
        for number, place in firsts.items():
            if (asked := table[place]).any():
                members = numbers == number
                yield (asked, members) if swapped else (members, asked)


def conditions(program: RaspProgram, selector: int) -> list[Condition]:
    """The conditions of a selector; those on the same sequences are drawn together."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[int, bool]]] = {}
    for part, negated in _conjuncts(program, selector, False):
        leaves = list(dict.fromkeys(_leaves(program, part)))
        keys = tuple(dict.fromkeys(_keys(program, leaf) for leaf in leaves))
        queries = tuple(dict.fromkeys(_queries(program, leaf) for leaf in leaves))
        found.setdefault((keys, queries), []).append((part, negated))
    return [_condition(program, keys, queries, parts) for (keys, queries), parts in found.items()]


def _conjuncts(program: RaspProgram, selector: int, negated: bool) -> Iterator[tuple[int, bool]]:
    """Selectors all of which, or whose negations, must hold."""
    own = program.nodes[selector]
    if isinstance(own, Combine) and own.sign == "not":
        yield from _conjuncts(program, own.arguments[0], not negated)
    elif isinstance(own, Combine) and own.sign == ("or" if negated else "and"):
        for part in own.arguments:
            yield from _conjuncts(program, part, negated)
    else:
        yield selector, negated


def _leaves(program: RaspProgram, selector: int) -> Iterator[int]:
    own = program.nodes[selector]
    if isinstance(own, Combine):
        for part in own.arguments:
            yield from _leaves(program, part)
    else:
        yield selector


def _condition(
    program: RaspProgram, keys: tuple[int, ...], queries: tuple[int, ...], parts: Sequence[tuple[int, bool]]
) -> Condition:
    leaves = list(dict.fromkeys(leaf for part, _ in parts for leaf in _leaves(program, part)))
    tables: dict[int, NDArray[np.bool_]] = {}
    for leaf in leaves:
        own = program.nodes[leaf]
        assert isinstance(own, Select)
        tables[leaf] = truth_table(
            own, program.values[own.keys], program.values[own.queries], program.title(leaf)
        )
    key_labels = [classes([tables[leaf] for leaf in leaves if _keys(program, leaf) == node]) for node in keys]
    query_labels = [
        classes([tables[leaf].T for leaf in leaves if _queries(program, leaf) == node]) for node in queries
    ]
    sizes = [[1 + max(labels) for labels in side] for side in (key_labels, query_labels)]
    if np.prod(sizes[0]) * np.prod(sizes[1]) > 16 * MOST_CASES:
        raise Refused(
            f"the selector {program.title(parts[0][0])!r} is a table of {int(np.prod(sizes[0])):,} by "
            f"{int(np.prod(sizes[1])):,}",
            advice="Ask for a shorter length, or combine selectors by `and` alone.",
        )
    small: dict[int, NDArray[np.bool_]] = {}
    for leaf in leaves:
        key, query = keys.index(_keys(program, leaf)), queries.index(_queries(program, leaf))
        rows, columns = (
            np.unique(labels, return_index=True)[1] for labels in (key_labels[key], query_labels[query])
        )
        shape = [1] * (len(keys) + len(queries))
        shape[key], shape[len(keys) + query] = len(rows), len(columns)
        small[leaf] = tables[leaf][np.ix_(rows, columns)].reshape(shape)
    whole = np.ones([*sizes[0], *sizes[1]], bool)
    for part, negated in parts:
        whole &= _combined(program, part, small) ^ negated
    return Condition(
        keys, tuple(key_labels), queries, tuple(query_labels),
        whole.reshape(int(np.prod(sizes[0])), int(np.prod(sizes[1]))),
    )  # fmt: skip


def _keys(program: RaspProgram, leaf: int) -> int:
    own = program.nodes[leaf]
    assert isinstance(own, Select)
    return own.keys


def _queries(program: RaspProgram, leaf: int) -> int:
    own = program.nodes[leaf]
    assert isinstance(own, Select)
    return own.queries


def classes(tables: Sequence[NDArray[np.bool_]]) -> tuple[int, ...]:
    """A class for each row: rows that are alike in all tables are of one, and classes are counted in the
    order in which they come."""
    numbers: dict[bytes, int] = {}
    packed = np.packbits(np.concatenate(tables, axis=1), axis=1)
    return tuple(numbers.setdefault(row.tobytes(), len(numbers)) for row in packed)


def _combined(program: RaspProgram, selector: int, small: dict[int, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    own = program.nodes[selector]
    if not isinstance(own, Combine):
        return small[selector]
    parts = [_combined(program, part, small) for part in own.arguments]
    if own.sign == "not":
        return ~parts[0]
    return parts[0] & parts[1] if own.sign == "and" else parts[0] | parts[1]


def indicator(bits: Sequence[Form], chosen: NDArray[np.bool_], word: int) -> Form:
    """A form that is 1 where the value is chosen, for a code of so many bits: a term for every change."""
    found: Form = {word: 1.0} if chosen[0] else {}
    for place in np.flatnonzero(chosen[1:] != chosen[:-1]).tolist():
        sign = 1.0 if chosen[place + 1] else -1.0
        for coordinate, weight in bits[place].items():
            found[coordinate] = found.get(coordinate, 0.0) + sign * weight
    return {coordinate: weight for coordinate, weight in found.items() if weight}
