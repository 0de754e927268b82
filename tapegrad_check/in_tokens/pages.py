"""Pages: what every token of a record must say, and where its digits of memory must come from.

A page has a name for every slot and, for each, rules: bits of other tokens, and a function from them to a
part of the number of this token. `compare` proves that the cases of a net are these rules: for every slot and
every bit of the number, for all that the bits can be. What a head recalls must be what the page says, for
every slot in which it is read: in which slots tokens are found, and which bits must be equal, here and there.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import require
from tapegrad_check.in_tokens.token_nets import Case, Side, Source, TokenNet

MOST_INPUTS = 22
"""Bits of which all values are tried."""
DIGIT, PLUS, MARK = 64, 16, 32
"""The number of the digit 0, and what its two flags add."""
VALUE, PLUS_BIT, MARK_BIT, DIGIT_BIT = (0, 1, 2, 3), 4, 5, 6


class Bits(NamedTuple):
    """Bits of the number of a token: in a slot of this record or of the last, or found by a head."""

    where: str
    what: str
    bits: tuple[int, ...]


class Rule(NamedTuple):
    """What is added to the number; None for what cannot be."""

    inputs: tuple[Bits, ...]
    function: Callable[..., int | None]


class Page(Protocol):
    """A page for one machine."""

    slots: Sequence[str]
    heads: Sequence[str]
    """Those that recall."""

    def rules(self, slot: str) -> Sequence[Rule]: ...

    def found(self, head: str, slot: str) -> Mapping[int, frozenset[tuple[Side, Side]]]:
        """Where the head finds tokens when it is asked for this slot's, and what must be equal."""
        ...


def compare(net: TokenNet, page: Page) -> int:
    """Proves that the net is what the page says; how many combinations of bits were tried."""
    require(tuple(net.names[head] for head in net.recalling) == tuple(page.heads), "heads have other names")
    places = {slot: number for number, slot in enumerate(page.slots)}
    tried = 0
    for slot, number in places.items():
        own = (number - 1) % len(page.slots)
        rules = page.rules(slot)
        for head in {part.what for rule in rules for part in rule.inputs if part.where == "recalled"}:
            wanted = dict(page.found(head, slot))
            require(
                net.answers(page.heads.index(head), own) == wanted, f"{slot!r} is recalled from elsewhere"
            )
        tables = [
            (_sources(rule, places, page.heads, own == len(places) - 1), table_of(rule)) for rule in rules
        ]
        cases = [case for case in (_translated(net, case, own) for case in net.cases) if case is not None]
        for bit in range(net.width):
            tried += _compare_bit(slot, bit, tables, [holds for holds, added in cases if added >> bit & 1])
    return tried


def _sources(rule: Rule, places: Mapping[str, int], heads: Sequence[str], ends: bool) -> list[Source]:
    found = []
    for where, what, bits in rule.inputs:
        if where == "recalled":
            found += [Source(where, heads.index(what), bit) for bit in bits]
        else:
            # After the last slot of a record, that record is the last one.
            found += [Source("this" if ends else where, places[what], bit) for bit in bits]
    return found


def table_of(rule: Rule) -> NDArray[np.int64]:
    """What a rule says of all that its inputs can be, the first in the lowest bits; -1 for what cannot be."""
    sizes = [len(part.bits) for part in rule.inputs]
    table = np.zeros(1 << sum(sizes), np.int64)
    for number in range(len(table)):
        values, rest = [], number
        for size in sizes:
            values.append(rest % (1 << size))
            rest >>= size
        given = rule.function(*values)
        table[number] = -1 if given is None else given
    return table


def _translated(net: TokenNet, case: Case, slot: int) -> tuple[dict[Source, int], int] | None:
    """A case in a slot, by where its bits come from; None if it cannot hold there."""
    if slot not in case.slots:
        return None
    holds: dict[Source, int] = {}
    for at, value in case.holds.items():
        source = net.source(at, slot)
        if isinstance(source, int):
            if source != value:
                return None
        elif holds.setdefault(source, value) != value:
            return None
    return holds, case.number


def _compare_bit(
    slot: str,
    bit: int,
    tables: Sequence[tuple[list[Source], NDArray[np.int64]]],
    cases: Sequence[Mapping[Source, int]],
) -> int:
    """One bit of the number of a slot's token: cases and rules, for all inputs."""
    ruling = [(sources, table) for sources, table in tables if ((table > 0) & (table >> bit & 1 > 0)).any()]
    inputs = list(dict.fromkeys(source for sources, _ in ruling for source in sources))
    require(all(holds.keys() <= set(inputs) for holds in cases), f"{slot!r} depends on something else")
    require(len(inputs) <= MOST_INPUTS, f"{slot!r} depends on too much")
    every = (2,) * len(inputs)
    wanted, possible, found = np.zeros(every, np.uint8), np.ones(every, bool), np.zeros(every, np.uint16)
    for sources, table in ruling:
        given = _spread(sources, table, inputs)
        possible &= given >= 0
        wanted += (given >> bit & 1).astype(np.uint8)
    for holds in cases:
        found[tuple(holds.get(source, slice(None)) for source in inputs)] += 1
    assert (wanted[possible] <= 1).all(), f"the page says twice what follows in {slot!r}"
    require(bool((found == wanted)[possible].all()), f"another token follows in {slot!r} than the page says")
    return found.size


def _spread(
    sources: Sequence[Source], table: NDArray[np.int64], inputs: Sequence[Source]
) -> NDArray[np.int64]:
    """A rule's table with an axis for each input, of length 1 where it does not matter."""
    own = [source for source in inputs if source in sources]
    numbers = np.indices((2,) * len(own)) if own else np.zeros((0,), np.int64)
    index = sum((numbers[own.index(source)] << place for place, source in enumerate(sources)), np.int64(0))
    return table[index].reshape([2 if source in sources else 1 for source in inputs])


class Area(NamedTuple):
    """Words of memory in records of the prompt: the number of a block in slots 1, 2, ..., then digits of
    words."""

    slots: int
    digits: int
    """Of a word."""
    address: int
    """Bits of an address."""
    numbered: int
    """Digits of a block's number."""

    @property
    def first(self) -> int:
        """The first slot with a digit of a word."""
        return 1 + self.numbered

    @property
    def place(self) -> int:
        """Bits of an address that say which word of a block it is: as many as there is room for, and as an
        address has. So each word of a record is found by another address, and no two at once."""
        return min(self.address, ((self.slots - self.first) // self.digits).bit_length() - 1)

    def found(self, asked: Sequence[Side], digit: int, kind: int) -> dict[int, frozenset[tuple[Side, Side]]]:
        """Where a digit of the word at an address is, in records of this kind."""
        found: dict[int, frozenset[tuple[Side, Side]]] = {}
        for word in range(1 << self.place):
            equal: set[tuple[Side, Side]] = {(kind >> bit & 1, Source("this", 0, bit)) for bit in (0, 1)}
            for bit, source in enumerate(asked):
                if bit < self.place:
                    equal.add((source, word >> bit & 1))
                else:
                    at = bit - self.place
                    equal.add((source, Source("this", 1 + at // 4, at % 4)))
            found[self.first + word * self.digits + digit] = frozenset(equal)
        return found


def numbered(slots: int, sizes: Sequence[tuple[int, int]]) -> int:
    """How many digits number the blocks of words with so many digits and bits of address."""
    for count in range(1, 9):
        if all(size[1] - Area(slots, *size, count).place <= 4 * count for size in sizes):
            return count
    raise AssertionError("addresses have at most 32 bits")


def digits_for(values: int) -> int:
    """Digits that so many values need."""
    return max(1, -(-(values - 1).bit_length() // 4))


def row(name: str, count: int) -> list[str]:
    """Slots of the digits of a word, the lowest first."""
    return [f"{name} {place}" for place in range(count)]


def at(slot: str, *bits: int, last: bool = False) -> Bits:
    """Bits of a token of this record, or of the last: the digit, if no others are named."""
    return Bits("last" if last else "this", slot, bits or VALUE)


def recalled(head: str, *bits: int) -> Bits:
    """Bits of a token that a head has found."""
    return Bits("recalled", head, bits)


def carried(total: int) -> int:
    """The token of a digit of a sum."""
    return DIGIT + total % 16 + (PLUS if total > 15 else 0)


def over(seen: int, limit: int) -> bool:
    """Whether a number is above a limit: its digit here with a plus for the digits before, the limit's
    digit."""
    return seen % 16 > limit or (seen % 16 == limit and bool(seen & PLUS))


def bit_of_digit(bit: int, value: int) -> int:
    """A bit of a digit; that it is one comes with the lowest."""
    return (DIGIT if bit == 0 else 0) + (value << bit)


def from_memory(store: str, image: str) -> list[Rule]:
    """A digit of memory: as last written, where there is such a token, else as in the prompt."""
    return [
        Rule(
            (recalled(store, bit, DIGIT_BIT), recalled(image, bit)),
            lambda last, first, bit=bit: bit_of_digit(bit, last % 2 if last > 1 else first),
        )
        for bit in VALUE
    ]
