"""RV32IM in tokens, in the checker's own words: what every token of a record says.

The rows, in order, with 8 digits where nothing else is said, the lowest first:

    kind  pc  pc+1 pc+2 pc+3 (their lowest digits)  ins  tail op phase take with r1 r2 rd  a  b0  b  sum
    compared signs  stage16 r3  s16  call stage8  s8  file stage4  s4  moves ends final  s
    at+1 at+2 at+3 (as many digits as an address has)  load  access  taken  result  goes  next  put  outcome

`ins` is the instruction at pc, `a` and `b0` are the registers that it names, `b` its second operand, and
`sum` is a + b. `s16`, `s8`, `s4` and `s` shift by 16, 8, 4 and up to 3 bits, or hand something on. `load` is
what memory has at the sum, and `result` goes to the register `rd`, or to memory.

A system call has a7 in `s16`, a0 in `s8`, and in `s4` how many bytes will have been moved. Multiplication and
division take 36 records: `s16` and `s8` are the high and the low word, or the remainder and the quotient, and
`s4` is the number of the next round.

Nothing rests on this file but where tokens are found (`found`): that these rules are RV32IM is proved in
`rv32_proof`. By induction over the records, digits are found where they were written last:

- of a register, by the head `last value`: in the latest record whose `rd` is that register, which is one of
  the prompt or one in which an instruction has left its result. No record has rd = x0, and where there is
  none the first token is found, which is 0.
- of a byte of memory, by `last write`: in the latest record that has a digit with a mark for its address, in
  `result` or, where a call reads, in `load`. Of one record only one digit can fit: its bytes have addresses
  in a row, and no instruction has marks in both rows. Where there is none, `byte of the prompt` finds it.
- of the input, by `byte of the input`: the byte with the number `taken`, and a mark on it says that it is
  there. It has a number of its own: no more bytes are taken than there are.
"""

from collections.abc import Mapping, Sequence

from tapegrad_check.in_tokens import rv32_operands as operands
from tapegrad_check.in_tokens import rv32_results as results
from tapegrad_check.in_tokens import rv32_stages as stages
from tapegrad_check.in_tokens.pages import (
    DIGIT,
    MARK_BIT,
    PLUS,
    PLUS_BIT,
    VALUE,
    Area,
    Rule,
    at,
    carried,
    digits_for,
    from_memory,
    numbered,
    over,
    row,
)
from tapegrad_check.in_tokens.rv32_operands import LAST_SET
from tapegrad_check.in_tokens.rv32_results import BYTE, IMAGE, STORE
from tapegrad_check.in_tokens.rv32_tokens import (
    DATA,
    END,
    FIVE,
    GO,
    INPUT,
    MORE,
    REGISTER,
    REGISTER_BIT,
    ROUND,
    STEP,
)
from tapegrad_check.in_tokens.token_nets import Side, Source

WORD = 8
"""Digits of a word."""
A7 = 17
TOLD_BIT = 1
"""Of the kinds of records, those with memory or input have this bit."""
REGISTERS = {"a": "r1", "b0": "r2", "s16": "r3", "s8": "rd"}
"""Rows that are read from registers, and where their numbers are."""


class Rv32Page:
    """For so many bytes of memory, and digits that count the input."""

    heads: Sequence[str] = (STORE, IMAGE, BYTE, LAST_SET)

    def __init__(self, ram: int, counted: int) -> None:
        self.ram, self.counted, self.address = ram, counted, digits_for(ram)
        self.slots: Sequence[str] = self._slots()
        self.places = {slot: place for place, slot in enumerate(self.slots)}
        sizes = (2, 4 * self.address), (2, 4 * counted)
        count = numbered(len(self.slots), sizes)
        self.data, self.input = (Area(len(self.slots), *size, count) for size in sizes)

    def _slots(self) -> list[str]:
        def word(name: str) -> list[str]:
            return row(name, WORD)

        return [
            "kind", *word("pc"), "pc+1", "pc+2", "pc+3", *word("ins"), "tail", "op", "phase", "take", "with",
            "r1", "r2", "rd", *word("a"), *word("b0"), *word("b"), *word("sum"), "compared", "signs",
            "stage16", "r3", *word("s16"), "call", "stage8", *word("s8"), "file", "stage4", *word("s4"),
            "moves", "ends", "final", *word("s"), *row("at+1", self.address), *row("at+2", self.address),
            *row("at+3", self.address), *word("load"), "access", *row("taken", self.counted),
            *word("result"), "goes", *word("next"), "put", "outcome",
        ]  # fmt: skip

    # Where tokens are found

    def found(self, head: str, slot: str) -> Mapping[int, frozenset[tuple[Side, Side]]]:
        """Digits of registers, of memory and of the input."""
        name, _, digit = slot.partition(" ")
        odd = int(digit or 0) % 2
        if head == LAST_SET:
            there = self.places[f"result {digit}"]
            equal = {(self._bit(REGISTERS[name], bit), self._bit("rd", bit)) for bit in FIVE}
            return {there: frozenset({*equal, (1, self._bit("rd", REGISTER_BIT)), self._lived})}
        if head == BYTE:
            bits = range(4 * self.counted)
            taken = [Source("last", self.places[f"taken {bit // 4}"], bit % 4) for bit in bits]
            return self.input.found(taken, odd, INPUT)
        asked = self.address_bits(slot)
        if head == IMAGE:
            return self.data.found(asked, odd, DATA)
        found: dict[int, frozenset[tuple[Side, Side]]] = {}
        for written in (*(f"result {place}" for place in range(odd, WORD, 2)), f"load {odd}"):
            there = self.places[written]
            pairs = zip(asked, self.address_bits(written), strict=True)
            found[there] = frozenset({*pairs, (1, Source("this", there, MARK_BIT)), self._lived})
        return found

    @property
    def _lived(self) -> tuple[Side, Side]:
        """The record is no part of memory or input in the prompt."""
        return 0, self._bit("kind", TOLD_BIT)

    def _bit(self, slot: str, bit: int) -> Source:
        return Source("this", self.places[slot], bit)

    def address_slots(self, slot: str) -> list[str]:
        """The digits of the address of a byte: of the instruction, or of what is at the sum."""
        name, _, digit = slot.partition(" ")
        byte = int(digit) // 2
        if name == "ins":
            return [f"pc+{byte}" if byte else "pc 0", *row("pc", self.address)[1:]]
        return row(f"at+{byte}" if byte else "sum", self.address)

    def address_bits(self, slot: str) -> list[Side]:
        """Those digits bit by bit."""
        return [self._bit(digit, bit) for digit in self.address_slots(slot) for bit in VALUE]

    # What tokens say

    def rules(self, slot: str) -> Sequence[Rule]:
        """What the token of a slot says."""
        name, _, digit = slot.partition(" ")
        if not digit:
            return self._decision(slot)
        place = int(digit)
        if name == "pc":
            copied = Rule((at(f"next {place}", last=True),), lambda digit: DIGIT + digit)
            return [copied, *self._pc_above(place)]
        if name == "ins":
            return [*from_memory(STORE, IMAGE), *operands.instruction_flags(place)]
        if name.startswith("at+"):
            return [operands.plus("sum", name, place, int(name[-1]))]
        if name == "load":
            return results.loaded(place, self._limits(place - 1))
        if name == "taken":
            carry = at(f"taken {place - 1}", PLUS_BIT) if place else at("moves", 0)
            return [Rule((at(slot, last=True), carry), lambda digit, carry: carried(digit + carry))]
        return {
            "a": operands.first_operand,
            "b0": operands.named_second,
            "b": operands.second_operand,
            "sum": operands.summed,
            "s16": stages.first_stage,
            "s8": stages.second_stage,
            "s4": stages.third_stage,
            "s": results.last_stage,
            "result": results.result,
            "next": results.following,
        }[name](place)

    def _decision(self, slot: str) -> Sequence[Rule]:
        match slot:
            case "kind":
                last = at("outcome", *FIVE, last=True)
                return [Rule((last,), lambda said: STEP if said in (GO, MORE, ROUND) else END)]
            case "pc+1" | "pc+2" | "pc+3":
                return [operands.within_word(int(slot[-1]))]
            case "r3":
                return [Rule((), lambda: REGISTER + A7)]
            case "stage16" | "stage8" | "stage4":
                return [stages.stage(slot)]
            case "signs":
                return stages.signs()
            case "final":
                return results.final()
            case "access":
                return [results.access(self._limits(WORD - 1))]
            case "outcome":
                return [results.outcome(self.ram - 4 >> 28)]
        return [
            {
                "tail": operands.tail,
                "op": operands.op,
                "phase": operands.phase,
                "take": operands.take,
                "with": operands.second_form,
                "r1": operands.first_register,
                "r2": operands.second_register,
                "rd": operands.target_register,
                "compared": stages.compared,
                "call": results.call,
                "file": results.file,
                "moves": results.moves,
                "ends": results.ends,
                "goes": results.goes,
                "put": results.put,
            }[slot]()
        ]

    def _pc_above(self, place: int) -> list[Rule]:
        """A plus where the digits before are above those of the last word of memory."""
        if place == 0:
            return []
        limit = self.ram - 4 >> 4 * (place - 1) & 15
        seen = at(f"pc {place - 1}", *VALUE, PLUS_BIT)
        return [Rule((seen,), lambda seen: PLUS if over(seen, limit) else 0)]

    def _limits(self, place: int) -> dict[int, int]:
        """A digit of the last address at which so many bytes are inside."""
        return {size: self.ram - size >> 4 * place & 15 for size in (1, 2, 4)} if place >= 0 else {}
