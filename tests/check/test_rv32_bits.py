"""The proof of RV32 records, part by part: it goes through, but not with one bit of a record inverted.

A whole system call or product has dozens of parts, which take a minute; one of each kind takes a second.
"""

import copy
from collections.abc import Sequence
from functools import cache
from typing import Any
from unittest.mock import Mock

import pytest

from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.in_tokens import rv32_proof
from tapegrad_check.in_tokens.page_formulas import Formulas, Record
from tapegrad_check.in_tokens.pages import MARK_BIT
from tapegrad_check.in_tokens.rv32_records import Rv32Page
from tapegrad_check.in_tokens.rv32_rounds import WIDTH
from tapegrad_check.in_tokens.rv32_tokens import PUT_BIT, REGISTER_BIT
from tapegrad_check.instructions.cases import cases
from tests.programs.states import MACHINE

CASES = {name: (fixed, rule) for name, fixed, rule in cases()}
READ, READ_ELSEWHERE, WRITE, WRITE_ELSEWHERE, EXIT, UNKNOWN = 0, 1, 17, 20, 32, 34
"""Parts of `ecall`: call 63 of file 0 or 1, call 64 of file 1 or 4, call 93, and one of the others."""


@cache
def genuine() -> Formulas:
    return Formulas(Rv32Page(MACHINE.ram, 2), WIDTH)


def prove(name: str, part: int, formulas: Formulas) -> None:
    words = list(rv32_proof._parts(name))[part]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rv32_proof, "_parts", lambda name: [words])
        assert rv32_proof.prove_case(formulas, name, *CASES[name]) == 1


@pytest.mark.parametrize(("name", "bits"), [("srai", range(20, 25)), ("srl", ())])
def test_a_distance_is_in_the_instruction_where_it_is_immediate(
    name: str, bits: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed, rule = CASES[name]
    made: list[dict[int, int]] = []
    monkeypatch.setattr(rv32_proof, "_Case", lambda of, name, code, *rest: made.append(code) or Mock())
    assert rv32_proof.prove_case(genuine(), name, fixed, rule) == 32
    for distance, code in enumerate(made):
        assert code == dict(fixed) | {bit: distance >> bit - 20 & 1 for bit in bits}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        *(("ecall", part) for part in (READ, READ_ELSEWHERE, WRITE, WRITE_ELSEWHERE, EXIT, UNKNOWN)),
        *(("sll", 0), ("srl", 13), ("srai", 31), ("mulh", 3), ("div", 2)),
    ],
)
def test_a_part_is_proved(name: str, part: int) -> None:
    prove(name, part, genuine())


class Inverted(Formulas):
    """The same page, which says something else in one record, at one bit of one slot."""

    def __init__(self, slot: str, bit: int, count: int) -> None:
        self.__dict__.update(copy.copy(genuine()).__dict__)
        self.slot, self.bit, self.count = slot, bit, count

    def tell(self, *given: Any, **named: Any) -> Record:
        record = super().tell(*given, **named)
        if self.count == 0:
            record.tokens[self.slot][self.bit] ^= 1
        self.count -= 1
        return record


MATTERS: dict[tuple[str, int], list[tuple[str, int]]] = {
    ("add", 0): [
        ("kind", 0), ("pc 1", 2), ("ins 3", 1), ("pc+1", 0), ("pc+2", 1), ("pc+3", 3), ("outcome", 0),
        ("next 0", 0), ("next 0", 2), ("next 7", 3), ("r1", 0), ("r1", 5), ("r2", 4), ("rd", 0), ("rd", 4),
        ("rd", REGISTER_BIT), ("result 0", 0), ("result 7", 3), ("taken 0", 0), ("taken 1", 3), ("moves", 0),
        ("put", PUT_BIT), ("result 2", MARK_BIT), ("load 0", MARK_BIT), ("load 1", MARK_BIT),
    ],
    ("lw", 0): [
        ("sum 0", 0), ("sum 2", 1), ("at+1 0", 0), ("at+2 0", 2), ("at+3 1", 3), ("outcome", 1),
        ("result 5", 1),
    ],
    ("sh", 0): [
        ("result 0", 0), ("result 3", 3), ("result 0", MARK_BIT), ("result 3", MARK_BIT),
        ("result 4", MARK_BIT), ("sum 1", 0), ("load 0", MARK_BIT), ("rd", REGISTER_BIT),
    ],
    ("jalr", 0): [("next 0", 1), ("next 3", 0), ("outcome", 2), ("result 0", 2)],
    ("beq", 0): [("next 1", 1), ("outcome", 0), ("rd", REGISTER_BIT)],
    ("ebreak", 0): [("outcome", 0), ("outcome", 1)],
    ("no instruction", 0): [("outcome", 0), ("outcome", 2)],
    ("ecall", READ): [
        ("r3", 0), ("rd", 1), ("load 0", 0), ("load 0", MARK_BIT), ("taken 0", 0), ("s4 0", 0),
    ],
    ("ecall", WRITE): [("put", 0), ("put", PUT_BIT), ("next 0", 2)],
    ("ecall", WRITE_ELSEWHERE): [("result 0", 0), ("outcome", 0), ("put", PUT_BIT)],
    ("ecall", EXIT): [("outcome", 0), ("outcome", 3)],
    ("ecall", UNKNOWN): [("result 1", 1), ("rd", REGISTER_BIT)],
    ("sra", 13): [("result 4", 1), ("result 7", 3)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "part", "slot", "bit"),
    [(*case, *place) for case, places in MATTERS.items() for place in places],
)
def test_every_bit_of_a_record_matters(name: str, part: int, slot: str, bit: int) -> None:
    with pytest.raises((CheckError, NotProved)):
        prove(name, part, Inverted(slot, bit, 0))


ROUNDS = {
    ("mul", 0): [
        *((0, *place) for place in (("s4 0", 0), ("next 0", 2), ("rd", REGISTER_BIT), ("put", PUT_BIT))),
        *(
            (0, *place)
            for place in (("taken 0", 0), ("result 7", MARK_BIT), ("load 0", MARK_BIT), ("outcome", 0))
        ),
        *((1, *place) for place in (("s4 1", 1), ("s16 0", 0), ("s8 3", 2))),
        (3, "s16 7", 3),
    ],
    ("mulh", 3): [(1, "signs", 3), (5, "signs", 0)],
    ("div", 2): [(35, "result 0", 0)],
}
"""By round. What is left to the end of a proof takes a second each."""
MORE = {
    ("mul", 0): [*((count, "outcome", 0) for count in (0, 1, 17)), (17, "s4 0", 0), (33, "s8 7", 3)],
    ("mulh", 3): [(1, "signs", 0), (1, "signs", 1), (35, "result 0", 0), (35, "outcome", 0)],
    ("div", 2): [(1, "signs", 2), (1, "s8 0", 0), (1, "s16 0", 0), (9, "s8 0", 0), (34, "s4 0", 0)],
    ("divu", 0): [(35, "result 3", 0)],
}


@pytest.mark.parametrize(
    ("name", "part", "count", "slot", "bit"),
    [
        *((*case, *place) for case, places in ROUNDS.items() for place in places),
        *(
            pytest.param(*case, *place, marks=pytest.mark.slow)
            for case, places in MORE.items()
            for place in places
        ),
    ],
)
def test_every_bit_of_a_round_matters(name: str, part: int, count: int, slot: str, bit: int) -> None:
    with pytest.raises((CheckError, NotProved)):
        prove(name, part, Inverted(slot, bit, count))
