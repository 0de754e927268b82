"""Token programs: what a language model computes from the tokens so far, and a plain interpreter of them.

A sequence is a first token, then records of the same number of tokens each: one in every slot. A token is a
word and some bits. To find the token that follows, a position knows the bits of its own token and looks at
others:

- a `Gather` copies bits of the token in some slot of this record, or of the last one that is complete,
- a `Recall` looks for the latest record in which certain bits, gathered there, are equal to bits known here,
  and copies bits of the token found.

Where there is no such token, both copy from the first one. Then the `Case` whose bits are as it says names
the token that follows; where there is none, it is the token number 0, which ends the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tapegrad.attention.program import Bit, Side, Variable
from tapegrad.errors import SourceError

END, BEGIN = 0, 1
"""Numbers of the token that ends a run, and of the first token of every sequence."""


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
    compared: tuple[tuple[Side, Side], ...]
    """What asks, here, and what answers, there."""
    copies: tuple[tuple[Bit, Bit], ...]
    """A bit of the token, and the new bit here."""


@dataclass(frozen=True)
class Case:
    """In these slots, and where bits are so, this token follows."""

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
            if len(recalled.intersection(case.holds)) > 1:
                raise SourceError(f"the case for {self.tokens[case.token].word!r} reads two recalled bits")
        words = [token.word for token in self.tokens]
        if len(set(words)) < len(words) or any(not word or word.split() != [word] for word in words):
            raise SourceError("the words of tokens are not different, or one has a space in it")

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {token.word: number for number, token in enumerate(self.tokens)}

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
        self.known: list[set[Bit]] = []
        """For every position the bits that are 1 there, gathered ones included."""

    def feed(self, numbers: Sequence[int]) -> int:
        """Reads more tokens; the one that follows them."""
        for number in numbers:
            self.numbers.append(number)
            self.known.append(set(self.program.tokens[number].bits))
            self._gather(self.known[-1])
        return self._next()

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
        known = set(self.known[-1])
        for head in self.program.recalls:
            found = [at for at in range(1, position + 1) if self._fits(head, at)]
            known |= self._copied(head.copies, found[-1] if found else 0)
        slot = self.program.place(position)[1]
        following = [
            case.token
            for case in self.program.cases
            if position
            and slot in case.slots
            and all((bit in known) == bool(value) for bit, value in case.holds.items())
        ]
        if len(following) > 1:
            raise SourceError("two cases hold at once")
        return following[0] if following else END

    def _fits(self, head: Recall, at: int) -> bool:
        here, there = self.known[-1], self.known[at]
        return all(_value(ask, here) == _value(answer, there) for ask, answer in head.compared)


def _value(side: Side, known: set[Bit]) -> bool:
    return side in known if isinstance(side, str) else bool(side)
