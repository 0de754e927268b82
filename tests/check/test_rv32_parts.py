"""Instructions in tokens, one by one: what each is made of by the manual, and the parts of its proof."""

from typing import Any

import pytest

from tapegrad.attention import rv32_tokens as compilers
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad_check.folder import CheckError
from tapegrad_check.formulas.words import number
from tapegrad_check.in_tokens import rv32_proof, rv32_tokens
from tapegrad_check.in_tokens.pages import DIGIT_BIT
from tapegrad_check.in_tokens.rv32_rounds import WIDTH, digits_of, word_of
from tapegrad_check.in_tokens.rv32_tokens import OPS, TOKENS, Op
from tapegrad_check.in_tokens.words import rv32_words
from tapegrad_check.instructions import rv32
from tapegrad_check.instructions.cases import cases

BYTES = {"b": 1, "h": 2, "w": 4}


def by_the_manual(name: str) -> dict[str, Any]:
    """From the name of an instruction, as the manual builds it, and the form of its code."""
    form = INSTRUCTIONS[name].form if name in INSTRUCTIONS else ""
    loads = BYTES[name[1]] if form == "L" and name.startswith("l") else 0
    stores = BYTES[name[1]] if form == "S" else 0
    condition = {"eq": ("EQUAL", 1), "ne": ("EQUAL", 0), "lt": ("LESS", 1), "ge": ("LESS", 0)}
    condition |= {"ltu": ("BELOW", 1), "geu": ("BELOW", 0)}
    branches, plain = None, name.rstrip("i")
    if form == "B":
        bit, wanted = condition[name[1:]]
        branches = (getattr(rv32_tokens, bit), bool(wanted))
    sets = {"slt": "LESS", "slti": "LESS", "sltu": "BELOW", "sltiu": "BELOW"}.get(name)
    return {
        "loads": loads, "stores": stores, "branches": branches,
        "sets": getattr(rv32_tokens, sets) if sets else 0,
        "multiplies": name.startswith("mul"), "divides": name[:3] in ("div", "rem"),
        "logic": getattr(rv32_tokens, plain.upper()) if plain in ("xor", "or", "and") else 0,
        "jumps": name in ("jal", "jalr"),
        "rounds": name[:3] in ("mul", "div", "rem"),
        "moves": loads or stores or int(name == "ecall"),
    }  # fmt: skip


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_what_an_instruction_is_made_of(op: Op) -> None:
    wanted = by_the_manual(op.name)
    assert {name: getattr(op, name) for name in wanted} == wanted
    subtracts = op.branches is not None or bool(op.sets) or op.name == "sub"
    assert op.form.startswith("-") == subtracts
    operand = {"J": "J", "U": "U", "S": "S", "R": "R", "B": "R", "I": "I", "L": "I", "H": "I"}
    if op.name in INSTRUCTIONS and op.name not in ("ecall", "ebreak", "fence"):
        assert op.form.lstrip("-") == operand[INSTRUCTIONS[op.name].form]
    shifts = {"sll": rv32_tokens.LEFT, "srl": rv32_tokens.RIGHT, "sra": rv32_tokens.ONES}
    assert op.shifts == shifts.get(op.name.removesuffix("i"), rv32_tokens.SAME)


def test_tokens_of_digits() -> None:
    assert 1 << WIDTH - 1 < TOKENS <= 1 << WIDTH
    word = number(0x9ABC_DEF1, 32)
    tokens = digits_of("it", word)
    assert list(tokens) == [f"it {place}" for place in range(8)]
    for place, token in enumerate(tokens.values()):
        digit = 0x9ABC_DEF1 >> 4 * place & 15
        assert token == number(digit + (1 << DIGIT_BIT), WIDTH)
    assert word_of(tokens, "it") == word


def test_every_case_is_proved_in_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    every, names = list(cases()), []
    monkeypatch.setattr(rv32_proof, "Formulas", lambda page, width: (page.ram, page.counted, width))
    monkeypatch.setattr(rv32_proof, "prove_case", lambda of, name, *_: names.append((of, name)) or 2)
    assert rv32_proof.prove.__wrapped__(16, 1) == 2 * len(every)
    assert names == [((16, 1, WIDTH), name) for name, _, _ in every]
    for others in (every[1:], [*every, every[0]]):
        monkeypatch.setattr(rv32_proof.cases, "cases", lambda others=others: others)
        with pytest.raises(CheckError, match="leave something out"):
            rv32_proof.prove.__wrapped__(16, 1)


def value(bits: dict[int, int], width: int) -> int:
    assert sorted(bits) == list(range(width))
    return sum(bit << place for place, bit in bits.items())


def test_the_parts_of_a_case_are_all_that_there_are() -> None:
    for name in ("sll", "srai", "srl"):
        parts = list(rv32_proof._parts(name))
        assert [value(dict(second), 5) for _, second in parts] == list(range(32))
        assert not any(first for first, _ in parts)
    for name in ("div", "rem", "mulh"):
        assert [tuple(part) for part in rv32_proof._parts(name)] == [
            ({31: a}, {31: b}) for a in (0, 1) for b in (0, 1)
        ]
    assert list(rv32_proof._parts("add")) == [()]
    parts = list(rv32_proof._parts("ecall"))
    assert not any(first or second for first, second, *_ in parts)
    known = [(value(dict(file), 4), value(dict(call), 8)) for _, _, file, call in parts if file]
    assert known == [(file, call) for call in (63, 64) for file in range(16)]
    calls = [dict(call) for _, _, file, call in parts if not file]
    assert [value(call, 8) for call in calls[:2]] == [93, 94]
    for number_of_call in range(256):
        found = [call for call in calls if all(number_of_call >> bit & 1 == own for bit, own in call.items())]
        assert len(found) == (0 if number_of_call in (63, 64) else 1)


TRAPS = {
    "trap:exit": rv32.EXIT,
    "trap:breakpoint": rv32.BREAKPOINT,
    "trap:illegal·instruction": rv32.ILLEGAL,
    "trap:misaligned·jump": rv32.MISALIGNED,
    "trap:jump·outside·memory": rv32.JUMP_OUTSIDE,
    "trap:address·outside·memory": rv32.OUTSIDE,
}


def test_tokens_have_the_compilers_numbers() -> None:
    words = compilers.words()
    assert {words[said]: trap for said, trap in rv32_tokens.STOPS.items()} == TRAPS
    assert words == rv32_words()
    assert len(words) == rv32_tokens.TOKENS
    numbered = {"<halt>": rv32_tokens.END, "data": rv32_tokens.DATA, "input": rv32_tokens.INPUT}
    numbered |= {"step": rv32_tokens.STEP, "go": rv32_tokens.GO, "more": rv32_tokens.MORE}
    numbered |= {"round": rv32_tokens.ROUND, "x5": rv32_tokens.REGISTER + 5, "put:A": rv32_tokens.PUT + 65}
    assert {word: words.index(word) for word in numbered} == numbered
    go = rv32_tokens.GO
    assert go ^ rv32_tokens.MORE == (1 << rv32_tokens.MORE_BIT) + 1
    assert not go >> rv32_tokens.ROUND_BIT & 1
    assert rv32_tokens.ROUND >> rv32_tokens.ROUND_BIT & 1
    assert 1 << rv32_tokens.REGISTER_BIT == rv32_tokens.REGISTER
    assert 1 << rv32_tokens.PUT_BIT == rv32_tokens.PUT
    assert tuple(tuple(range(bits)) for bits in (3, 5, 6)) == (
        rv32_tokens.NUMBER,
        rv32_tokens.FIVE,
        rv32_tokens.SIX,
    )


TAILS = {0: rv32_tokens.PLAIN, 32: rv32_tokens.CHANGED, 1: rv32_tokens.OF_M}


@pytest.mark.parametrize("name", [name for name in INSTRUCTIONS if name])
def test_an_instruction_is_told_by_parts_of_its_word(name: str) -> None:
    """The word is that of the compiler's assembler."""
    own = INSTRUCTIONS[name]
    word = own.encoded(1, 2, 3, 0)
    opcode, f3 = word & 127, word >> 12 & 7
    tails = [TAILS[own.f7]] if own.form in "RH" else [*TAILS.values(), rv32_tokens.OTHER]
    if name in ("ecall", "ebreak"):
        tails = [{"ecall": rv32_tokens.CALLS, "ebreak": rv32_tokens.BREAKS}[name]]
    number = [op.name for op in OPS].index("fence" if name == "fence.i" else name)
    for tail in tails:
        for any_f3 in range(8) if own.form in "UJ" else (f3,):
            assert rv32_tokens.decoded(opcode, any_f3, tail) == rv32_tokens.OP + number
    if own.form in "RH":
        illegal = [op.name for op in OPS].index("illegal")
        assert rv32_tokens.decoded(opcode, f3, rv32_tokens.OTHER) == rv32_tokens.OP + illegal
    assert rv32_tokens.op_of(number) == OPS[number]


def test_numbers_of_no_instruction() -> None:
    assert rv32_tokens.op_of(len(OPS)) is None
    assert rv32_tokens.op_of(len(OPS) - 1) == OPS[-1]
