"""RV32 as a token program: every record is an instruction, told digit by digit.

What each token says is in `rv32_cells`. Memory is addressed by bytes, of two digits each. The head `last
write` finds the latest record that wrote to an address: the digits of a result that a store leaves there, or
of a byte that was read. Where there is none, the byte stands in the prompt. `last value` finds the latest
record that wrote a register.

A prompt has `data` records with the program, in blocks of bytes; `input` records with the bytes to read; a
`set` record for each register that is not 0; then `<start>`, with pc. So one net runs every program.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, takewhile
from typing import Any

from tapegrad.attention.cells import TOKEN, Sheet
from tapegrad.attention.digits import DIGIT, FLAG_G, IS_DIGIT, NIBBLE, VALUE, digits_of, number_of, row
from tapegrad.attention.prompts import (
    ABOUT,
    KIND,
    Blocks,
    ProgramStory,
    block_addresses,
    copies,
    digits_for,
    head_bit,
    input_records,
    joined,
    of_kind,
)
from tapegrad.attention.rv32_cells import Rv32Cells, slots_of
from tapegrad.attention.rv32_decode import BYTE, IMAGE, LAST_SET, STORE, WORD
from tapegrad.attention.rv32_words import (
    DATA,
    GO,
    INPUT,
    MORE,
    MOVES,
    PUT,
    QUIET,
    REGISTER,
    REGISTER_BITS,
    ROUND,
    ROUNDS,
    SET,
    START,
    TAKES,
    TRAPS,
    words,
)
from tapegrad.attention.tokens import Recall, TokenProgram, TokenSide
from tapegrad.programs.model import COUNTED, ProgramState
from tapegrad.programs.rv32 import RV32

RISC_V = "rv32"


@dataclass(frozen=True)
class Rv32Tokens:
    """A machine, and how many digits count the bytes that were read."""

    machine: RV32
    counted: int

    @property
    def address(self) -> int:
        """Digits of an address."""
        return digits_for(self.machine.ram)

    @cached_property
    def slots(self) -> list[str]:
        """Names of the tokens of a record."""
        return slots_of(self.address, self.counted)

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
        """Bytes of memory in the prompt."""
        return Blocks(self.record, 2, NIBBLE * self.address, self._numbered)

    @cached_property
    def bytes(self) -> Blocks:
        """Bytes of input in the prompt."""
        return Blocks(self.record, 2, NIBBLE * self.counted, self._numbered)

    @property
    def _numbered(self) -> int:
        digits = (self.address, self.counted)
        return max(Blocks.least_numbered(self.record, 2, NIBBLE * count) for count in digits)

    @cached_property
    def program(self) -> TokenProgram:
        """As a token program; it takes seconds to make, and many nets have the same."""
        return _program(self)

    def sheet(self) -> Sheet:
        """Its cells and heads."""
        cells = list(Rv32Cells(self.machine.ram, self.address, self.counted))
        return Sheet("rv32", words(), cells, self._addresses(), self._recalls())

    # Addresses

    def _bytes(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """The slots of a word at the sum, each with the digits of the address of its byte."""
        for place, slot in enumerate(row(name, WORD)):
            at = f"at+{place // 2}" if place >= 2 else "sum"
            yield slot, row(at, self.address)

    def _fetched(self) -> Iterator[tuple[str, list[str]]]:
        for place, slot in enumerate(row("ins", WORD)):
            low = f"pc+{place // 2}" if place >= 2 else "pc 0"
            yield slot, [low, *row("pc", self.address)[1:]]

    def _asking(self) -> dict[str, list[str]]:
        """Digits of memory, and where the digits of their addresses are."""
        return dict([*self._fetched(), *self._bytes("load")])

    def _answering(self) -> dict[str, list[str]]:
        """Digits that may go to memory: of a result, and of a byte that a call has read."""
        return dict([*self._bytes("result"), *list(self._bytes("load"))[:2]])

    def _before(self, slot: str) -> str:
        return self.slots[self.slots.index(slot) - 1]

    def _addresses(self) -> dict[str, dict[str, str]]:
        looks: dict[str, dict[str, str]] = {}
        for place in range(self.address):
            asked = {self._before(slot): digits[place] for slot, digits in self._asking().items()}
            looks[f"this {place}"] = asked
            looks[f"write {place}"] = {slot: digits[place] for slot, digits in self._answering().items()}
        for name, register in (("a", "r1"), ("b0", "r2"), ("s16", "r3"), ("s8", "rd")):
            looks["this 0"] |= {self._before(slot): register for slot in row(name, WORD)}
        looks["target"] = dict.fromkeys(row("result", WORD), "rd")
        for place in range(self.counted):
            asking = map(self._before, ("moves", "load 0", "load 1"))
            looks[f"last {place}"] = dict.fromkeys(asking, f"taken {place}")
        area = range(self.data.first, max(self.data.area.stop, self.bytes.area.stop))
        looks |= block_addresses(self.slots, self._numbered, area)
        looks[KIND] |= dict.fromkeys(self._answering(), self.slots[0])
        return looks

    def _chosen(self, slots: Sequence[str], bit: int, before: bool) -> frozenset[int]:
        """Those of some digits whose number in their word has this bit, or the slots before them."""
        own = [slot for slot in slots if int(slot.rpartition(" ")[2]) >> bit & 1]
        return frozenset(self.slots.index(slot) - before for slot in own)

    def _recalls(self) -> list[Recall]:
        bits = range(NIBBLE * self.address)
        asked = [head_bit(f"this {bit // NIBBLE}", bit % NIBBLE) for bit in bits]
        written = [head_bit(f"write {bit // NIBBLE}", bit % NIBBLE) for bit in bits]
        taken = [head_bit(f"last {bit // NIBBLE}", bit % NIBBLE) for bit in range(NIBBLE * self.counted)]
        told: tuple[TokenSide, TokenSide] = (0, head_bit(KIND, 1))
        """Records of the prompt with memory or input have this bit in their kinds."""
        odd = self._chosen(list(self._asking()), 0, True)
        answers = list(self._answering())
        at = frozenset(map(self.slots.index, answers))
        registers = [slot for name in ("a", "b0", "s16", "s8") for slot in row(name, WORD)]
        digit = [
            (self._chosen(registers, bit, True), self._chosen(row("result", WORD), bit, False))
            for bit in range(3)
        ]
        return [
            Recall(
                STORE,
                (
                    *zip(asked, written, strict=True),
                    (odd, self._chosen(answers, 0, False)),
                    (1, at),
                    (1, f"{TOKEN}[{FLAG_G}]"),
                    told,
                ),
                copies(STORE, *VALUE, IS_DIGIT),
            ),
            Recall(IMAGE, (*self.data.compared(asked, [odd]), *of_kind(DATA)), copies(IMAGE, *VALUE)),
            Recall(BYTE, (*self.bytes.compared(taken, [odd]), *of_kind(INPUT)), copies(BYTE, *VALUE, FLAG_G)),
            Recall(
                LAST_SET,
                (
                    *((head_bit("this 0", bit), head_bit("target", bit)) for bit in REGISTER_BITS[:-1]),
                    (1, head_bit("target", REGISTER_BITS[-1])),
                    *digit,
                    told,
                ),
                copies(LAST_SET, *VALUE),
            ),
        ]

    # States to tokens and back

    def prompt(self, first: ProgramState, tokens: int) -> list[int]:
        """A first state in words, for a run of so many tokens."""
        data = {at: digits_of(byte, 2) for at, byte in enumerate(first.memory) if byte}
        sets = [
            self._told(SET, rd=[REGISTER + number], result=digits_of(value, WORD))
            for number, value in enumerate(first.registers)
            if value
        ]
        rows = {"next": digits_of(first.pc, WORD), "taken": digits_of(first.taken, self.counted)}
        start = self._told(
            START, **rows, outcome=[MORE if first.copied else GO], s4=digits_of(first.copied, WORD)
        )
        return joined(
            [
                *self.data.records(DATA, data, DIGIT),
                *input_records(self.bytes, INPUT, first.input),
                *sets,
                start,
            ],
            tokens,
        )

    def _told(self, kind: int, **rows: Sequence[int]) -> list[int]:
        """A record of the prompt that tells only this."""
        record = [kind, *[DIGIT] * (self.record - 1)]
        record[self.slots.index("rd")] = QUIET
        for name, tokens in rows.items():
            at = self.slots.index(name if name in self.slots else f"{name} 0")
            record[at : at + len(tokens)] = tokens
        return record

    def records(self, state: ProgramState) -> int:
        """That the instruction takes which comes next: multiplication and division take many."""
        code = int.from_bytes(state.memory[state.pc : state.pc + 4], "little")
        return ROUNDS + 1 if code & 0x7F == 0x33 and code >> 25 == 1 else 1

    def steps_of(self, first: ProgramState, records: int) -> int:
        """How many steps from here so many records tell, if it goes on for so long."""
        told = accumulate(self.records(state) for state in self.machine.run(first))
        return sum(1 for _ in takewhile(lambda count: count <= records, told))

    def follow(self, first: ProgramState) -> "Rv32Story":
        """One that reads records of a run from this state."""
        return Rv32Story(self, first)

    def to_json(self) -> dict[str, Any]:
        """The machine and its sizes."""
        return {"kind": RISC_V, "ram": self.machine.ram, "counted": self.counted}


@lru_cache(maxsize=4)
def _program(words: Rv32Tokens) -> TokenProgram:
    return words.sheet().program()


class Rv32Story(ProgramStory):
    """What records tell."""

    def __init__(self, words: Rv32Tokens, first: ProgramState) -> None:
        super().__init__(first)
        self.words = words

    def ends_step(self, record: Sequence[int]) -> bool:
        """A round of a multiplication or division is followed by another."""
        return record[-1] != ROUND

    def after(self, record: Sequence[int]) -> ProgramState:
        words, state = self.words, self.state
        told = dict(zip(words.slots, record, strict=True))

        def digits(name: str, count: int = WORD) -> list[int]:
            return [told[slot] for slot in row(name, count)]

        if told["outcome"] in TRAPS:
            return replace(state, trap=TRAPS[told["outcome"]])
        memory, registers, output = bytearray(state.memory), list(state.registers), state.output
        for name in ("load", "result"):
            stored = [digit for digit in digits(name) if digit >> FLAG_G & 1]
            data = number_of(stored).to_bytes(len(stored) // 2, "little")
            at = number_of(digits("sum"))
            memory[at : at + len(data)] = data
        if told["rd"] >= REGISTER:
            registers[told["rd"] - REGISTER] = number_of(digits("result"))
        if told["put"] >= PUT:
            output += bytes([told["put"] - PUT])
        return replace(
            state,
            pc=number_of(digits("next")),
            memory=bytes(memory),
            registers=tuple(registers),
            taken=state.taken + (told["moves"] == MOVES + TAKES),
            copied=number_of(digits("s4")) if told["outcome"] == MORE else 0,
            output=output,
            written=(state.written + len(output) - len(state.output)) % (1 << COUNTED),
        )
