"""SUBLEQ as a token program: every record is an instruction, told digit by digit.

    step  pc  pc+1  pc+2  a  from  b  to  c  x  y  z  out  jump  taken  next  outcome

A word of memory has as many digits as its width needs, the lowest first. The words a, b and c are recalled
from pc and the two addresses after it, x and y from the addresses a and b; z is what b becomes, y - x with
borrows in its tokens. Of memory, what was written last is found in two places: the record that wrote z to
this address, or, where there is none, the prompt. Comparisons go digit by digit too, in the flags of the
digits that come next.

A prompt has records of two kinds, `data` with words of memory and `input` with bytes to read, each with the
number of its block, then one with `<start>`, which only tells where to begin. A record that traps is the
last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from tapegrad.attention.cells import Cell, Look, Part, Sheet
from tapegrad.attention.digits import (
    BASE,
    DIGIT,
    FLAG_F,
    FLAG_G,
    IS_DIGIT,
    NIBBLE,
    VALUE,
    G,
    above,
    carrying,
    digit_word,
    digits_of,
    flagged,
    look,
    marked,
    number_of,
    plain,
    row,
    sum_of,
)
from tapegrad.attention.prompts import (
    ABOUT,
    Blocks,
    ProgramStory,
    block_addresses,
    byte_word,
    copies,
    digits_for,
    head_bit,
    input_records,
    joined,
    of_kind,
)
from tapegrad.attention.tokens import Recall, TokenProgram
from tapegrad.programs.model import COUNTED, ProgramState
from tapegrad.programs.subleq import Subleq

SUBLEQ = "subleq"
DATA, INPUT, START, STEP = 2, 3, 4, 5
"""Kinds of records, in their first slots."""
GREATER, LEQ, GO, QUIET = 6, 7, 13, 18
FROM, TO = 8, 32
"""Followed by where a word comes from and goes to: memory, a device, or nowhere that exists."""
MEMORY, DEVICE, OUTSIDE = 0, 2, 4
PLACE = (1, 2)
"""The bits that tell them apart."""
WRITES = 16
"""What `to:memory` has more than that."""
ENDS, ASTRAY, BEYOND = 14, 15, 17
"""Traps."""
PUT = 256
"""Followed by the byte."""
WORDS = {
    0: "<halt>", 1: "<begin>", DATA: "data", INPUT: "input", START: "<start>", STEP: "step",
    GREATER: "greater", LEQ: "leq", GO: "go", QUIET: "-",
    FROM + MEMORY: "from:memory", FROM + DEVICE: "from:input", FROM + OUTSIDE: "from:outside",
    TO + WRITES + MEMORY: "to:memory", TO + DEVICE: "to:output", TO + OUTSIDE: "to:outside",
    ENDS: "trap:end", ASTRAY: "trap:jump·outside·memory", BEYOND: "trap:address·outside·memory",
}  # fmt: skip
TRAPS = {ENDS: "end", ASTRAY: "jump outside memory", BEYOND: "address outside memory"}
ASKED = {"a": "pc", "b": "pc+1", "c": "pc+2", "x": "a", "y": "b"}
"""Rows that are recalled, and where their addresses are."""
STORE, IMAGE, BYTE = "last write", "word of the prompt", "byte of the input"
"""Names of the heads that recall."""


@dataclass(frozen=True)
class SubleqTokens:
    """A machine, and how many digits count the bytes that were read."""

    machine: Subleq
    counted: int

    @property
    def word(self) -> int:
        """Digits of a word."""
        return self.machine.width // NIBBLE

    @property
    def words(self) -> int:
        """Of memory."""
        return self.machine.ram * 8 // self.machine.width

    @property
    def address(self) -> int:
        """Digits of an address."""
        return digits_for(self.words)

    @cached_property
    def slots(self) -> list[str]:
        """Names of the tokens of a record."""
        word, address = self.word, self.address
        return [
            "kind", *row("pc", word), *row("pc+1", address), *row("pc+2", address), *row("a", word), "from",
            *row("b", word), "to", *row("c", word), *row("x", word), *row("y", word), *row("z", word), "out",
            "jump", *row("taken", self.counted), *row("next", word), "outcome",
        ]  # fmt: skip

    @property
    def record(self) -> int:
        """Tokens of a record."""
        return len(self.slots)

    @property
    def about(self) -> str:
        """How to read a text."""
        return ABOUT

    @cached_property
    def data(self) -> Blocks:
        """Words of memory in the prompt."""
        return Blocks(self.record, self.word, NIBBLE * self.address, self._numbered)

    @cached_property
    def bytes(self) -> Blocks:
        """Bytes of input in the prompt."""
        return Blocks(self.record, 2, NIBBLE * self.counted, self._numbered)

    @property
    def _numbered(self) -> int:
        sizes = ((self.word, NIBBLE * self.address), (2, NIBBLE * self.counted))
        return max(Blocks.least_numbered(self.record, *size) for size in sizes)

    # The program

    @cached_property
    def program(self) -> TokenProgram:
        """As a token program; it takes a second to make, and many nets have the same."""
        return _program(self)

    def sheet(self) -> Sheet:
        """Its cells and heads."""
        return Sheet(
            f"subleq-{self.machine.width}",
            [self._word(number) for number in range(2 * PUT)],
            list(self._cells()),
            self._addresses(),
            self._recalls(),
        )

    @staticmethod
    def _word(number: int) -> str:
        if number >= PUT:
            return f"put:{byte_word(number - PUT)}"
        if DIGIT <= number < 2 * DIGIT:
            return digit_word(number)
        return WORDS.get(number, f"<unused:{number}>")

    def _asking(self) -> Iterator[tuple[int, str, int]]:
        """The slots before those that are recalled, with the row of the address, and the digit."""
        for name, address in ASKED.items():
            for place, slot in enumerate(row(name, self.word)):
                yield self.slots.index(slot) - 1, address, place

    def _addresses(self) -> dict[str, dict[str, str]]:
        """Heads that find addresses: of what is asked for, and of what z writes."""
        looks: dict[str, dict[str, str]] = {}
        for place in range(self.address):
            asked = {self.slots[own]: f"{address} {place}" for own, address, _ in self._asking()}
            looks[f"this {place}"] = asked
            looks[f"write {place}"] = dict.fromkeys(row("z", self.word), f"b {place}")
        looks["writes"] = dict.fromkeys(row("z", self.word), "to")
        first = self.slots.index("x 0") - 1
        for place in range(self.counted):
            own = self.slots[first : first + self.word]
            looks[f"last {place}"] = dict.fromkeys(own, f"taken {place}")
        area = range(self.data.first, max(self.data.area.stop, self.bytes.area.stop))
        return looks | block_addresses(self.slots, self._numbered, area)

    def _recalls(self) -> list[Recall]:
        bits = range(NIBBLE * self.address)
        asked = [head_bit(f"this {bit // NIBBLE}", bit % NIBBLE) for bit in bits]
        written = [head_bit(f"write {bit // NIBBLE}", bit % NIBBLE) for bit in bits]
        low = range((self.word - 1).bit_length())
        index = [frozenset(own for own, _, place in self._asking() if place >> bit & 1) for bit in low]
        own = {self.slots.index(slot): place for place, slot in enumerate(row("z", self.word))}
        there = [frozenset(slot for slot, place in own.items() if place >> bit & 1) for bit in low]
        taken = [head_bit(f"last {bit // NIBBLE}", bit % NIBBLE) for bit in range(NIBBLE * self.counted)]
        return [
            Recall(
                STORE,
                (*zip(asked, written, strict=True), *zip(index, there, strict=True),
                 (1, head_bit("writes", WRITES.bit_length() - 1))),
                copies(STORE, *VALUE, IS_DIGIT),
            ),
            Recall(
                IMAGE,
                (*self.data.compared(asked, index), *of_kind(DATA)),
                copies(IMAGE, *VALUE),
            ),
            Recall(
                BYTE,
                (*self.bytes.compared(taken, index), *of_kind(INPUT)),
                copies(BYTE, *VALUE, FLAG_G),
            ),
        ]  # fmt: skip

    def _cells(self) -> Iterator[Cell]:
        """What follows in every slot."""
        word, last = self.word, self.word - 1
        yield Cell("kind", (Part((look("outcome", 0, 1, 2, 3, 4, where="last"),), _begins),))
        limits = digits_of(self.words - 3, word) if self.words >= 3 else None
        for place, slot in enumerate(row("pc", word)):
            yield Cell(
                slot, (Part((look(f"next {place}", where="last"),), plain), *self._above("pc", place, limits))
            )
        for name, before in (("pc+1", "pc"), ("pc+2", "pc+1")):
            for place, slot in enumerate(row(name, self.address)):
                yield Cell(slot, (_added(f"{before} {place}", 1, name, place),))
        for name, decision, device in (("a", "from", _from), ("b", "to", _to)):
            most = digits_of(self.words - 1, word)
            for place, slot in enumerate(row(name, word)):
                yield Cell(
                    slot, (*self._recalled(), *self._above(name, place, most), *_all_ones(name, place))
                )
            seen = look(f"{name} {last}", *VALUE, FLAG_F, FLAG_G)
            yield Cell(decision, (Part((seen,), partial(device, most[last] % BASE)),))
        for slot in row("c", word):
            yield Cell(slot, self._recalled())
        for place, slot in enumerate(row("x", word)):
            yield Cell(slot, self._moved(place))
        for slot in row("y", word):
            yield Cell(slot, self._recalled())
        for place, slot in enumerate(row("z", word)):
            yield Cell(slot, tuple(self._result(place)))
        devices = look("from", *PLACE), look("to", *PLACE)
        yield Cell("out", (Part((*devices, look("x 0"), look("x 1")), _put),))
        yield Cell("jump", (Part((*devices, look(f"z {last}", *VALUE, FLAG_G)), _jumps),))
        for place, slot in enumerate(row("taken", self.counted)):
            carry = look(f"taken {place - 1}", FLAG_F) if place else look("x 0", FLAG_F)
            yield Cell(slot, (Part((look(f"taken {place}", where="last"), carry), sum_of),))
        for place, slot in enumerate(row("next", word)):
            jumps, target, here = look("jump", 0), look(f"c {place}"), look(f"pc {place}")
            if place:
                yield Cell(slot, (Part((jumps, target, here, look(f"next {place - 1}", FLAG_F)), _next),))
            else:
                yield Cell(slot, (Part((jumps, target, here), _next_first),))
        yield Cell("outcome", (self._outcome(limits),))

    @staticmethod
    def _above(name: str, place: int, limits: Sequence[int] | None) -> tuple[Part, ...]:
        """The flag that says whether the digits before this one are above those of a limit."""
        if place == 0 or limits is None:
            return ()
        passes = above(limits[place - 1] % BASE)
        return (Part((look(f"{name} {place - 1}", *VALUE, FLAG_F),), lambda seen: flagged(passes(seen))),)

    @staticmethod
    def _recalled() -> tuple[Part, ...]:
        """A digit of memory: of the last write, else of the prompt."""
        return tuple(
            Part((Look("recalled", STORE, (bit, IS_DIGIT)), Look("recalled", IMAGE, (bit,))), _either[bit])
            for bit in VALUE
        )

    @staticmethod
    def _moved(place: int) -> tuple[Part, ...]:
        """A digit of x: of memory, or of the next byte, or of -1 where there is none."""
        looks = look("from", *PLACE), Look("recalled", BYTE, (FLAG_G,))
        parts = [
            Part((*looks, Look("recalled", STORE, (bit, IS_DIGIT)), Look("recalled", IMAGE, (bit,)),
                  Look("recalled", BYTE, (bit,))), (_low if place < 2 else _high)[bit])
            for bit in VALUE
        ]  # fmt: skip
        return (*parts, *([Part(looks, _took)] if place == 0 else []))

    @staticmethod
    def _result(place: int) -> Iterator[Part]:
        """A digit of z, and whether one before it is not 0."""
        operands = look("from", *PLACE), look(f"x {place}"), look(f"y {place}")
        if place == 0:
            yield Part(operands, _difference_first)
        else:
            yield Part((*operands, look(f"z {place - 1}", FLAG_F)), _difference)
            yield Part((look(f"z {place - 1}", *VALUE, FLAG_G),), lambda seen: marked(seen))

    def _outcome(self, limits: Sequence[int] | None) -> Part:
        last = self.word - 1
        astray = above(limits[last] % BASE) if limits else (lambda seen: True)

        def outcome(seen: int, source: int, target: int, jumps: int, sign: int) -> int:
            if astray(seen):
                return ASTRAY
            if OUTSIDE in (2 * source, 2 * target) or (source and target):
                return BEYOND
            return ENDS if jumps and sign else GO

        return Part(
            (
                look(f"pc {last}", *VALUE, FLAG_F),
                look("from", *PLACE),
                look("to", *PLACE),
                look("jump", 0),
                look(f"c {last}", NIBBLE - 1),
            ),
            outcome,
        )

    # States to tokens and back

    def prompt(self, first: ProgramState, tokens: int) -> list[int]:
        """A first state in words, for a run of so many tokens."""
        size = self.machine.width // 8
        words = {
            at // size: digits_of(int.from_bytes(first.memory[at : at + size], "little"), self.word)
            for at in range(0, len(first.memory), size)
            if any(first.memory[at : at + size])
        }
        rows = {"next": digits_of(first.pc, self.word), "taken": digits_of(first.taken, self.counted)}
        begin = [START, *[DIGIT] * (self.record - 2), GO]
        for name, digits in rows.items():
            at = self.slots.index(f"{name} 0")
            begin[at : at + len(digits)] = digits
        return joined(
            [
                *self.data.records(DATA, words, DIGIT),
                *input_records(self.bytes, INPUT, first.input),
                begin,
            ],
            tokens,
        )

    def records(self, state: ProgramState) -> int:
        """That the instruction takes which comes next."""
        return 1

    def follow(self, first: ProgramState) -> "SubleqStory":
        """One that reads records of a run from this state."""
        return SubleqStory(self, first)

    def to_json(self) -> dict[str, Any]:
        """The machine and its sizes."""
        sizes = {"ram": self.machine.ram, "width": self.machine.width, "counted": self.counted}
        return {"kind": SUBLEQ, **sizes}


@lru_cache(maxsize=4)
def _program(words: SubleqTokens) -> TokenProgram:
    return words.sheet().program()


class SubleqStory(ProgramStory):
    """What records tell."""

    def __init__(self, words: SubleqTokens, first: ProgramState) -> None:
        super().__init__(first)
        self.words = words

    def after(self, record: Sequence[int]) -> ProgramState:
        words, state = self.words, self.state
        told = dict(zip(words.slots, record, strict=True))

        def number(name: str, count: int = words.word) -> int:
            return number_of([told[slot] for slot in row(name, count)])

        trap = TRAPS.get(told["outcome"], "")
        if told["outcome"] in (ASTRAY, BEYOND):
            return replace(state, trap=trap)
        memory, output = state.memory, state.output
        if told["to"] == TO + WRITES + MEMORY:
            size = words.machine.width // 8
            at = size * number("b")
            memory = memory[:at] + number("z").to_bytes(size, "little") + memory[at + size :]
        elif told["out"] >= PUT:
            output += bytes([told["out"] - PUT])
        return replace(
            state,
            pc=state.pc if trap else number("next"),
            trap=trap,
            memory=memory,
            taken=number("taken", words.counted),
            output=output,
            written=(state.written + len(output) - len(state.output)) % (1 << COUNTED),
        )


# The functions of cells


def _begins(outcome: int) -> int:
    return STEP if outcome == GO else 0


def _added(of: str, first: int, name: str, place: int) -> Part:
    """A digit of a word plus a number below 16."""
    if place == 0:
        return Part((look(of),), partial(sum_of, first))
    return Part((look(of), look(f"{name} {place - 1}", FLAG_F)), sum_of)


def _all_ones(name: str, place: int) -> tuple[Part, ...]:
    """The flag that says whether all digits before this one are f."""
    if place == 0:
        return (Part((), lambda: G),)
    return (Part((look(f"{name} {place - 1}", *VALUE, FLAG_G),), lambda seen: marked(seen == 2 * BASE - 1)),)


def _from(limit: int, seen: int) -> int:
    return FROM + _place(limit, seen)


def _to(limit: int, seen: int) -> int:
    place = _place(limit, seen)
    return TO + place + (WRITES if place == MEMORY else 0)


def _place(limit: int, seen: int) -> int:
    """What the last digit of an address, with its flags, says of it."""
    if seen % BASE == BASE - 1 and seen & G:
        return DEVICE
    return OUTSIDE if above(limit)(seen) else MEMORY


def _memory(bit: int, store: int, image: int) -> int:
    """A bit of a digit: of the last write if there is one (its second bit), else of the prompt."""
    return DIGIT * (bit == 0) + ((store & 1 if store & 2 else image) << bit)


def _moving(bit: int, low: bool, source: int, there: int, store: int, image: int, byte: int) -> int | None:
    """A bit of a digit of x."""
    if source == OUTSIDE >> 1:
        return DIGIT * (bit == 0)
    if source == MEMORY >> 1:
        return _memory(bit, store, image)
    return DIGIT * (bit == 0) + ((byte if low else 0) << bit if there else 1 << bit)


_either, _low, _high = (
    [partial(function, bit, *more) for bit in VALUE]
    for function, *more in ((_memory,), (_moving, True), (_moving, False))
)


def _took(source: int, there: int) -> int:
    return flagged(source == DEVICE >> 1 and there)


def _difference(source: int, x: int, y: int, borrow: int) -> int:
    """A digit of what b becomes."""
    if source == DEVICE >> 1:
        return plain(x)
    return plain((y - x - borrow) % BASE) + flagged(y - x - borrow < 0)


def _difference_first(source: int, x: int, y: int) -> int:
    return _difference(source, x, y, 0)


def _put(source: int, target: int, low: int, high: int) -> int:
    return PUT + BASE * high + low if (source, target) == (MEMORY >> 1, DEVICE >> 1) else QUIET


def _jumps(source: int, target: int, seen: int) -> int:
    zero = seen == 0
    subtracts = (source, target) == (MEMORY >> 1, MEMORY >> 1)
    return LEQ if subtracts and (zero or seen & BASE >> 1) else GREATER


def _next(jumps: int, target: int, here: int, carry: int) -> int:
    return plain(target) if jumps else carrying(here + carry)


def _next_first(jumps: int, target: int, here: int) -> int:
    return plain(target) if jumps else carrying(here + 3)
