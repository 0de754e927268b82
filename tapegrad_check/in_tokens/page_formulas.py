"""A page as formulas: what the tokens of a record are, bit by bit, whatever is read.

A rule is a table of what its inputs can be. Of a bit that it gives, the table is a tree of choices: where
this input is 1, that part of the table, else the other. Inputs that are known cut the table down, equal parts
are shared, and what cannot be is taken as it suits. That it cannot be is left to prove, and so is that no two
rules give the same bit at once.

Inputs are ordered so that sums stay small: decisions first, then digits from the highest bit down.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import require
from tapegrad_check.formulas.words import Word, where
from tapegrad_check.in_tokens.pages import Bits, Page, table_of

Tokens = Mapping[str, Word]
"""The bits of the token in every slot."""
Found = Callable[[str, str], Word]
"""From a head, and the slot that it is asked for, to the bits of the token that it finds."""


class Choice(NamedTuple):
    """Where an input is 1, one bit, else another: constants, or choices by their numbers, from 2 on."""

    position: int
    one: int
    zero: int


class Tree(NamedTuple):
    """A bit as choices between choices; the last is the bit itself."""

    choices: Sequence[Choice]
    root: int

    def over(self, n: Nodes, inputs: Word) -> int:
        """As a formula."""
        found = [FALSE, TRUE]
        for position, one, zero in self.choices:
            found.append(where(n, inputs[position], found[one], found[zero]))
        return found[self.root]


class Formulas:
    """A page's tables, and the trees that were made of them."""

    def __init__(self, page: Page, width: int) -> None:
        self.page, self.width = page, width
        self.tables = {slot: [(rule, table_of(rule)) for rule in page.rules(slot)] for slot in page.slots}
        self._trees: dict[tuple[str, int, tuple[int, ...]], tuple[dict[int, Tree], Tree]] = {}

    def tell(self, n: Nodes, last: Tokens, ways: Sequence[Found], given: Tokens) -> "Record":
        """The record that follows another. Tokens may be found in several ways; in each of them the record
        must be the same. Some may be given; what they should be is for the caller to compare."""
        record = Record({}, {}, [], [])
        for slot in self.page.slots:
            told = self._token(n, slot, last, record, ways[0])
            if any(part.where == "recalled" for rule, _ in self.tables[slot] for part in rule.inputs):
                others = [self._token(n, slot, last, record, way) for way in ways[1:]]
                require(all(other == told for other in others), f"{slot!r} depends on where it was found")
            record.tokens[slot] = list(given.get(slot, told))
            if slot in given:
                record.instead[slot] = told
        return record

    def _token(self, n: Nodes, slot: str, last: Tokens, record: "Record", found: Found) -> list[int]:
        bits = [FALSE] * self.width
        for number, (rule, table) in enumerate(self.tables[slot]):
            inputs = [literal for part in rule.inputs for literal in _read(slot, part, last, record, found)]
            known = tuple(literal if literal in (FALSE, TRUE) else -1 for literal in inputs)
            key = slot, number, known
            if key not in self._trees:
                self._trees[key] = _trees(rule.inputs, table, known)
            trees, possible = self._trees[key]
            record.must_be(possible.over(n, inputs), TRUE)
            for bit, tree in trees.items():
                given = tree.over(n, inputs)
                record.must_be(n.and_(bits[bit], given), FALSE)
                bits[bit] = n.or_(bits[bit], given)
        return bits


class Record(NamedTuple):
    """Its tokens, and what is left to prove: pairs of formulas that must be the same."""

    tokens: dict[str, list[int]]
    instead: dict[str, list[int]]
    """What tokens are that were given."""
    found: list[int]
    wanted: list[int]

    def must_be(self, found: int, wanted: int) -> None:
        if found != wanted:
            self.found.append(found)
            self.wanted.append(wanted)

    def word(self, name: str, digits: int = 8) -> list[int]:
        """The value of a row."""
        return [bit for place in range(digits) for bit in self.tokens[f"{name} {place}"][:4]]


def _read(slot: str, part: Bits, last: Tokens, record: Record, found: Found) -> list[int]:
    if part.where == "recalled":
        token = found(part.what, slot)
    else:
        token = last[part.what] if part.where == "last" else record.tokens[part.what]
    return [token[bit] for bit in part.bits]


def _trees(
    inputs: Sequence[Bits], table: NDArray[np.int64], known: Sequence[int]
) -> tuple[dict[int, Tree], Tree]:
    """A tree for every bit that the table gives, and one for whether it can be."""
    parts = [(part, bit) for part in inputs for bit in part.bits]
    free = [position for position, value in enumerate(known) if value < 0]
    cube = table.reshape((2,) * len(parts)).transpose() if parts else table.reshape(())
    cube = cube[tuple(slice(None) if value < 0 else value for value in known)]
    order = sorted(range(len(free)), key=lambda axis: _rank(cube, axis, *parts[free[axis]]))
    cube = cube.transpose(order)
    positions = [free[axis] for axis in order]
    can = cube >= 0
    given = int(np.bitwise_or.reduce(np.where(can, cube, 0), axis=None))
    trees = {
        bit: _tree(np.where(can, cube >> bit & 1, -1).astype(np.int8), positions)
        for bit in range(given.bit_length())
        if given >> bit & 1
    }
    return trees, _tree(can.astype(np.int8), positions)


def _rank(cube: NDArray[np.int64], axis: int, part: Bits, bit: int) -> tuple[bool, int, int]:
    """Decisions come first; then what matters only to high bits; then high bits of digits."""
    decides = part.where != "recalled" and " " not in part.what
    zero, one = cube.take(0, axis), cube.take(1, axis)
    changed = int(np.bitwise_or.reduce(np.where((zero >= 0) & (one >= 0), zero ^ one, 0), axis=None))
    return not decides, -(changed & -changed).bit_length(), -bit


def _tree(cube: NDArray[np.int8], positions: Sequence[int]) -> Tree:
    """-1 stands for what cannot be."""
    choices: list[Choice] = []
    numbers: dict[Choice, int] = {}
    seen: dict[tuple[int, bytes], int] = {}

    def grown(part: NDArray[np.int8], depth: int) -> int:
        if (part != 1).all() or (part != 0).all():
            return int((part == 1).any())
        zero, one = part[0], part[1]
        if ((zero == one) | (zero < 0) | (one < 0)).all():
            return grown(np.maximum(zero, one), depth + 1)
        key = depth, part.tobytes()
        if key not in seen:
            choice = Choice(positions[depth], grown(one, depth + 1), grown(zero, depth + 1))
            if choice not in numbers:
                numbers[choice] = len(choices) + 2
                choices.append(choice)
            seen[key] = numbers[choice]
        return seen[key]

    root = grown(cube, 0)
    return Tree(choices, root)
