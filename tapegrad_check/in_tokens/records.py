"""How runs of a Turing machine are told in tokens, in the checker's own words: tokens, slots, coordinates,
sizes.

After the first token come records of the same length: for each tape the digits of where its head is and the
symbol there, last what the machine does. All names and numbers that a net of target `decoder` has follow from
the machine, the number of digits and the horizon.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tapegrad_check.folder import require
from tapegrad_check.sources import Machine

DIGIT, BASE = 4, 16
"""Bits of a digit, and how many digits there are."""
END, DIGITS, CARRY, BORROW, SYMBOLS = 0, 3, 3 + BASE, 4 + BASE, 5 + BASE
"""Numbers of tokens. 1 is the first of every text, 2 the first of a run."""
SAME, RULE = "the slot to come, a record ago", "the last rule"
"""Names of the heads that look at the record before."""
STRAY, LARGEST, MOST_COMPARED = 2.0**-10, 1 << 14, 128
"""How far from a bit softmax may leave what it copies; the largest score; bits that are compared are
fewer."""

Key = tuple[str, int]
"""The name of a coordinate."""


@dataclass(frozen=True)
class Text:
    """How runs of a machine are told, and the sizes that follow from it."""

    machine: Machine
    digits: int
    horizon: int

    def __post_init__(self) -> None:
        require(2 * self.records < BASE**self.digits, "cells within reach have the same digits")
        require(bool(self.layers), "heads compare too much")

    @property
    def record(self) -> int:
        """Tokens of a record."""
        return self.machine.tapes * (self.digits + 1) + 1

    @property
    def records(self) -> int:
        """Records that there is room for."""
        return (self.horizon - 1) // self.record

    @property
    def bits(self) -> int:
        """Of the number of a record, which is at most the horizon over its size."""
        return max(1, (self.horizon // self.record).bit_length())

    @property
    def compared(self) -> int:
        """Bits that the first round of a search compares: an address, and whether there is a write."""
        return DIGIT * self.digits + 1

    @cached_property
    def layers(self) -> list[range]:
        """For each round of a search the bits of the record's number that it finds; the fewest rounds whose
        scores are small enough."""
        for count in range(1, self.bits + 1 if self.compared + self.bits < MOST_COMPARED else 1):
            sizes = sorted((self.bits + number) // count for number in range(count))[::-1]
            found, rest = [], self.bits
            for size in sizes:
                found.append(range(rest - size, rest))
                rest -= size
            if max(map(self.score, found)) <= LARGEST:
                return found
        return []

    def score(self, bits: range) -> int:
        """The largest score of a round."""
        return (self.compared + self.bits - bits.stop + 1) << len(bits)

    @property
    def largest(self) -> int:
        """The largest of all."""
        return max(map(self.score, self.layers))

    @cached_property
    def beta(self) -> float:
        """The temperature: the least power of two that leaves softmax hard enough."""
        beta = 1.0
        while self._stray(beta) > STRAY:
            beta *= 2
        return beta

    @property
    def stray(self) -> float:
        """How far from a bit softmax leaves what it copies."""
        return self._stray(self.beta)

    def _stray(self, beta: float) -> float:
        return 4 * self.horizon * math.exp(-beta / 2) + 2.0**-23

    # Tokens and slots

    @property
    def letters(self) -> int:
        """Bits of a symbol's number."""
        return max(1, (len(self.machine.alphabet) - 1).bit_length())

    @property
    def state_bits(self) -> int:
        """Bits of a state's number."""
        return max(1, (len(self.machine.states) - 1).bit_length())

    @cached_property
    def outcomes(self) -> dict[Any, int]:
        """What rules do, and the numbers of these tokens."""
        first = SYMBOLS + len(self.machine.alphabet) + self.machine.tapes * (len(self.machine.alphabet) - 1)
        return {rule: first + n for n, rule in enumerate(dict.fromkeys(self.machine.rules.values()))}

    @cached_property
    def tokens(self) -> list[set[Key]]:
        """The bits of every token that are 1."""
        machine, tapes = self.machine, range(self.machine.tapes)
        symbols = range(len(machine.alphabet))
        found = [
            set[Key](),
            {("begin", 0), *((f"write {t}", 0) for t in tapes)},
            ones("state", 0),
            *(ones("digit", digit) for digit in range(BASE)),
            {("up", 0)},
            {("down", 0), *ones("digit", BASE - 1)},
            *(ones("symbol", number) for number in symbols),
            *({(f"on {t}", 0), (f"write {t}", number)} for t in tapes for number in symbols[1:]),
        ]
        for rule in self.outcomes:
            bits = ones("state", machine.states.index(rule.state))
            for t, (symbol, move) in enumerate(zip(rule.write, rule.moves, strict=True)):
                bits |= {(f"on {t}", 0), (f"write {t}", machine.alphabet.index(symbol))}
                bits |= {(f"right {t}", 0)} if move == 1 else {(f"left {t}", 0)} if move == -1 else set()
            found.append(bits)
        return found

    @cached_property
    def words(self) -> list[str]:
        """What a person reads for every token: a digit that carries says so, and names are those of the
        machine."""
        machine = self.machine
        names = {name: _plain(name) for name in (*machine.alphabet, *machine.states)}
        marks = [""] if machine.tapes == 1 else [str(t) for t in range(machine.tapes)]
        return [
            "<halt>",
            "<begin>",
            "<start>",
            *(f"{digit:x}" for digit in range(BASE)),
            "0+",
            f"{BASE - 1:x}-",
            *(f"sees:{names[symbol]}" for symbol in machine.alphabet),
            *(f"cell{mark}:{names[symbol]}" for mark in marks for symbol in machine.alphabet[1:]),
            *(
                f"write:{'|'.join(names[symbol] for symbol in rule.write)},"
                f"move:{'|'.join('LSR'[move + 1] for move in rule.moves)},enter:{names[rule.state]}"
                for rule in self.outcomes
            ),
        ]

    @cached_property
    def slots(self) -> list[str]:
        """All but the last, which is for rules."""
        return [
            f"tape {t} {what}"
            for t in range(self.machine.tapes)
            for what in (*(f"digit {digit}" for digit in range(self.digits)), "symbol")
        ]

    def address(self, tape: int) -> list[Key]:
        """Gathered bits of where a head is."""
        return [
            (f"tape {tape} digit {digit}: digit", bit) for digit in range(self.digits) for bit in range(DIGIT)
        ]

    def recall(self, tape: int) -> str:
        """The name of the head that reads a tape."""
        return f"last write to tape {tape}"

    @cached_property
    def gathered(self) -> dict[str, list[tuple[Key, Key]]]:
        """For every head of the first layer what it copies, there and here."""
        found = {}
        for slot in self.slots:
            feature, width = ("symbol", self.letters) if slot.endswith("symbol") else ("digit", DIGIT)
            found[f"this {slot}"] = copies_of(slot, feature, width)
        found[SAME] = copies_of(SAME, "digit", DIGIT)
        moves = [f"{side} {t}" for t in range(self.machine.tapes) for side in ("right", "left")]
        found[RULE] = copies_of(RULE, "state", self.state_bits)
        found[RULE] += [pair for move in moves for pair in copies_of(RULE, move, 1)]
        return found

    def searched(self, bits: range) -> list[tuple[Key, Key]]:
        """What a round of the search copies, for all tapes."""
        return [
            pair for t in range(self.machine.tapes) for pair in copies_of(self.recall(t), "record", 0, bits)
        ]

    @cached_property
    def coordinates(self) -> list[Key]:
        """All coordinates in order."""
        machine, tapes = self.machine, range(self.machine.tapes)
        sizes = [("begin", 1), ("digit", DIGIT), ("up", 1), ("down", 1)]
        sizes += [("symbol", self.letters), ("state", self.state_bits)]
        for t in tapes:
            sizes += [
                (f"right {t}", 1),
                (f"left {t}", 1),
                (f"on {t}", 1),
                (f"write {t}", len(machine.alphabet)),
            ]
        sizes += [("record", self.bits), ("before", self.bits), ("slot", self.record)]
        keys = [(name, number) for name, size in sizes for number in range(size)]
        gathered = [here for copies in self.gathered.values() for _, here in copies]
        for copies in (gathered, *([here for _, here in self.searched(bits)] for bits in self.layers[:-1])):
            keys += [*map(raw_of, copies), *copies]
        for t in tapes:
            own = copies_of(self.recall(t), f"write {t}", len(machine.alphabet))
            keys += [raw_of(here) for _, here in own]
        return keys + [("next", bit) for bit in range((len(self.tokens) - 1).bit_length())]


def _plain(name: str) -> str:
    """A name as a part of a word: spaces are dots, and what words are made of is written by its number."""
    if not name:
        return "%"
    kept = (c.isprintable() and not c.isspace() and c not in "%|,<>·" for c in name)
    return "".join(
        c if keep else "·" if c == " " else f"%{ord(c):x};" for c, keep in zip(name, kept, strict=True)
    )


def ones(name: str, number: int) -> set[Key]:
    """The bits of a number that are 1."""
    return {(name, bit) for bit in range(number.bit_length()) if number >> bit & 1}


def raw_of(key: Key) -> Key:
    """Where a copied bit arrives, before it is rounded."""
    return f"raw {key[0]}", key[1]


def copies_of(head: str, feature: str, width: int, bits: Sequence[int] = ()) -> list[tuple[Key, Key]]:
    """What a head copies, there and here."""
    return [((feature, bit), (f"{head}: {feature}", bit)) for bit in bits or range(width)]
