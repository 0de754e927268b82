"""Token programs: what a language model computes from the tokens so far, and a plain interpreter of them.

A sequence is a first token, then records of the same number of tokens each: one in every slot. A token is a
word and some bits. To find the token that follows, a position knows the bits of its own token and looks at
others:

- a `Gather` copies bits of the token in some slot of this record, or of the last one that is complete,
- a `Recall` looks for the latest record in which certain bits, gathered there, are equal to bits known here,
  and copies bits of the token found.

Where there is no such token, both copy from the first one. Then every `Case` whose bits are as it says adds a
number, and no two the same bit of it: the sum is the number of the token that follows. Where no case holds it
is 0, the token that ends the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tapegrad.attention.program import Bit, Side, Variable
from tapegrad.errors import SourceError

END, BEGIN = 0, 1
"""Numbers of the token that ends a run, and of the first token of every sequence."""
MOST_RECALLED = 8
"""Recalled bits that a case may read: each is off by 2^-10 at most, and units are sure up to 1/64."""

TokenSide = Side | frozenset[int]
"""A bit, a constant, or slots: a bit that is 1 in these."""


@dataclass(frozen=True)
class Token:
    """A word for people, and the bits that are 1."""

    word: str
    bits: frozenset[Bit]


@dataclass(frozen=True)
class Gather:
    """Looks at the token in a slot that depends on one's own: of this record; or, with `before`, of the last
    record that is complete once the next token is there."""

    name: str
    slots: Mapping[int, int]
    """From one's own slot to the one looked at."""
    before: bool
    copies: tuple[tuple[Bit, Bit], ...]
    """A bit of the token, and the new bit here."""


@dataclass(frozen=True)
class Recall:
    """Looks at the latest token where all bits are equal."""

    name: str
    compared: tuple[tuple[TokenSide, TokenSide], ...]
    """What asks, here, and what answers, there. Of the tokens of a record one at most may fit."""
    copies: tuple[tuple[Bit, Bit], ...]
    """A bit of the token, and the new bit here."""


@dataclass(frozen=True)
class Case:
    """In these slots, and where bits are so, this is added to the number of the token that follows."""

    slots: tuple[int, ...]
    holds: Mapping[Bit, int]
    token: int


@dataclass(frozen=True)
class TokenProgram:
    """How the next token depends on all before it."""

    name: str
    tokens: tuple[Token, ...]
    features: tuple[Variable, ...]
    """The bits that tokens have."""
    slots: tuple[str, ...]
    gathers: tuple[Gather, ...]
    recalls: tuple[Recall, ...]
    cases: tuple[Case, ...]
    coded: bool = False
    """Whether gathers compare slots by their binary numbers: as good, and shorter where there are many."""

    def __post_init__(self) -> None:
        own = {bit for feature in self.features for bit in feature.bits}
        known = set(own)
        for head in self.gathers:
            _known(head.name, {there for there, _ in head.copies}, own)
            known |= {here for _, here in head.copies}
        recalled = {here for head in self.recalls for _, here in head.copies}
        for head in self.recalls:
            sides = {side for pair in head.compared for side in pair if isinstance(side, str)}
            _known(head.name, sides, known)
            _known(head.name, {there for there, _ in head.copies}, own)
        every = known | recalled
        for case in self.cases:
            _known(self.tokens[case.token].word, set(case.holds), every)
            if len(recalled.intersection(case.holds)) > MOST_RECALLED:
                raise SourceError(f"the case for {self.tokens[case.token].word!r} recalls too many bits")
        words = [token.word for token in self.tokens]
        if len(set(words)) < len(words) or any(not word or word.split() != [word] for word in words):
            raise SourceError("the words of tokens are not different, or one has a space in it")

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {token.word: number for number, token in enumerate(self.tokens)}

    @cached_property
    def cases_of(self) -> list[list[Case]]:
        """For each slot the cases that are about it."""
        found: list[list[Case]] = [[] for _ in self.slots]
        for case in self.cases:
            for slot in case.slots:
                found[slot].append(case)
        return found

    def place(self, position: int) -> tuple[int, int]:
        """Record and slot of a position; the first token has neither and is not asked about."""
        return divmod(position - 1, len(self.slots))


def _known(name: str, needed: set[Bit], known: set[Bit]) -> None:
    if missing := needed - known:
        raise SourceError(f"{name!r} reads {', '.join(sorted(missing)[:3])}, which is not known there")


class Interpreter:
    """A token program in plain Python, written to be read: what the weights are compared with. No floats."""

    def __init__(self, program: TokenProgram) -> None:
        self.program = program
        self.numbers: list[int] = []
        self.known: set[Bit] = set()
        """The bits that are 1 at the last position, gathered ones included."""
        self.latest: list[dict[tuple[bool, ...], int]] = [{} for _ in program.recalls]
        """For every recall, by what tokens answer, the position of the latest; its negative where that is the
        second of its record."""

    def feed(self, numbers: Sequence[int]) -> int:
        """Reads more tokens; the one that follows them."""
        for number in numbers:
            self.numbers.append(number)
            self.known = set(self.program.tokens[number].bits)
            self._gather(self.known)
            if len(self.numbers) > 1:
                self._answer()
        return self._next()

    def _answer(self) -> None:
        position = len(self.numbers) - 1
        record, slot = self.program.place(position)
        for head, latest in zip(self.program.recalls, self.latest, strict=True):
            answer = tuple(_value(side, self.known, slot) for _, side in head.compared)
            before = latest.get(answer, 0)
            twice = before and self.program.place(abs(before))[0] == record
            latest[answer] = -position if twice else position

    def run(self, prompt: Sequence[int]) -> Iterator[int]:
        """The tokens that follow a prompt, up to the one that ends the run."""
        following = self.feed(prompt)
        while True:
            yield following
            if following == END:
                return
            following = self.feed([following])

    def _gather(self, known: set[Bit]) -> None:
        position, size = len(self.numbers) - 1, len(self.program.slots)
        record, slot = self.program.place(position)
        complete = position // size - 1
        for head in self.program.gathers:
            at = 0
            if position and slot in head.slots:
                asked = 1 + (complete if head.before else record) * size + head.slots[slot]
                at = asked if 0 < asked <= position else 0
            known |= self._copied(head.copies, at)

    def _copied(self, copies: Sequence[tuple[Bit, Bit]], at: int) -> set[Bit]:
        own = self.program.tokens[self.numbers[at]].bits
        return {here for there, here in copies if there in own}

    def _next(self) -> int:
        position = len(self.numbers) - 1
        asking, known, slot = self.known, set(self.known), self.program.place(position)[1]
        for head, latest in zip(self.program.recalls, self.latest, strict=True):
            at = latest.get(tuple(_value(side, asking, slot) for side, _ in head.compared), 0)
            if at < 0:
                raise SourceError(f"two tokens of a record answer {head.name!r}")
            known |= self._copied(head.copies, at)
        following = [
            case.token
            for case in (self.program.cases_of[slot] if position else ())
            if all((bit in known) == bool(value) for bit, value in case.holds.items())
        ]
        number = 0
        for token in following:
            if number & token:
                raise SourceError(f"two cases that hold after {self.program.slots[slot]!r} set the same bit")
            number |= token
        return number


def _value(side: TokenSide, known: set[Bit], slot: int) -> bool:
    if isinstance(side, frozenset):
        return slot in side
    return side in known if isinstance(side, str) else bool(side)
