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

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tapegrad.attention.cells import Cell, Look, Part
from tapegrad.attention.digits import (
    BASE, DIGIT, FLAG_F, FLAG_G, IS_DIGIT, NIBBLE, VALUE, F, G, above, carrying, digits_of, flagged, look,
    marked, plain, row, sum_of,
)  # fmt: skip
from tapegrad.attention.rv32_words import (
    ACCESS, AND, ASTRAY, BAD_FILE, BEGINS, BELOW, BEYOND, BRANCH, BRANCHES, BREAKPOINT, BREAKS, CALL, CALLED, CALLS, CHANGED, CLEAR, CLOSES, COMPARED, COPIED, COUNT, DIVIDE, DIVIDING, DOUBLE, ENDED, ENDS, EQUAL, EXIT, EXITS, FILE, FINAL, FIRST_NEGATIVE, FLAG, FORMS, GO, GOES, HIGH, IDLE, ILLEGAL, JUMP, JUMP_EVEN, KEEP, LEFT, LESS, LOADS, LOGIC, LOOKS, LOW, MENDS, MISALIGNED, MORE, MOVES, MULTIPLY, MULTIPLYING, NONE, NOT_HIGH, NOT_LOW, NOT_R1, NO_CALL, NO_PHASE, OF_M, OF_PC, OF_R1, OLD, ON, ONES, OP, OPS, OP_BITS, OR, OTHER, PHASE, PLAIN, PUT, PUTS, QUIET, READ, REGISTER, RIGHT, ROUND, ROUNDED, ROUNDS, SAME, SECOND, SECOND_NEGATIVE, SECOND_ZERO, SETTING, SHIFTING, SIGNS, STAGE, STAY, STEP, STEPS, STORED, STORES, SUBTRACTING, SUM, TAIL, TAKE, TAKES, UNKNOWN, WITH, WRITE, XOR, ZERO,
)  # fmt: skip

WORD = 8
"""Digits of a word."""
STORE, IMAGE, BYTE, LAST_SET = "last write", "byte of the prompt", "byte of the input", "last value"
"""Names of the heads that recall."""
THREE, FOUR = (0, 1, 2), (0, 1, 2, 3)
"""Bits of decisions with up to 8 and 16 values."""


def slots_of(address: int, counted: int) -> list[str]:
    """The slots, where addresses have so many digits, and so many count the input."""
    return [
        "kind", *row("pc", WORD), "pc+1", "pc+2", "pc+3", *row("ins", WORD), "tail", "op", "phase", "take", "with", "r1", "r2", "rd",
        *row("a", WORD), *row("b0", WORD), *row("b", WORD), *row("sum", WORD), "compared", "signs", "stage16", "r3",
        *row("s16", WORD), "call", "stage8", *row("s8", WORD), "file", "stage4", *row("s4", WORD), "moves",
        "ends", "final", *row("s", WORD), *row("at+1", address), *row("at+2", address), *row("at+3", address),
        *row("load", WORD), "access", *row("taken", counted), *row("result", WORD), "goes", *row("next", WORD),
        "put", "outcome",
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
        yield Cell("kind", (Part((look("outcome", *range(5), where="last"),), _begins),))
        limits = digits_of(self.ram - 4, WORD)
        for place, slot in enumerate(row("pc", WORD)):
            parts = [Part((look(f"next {place}", where="last"),), plain)]
            if place:
                seen = look(f"pc {place - 1}", *VALUE, FLAG_F)
                parts.append(Part((seen,), partial(_is_above, limits[place - 1] % BASE)))
            yield Cell(slot, tuple(parts))
        for more in (1, 2, 3):
            yield Cell(f"pc+{more}", (Part((look("pc 0", 2, 3),), partial(_within, more)),))
        for place, slot in enumerate(row("ins", WORD)):
            yield Cell(slot, (*_memory(), *_tail_flags(place)))
        yield Cell("tail", (Part((look("ins 6", *VALUE, FLAG_F, FLAG_G), look("ins 7")), _tail),))
        fields = look("ins 0"), look("ins 1", 0, 1, 2), look("ins 3", 0, 1, 2), look("tail", *THREE)
        yield Cell("op", (Part(fields, _op),))
        op, phase = look("op", *OP_BITS), look("phase", *THREE)
        rounds = (
            look("outcome", ROUND_BIT, where="last"),
            look("s4 0", where="last"),
            look("s4 1", 0, 1, where="last"),
        )
        yield Cell("phase", (Part((op, *rounds), _phase),))
        state = look("signs", *THREE, where="last"), look("s8 0", 0, where="last")
        yield Cell("take", (Part((op, phase, *state), _take),))
        yield Cell("with", (Part((op, phase, state[0]), _with),))
        yield Cell("r1", (Part((op, look("ins 3", 3), look("ins 4")), partial(_register, 11)),))
        yield Cell("r2", (Part((op, look("ins 5"), look("ins 6", 0)), _register_2),))
        yield Cell("rd", (Part((op, look("ins 1", 3), look("ins 2"), phase), _target),))

    def _operands(self) -> Iterator[Cell]:
        op = look("op", *OP_BITS)
        for place, slot in enumerate(row("a", WORD)):
            yield Cell(slot, tuple(
                _first(place, bit) for bit in VALUE
            ))  # fmt: skip
        for place, slot in enumerate(row("b0", WORD)):
            parts = [Part((Look("recalled", LAST_SET, (bit,)),), partial(_bit, bit)) for bit in VALUE]
            if place:
                parts.append(Part((look(f"b0 {place - 1}", *VALUE, FLAG_G),), marked))
            yield Cell(slot, tuple(parts))
        for place, slot in enumerate(row("b", WORD)):
            parts = [_second(place, bit) for bit in VALUE]
            if place == 0:
                parts.append(Part((look("with", *FOUR),), _carries))
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
        yield Cell("compared", (Part((look(f"sum {last}", *VALUE, FLAG_F, FLAG_G), *signs), _compared),))
        sign = look(f"a {last}", 3)
        phase, second = look("phase", *THREE), look(f"b0 {last}", *VALUE, FLAG_G)
        yield Cell("signs", (Part((phase, sign, second), _signs),
                             Part((phase, look("signs", *THREE, where="last")), _signs_again)))  # fmt: skip
        yield Cell("stage16", (Part((op, look("b 1", 0), sign, phase), _stage16),))
        yield Cell("r3", (Part((), lambda: REGISTER + 17),))
        for place, slot in enumerate(row("s16", WORD)):
            parts = [_first_stage(place, bit) for bit in VALUE]
            parts += [_high(place, bit) for bit in VALUE]
            if place == 0:
                parts.append(Part((op, look("compared", 1, 2)), _flag))
            if place > 2:
                parts.append(_nonzero_before("s16", place))
            yield Cell(slot, tuple(parts))
        number = look("s16 0"), look("s16 1"), look(f"s16 {last}", *VALUE, FLAG_F)
        yield Cell("call", (Part((look("stage16", *THREE), *number), _call),))
        yield Cell("stage8", (Part((op, look("b 0", 3), sign, phase), _stage8),))
        for place, slot in enumerate(row("s8", WORD)):
            parts = [_staged("stage8", place, 2, "s16", bit) for bit in VALUE]
            parts += [_low(place, bit) for bit in VALUE]
            if place > 1:
                parts.append(_nonzero_before("s8", place))
            yield Cell(slot, tuple(parts))
        yield Cell(
            "file", (Part((look("call", *THREE), look("s8 0"), look(f"s8 {last}", *VALUE, FLAG_F)), _file),)
        )
        yield Cell("stage4", (Part((op, look("b 0", 2), sign, phase), _stage4),))
        for place, slot in enumerate(row("s4", WORD)):
            parts = [_staged("stage4", place, 1, "s8", bit) for bit in VALUE]
            yield Cell(slot, (*parts, *_copied(place), *_counted(place)))

    # System calls and memory

    def _moved(self) -> Iterator[Cell]:
        op, last = look("op", *OP_BITS), WORD - 1
        call, count = look("call", *THREE), look(f"b0 {last}", *VALUE, FLAG_G)
        there = Look("recalled", BYTE, (FLAG_G,))
        yield Cell("moves", (Part((call, look("file", 0), count, there), _moves),))
        counted = look(f"s4 {last}", *VALUE, FLAG_G)
        ended = look("moves", 0, 1), counted, look(f"b0 {last}"), look("phase", *THREE)
        yield Cell("ends", (Part(ended, _ends),))
        parts = (
            Part((op, look("b 0", 0, 1), look(f"a {last}", 3)), _final),
            Part((call, look("file", 0), look("moves", 0, 1), look("ends", 0)), _final_call),
        )
        yield Cell("final", parts)
        for place, slot in enumerate(row("s", WORD)):
            parts = [part for bit in VALUE for part in (_last_stage(place, bit), _other_result(place, bit))]
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
            parts = [_loaded(place, bit) for bit in VALUE]
            if place < 2:
                parts.append(Part((look("moves", 0, 1),), lambda moves: marked(moves == TAKES)))
            if place:
                own = {size: digits[place - 1] % BASE for size, digits in limits.items()}
                seen = look(f"sum {place - 1}"), look(f"load {place - 1}", FLAG_F)
                parts.append(Part((op, *seen), partial(_beyond, own)))
            yield Cell(slot, tuple(parts))
        own = {size: digits[last] % BASE for size, digits in limits.items()}
        seen = look(f"sum {last}"), look(f"load {last}", FLAG_F)
        yield Cell("access", (Part((op, *seen, look("moves", 0, 1)), partial(_access, own)),))
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
                    partial(_result, place, bit),
                )
                for bit in VALUE
            ]
            parts.append(Part((op, look(f"pc {place}"), *before), partial(_link, place)))
            parts.append(Part((op, look(f"load {place}", 3), *before), partial(_extended, place)))
            yield Cell(slot, tuple(parts))
        yield Cell("goes", (Part((op, look("compared", *THREE), look("ends", 0)), _goes),))
        goes = look("goes", *THREE)
        for place, slot in enumerate(row("next", WORD)):
            bits = [instruction_bit("B", NIBBLE * place + bit) for bit in VALUE]
            read = sorted({own for own in bits if own is not None})
            before = (look(f"next {place - 1}", FLAG_F),) if place else ()
            yield Cell(slot, (
                Part((goes, look(f"pc {place}"), *before, *map(_of_instruction, read)),
                     partial(_next, place, tuple(1 << read.index(own) if own else 0 for own in bits))),
                Part((goes, look(f"sum {place}")), partial(_jumped, place)),
            ))  # fmt: skip
        yield Cell("put", (Part((look("moves", 0, 1), look("load 0"), look("load 1")), _put),))
        looks = (
            look(f"pc {last}", *VALUE, FLAG_F), op, look("access", 0), look("next 0", 1), look("call", 2),
            look("ends", 0, 1),
        )  # fmt: skip
        limit = digits_of(self.ram - 4, WORD)[last] % BASE
        yield Cell("outcome", (Part(looks, partial(_outcome, limit)),))


# The functions of cells. An instruction comes as its number; one that there is not, cannot happen.


def _name(op: int) -> str | None:
    return OPS[op] if op < len(OPS) else None


def _begins(outcome: int) -> int:
    return STEP if outcome in (GO, MORE, ROUND) else 0


def _is_above(limit: int, seen: int) -> int:
    return flagged(above(limit)(seen))


def _within(more: int, high: int) -> int:
    """The lowest digit of an address in the word at pc, which is a multiple of 4."""
    return plain(4 * high + more)


def _memory() -> tuple[Part, ...]:
    """A digit of memory: of the last write, else of the prompt."""
    return tuple(
        Part(
            (Look("recalled", STORE, (bit, IS_DIGIT)), Look("recalled", IMAGE, (bit,))),
            partial(_written, bit),
        )
        for bit in VALUE
    )


def _bit(bit: int, value: int) -> int:
    """A bit of a digit; with the lowest comes that it is one."""
    return DIGIT * (bit == 0) + (value << bit)


def _written(bit: int, store: int, image: int) -> int:
    return _bit(bit, store & 1 if store & 2 else image)


def _tail_flags(place: int) -> Iterator[Part]:
    """Flags of an instruction's digits. F: a bit from 7 up to here is not that of `ecall` or `ebreak`. G, in
    digit 6: digit 5 is 1, as in `ebreak`."""
    if place == 2:
        yield Part((look("ins 1", 3),), flagged)
    elif 2 < place < 6:
        yield Part((look(f"ins {place - 1}", *VALUE, FLAG_F),), flagged)
    elif place == 6:
        yield Part((look("ins 5", *VALUE, FLAG_F),), lambda seen: flagged(seen > 1) + marked(seen == 1))


def _tail(sixth: int, seventh: int) -> int:
    digit, high = sixth % BASE, sixth % BASE >> 1 | seventh << 3
    if high or digit:
        return TAIL + {0: PLAIN, 0x20: CHANGED, 1: OF_M}.get(high, OTHER)
    return TAIL + (PLAIN if sixth & F else BREAKS if sixth & G else CALLS)


_BY_OPCODE: dict[int, Sequence[str | None]] = {
    0x03: ("lb", "lh", "lw", None, "lbu", "lhu", None, None),
    0x0F: ("fence", "fence", *[None] * 6),
    0x13: ("addi", "slli", "slti", "sltiu", "xori", "srli", "ori", "andi"),
    0x17: ["auipc"] * 8,
    0x23: ("sb", "sh", "sw", *[None] * 5),
    0x33: ("add", "sll", "slt", "sltu", "xor", "srl", "or", "and"),
    0x37: ["lui"] * 8,
    0x63: ("beq", "bne", None, None, "blt", "bge", "bltu", "bgeu"),
    0x67: ("jalr", *[None] * 7),
    0x6F: ["jal"] * 8,
}
_CHANGED = {"add": "sub", "srl": "sra", "srli": "srai"}


def _op(low: int, high: int, f3: int, tail: int) -> int | None:
    """The instruction, from its opcode, function, and what its high bits say."""
    opcode = high << 4 | low
    name = _BY_OPCODE.get(opcode, [None] * 8)[f3]
    if tail > BREAKS:
        return None
    plain_tail = tail in (PLAIN, CALLS, BREAKS)
    if opcode == 0x33 or name in ("slli", "srli"):
        if tail == CHANGED:
            name = _CHANGED.get(name or "")
        elif opcode == 0x33 and tail == OF_M:
            name = (*MULTIPLYING, *DIVIDING)[f3]
        elif not plain_tail:
            name = None
    if opcode == 0x73:
        name = {CALLS: "ecall", BREAKS: "ebreak"}.get(tail)
    return OP + OPS.index(name or "illegal")


def _register(of_call: int, op: int, low: int, high: int) -> int | None:
    """The first operand: bits 15 to 19, or a1 in a system call."""
    if _name(op) is None:
        return None
    return REGISTER + (of_call if _name(op) == "ecall" else low | high << 1)


def _register_2(op: int, low: int, high: int) -> int | None:
    """The second operand: bits 20 to 24, or a2 in a system call."""
    if _name(op) is None:
        return None
    return REGISTER + (12 if _name(op) == "ecall" else low | high << 4)


def _target(op: int, low: int, high: int, phase: int) -> int | None:
    """The register that is written: bits 7 to 11, or a0; x0 is never written, and nothing before the last
    round."""
    name, register = _name(op), low | high << 1
    if name is None:
        return None
    if phase not in (NO_PHASE, CLOSES):
        return QUIET
    if name == "ecall":
        return REGISTER + 10
    silent = name in (*STORES, *BRANCHES, "fence", "ebreak", "illegal")
    return QUIET if silent or register == 0 else REGISTER + register


def _phase(op: int, rounds: int, low: int, high: int) -> int | None:
    """Where a multiplication or division is, by the number of its round."""
    name, number = _name(op), (low | high << 4) if rounds else 0
    if name is None or number > ROUNDS:
        return None
    if name not in (*MULTIPLYING, *DIVIDING):
        return PHASE + NO_PHASE
    known = {0: LOOKS, 1: BEGINS, ROUNDS - 1: MENDS, ROUNDS: CLOSES}
    return PHASE + known.get(number, STEPS)


def _take(op: int, phase: int, signs: int, low: int) -> int | None:
    """What the first operand is. In rounds it depends on the signs, and on the lowest bit of the low word."""
    name = _name(op)
    if name is None or phase > CLOSES:
        return None
    if phase in (NO_PHASE, LOOKS):
        return TAKE + {"jal": OF_PC, "auipc": OF_PC, "lui": ZERO}.get(name, OF_R1)
    if name in MULTIPLYING:
        if phase == STEPS:
            return TAKE + (OF_R1 if low else ZERO)
        if phase == CLOSES:
            return TAKE + (LOW if name == "mul" else NOT_R1 if _mends(name, signs) else ZERO)
        return TAKE + HIGH
    if phase == BEGINS:
        return TAKE + (NOT_R1 if _begins_negative(name, signs) else OF_R1)
    if phase == CLOSES:
        word, complement = (LOW, NOT_LOW) if name in ("div", "divu") else (HIGH, NOT_HIGH)
        return TAKE + (complement if _ends_negative(name, signs) else word)
    return TAKE + DOUBLE


def _with(op: int, phase: int, signs: int) -> int | None:
    """What the second operand is."""
    name = _name(op)
    if name is None or phase > CLOSES:
        return None
    return WITH + FORMS.index(
        _form(name) if phase in (NO_PHASE, LOOKS) else _form_of_round(name, phase, signs)
    )


def _form_of_round(name: str, phase: int, signs: int) -> str:
    if name in MULTIPLYING:
        if phase == MENDS:
            return "-R" if name in ("mulh", "mulhsu") and signs & FIRST_NEGATIVE else "0"
        if phase == CLOSES:
            return "0" if name == "mul" else "+H" if _mends(name, signs) else "H"
        return "H"
    if phase == STEPS:
        return "R" if name in ("div", "rem") and signs & SECOND_NEGATIVE else "-R"
    negative = _begins_negative if phase == BEGINS else _ends_negative
    return "+0" if negative(name, signs) else "0"


def _mends(name: str, signs: int) -> bool:
    """Whether the last round subtracts the first operand, as the second is negative."""
    return name == "mulh" and bool(signs & SECOND_NEGATIVE)


def _begins_negative(name: str, signs: int) -> bool:
    return name in ("div", "rem") and bool(signs & FIRST_NEGATIVE)


def _ends_negative(name: str, signs: int) -> bool:
    """Whether the result is negative; a quotient by 0 has all ones already."""
    if name == "div":
        return not signs & SECOND_ZERO and bool(signs & FIRST_NEGATIVE) != bool(signs & SECOND_NEGATIVE)
    return name == "rem" and bool(signs & FIRST_NEGATIVE)


def _first(place: int, bit: int) -> Part:
    """A bit of the first operand."""
    at = NIBBLE * place + bit - 1
    earlier = (
        look(f"s16 {at // NIBBLE}", at % NIBBLE, where="last") if at >= 0 else look("s8 7", 3, where="last")
    )

    def first(take: int, pc: int, register: int, high: int, low: int, earlier: int) -> int | None:
        values = {
            OF_R1: register, OF_PC: pc, ZERO: 0, NOT_R1: 1 - register, HIGH: high, NOT_HIGH: 1 - high, LOW: low,
            NOT_LOW: 1 - low, DOUBLE: earlier,
        }  # fmt: skip
        return _bit(bit, values[take]) if take in values else None

    return Part(
        (
            look("take", *FOUR), look(f"pc {place}", bit), Look("recalled", LAST_SET, (bit,)),
            look(f"s16 {place}", bit, where="last"), look(f"s8 {place}", bit, where="last"), earlier,
        ),
        first,
    )  # fmt: skip


def instruction_bit(form: str, bit: int) -> int | None:
    """Which bit of an instruction is this bit of its immediate number; None where that is 0. Forms are those of
    the manual."""
    if form == "U":
        return bit if bit >= 12 else None
    if form == "J":
        if bit == 0:
            return None
        return 20 + bit if bit < 11 else 20 if bit == 11 else bit if bit < 20 else 31
    if form == "B" and bit in (0, 11):
        return None if bit == 0 else 7
    low = {"I": 20, "S": 7, "B": 7}[form]
    return low + bit if bit < 5 else 20 + bit if bit < 11 else 31


def _form(name: str) -> str:
    """The form of the second operand of an instruction."""
    if name in STORES:
        return "S"
    if name in ("lui", "auipc"):
        return "U"
    if name in ("jal", "ecall"):
        return "J" if name == "jal" else "C"
    form = "I" if name in LOADS or name == "jalr" or name.endswith("i") or name == "sltiu" else "R"
    return f"-{form}" if name in SUBTRACTING else form


def _second(place: int, bit: int) -> Part:
    """A bit of the second operand."""
    at = NIBBLE * place + bit
    sources = {form: instruction_bit(form, at) for form in "ISUJ"}
    read = sorted({own for own in sources.values() if own is not None})

    def second(form: int, register: int, high: int, copied: int, more: int, *bits: int) -> int | None:
        if form >= len(FORMS):
            return None
        name = FORMS[form]
        found = {None: 0, **dict(zip(read, bits, strict=True))}
        values = {"R": register, "C": copied if more else 0, "H": high, "0": 0}
        values |= {own: found[source] for own, source in sources.items()}
        return _bit(bit, values[name[-1]] ^ (name[0] == "-"))

    return Part(
        (
            look("with", *FOUR), look(f"b0 {place}", bit), look(f"s16 {place}", bit, where="last"),
            look(f"s4 {place}", bit, where="last"), look("outcome", MORE_BIT, where="last"),
            *map(_of_instruction, read),
        ),
        second,
    )  # fmt: skip


def _carries(form: int) -> int:
    """Whether the sum begins with a carry."""
    return flagged(form < len(FORMS) and FORMS[form][0] in "+-")


MORE_BIT, ROUND_BIT = 1, 4
"""The bit of `more` that `go` does not have, and the bit that only `round` has; others are the last of all."""


def _of_instruction(bit: int) -> Look:
    return look(f"ins {bit // NIBBLE}", bit % NIBBLE)


def _compared(seen: int, a_sign: int, b_sign: int) -> int:
    """Of a - b: the last digit with its flags, and signs; b is there as its complement."""
    equal, below = seen % BASE == 0 and not seen & G, not seen & F
    less = below ^ (a_sign != 1 - b_sign)
    return COMPARED + EQUAL * equal + LESS * less + BELOW * below


def _staging(name: str, shifts: int, sign: int) -> int:
    if name == "ecall":
        return CALL
    way = SHIFTING.get(name)
    if way is None or not shifts:
        return SAME
    return RIGHT if way == ONES and not sign else way


def _in_round(phase: int) -> bool:
    """Whether a multiplication or division goes on after this record."""
    return phase not in (NO_PHASE, CLOSES)


def _stage16(op: int, shifts: int, sign: int, phase: int) -> int | None:
    name = _name(op)
    if name is None or phase > CLOSES:
        return None
    if _in_round(phase):
        if phase == MENDS:
            return STAGE + (SUM if name in MULTIPLYING else KEEP)
        step = MULTIPLY if name in MULTIPLYING else DIVIDE
        return STAGE + (step if phase == STEPS else CLEAR)
    if name in SHIFTING or name == "ecall":
        return STAGE + _staging(name, shifts, sign)
    return STAGE + (FLAG if name in SETTING else LOGIC.get(name, SUM))


def _neighbours(of: str, place: int, distance: int, bit: int) -> tuple[tuple[str, Look], ...]:
    """The bits that a shift brings here."""
    found = {"same": place, "left": place - distance, "right": place + distance}
    return tuple((way, look(f"{of} {at}", bit)) for way, at in found.items() if 0 <= at < WORD)


def _shifted(does: int, bits: dict[str, int]) -> int:
    if does == SAME:
        return bits["same"]
    if does == LEFT:
        return bits.get("left", 0)
    return bits.get("right", int(does == ONES))


def _staged(control: str, place: int, distance: int, of: str, bit: int) -> Part:
    """A bit of a digit after a stage that shifts by whole digits; 0 in a system call."""
    near = _neighbours(of, place, distance, bit)

    def staged(does: int, *bits: int) -> int:
        moved = dict(zip((way for way, _ in near), bits, strict=True))
        return _bit(bit, 0 if does >= CALL else _shifted(does, moved))

    return Part((look(control, *FOUR), *(own for _, own in near)), staged)


def _first_stage(place: int, bit: int) -> Part:
    """A bit after the first stage, which shifts the first operand, or hands on other results."""
    near = _neighbours("a", place, 4, bit)

    def staged(does: int, total: int, second: int, register: int, *bits: int) -> int:
        if does > AND:
            return _bit(bit, 0)
        moved = dict(zip((way for way, _ in near), bits, strict=True))
        a, b = moved["same"], second
        others = {CALL: register, SUM: total, FLAG: 0, XOR: a ^ b, OR: a | b, AND: a & b}
        return _bit(bit, others[does] if does in others else _shifted(does, moved))

    register = Look("recalled", LAST_SET, (bit,))
    own = look("stage16", *FOUR), look(f"sum {place}", bit), look(f"b {place}", bit), register
    return Part((*own, *(other for _, other in near)), staged)


def _flag(op: int, compared: int) -> int | None:
    name = _name(op)
    return None if name is None else int(SETTING.get(name, 0) & compared > 0)


def _signs(phase: int, first: int, second: int) -> int:
    """The signs of both operands, where they are seen."""
    if phase != LOOKS:
        return SIGNS
    zero = second == 0
    return SIGNS + FIRST_NEGATIVE * first + (SECOND_ZERO if zero else SECOND_NEGATIVE * (second >> 3 & 1))


def _signs_again(phase: int, signs: int) -> int:
    return signs if phase not in (NO_PHASE, LOOKS) else 0


def _stage8(op: int, shifts: int, sign: int, phase: int) -> int | None:
    name = _name(op)
    if name is None or phase > CLOSES:
        return None
    if not _in_round(phase):
        return STAGE + _staging(name, shifts, sign)
    multiplies = name in MULTIPLYING
    return (
        STAGE
        + {
            LOOKS: CLEAR,
            BEGINS: SECOND if multiplies else SUM,
            STEPS: MULTIPLY if multiplies else DIVIDE,
            MENDS: KEEP,
        }[phase]
    )


def _stage4(op: int, shifts: int, sign: int, phase: int) -> int | None:
    name = _name(op)
    if name is None or phase > CLOSES:
        return None
    return STAGE + (MULTIPLY if _in_round(phase) else _staging(name, shifts, sign))


def _high(place: int, bit: int) -> Part:
    """A bit of the high word, or of the remainder, after a round."""
    at = NIBBLE * place + bit + 1
    carry = look("sum 7", FLAG_F)
    looks = {
        "does": look("stage16", *FOUR),
        "before": look(f"s16 {place}", bit, where="last"),
        "total": look(f"sum {place}", bit),
        "first": look(f"a {place}", bit),
        "lost": look("s16 7", 3, where="last"),
        "carry": carry,
        "up": carry if at == NIBBLE * WORD else look(f"sum {at // NIBBLE}", at % NIBBLE),
    }

    def high(does: int, before: int, total: int, first: int, lost: int, carry: int, up: int) -> int:
        """Half the sum; or the difference, if there is no borrow, which is where the sum carries, or where the
        doubled remainder has lost a bit."""
        if does == DIVIDE:
            return (total if carry or lost else first) << bit
        return (before if does == KEEP else up if does == MULTIPLY else 0) << bit

    different = list(dict.fromkeys(looks.values()))
    places = [different.index(own) for own in looks.values()]
    return Part(tuple(different), lambda *values: high(*(values[place] for place in places)))


def _low(place: int, bit: int) -> Part:
    """A bit of the low word, or of the quotient, after a round; or of a0 in a system call."""
    at = NIBBLE * place + bit
    more = look(f"s8 {(at + 1) // NIBBLE}", (at + 1) % NIBBLE, where="last") if at < 31 else look("sum 0", 0)
    less = look(f"s8 {(at - 1) // NIBBLE}", (at - 1) % NIBBLE, where="last") if at else look("sum 7", FLAG_F)
    lost = look("s16 7", 3, where="last")

    def low(
        does: int, register: int, before: int, second: int, total: int, more: int, less: int, lost: int = 0
    ) -> int:
        values = {
            CALL: register, KEEP: before, SECOND: second, SUM: total, MULTIPLY: more, DIVIDE: less | lost,
        }  # fmt: skip
        return values.get(does, 0) << bit

    own = look("stage8", *FOUR), Look("recalled", LAST_SET, (bit,)), look(f"s8 {place}", bit, where="last")
    others = look(f"b0 {place}", bit), look(f"sum {place}", bit), more, less
    return Part((*own, *others, *(() if at else (lost,))), low)


def _counted(place: int) -> Iterator[Part]:
    """The number of the round to come."""
    if place > 1:
        return
    control, phase = look("stage4", *FOUR), look("phase", *THREE)
    own = look(f"s4 {place}", where="last"), *((look("s4 0", FLAG_F),) if place else ())

    def counted(does: int, phase: int, digit: int, carry: int = 1) -> int:
        if does != MULTIPLY:
            return 0
        return carrying((digit if phase != LOOKS else 0) + carry) - DIGIT

    yield Part((control, phase, *own), counted)


def _nonzero_before(name: str, place: int) -> Part:
    """The flag that says whether a digit before this one, but for the low ones, is not 0."""
    return Part((look(f"{name} {place - 1}", *VALUE, FLAG_F),), flagged)


def _call(does: int, low: int, high: int, last: int) -> int:
    """What a7 asks for; its digits from the third on must be 0."""
    if does != CALL:
        return CALLED + NONE
    number = UNKNOWN if last else {63: READ, 64: WRITE, 93: EXITS, 94: EXITS}.get(low | high << 4, UNKNOWN)
    return CALLED + number


def _file(call: int, low: int, last: int) -> int:
    """Whether a0 is a file that can be read, or written."""
    return FILE + (not last and low in {READ: (0,), WRITE: (1, 2)}.get(call, ()))


def _copied(place: int) -> Iterator[Part]:
    """What a system call will have copied: one byte more; and whether that differs from what is asked for."""
    control = look("stage4", *FOUR)
    carry = (look(f"s4 {place - 1}", FLAG_F),) if place else ()

    def copied(does: int, digit: int, carry: int = 1) -> int:
        return carrying(digit + carry) - DIGIT if does == CALL else 0

    yield Part((control, look(f"b {place}"), *carry), copied)
    if place:
        seen = look(f"s4 {place - 1}", *VALUE, FLAG_G), look(f"b0 {place - 1}")
        yield Part((control, *seen), _differs)


def _differs(does: int, seen: int, asked: int) -> int:
    return marked(does == CALL and seen != asked)


def _moves(call: int, good: int, count: int, there: int) -> int:
    """Whether a byte is read or written now."""
    if not good or not count or (call == READ and not there):
        return MOVES + IDLE
    return MOVES + {READ: TAKES, WRITE: PUTS}.get(call, IDLE)


def _ends(moves: int, seen: int, count: int, phase: int) -> int:
    """Whether the instruction is over: a call is with its last byte."""
    if _in_round(phase):
        return ENDS + ROUNDED
    return ENDS + ENDED * (moves == IDLE or seen == count)


def _final(op: int, shifts: int, sign: int) -> int | None:
    name = _name(op)
    if name is None:
        return None
    if name in STORES:
        return FINAL + STORED
    way = SHIFTING.get(name)
    if way is None or not shifts:
        return FINAL
    return FINAL + shifts + {LEFT: 0, RIGHT: 4, ONES: 8 if sign else 4}[way]


def _final_call(call: int, good: int, moves: int, ends: int) -> int:
    if call in (NONE, EXITS):
        return OLD if call == EXITS else 0
    if call == UNKNOWN or not good:
        return NO_CALL if call == UNKNOWN else BAD_FILE
    return COPIED if moves == IDLE else COUNT if ends else OLD


def _last_stage(place: int, bit: int) -> Part:
    """A bit after the stage that shifts by 1 to 3 bits; 0 where something else becomes the result."""
    at, sources = NIBBLE * place + bit, {}
    for distance in (1, 2, 3):
        for way, other in ((LEFT, at - distance), (RIGHT, at + distance)):
            if 0 <= other < NIBBLE * WORD:
                sources[way, distance] = other
    read = sorted({at, *sources.values()})

    def last(does: int, *bits: int) -> int:
        found = dict(zip(read, bits, strict=True))
        if does in (COUNT, STORED) or does >= COPIED:
            return _bit(bit, 0)
        if does == 0:
            return _bit(bit, found[at])
        source = sources.get((LEFT if does < 4 else RIGHT, does % 4))
        return _bit(bit, int(does > 8) if source is None else found[source])

    looks = [look(f"s4 {own // NIBBLE}", own % NIBBLE) for own in read]
    return Part((look("final", *FOUR), *looks), last)


def _other_result(place: int, bit: int) -> Part:
    """A bit of a word to store, or of what a system call gives."""
    at = NIBBLE * place + bit

    def other(does: int, word: int, before: int, copied: int) -> int:
        values = {
            COUNT: word, STORED: word, COPIED: copied, BAD_FILE: -9 >> at & 1, NO_CALL: -38 >> at & 1, OLD: before,
        }  # fmt: skip
        return values.get(does, 0) << bit

    own = look(f"b0 {place}", bit), look(f"s8 {place}", bit), look(f"b {place}", bit)
    return Part((look("final", *FOUR), *own), other)


def _loaded(place: int, bit: int) -> Part:
    """A bit of what is loaded; of the byte that a call reads."""
    looks = [Look("recalled", STORE, (bit, IS_DIGIT)), Look("recalled", IMAGE, (bit,))]
    if place >= 2:
        return Part(tuple(looks), partial(_written, bit))

    def loaded(moves: int, store: int, image: int, byte: int) -> int:
        return _bit(bit, byte) if moves == TAKES else _written(bit, store, image)

    return Part((look("moves", 0, 1), *looks, Look("recalled", BYTE, (bit,))), loaded)


def _size(op: int) -> int:
    """Bytes that an instruction loads or stores; a call moves one."""
    return (LOADS | STORES | {"ecall": 1}).get(_name(op) or "", 0)


def _beyond(limits: dict[int, int], op: int, digit: int, before: int) -> int:
    """Whether the digits of an address, up to this one, are above those of the last one that is inside."""
    size = _size(op)
    return flagged(size and above(limits[size])(digit + F * before))


def _access(limits: dict[int, int], op: int, digit: int, before: int, moves: int) -> int:
    used = _size(op) and (_name(op) != "ecall" or moves != IDLE)
    return ACCESS + bool(used and _beyond(limits, op, digit, before))


def _result(place: int, bit: int, op: int, value: int, loaded: int, sign: int = 0) -> int | None:
    """A bit of what goes to the register or to memory; jumps have their own."""
    name = _name(op)
    if name is None:
        return None
    if name in LOADS:
        return _bit(bit, loaded if place < 2 * LOADS[name] else sign)
    return _bit(bit, 0 if name in ("jal", "jalr") else value)


def _link(place: int, op: int, pc: int, carry: int = 0) -> int:
    """A digit of pc + 4."""
    if _name(op) not in ("jal", "jalr"):
        return 0
    return carrying(pc + (carry if place else 4)) - DIGIT


def _extended(place: int, op: int, sign: int, before: int = 0) -> int:
    """Flags of a result: F is the sign of what was loaded, up to here; G says that it goes to memory."""
    name = _name(op) or ""
    if name in STORES:
        return marked(place < 2 * STORES[name])
    if name not in ("lb", "lh"):
        return 0
    return flagged(sign if place == 2 * LOADS[name] - 1 else place >= 2 * LOADS[name] and before)


def _goes(op: int, compared: int, ends: int) -> int | None:
    name = _name(op)
    if name is None:
        return None
    if name in BRANCHES:
        holds = compared & {"eq": EQUAL, "ne": EQUAL, "lt": LESS, "ge": LESS}.get(name[1:], BELOW)
        return GOES + (BRANCH if bool(holds) == (name[1:] in ("eq", "lt", "ltu")) else ON)
    if name in ("jal", "jalr"):
        return GOES + (JUMP if name == "jal" else JUMP_EVEN)
    return GOES + (ON if ends else STAY)


def _next(place: int, masks: Sequence[int], goes: int, pc: int, *rest: int) -> int | None:
    """A digit of pc after this instruction, unless it jumps. Masks say which bits of the instruction are those
    of the offset."""
    carry, bits = (rest[0], rest[1:]) if place else (0, rest)
    if goes == STAY:
        return plain(pc)
    if goes in (JUMP, JUMP_EVEN):
        return DIGIT
    if goes > STAY:
        return None
    if goes == ON:
        return carrying(pc + (carry if place else 4))
    there = sum(own << place for place, own in enumerate(bits))
    offset = sum(bool(there & mask) << bit for bit, mask in enumerate(masks))
    return carrying(pc + offset + carry)


def _jumped(place: int, goes: int, total: int) -> int:
    """A digit of the sum, if that is where the instruction jumps."""
    if goes not in (JUMP, JUMP_EVEN):
        return 0
    return total & ~1 if place == 0 and goes == JUMP_EVEN else total


def _put(moves: int, low: int, high: int) -> int:
    return PUT + BASE * high + low if moves == PUTS else QUIET


def _outcome(limit: int, pc: int, op: int, outside: int, odd: int, exits: int, ends: int) -> int | None:
    """What stops the program comes first."""
    name = _name(op)
    if above(limit)(pc):
        return ASTRAY
    if name is None:
        return None
    if name in ("illegal", "ebreak"):
        return ILLEGAL if name == "illegal" else BREAKPOINT
    if exits or outside:
        return EXIT if exits else BEYOND
    if odd:
        return MISALIGNED
    return ROUND if ends == ROUNDED else GO if ends == ENDED else MORE
