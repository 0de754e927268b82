"""Records written cell by cell: token programs from small functions.

A record of many tokens is a sheet of cells. Each `Cell` says which tokens it looks at (of this record, of the
one before, or recalled), which bits of their numbers it reads, and a function from those to the number of its
own token. From the table of the function come the cases: for every bit of the number the ways in which it
becomes 1. Tokens have no other bits than those of their numbers; the first token of a text has none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.program import Bit, Variable, word
from tapegrad.attention.tokens import BEGIN, Case, Gather, Recall, Token, TokenProgram
from tapegrad.errors import SourceError

TOKEN = "token"
"""The name of the one feature: the number of the token."""
MOST_BITS = 16
"""That a function may read."""

Where = Literal["this", "last", "recalled"]
Literals = tuple[tuple[int, int], ...]
"""Some inputs of a function, and their values."""


@dataclass(frozen=True)
class Look:
    """Bits of the number of a token: in a slot of this record or of the last, or found by a recall."""

    where: Where
    what: str
    """The slot, or the recall."""
    bits: tuple[int, ...]
    """Which, from the lowest; together they are the number that the function gets."""


@dataclass(frozen=True)
class Part:
    """A function of what is looked at. It gives None for what cannot happen."""

    looks: tuple[Look, ...]
    function: Callable[..., int | None]


@dataclass(frozen=True)
class Cell:
    """A slot. Its token's number is the sum of the parts, which set different bits."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Sheet:
    """All cells of a record, the heads that find addresses, and the heads that recall."""

    name: str
    words: Sequence[str]
    """The words of all tokens."""
    cells: Sequence[Cell]
    addresses: Mapping[str, Mapping[str, str]]
    """Heads that gather, by name: from the slot of a token to the slot that it looks at. Names `this 0`,
    `this 1`, ... and `last 0`, ... share heads with those of cells."""
    recalls: Sequence[Recall]
    """They compare bits of those heads, and copy bits of the token."""
    _covers: dict[bytes, list[tuple[Literals, int]]] = field(default_factory=dict, repr=False)
    """Of the tables so far."""

    @cached_property
    def slot(self) -> dict[str, int]:
        """The number of every slot."""
        found = {cell.name: number for number, cell in enumerate(self.cells)}
        if len(found) < len(self.cells):
            raise SourceError("two slots have the same name")
        return found

    @property
    def bits(self) -> int:
        """Of the number of a token."""
        return (len(self.words) - 1).bit_length()

    def program(self) -> TokenProgram:
        """The token program."""
        heads, cases = _Heads(self), dict[tuple[tuple[tuple[Bit, int], ...], int], list[int]]()
        for cell in self.cells:
            own = (self.slot[cell.name] - 1) % len(self.cells)
            for part, names in zip(cell.parts, heads.assigned(cell, own), strict=True):
                inputs = [
                    f"{name}: {TOKEN}[{bit}]"
                    for name, look in zip(names, part.looks, strict=True)
                    for bit in look.bits
                ]
                cover = self._cover(part)
                if len(set(inputs)) < len(inputs):
                    raise SourceError(f"the cell {cell.name!r} reads a bit twice")
                for literals, number in cover:
                    holds = tuple((inputs[place], value) for place, value in literals)
                    slots = cases.setdefault((holds, number), [])
                    if own in slots:
                        raise SourceError(f"two parts of the cell {cell.name!r} are the same")
                    slots.append(own)
        return TokenProgram(
            self.name,
            tuple(map(self._token, range(len(self.words)))),
            (Variable(TOKEN, self.bits),),
            tuple(cell.name for cell in self.cells),
            tuple(heads.gathers(cases, self.recalls)),
            tuple(self.recalls),
            tuple(Case(tuple(slots), dict(holds), number) for (holds, number), slots in cases.items()),
            coded=True,
        )

    def _token(self, number: int) -> Token:
        bits = word(TOKEN, self.bits) if number != BEGIN else []
        return Token(
            self.words[number], frozenset(bit for place, bit in enumerate(bits) if number >> place & 1)
        )

    def _cover(self, part: Part) -> list[tuple[Literals, int]]:
        table = table_of(part)
        key = table.tobytes()
        if key not in self._covers:
            self._covers[key] = covered(table)
        return self._covers[key]


def table_of(part: Part) -> NDArray[np.int64]:
    """What a function gives for all inputs, the first in the lowest bits; -1 for what cannot happen."""
    sizes = [len(look.bits) for look in part.looks]
    if sum(sizes) > MOST_BITS:
        raise SourceError(f"a cell reads {sum(sizes)} bits at once")
    shifts = [sum(sizes[:place]) for place in range(len(sizes))]
    parted = [(shift, (1 << size) - 1) for shift, size in zip(shifts, sizes, strict=True)]
    table = np.empty(1 << sum(sizes), np.int64)
    for number in range(len(table)):
        given = part.function(*(number >> shift & mask for shift, mask in parted))
        table[number] = -1 if given is None else given
    return table


class _Heads:
    """Heads that gather what cells look at: as many as the cell that looks at most needs."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.slots: dict[str, dict[int, int]] = {}

    def assigned(self, cell: Cell, own: int) -> Iterator[list[str]]:
        """For every part the heads of what it looks at."""
        known: dict[tuple[str, str], str] = {}
        for part in cell.parts:
            names = []
            for look in part.looks:
                place = look.where, look.what
                if look.where == "recalled":
                    known[place] = look.what
                elif place not in known:
                    known[place] = self._free(look.where, own)
                    self.slots.setdefault(known[place], {})[own] = self.sheet.slot[look.what]
                names.append(known[place])
            yield names

    def _free(self, where: str, own: int) -> str:
        """The first head that does nothing else in a slot."""
        name = self.sheet.cells[own].name
        for number in count():
            head = f"{where} {number}"
            if name not in self.sheet.addresses.get(head, {}) and own not in self.slots.get(head, {}):
                return head
        raise AssertionError("there is always one more")

    def gathers(
        self, cases: Mapping[tuple[tuple[tuple[Bit, int], ...], int], list[int]], recalls: Sequence[Recall]
    ) -> Iterator[Gather]:
        """Those heads and the heads of addresses, with what is read of each."""
        read = {bit for holds, _ in cases for bit, _ in holds}
        read |= {side for head in recalls for pair in head.compared for side in pair if isinstance(side, str)}
        slots = self.sheet.slot
        named = {name: dict(looked) for name, looked in self.slots.items()}
        for name, looks in self.sheet.addresses.items():
            named.setdefault(name, {}).update({slots[own]: slots[other] for own, other in looks.items()})
        for name, looked in sorted(named.items()):
            copies = [(bit, f"{name}: {bit}") for bit in word(TOKEN, self.sheet.bits)]
            used = tuple(pair for pair in copies if pair[1] in read)
            if used:
                yield Gather(name, looked, name.startswith("last "), used)


def covered(table: NDArray[np.int64]) -> list[tuple[Literals, int]]:
    """Products of literals of which at most one holds for each bit of the number, and what each adds."""
    most = int(table.max(initial=0)).bit_length()
    groups: dict[tuple[int, ...], list[int]] = {}
    for bit in range(most):
        own = np.where(table < 0, -1, table >> bit & 1)
        if (own == 1).any():
            groups.setdefault(_support(own), []).append(bit)
    found: dict[Literals, int] = {}
    for bits in groups.values():
        mask = sum(1 << bit for bit in bits)
        together = _fewest(np.where(table < 0, -1, table & mask))
        alone = [own for bit in bits for own in _fewest(np.where(table < 0, -1, table & 1 << bit))]
        for literals, number in together if len(together) < len(alone) else alone:
            found[literals] = found.get(literals, 0) | number
    return list(found.items())


def _fewest(table: NDArray[np.int64]) -> list[tuple[Literals, int]]:
    """Paths that ask for the first input first, as where that selects among others, or for the last."""
    places = range((len(table) - 1).bit_length())
    first = list(_paths(table, tuple(places)))
    shaped = table.reshape((2,) * len(places)).transpose().reshape(-1) if places else table
    fewer = list(islice(_paths(shaped, tuple(reversed(places))), len(first)))
    return fewer if len(fewer) < len(first) else first


def _support(table: NDArray[np.int64]) -> tuple[int, ...]:
    """The inputs that a function depends on."""
    found = []
    for place in range((len(table) - 1).bit_length()):
        sides = table.reshape(-1, 2, 1 << place)
        if _joined(sides[:, 0], sides[:, 1]) is None:
            found.append(place)
    return tuple(found)


def _joined(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Both as one, where they agree in all that can happen."""
    agree = (low == high) | (low < 0) | (high < 0)
    return np.where(low < 0, high, low) if agree.all() else None


def _paths(table: NDArray[np.int64], places: tuple[int, ...]) -> Iterator[tuple[Literals, int]]:
    """The ways through the inputs, the one in the lowest bit first, on which the value is not 0; inputs that
    do not matter are passed over."""
    most = int(table.max())
    if ((table == most) | (table < 0)).all():
        if most > 0:
            yield (), most
        return
    low, high, (place, *rest) = table[::2], table[1::2], places
    if (joined := _joined(low, high)) is not None:
        yield from _paths(joined, tuple(rest))
        return
    for side, part in enumerate((low, high)):
        for literals, number in _paths(part, tuple(rest)):
            yield ((place, side), *literals), number
