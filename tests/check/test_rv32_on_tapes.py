"""RV32IM on tapes: what is made in rounds, where immediates stand, and quick cases of the proof."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tapegrad.lowering import program_machine as lowering
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.formulas.words import number
from tapegrad_check.instructions.cases import cases
from tapegrad_check.instructions.rv32 import AUIPC, BRANCH, JAL, LUI, STORE
from tapegrad_check.on_tapes import rv32
from tests.check.test_one_instruction import RV32, of, of_rv32, rv32_machine, value
from tests.check.test_programs_on_tapes import checked, program

WORDS = [0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF]


def signed(word: int) -> int:
    return word - (word >> 31 << 32)


def quotient(a: int, b: int) -> tuple[int, int]:
    """Towards 0, with the remainder's sign that of the dividend."""
    if b == 0:
        return -1, a
    size = abs(a) // abs(b)
    by = size if (a < 0) == (b < 0) else -size
    return by, a - by * b


RESULTS = {
    "mul": lambda a, b: a * b,
    "mulh": lambda a, b: signed(a) * signed(b) >> 32,
    "mulhsu": lambda a, b: signed(a) * b >> 32,
    "mulhu": lambda a, b: a * b >> 32,
    "div": lambda a, b: quotient(signed(a), signed(b))[0],
    "divu": lambda a, b: quotient(a, b)[0],
    "rem": lambda a, b: quotient(signed(a), signed(b))[1],
    "remu": lambda a, b: quotient(a, b)[1],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_rounds(name: str) -> None:
    """What the rounds leave of two words, or of their absolute values, as high and low word; and what is made
    of that."""
    draw, n = random.Random(name), Nodes()
    kind, absolute, result = rv32.ROUNDED[name]
    pairs = [(a, b) for a in WORDS for b in WORDS]
    pairs += [(draw.getrandbits(32), draw.getrandbits(draw.randrange(1, 33))) for _ in range(40)]
    for a, b in pairs:
        x, y = (abs(signed(word)) for word in (a, b)) if absolute else (a, b)
        if kind == "product":
            high, low = divmod(x * y, 1 << 32)
        else:
            low, high = divmod(x, y) if y else (0xFFFF_FFFF, x)
        words = (number(word % (1 << 32), 32) for word in (a, b, high, low))
        assert value(result(n, *words)) == RESULTS[name](a, b) % (1 << 32), (a, b)  # type: ignore[arg-type]


def stands(name: str, bits: Sequence[int], shift: int = 0) -> list[int]:
    """Where bits of an immediate stand in an instruction."""
    of = INSTRUCTIONS[name]
    without = of.encoded(rd=0, rs1=0, rs2=0, imm=0)
    codes = [of.encoded(rd=0, rs1=0, rs2=0, imm=1 << bit - shift) for bit in bits[:-1]]
    codes.append(
        of.encoded(rd=0, rs1=0, rs2=0, imm=-(1 << bits[-1] - shift) if not shift else 1 << bits[-1] - shift)
    )
    return [(code ^ without).bit_length() - 1 for code in codes]


def test_where_immediates_stand() -> None:
    assert list(rv32.FORMS[STORE]) == stands("sw", range(12))
    assert list(rv32.OTHERS) == stands("addi", range(12))
    assert list(rv32.FORMS[BRANCH]) == [0, *stands("beq", range(1, 13))]
    assert list(rv32.FORMS[JAL]) == [0, *stands("jal", range(1, 21))]
    for opcode, name in ((LUI, "lui"), (AUIPC, "auipc")):
        assert list(rv32.FORMS[opcode]) == [*range(12), *stands(name, range(12, 32), 12)]


def test_every_case_is_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source, names = checked(program(RV32.format(64))), []
    every, other = list(cases()), of(lowering.subleq_machine())  # any table: no case is followed
    monkeypatch.setattr(rv32, "case", lambda program, table, name, fixed, rule: names.append(name) or 2)
    assert rv32.prove(source, other) == 2 * len(every)
    assert names == [name for name, _, _ in every]
    assert rv32.prove(replace(source, ram=68), other) == 2 * len(every)
    with pytest.raises(NotProved, match="no whole number of words"):
        rv32.prove(replace(source, ram=66), other)
    for others in (every[1:], [*every, every[0]]):
        monkeypatch.setattr(rv32, "cases", lambda others=others: others)
        with pytest.raises(CheckError, match="leave something out"):
            rv32.prove(source, other)


@pytest.mark.parametrize("name", ["lb", "divu", pytest.param("sh", marks=pytest.mark.slow)])
def test_cases_are_proved(name: str) -> None:
    assert of_rv32(name, rv32_machine(), 16) > 2
