"""Turing machines as token programs: every record is a step, told in words.

A record has, for each tape, where its head is and the symbol there, and last what the machine does: the
symbols it writes, its moves and the state it enters. Where a head is, is told by the digits of its distance
from where it started, the lowest first. A digit is that of the record before plus the move; a token that
carries says so, hence each digit depends on two tokens only. The symbol under a head was written by the
latest record that stood there; so a record answers for what it wrote at its own digits.

A prompt has a record for each cell that is not blank, then one with the word `<start>`, which does nothing
but enter the first state. Distances are counted modulo 16^m. No two cells have the same digits if all lie
within N of the start, where 2 N < 16^m; a run of N records goes no further, and inputs that do are refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tapegrad._sources import source_to_json
from tapegrad.attention.program import Bit, Side, Variable, word
from tapegrad.attention.tokens import BEGIN, Case, Gather, Recall, Token, TokenProgram
from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import LEFT, RIGHT, Configuration, Rule, TuringMachine

TAPES = "tapes"
DIGIT = 4
"""Bits of a digit."""
BASE = 1 << DIGIT
UP, DOWN = "up[0]", "down[0]"
SAME, RULE = "the slot to come, a record ago", "the last rule"
"""Names of the two gathers that look at the record before."""
MOVES = {LEFT: "L", 0: "S", RIGHT: "R"}


@dataclass(frozen=True)
class TapeTokens:
    """A machine, and how many digits tell where a head is."""

    machine: TuringMachine
    digits: int

    @classmethod
    def for_tokens(cls, machine: TuringMachine, tokens: int) -> "TapeTokens":
        """With as few digits as runs of so many tokens need."""
        digits = 1
        while not (own := cls(machine, digits)).holds(tokens):
            digits += 1
        return own

    def holds(self, tokens: int) -> bool:
        """Whether cells within reach in so many tokens have digits of their own."""
        return 2 * self.records(tokens) < BASE**self.digits

    def records(self, tokens: int) -> int:
        """Records that so many tokens have room for, after the first."""
        return (tokens - 1) // self.record

    @property
    def record(self) -> int:
        """Tokens of a record."""
        return self.machine.tapes * (self.digits + 1) + 1

    @property
    def about(self) -> str:
        """How to read a text."""
        return (
            "A digit is hexadecimal, the lowest first; together they tell how far a head is from where it\n"
            "started. A prompt has a record for each cell that is not blank, then one with `<start>`."
        )

    def digit_slot(self, tape: int, digit: int) -> int:
        """The slot of a digit; the symbol comes after the last one."""
        return tape * (self.digits + 1) + digit

    def symbol_slot(self, tape: int) -> int:
        """The slot of the symbol under a head."""
        return self.digit_slot(tape, self.digits)

    # The words

    @cached_property
    def outcomes(self) -> dict[Rule, int]:
        """What a machine can do, each with the number of its token."""
        different = dict.fromkeys(self.machine.rules.values())
        return {rule: len(self._told) + number for number, rule in enumerate(different)}

    @cached_property
    def _told(self) -> tuple[Token, ...]:
        """All tokens but those of rules."""
        machine, tapes = self.machine, range(self.machine.tapes)
        blank = frozenset(self._bit("write", t, 0) for t in tapes)
        given = [
            Token(f"{self._of('cell', t)}:{_word(symbol)}",
                  frozenset({f"on {t}[0]", self._bit("write", t, number)}))
            for t in tapes for number, symbol in enumerate(machine.alphabet) if number
        ]  # fmt: skip
        return (
            Token("<halt>", frozenset()),
            Token("<begin>", blank),
            Token("<start>", frozenset(_ones("state", self._bits(machine.states), 0))),
            *(Token(f"{digit:x}", frozenset(_ones("digit", DIGIT, digit))) for digit in range(BASE)),
            Token("0+", frozenset({UP})),
            Token(f"{BASE - 1:x}-", frozenset({DOWN, *word("digit", DIGIT)})),
            *(Token(f"sees:{_word(symbol)}", frozenset(_ones("symbol", self._bits(machine.alphabet), number)))
              for number, symbol in enumerate(machine.alphabet)),
            *given,
        )  # fmt: skip

    START, DIGITS, CARRY, BORROW, SYMBOLS = 2, 3, 3 + BASE, 4 + BASE, 5 + BASE
    """Numbers of the tokens `<start>`, 0, `0+`, `f-`, and of the first symbol."""

    @cached_property
    def given(self) -> dict[tuple[int, str], int]:
        """For each tape and symbol that is not blank the token that tells of such a cell."""
        first, symbols = self.SYMBOLS + len(self.machine.alphabet), self.machine.alphabet[1:]
        pairs = [(tape, symbol) for tape in range(self.machine.tapes) for symbol in symbols]
        return {pair: first + number for number, pair in enumerate(pairs)}

    def _of(self, name: str, tape: int) -> str:
        return name if self.machine.tapes == 1 else f"{name}{tape}"

    @staticmethod
    def _bits(names: Sequence[str]) -> int:
        return max(1, (len(names) - 1).bit_length())

    @staticmethod
    def _bit(name: str, tape: int, number: int) -> Bit:
        return f"{name} {tape}[{number}]"

    def _rule(self, rule: Rule) -> Token:
        alphabet, bits = self.machine.alphabet, set[Bit]()
        for tape, (symbol, move) in enumerate(zip(rule.write, rule.moves, strict=True)):
            bits |= {f"on {tape}[0]", self._bit("write", tape, alphabet.index(symbol))}
            bits |= {f"right {tape}[0]"} if move == RIGHT else {f"left {tape}[0]"} if move == LEFT else set()
        bits.update(_ones("state", self._bits(self.machine.states), self.machine.states.index(rule.state)))
        symbols, moves = "|".join(map(_word, rule.write)), "|".join(MOVES[move] for move in rule.moves)
        return Token(f"write:{symbols},move:{moves},enter:{_word(rule.state)}", frozenset(bits))

    # The program

    @cached_property
    def program(self) -> TokenProgram:
        """The machine as a token program."""
        machine, tapes = self.machine, range(self.machine.tapes)
        letters, states = self._bits(machine.alphabet), self._bits(machine.states)
        features = [Variable("digit", DIGIT), Variable("up", 1), Variable("down", 1)]
        features += [Variable("symbol", letters), Variable("state", states)]
        slots: list[str] = []
        for tape in tapes:
            features += [Variable(f"{name} {tape}", 1) for name in ("right", "left", "on")]
            features.append(Variable(f"write {tape}", len(machine.alphabet)))
            slots += [f"tape {tape} digit {digit}" for digit in range(self.digits)] + [f"tape {tape} symbol"]
        every = range(len(slots) + 1)
        gathers = [
            Gather(
                f"this {name}",
                dict.fromkeys(every[slot:], slot),
                False,
                _copies("symbol", letters, name)
                if name.endswith("symbol")
                else _copies("digit", DIGIT, name),
            )
            for slot, name in enumerate(slots)
        ]
        sides = [f"{side} {tape}" for tape in tapes for side in ("right", "left")]
        moves = [copy for side in sides for copy in _copies(side, 1, RULE)]
        coming = {own: (own + 1) % len(every) for own in every}
        gathers += [
            Gather(SAME, coming, True, _copies("digit", DIGIT, SAME)),
            Gather(RULE, dict.fromkeys(every, every[-1]), True, (*_copies("state", states, RULE), *moves)),
        ]
        return TokenProgram(
            machine.name,
            (*self._told, *map(self._rule, self.outcomes)),
            tuple(features),
            (*slots, "rule"),
            tuple(gathers),
            tuple(self._recall(tape, slots) for tape in tapes),
            tuple(self._cases(slots)),
        )

    def _recall(self, tape: int, slots: Sequence[str]) -> Recall:
        own = [slots[self.digit_slot(tape, digit)] for digit in range(self.digits)]
        address = [here for name in own for _, here in _copies("digit", DIGIT, name)]
        compared: list[tuple[Side, Side]] = [(bit, bit) for bit in address]
        name = f"last write to tape {tape}"
        return Recall(
            name,
            (*compared, (1, f"on {tape}[0]")),
            _copies(f"write {tape}", len(self.machine.alphabet), name),
        )

    def _cases(self, slots: Sequence[str]) -> Iterator[Case]:
        machine, tapes = self.machine, range(self.machine.tapes)
        later = [self.digit_slot(tape, digit) for tape in tapes for digit in range(self.digits - 1)]
        if later:
            yield from self._added(tuple(later), UP, DOWN)
        for tape in tapes:
            before = (self.digit_slot(tape, 0) - 1) % self.record
            right, left = (_here(RULE, f"{side} {tape}[0]") for side in ("right", "left"))
            yield from self._added((before,), right, left)
        for tape in tapes:
            for number, _ in enumerate(machine.alphabet):
                seen = _here(f"last write to tape {tape}", self._bit("write", tape, number))
                yield Case((self.symbol_slot(tape) - 1,), {seen: 1}, self.SYMBOLS + number)
        for (state, seen), rule in machine.rules.items():
            holds = _equal(RULE, "state", self._bits(machine.states), machine.states.index(state))
            for tape, symbol in enumerate(seen):
                name = slots[self.symbol_slot(tape)]
                bits = self._bits(machine.alphabet)
                holds |= _equal(name, "symbol", bits, machine.alphabet.index(symbol))
            yield Case((self.record - 2,), holds, self.outcomes[rule])

    def _added(self, slots: tuple[int, ...], up: Bit, down: Bit) -> Iterator[Case]:
        """The digit a record ago, plus 1, minus 1, or as it is."""
        for digit in range(BASE):
            same = _equal(SAME, "digit", DIGIT, digit)
            more = self.CARRY if digit == BASE - 1 else self.DIGITS + digit + 1
            less = self.BORROW if digit == 0 else self.DIGITS + digit - 1
            yield Case(slots, same | {up: 0, down: 0}, self.DIGITS + digit)
            yield Case(slots, same | {up: 1}, more)
            yield Case(slots, same | {down: 1}, less)

    # States to tokens and back

    def prompt(self, first: Configuration, tokens: int) -> list[int]:
        """A first configuration in words, for a run of so many tokens."""
        machine = self.machine
        if first.state != machine.start_state:
            raise InputError(f"the net starts in state {machine.start_state!r}, not in {first.state!r}")
        numbers = [BEGIN]
        for tape, (cells, head) in enumerate(zip(first.tapes, first.heads, strict=True)):
            for cell, symbol in sorted(cells.items()):
                if (tape, symbol) not in self.given:
                    raise InputError(f"the net has no symbol {symbol!r}")
                if abs(cell - head) > self.records(tokens):
                    raise Refused(
                        f"the input reaches further than {self.records(tokens):,} cells from the head",
                        advice="Compile with more tokens.",
                    )
                numbers += self._record({tape: cell - head}, self.given[tape, symbol])
        numbers += self._record({}, self.START)
        if len(numbers) + self.record > tokens:
            raise Refused(
                f"the input takes {len(numbers):,} tokens, and the net has a horizon of {tokens:,}",
                advice=f"Compile with more, as in tokens={2 * (len(numbers) + self.record)}.",
            )
        return numbers

    def _record(self, distances: dict[int, int], last: int) -> Iterator[int]:
        for tape in range(self.machine.tapes):
            at = distances.get(tape, 0) % BASE**self.digits
            yield from (self.DIGITS + (at >> DIGIT * digit) % BASE for digit in range(self.digits))
            yield self.SYMBOLS
        yield last

    def distances(self, record: Sequence[int]) -> tuple[int, ...]:
        """How far the heads are from where they started, as the digits of a record say."""
        found = []
        for tape in range(self.machine.tapes):
            first = self.digit_slot(tape, 0)
            at = sum(
                self._digit(number) << DIGIT * place
                for place, number in enumerate(record[first : first + self.digits])
            )
            found.append(at if 2 * at < BASE**self.digits else at - BASE**self.digits)
        return tuple(found)

    def _digit(self, number: int) -> int:
        if number in (self.CARRY, self.BORROW):
            return 0 if number == self.CARRY else BASE - 1
        return number - self.DIGITS if self.DIGITS <= number < self.CARRY else 0

    @cached_property
    def does(self) -> dict[int, Rule]:
        """What the token of a rule stands for."""
        return {number: rule for rule, number in self.outcomes.items()}

    def follow(self, first: Configuration) -> "TapeStory":
        """One that reads records of a run from this configuration."""
        return TapeStory(self, first)

    def to_json(self) -> dict[str, Any]:
        """The machine and its sizes."""
        return {"kind": TAPES, "digits": self.digits, "source": source_to_json(self.machine)[0]}


class TapeStory:
    """What records tell: the configuration in which the last one found the machine."""

    def __init__(self, words: TapeTokens, first: Configuration) -> None:
        self.words, self.first = words, first
        self.does: Rule | None = None
        """What the last record does, which shows in the next."""
        self.state = first.state
        self.tapes = [dict(tape) for tape in first.tapes]
        self.heads = first.heads

    def read(self, record: Sequence[int]) -> bool:
        """The next record, or as much of it as there is."""
        if self.does is not None:
            for tape, head, symbol in zip(self.tapes, self.heads, self.does.write, strict=True):
                if symbol == self.words.machine.blank:
                    tape.pop(head, None)
                else:
                    tape[head] = symbol
            self.state = self.does.state
        ways = self.words.distances(record)
        self.heads = tuple(head + way for head, way in zip(self.first.heads, ways, strict=True))
        self.does = self.words.does.get(record[-1])
        return True

    def configuration(self) -> Configuration:
        """As the interpreter has it."""
        return Configuration(self.state, tuple(dict(tape) for tape in self.tapes), self.heads)


def _word(name: str) -> str:
    """A name without spaces, which become dots, and without what separates names in a word."""
    plain = (
        c if c.isprintable() and not c.isspace() and c not in "%|,<>·" else f"%{ord(c):x};" for c in name
    )
    return "".join(plain).replace("%20;", "·") or "%"


def _ones(name: str, width: int, number: int) -> list[Bit]:
    return [bit for place, bit in enumerate(word(name, width)) if number >> place & 1]


def _here(head: str, bit: Bit) -> Bit:
    """What a head makes of a bit."""
    return f"{head}: {bit}"


def _copies(feature: str, width: int, head: str) -> tuple[tuple[Bit, Bit], ...]:
    return tuple((bit, _here(head, bit)) for bit in word(feature, width))


def _equal(head: str, feature: str, width: int, number: int) -> dict[Bit, int]:
    return {_here(head, bit): number >> place & 1 for place, bit in enumerate(word(feature, width))}
