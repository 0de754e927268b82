"""The proof of RV32 records, part by part: it goes through, but not with one bit of a record inverted.

A whole system call or product has dozens of parts, which take a minute; one of each kind takes a second.
"""

import copy
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any, cast
from unittest.mock import Mock

import pytest

from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.in_tokens import page_formulas, rv32_proof
from tapegrad_check.in_tokens.page_formulas import Formulas, Record
from tapegrad_check.in_tokens.pages import MARK_BIT, Bits, Rule, table_of
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
@pytest.mark.sampled(4)
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
@pytest.mark.sampled(5)
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
@pytest.mark.sampled(4)
def test_every_bit_of_a_round_matters(name: str, part: int, count: int, slot: str, bit: int) -> None:
    with pytest.raises((CheckError, NotProved)):
        prove(name, part, Inverted(slot, bit, count))


# Pages as formulas


class SmallPage:
    """A token that repeats a bit of the last record, and one that adds what a head finds to the first."""

    slots, heads = ("own", "sum"), ("head",)

    def rules(self, slot: str) -> list[Rule]:
        if slot == "own":
            return [Rule((Bits("last", "sum", (1,)),), lambda bit: bit)]
        inputs = (Bits("this", "own", (0,)), Bits("recalled", "head", (0, 1)))
        return [
            Rule(inputs, lambda own, found: None if found == 3 else own + found),
            Rule((Bits("this", "own", (0,)),), lambda own: 4 * own),
        ]


def told(ways: list[list[int]], given: dict[str, list[int]] | None = None) -> Record:
    last = {"own": [0, 0, 0], "sum": [0, 1, 0]}
    formulas = Formulas(cast("Any", SmallPage()), 3)
    finders = [lambda head, slot, way=way: way for way in ways]
    return formulas.tell(Nodes(), last, finders, given or {})


@pytest.mark.parametrize(("found", "total"), [([0, 0], 1), ([1, 0], 2), ([0, 1], 3)])
def test_a_record_of_constants(found: list[int], total: int) -> None:
    record = told([found])
    assert record.tokens == {"own": [1, 0, 0], "sum": [total & 1, total >> 1, 1]}
    assert (record.found, record.wanted, record.instead) == ([], [], {})
    assert record.word("x", 0) == []


def test_what_cannot_be_is_left_to_prove() -> None:
    record = told([[1, 1]])
    assert (record.found, record.wanted) == ([0], [1])


def test_a_token_that_is_given_is_kept_and_the_told_one_beside_it() -> None:
    record = told([[0, 0]], {"own": [0, 0, 0]})
    assert record.tokens == {"own": [0, 0, 0], "sum": [0, 0, 0]}
    assert record.instead == {"own": [1, 0, 0]}


@pytest.mark.parametrize("place", [1, 2])
def test_a_token_must_not_depend_on_where_it_was_found(place: int) -> None:
    ways = [[1, 0], [1, 0], [1, 0]]
    assert told(ways).tokens["sum"] == [0, 1, 1]
    ways[place] = [0, 0]
    with pytest.raises(CheckError, match="'sum' depends on where it was found"):
        told(ways)


def test_two_rules_must_not_give_one_bit() -> None:
    page = SmallPage()
    page.rules = lambda slot: [Rule((), lambda: 1), Rule((), lambda: 1)]  # type: ignore[method-assign]
    record = Formulas(cast("Any", page), 3).tell(Nodes(), {}, [lambda head, slot: []], {})
    assert (record.found, record.wanted) == ([1, 1], [0, 0])


def test_a_bit_as_a_tree_is_the_bit() -> None:
    """For all inputs, known or not, of a rule whose table has gaps."""
    inputs = (Bits("last", "digit 0", (0, 1)), Bits("recalled", "head", (0, 1)), Bits("last", "way", (0,)))
    rule = Rule(inputs, lambda a, b, way: None if (a, b) == (3, 2) else (a + b if way else 5 * (a > b)))
    table = table_of(rule)
    for known in product((-1, 0, 1), repeat=5):
        trees, possible = page_formulas._trees(inputs, table, known)
        for bits in product((0, 1), repeat=5):
            if any(fixed not in (-1, bit) for fixed, bit in zip(known, bits, strict=True)):
                continue
            n, wanted = Nodes(), int(table[sum(bit << place for place, bit in enumerate(bits))])
            assert possible.over(n, bits) == (wanted >= 0)
            if wanted >= 0:
                found = sum(tree.over(n, bits) << bit for bit, tree in trees.items())
                assert found == wanted
