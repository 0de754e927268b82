"""What follows in every slot of an RV32 record: the instruction set, digit by digit.

The rows, in order, with 8 digits where nothing else is said:

    kind  pc  pc+1 pc+2 pc+3 (lowest digits)  ins  tail op phase take with r1 r2 rd  a  b0  b  sum
    compared signs  stage16 r3  s16  call stage8  s8  file stage4  s4  moves ends final  s
    at+1 at+2 at+3 (addresses)  load  access  taken  result  goes  next  put  outcome

`a` and `b0` are the registers that the instruction names; `b` is the second operand, a register (as its
complement, where one subtracts) or an immediate number. `s16`, `s8`, `s4` and `s` shift by 16, 8, 4 and 1 to
3 bits, or hand on the sum. `load` is what memory has at the sum, `result` what goes to rd or to memory.

A system call uses rows that would shift for what it needs: `s16` is a7, `s8` is a0, and `s4` counts the bytes
that have been moved, which the next record finds there if the call goes on.

Multiplication and division take 36 records, rounds of one step. `s16` is the high word or the remainder, `s8`
the low word or the quotient, and `s4` counts rounds. A round adds the first operand to the high word if the
lowest bit of the low one is 1, and shifts both to the right; or doubles the remainder with the next bit of
the quotient, and subtracts the second operand if it can. Signs are mended in the last two rounds: the high
word of a product is too large by one operand where the other is negative; of quotients and remainders,
absolute values are computed.
"""

from collections.abc import Iterator
from functools import partial

from tapegrad.attention.cells import Cell, Look, Part
from tapegrad.attention.digits import (
    BASE,
    FLAG_F,
    FLAG_G,
    NIBBLE,
    VALUE,
    digits_of,
    look,
    marked,
    plain,
    row,
    sum_of,
)  # fmt: skip
from tapegrad.attention.rv32_compute import (
    access_rule,
    beyond_rule,
    call_rule,
    copied_rule,
    ends_rule,
    extended_rule,
    file_rule,
    final_call_rule,
    final_rule,
    goes_rule,
    jumped_rule,
    last_stage_rule,
    link_rule,
    loaded_rule,
    moves_rule,
    next_rule,
    nonzero_before_rule,
    other_result_rule,
    outcome_rule,
    put_rule,
    result_rule,
)  # fmt: skip
from tapegrad.attention.rv32_decode import (
    BYTE,
    FOUR,
    LAST_SET,
    ROUND_BIT,
    THREE,
    WORD,
    begins_rule,
    carries_rule,
    digit_bit,
    first_rule,
    instruction_bit,
    is_above_rule,
    memory_rule,
    of_instruction,
    op_rule,
    phase_rule,
    register_2_rule,
    register_rule,
    second_rule,
    tail_flags_rule,
    tail_rule,
    take_rule,
    target_rule,
    with_rule,
    within_rule,
)  # fmt: skip
from tapegrad.attention.rv32_stages import (
    compared_rule,
    counted_rule,
    first_stage_rule,
    flag_rule,
    high_rule,
    low_rule,
    signs_again_rule,
    signs_rule,
    stage4_rule,
    stage8_rule,
    stage16_rule,
    staged_rule,
)  # fmt: skip
from tapegrad.attention.rv32_words import OP_BITS, REGISTER, TAKES


def slots_of(address: int, counted: int) -> list[str]:
    """The slots, where addresses have so many digits, and so many count the input."""
    return [
        "kind", *row("pc", WORD), "pc+1", "pc+2", "pc+3", *row("ins", WORD), "tail", "op", "phase",
        "take", "with", "r1", "r2", "rd", *row("a", WORD), *row("b0", WORD), *row("b", WORD),
        *row("sum", WORD), "compared", "signs", "stage16", "r3",
        *row("s16", WORD), "call", "stage8", *row("s8", WORD), "file", "stage4", *row("s4", WORD), "moves",
        "ends", "final", *row("s", WORD), *row("at+1", address), *row("at+2", address), *row("at+3", address),
        *row("load", WORD), "access", *row("taken", counted), *row("result", WORD), "goes",
        *row("next", WORD), "put", "outcome",
    ]  # fmt: skip


class Rv32Cells:
    """The cells for a memory of so many bytes."""

    def __init__(self, ram: int, address: int, counted: int) -> None:
        self.ram, self.address, self.counted = ram, address, counted

    def __iter__(self) -> Iterator[Cell]:
        yield from self._fetched()
        yield from self._operands()
        yield from self._computed()
        yield from self._moved()
        yield from self._finished()

    # From pc to the instruction and its registers

    def _fetched(self) -> Iterator[Cell]:
        yield Cell("kind", (Part((look("outcome", *range(5), where="last"),), begins_rule),))
        limits = digits_of(self.ram - 4, WORD)
        for place, slot in enumerate(row("pc", WORD)):
            parts = [Part((look(f"next {place}", where="last"),), plain)]
            if place:
                seen = look(f"pc {place - 1}", *VALUE, FLAG_F)
                parts.append(Part((seen,), partial(is_above_rule, limits[place - 1] % BASE)))
            yield Cell(slot, tuple(parts))
        for more in (1, 2, 3):
            yield Cell(f"pc+{more}", (Part((look("pc 0", 2, 3),), partial(within_rule, more)),))
        for place, slot in enumerate(row("ins", WORD)):
            yield Cell(slot, (*memory_rule(), *tail_flags_rule(place)))
        yield Cell("tail", (Part((look("ins 6", *VALUE, FLAG_F, FLAG_G), look("ins 7")), tail_rule),))
        fields = look("ins 0"), look("ins 1", 0, 1, 2), look("ins 3", 0, 1, 2), look("tail", *THREE)
        yield Cell("op", (Part(fields, op_rule),))
        op, phase = look("op", *OP_BITS), look("phase", *THREE)
        rounds = (
            look("outcome", ROUND_BIT, where="last"),
            look("s4 0", where="last"),
            look("s4 1", 0, 1, where="last"),
        )
        yield Cell("phase", (Part((op, *rounds), phase_rule),))
        state = look("signs", *THREE, where="last"), look("s8 0", 0, where="last")
        yield Cell("take", (Part((op, phase, *state), take_rule),))
        yield Cell("with", (Part((op, phase, state[0]), with_rule),))
        yield Cell("r1", (Part((op, look("ins 3", 3), look("ins 4")), partial(register_rule, 11)),))
        yield Cell("r2", (Part((op, look("ins 5"), look("ins 6", 0)), register_2_rule),))
        yield Cell("rd", (Part((op, look("ins 1", 3), look("ins 2"), phase), target_rule),))

    def _operands(self) -> Iterator[Cell]:
        for place, slot in enumerate(row("a", WORD)):
            yield Cell(slot, tuple(
                first_rule(place, bit) for bit in VALUE
            ))  # fmt: skip
        for place, slot in enumerate(row("b0", WORD)):
            parts = [Part((Look("recalled", LAST_SET, (bit,)),), partial(digit_bit, bit)) for bit in VALUE]
            if place:
                parts.append(Part((look(f"b0 {place - 1}", *VALUE, FLAG_G),), marked))
            yield Cell(slot, tuple(parts))
        for place, slot in enumerate(row("b", WORD)):
            parts = [second_rule(place, bit) for bit in VALUE]
            if place == 0:
                parts.append(Part((look("with", *FOUR),), carries_rule))
            yield Cell(slot, tuple(parts))

    def _computed(self) -> Iterator[Cell]:
        op = look("op", *OP_BITS)
        for place, slot in enumerate(row("sum", WORD)):
            carry = look(f"sum {place - 1}", FLAG_F) if place else look("b 0", FLAG_F)
            parts = [Part((look(f"a {place}"), look(f"b {place}"), carry), sum_of)]
            if place:
                parts.append(Part((look(f"sum {place - 1}", *VALUE, FLAG_G),), marked))
            yield Cell(slot, tuple(parts))
        last = WORD - 1
        signs = look(f"a {last}", 3), look(f"b {last}", 3)
        yield Cell("compared", (Part((look(f"sum {last}", *VALUE, FLAG_F, FLAG_G), *signs), compared_rule),))
        sign = look(f"a {last}", 3)
        phase, second = look("phase", *THREE), look(f"b0 {last}", *VALUE, FLAG_G)
        before = look("signs", *THREE, where="last")
        yield Cell(
            "signs", (Part((phase, sign, second), signs_rule), Part((phase, before), signs_again_rule))
        )
        yield Cell("stage16", (Part((op, look("b 1", 0), sign, phase), stage16_rule),))
        yield Cell("r3", (Part((), lambda: REGISTER + 17),))
        for place, slot in enumerate(row("s16", WORD)):
            parts = [first_stage_rule(place, bit) for bit in VALUE]
            parts += [high_rule(place, bit) for bit in VALUE]
            if place == 0:
                parts.append(Part((op, look("compared", 1, 2)), flag_rule))
            if place > 2:
                parts.append(nonzero_before_rule("s16", place))
            yield Cell(slot, tuple(parts))
        number = look("s16 0"), look("s16 1"), look(f"s16 {last}", *VALUE, FLAG_F)
        yield Cell("call", (Part((look("stage16", *THREE), *number), call_rule),))
        yield Cell("stage8", (Part((op, look("b 0", 3), sign, phase), stage8_rule),))
        for place, slot in enumerate(row("s8", WORD)):
            parts = [staged_rule("stage8", place, 2, "s16", bit) for bit in VALUE]
            parts += [low_rule(place, bit) for bit in VALUE]
            if place > 1:
                parts.append(nonzero_before_rule("s8", place))
            yield Cell(slot, tuple(parts))
        file = look("s8 0"), look(f"s8 {last}", *VALUE, FLAG_F)
        yield Cell("file", (Part((look("call", *THREE), *file), file_rule),))
        yield Cell("stage4", (Part((op, look("b 0", 2), sign, phase), stage4_rule),))
        for place, slot in enumerate(row("s4", WORD)):
            parts = [staged_rule("stage4", place, 1, "s8", bit) for bit in VALUE]
            yield Cell(slot, (*parts, *copied_rule(place), *counted_rule(place)))

    # System calls and memory

    def _moved(self) -> Iterator[Cell]:
        op, last = look("op", *OP_BITS), WORD - 1
        call, count = look("call", *THREE), look(f"b0 {last}", *VALUE, FLAG_G)
        there = Look("recalled", BYTE, (FLAG_G,))
        yield Cell("moves", (Part((call, look("file", 0), count, there), moves_rule),))
        counted = look(f"s4 {last}", *VALUE, FLAG_G)
        ended = look("moves", 0, 1), counted, look(f"b0 {last}"), look("phase", *THREE)
        yield Cell("ends", (Part(ended, ends_rule),))
        parts = (
            Part((op, look("b 0", 0, 1), look(f"a {last}", 3)), final_rule),
            Part((call, look("file", 0), look("moves", 0, 1), look("ends", 0)), final_call_rule),
        )
        yield Cell("final", parts)
        for place, slot in enumerate(row("s", WORD)):
            parts = [
                part for bit in VALUE for part in (last_stage_rule(place, bit), other_result_rule(place, bit))
            ]
            yield Cell(slot, tuple(parts))
        for more in (1, 2, 3):
            name = f"at+{more}"
            for place, slot in enumerate(row(name, self.address)):
                if place:
                    yield Cell(
                        slot, (Part((look(f"sum {place}"), look(f"{name} {place - 1}", FLAG_F)), sum_of),)
                    )
                else:
                    yield Cell(slot, (Part((look("sum 0"),), partial(sum_of, more)),))
        limits = {size: digits_of(self.ram - size, WORD) for size in (1, 2, 4)}
        for place, slot in enumerate(row("load", WORD)):
            parts = [loaded_rule(place, bit) for bit in VALUE]
            if place < 2:
                parts.append(Part((look("moves", 0, 1),), lambda moves: marked(moves == TAKES)))
            if place:
                own = {size: digits[place - 1] % BASE for size, digits in limits.items()}
                seen = look(f"sum {place - 1}"), look(f"load {place - 1}", FLAG_F)
                parts.append(Part((op, *seen), partial(beyond_rule, own)))
            yield Cell(slot, tuple(parts))
        own = {size: digits[last] % BASE for size, digits in limits.items()}
        seen = look(f"sum {last}"), look(f"load {last}", FLAG_F)
        yield Cell("access", (Part((op, *seen, look("moves", 0, 1)), partial(access_rule, own)),))
        for place, slot in enumerate(row("taken", self.counted)):
            before = look(f"taken {place}", where="last")
            carry = look(f"taken {place - 1}", FLAG_F) if place else look("moves", 0)
            yield Cell(slot, (Part((before, carry), sum_of),))

    # What the instruction leaves

    def _finished(self) -> Iterator[Cell]:
        op, last = look("op", *OP_BITS), WORD - 1
        for place, slot in enumerate(row("result", WORD)):
            before = (look(f"result {place - 1}", FLAG_F),) if place else ()
            parts = [
                Part(
                    (op, look(f"s {place}", bit), look(f"load {place}", bit), *before),
                    partial(result_rule, place, bit),
                )
                for bit in VALUE
            ]
            parts.append(Part((op, look(f"pc {place}"), *before), partial(link_rule, place)))
            parts.append(Part((op, look(f"load {place}", 3), *before), partial(extended_rule, place)))
            yield Cell(slot, tuple(parts))
        yield Cell("goes", (Part((op, look("compared", *THREE), look("ends", 0)), goes_rule),))
        goes = look("goes", *THREE)
        for place, slot in enumerate(row("next", WORD)):
            bits = [instruction_bit("B", NIBBLE * place + bit) for bit in VALUE]
            read = sorted({own for own in bits if own is not None})
            before = (look(f"next {place - 1}", FLAG_F),) if place else ()
            yield Cell(slot, (
                Part((goes, look(f"pc {place}"), *before, *map(of_instruction, read)),
                     partial(next_rule, place, tuple(1 << read.index(own) if own else 0 for own in bits))),
                Part((goes, look(f"sum {place}")), partial(jumped_rule, place)),
            ))  # fmt: skip
        yield Cell("put", (Part((look("moves", 0, 1), look("load 0"), look("load 1")), put_rule),))
        looks = (
            look(f"pc {last}", *VALUE, FLAG_F), op, look("access", 0), look("next 0", 1), look("call", 2),
            look("ends", 0, 1),
        )  # fmt: skip
        limit = digits_of(self.ram - 4, WORD)[last] % BASE
        yield Cell("outcome", (Part(looks, partial(outcome_rule, limit)),))
