"""The checker's page of RV32 records: it is the nets', it is RV32IM, and neither holds of anything else."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad.attention import rv32_cells
from tapegrad.attention.rv32_tokens import Rv32Tokens, _program
from tapegrad.attention.rv32_words import BELOW, LESS
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.targets.decoder import DecoderNet
from tapegrad_check import CheckError
from tapegrad_check.core.nodes import FALSE, Nodes
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import divide, multiply, number, padded
from tapegrad_check.graph import graph_of
from tapegrad_check.in_tokens import rv32_proof, rv32_rounds
from tapegrad_check.in_tokens.page_formulas import Formulas
from tapegrad_check.in_tokens.pages import MARK, PLUS, Rule, compare, table_of
from tapegrad_check.in_tokens.rv32_records import Rv32Page
from tapegrad_check.in_tokens.rv32_rounds import WIDTH, division_step, product_step
from tapegrad_check.in_tokens.rv32_tokens import TOKENS
from tapegrad_check.in_tokens.token_nets import TokenNet
from tapegrad_check.instructions.cases import cases
from tapegrad_check.instructions.rv32 import turned
from tests.programs.states import MACHINE

COUNTED = 2
CASES = {name: (fixed, rule) for name, fixed, rule in cases() if name != "no instruction"}
Function = Callable[..., int | None]


def net() -> TokenNet:
    built = DecoderNet.build(Rv32Tokens(MACHINE, COUNTED), 5_000)
    data, arrays = json.loads(json.dumps(to_json(built.network))), arrays_of(built.network)
    return TokenNet(built.config(), graph_of(data, arrays), len(page().slots), TOKENS)


@cache
def genuine() -> TokenNet:
    return net()


@cache
def page() -> Rv32Page:
    return Rv32Page(MACHINE.ram, COUNTED)


@cache
def formulas() -> Formulas:
    return Formulas(page(), WIDTH)


def test_a_net_is_the_page() -> None:
    assert compare(genuine(), page()) > 1_000_000


def _first_case(forged: TokenNet, slot: str) -> int:
    """The first case that is about the token in this slot, and reads something."""
    before = page().places[slot] - 1
    return next(i for i, case in enumerate(forged.cases) if before in case.slots and case.holds)


@pytest.mark.parametrize(
    "slot", ["pc 3", *(pytest.param(slot, marks=pytest.mark.slow) for slot in ("op", "sum 5"))]
)
def test_a_net_with_another_case_is_not(slot: str) -> None:
    for alter in (
        lambda case: case._replace(number=case.number ^ 1),
        lambda case: case._replace(holds={at: 1 - value for at, value in case.holds.items()}),
        lambda case: case._replace(slots=frozenset()),
    ):
        forged = copy.copy(genuine())
        at = _first_case(forged, slot)
        forged.cases = [*forged.cases[:at], alter(forged.cases[at]), *forged.cases[at + 1 :]]
        with pytest.raises(CheckError, match=r"another token follows|depends on"):
            compare(forged, page())


def test_a_net_whose_heads_look_elsewhere_is_not() -> None:
    forged = copy.copy(genuine())
    head = next(head for head, gather in forged.gathers.items() if forged.names[head] == "this 1")
    looks = {slot: looked - 1 for slot, looked in forged.gathers[head].looks.items()}
    forged.gathers = forged.gathers | {head: replace(forged.gathers[head], looks=looks)}
    with pytest.raises(CheckError, match="recalled from elsewhere"):
        compare(forged, page())


# The page is RV32IM

QUICK = ["lui", "jalr", "blt", "lh", "sw", "sltui", "sub", "and", "fence.i", "ebreak"]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.sampled(4)
def test_an_instruction_is_proved(name: str) -> None:
    assert rv32_proof.prove_case(formulas(), name, *CASES[name]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(4, 1), (MACHINE.ram, COUNTED), (1 << 24, 6)])
def test_all_instructions_are_proved(sizes: tuple[int, int]) -> None:
    assert rv32_proof.prove(*sizes) == 379


def _said(change: Callable[[int], int | None]) -> Callable[[Function], Function]:
    """The same function, with what it says changed."""

    def altered(function: Function) -> Function:
        def says(*values: int) -> int | None:
            said = function(*values)
            return None if said is None else change(said)

        return says

    return altered


def _without_the_last(function: Function) -> Function:
    return lambda *values: function(*values[:-1], 0)


OTHER: dict[str, tuple[str, int, Callable[[Function], Function], str]] = {
    "a carry is lost": ("sum 3", 0, _without_the_last, "add"),
    "a mark is lost": ("sum 4", 1, _said(lambda said: 0), "beq"),
    "sltu as slt": ("compared", 0, _said(lambda said: said & ~4 | (said & 2) << 1), "sltu"),
    "a byte too many is stored": ("result 2", 5, _said(lambda said: said | MARK), "sb"),
    "a sign is lost": ("result 3", 5, _said(lambda said: said & ~PLUS), "lh"),
    "x0 is written": ("rd", 0, _said(lambda said: 32 if said == 18 else said), "add"),
    "another register": ("r2", 0, _said(lambda said: said ^ 1), "add"),
    "pc goes on by 5": ("next 0", 0, lambda f: lambda goes, pc, *v: f(goes, (pc + 1) % 16, *v), "fence"),
    "no jump is odd": ("outcome", 0, _said(lambda said: 13 if said == 11 else said), "jalr"),
    "memory ends later": ("access", 0, _said(lambda said: said & ~1), "lw"),
    "a byte is loaded twice": ("at+2 0", 0, lambda f: lambda digit: f((digit - 1) % 16), "lw"),
    "an immediate without sign": ("b 7", 3, lambda f: lambda *v: f(*v[:-1], 0), "addi"),
    "what cannot be": ("next 0", 0, lambda f: lambda goes, *v: None if goes == 0 else f(goes, *v), "add"),
    "twice the same": ("result 0", 4, _said(lambda said: said | 1), "jal"),
    "a word that is one": ("op", 0, _said(lambda said: 156 if said == 168 else said), "no instruction"),
    "a stage that shifts too far": ("s8 4", 2, _said(lambda said: said ^ 4), "srli"),
    "a round that halves nothing": ("s16 0", 1, lambda f: lambda *v: f(*v[:-1], v[2]), "mulhu"),
    "a round that always fits": ("s16 2", 3, lambda f: lambda *v: f(*v[:5], 1, v[6]), "divu"),
    "signs that are lost": ("signs", 1, _said(lambda said: 0), "rem"),
    "a read without input": ("moves", 0, lambda f: lambda *v: f(*v[:-1], 1), "ecall"),
    "bytes are not counted": ("taken 0", 0, _without_the_last, "ecall"),
    "another error": ("s 0", 1, _said(lambda said: said ^ 1), "ecall"),
}  # fmt: skip
SLOW = [name for name, (*_, of) in OTHER.items() if of in ("ecall", "rem", "srli", "mulhu", "divu")]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in OTHER]
)
@pytest.mark.sampled(4)
def test_no_other_page_is_rv32(name: str) -> None:
    slot, number_of_rule, alter, instruction = OTHER[name]
    altered = copy.copy(formulas())
    rules = list(altered.tables[slot])
    rule, table = rules[number_of_rule]
    other = Rule(rule.inputs, alter(rule.function))
    rules[number_of_rule] = other, table_of(other)
    assert not np.array_equal(rules[number_of_rule][1], table)
    altered.tables, altered._trees = altered.tables | {slot: rules}, {}
    case = next(case for case in cases() if case[0] == instruction)
    with pytest.raises((CheckError, NotProved)):
        rv32_proof.prove_case(altered, *case)


# Rounds of multiplication and division


def value(word: list[int]) -> int:
    return sum(bit << place for place, bit in enumerate(word))


def test_rounds_make_products_and_quotients() -> None:
    """32 steps on constants, beside Python's numbers and the formulas of the definition."""
    random, n = np.random.default_rng(0), Nodes()
    edges = [0, 1, 2, 3, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFF]
    words = [(a, b) for a in edges for b in edges] + random.integers(0, 1 << 32, (60, 2)).tolist()
    for a, b in words:
        first, second = number(a, 32), number(b, 32)
        high, low = number(0, 32), second
        for _ in range(32):
            both = product_step(n, high, low, first)
            high, low = both[:32], both[32:]
        assert value([*low, *high]) == a * b == value(multiply(n, padded(first, 64), padded(second, 64)))
        high, low, negative = number(0, 32), first, b >> 31
        divisor = (1 << 32) - b if negative else b
        for _ in range(32):
            both = division_step(n, high, low, second, negative)
            high, low = both[:32], both[32:]
        expected = divmod(a, divisor) if divisor else (0xFFFF_FFFF, a)
        assert (value(low), value(high)) == expected
        assert tuple(map(value, divide(n, first, number(divisor, 32)))) == expected


def with_sign(n: Nodes) -> list[int]:
    return [*n.variables(31), 1]


def test_rounds_are_proved_to_make_products_and_quotients() -> None:
    n = Nodes()
    a, b = n.variables(32), n.variables(32)
    assert rv32_rounds.product_of_rounds(n, a, b) == multiply(n, padded(a, 64), padded(b, 64))
    assert rv32_rounds.quotient_of_rounds(n, a, b, b) == divide(n, a, b)
    negative = with_sign(n)
    divisor = turned(n, 1, negative)
    assert rv32_rounds.quotient_of_rounds(n, a, negative, divisor) == divide(n, a, divisor)
    for other in (b, turned(n, 1, b)):
        with pytest.raises(CheckError, match="divisor is another number"):
            rv32_rounds.quotient_of_rounds(n, a, negative, other)
    with pytest.raises(CheckError, match="divisor is another number"):
        rv32_rounds.quotient_of_rounds(n, a, b, turned(n, 1, b))


def test_the_proof_for_negative_divisors_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    n, asked = Nodes(), []
    a, b, negative = n.variables(32), n.variables(32), with_sign(n)
    monkeypatch.setattr(rv32_rounds, "prove_negative_divisors", lambda: asked.append(1))
    rv32_rounds.quotient_of_rounds(n, a, b, b)
    assert not asked
    rv32_rounds.quotient_of_rounds(n, a, negative, turned(n, 1, negative))
    assert asked


def other_product(change: Callable[..., list[int]]) -> Callable[..., list[int]]:
    def step(n: Nodes, high: list[int], low: list[int], a: list[int], ledger: Any) -> list[int]:
        return change(product_step(n, high, low, a, ledger), n, high, low, a, ledger)

    return step


@pytest.mark.parametrize(
    "change",
    [
        lambda both, n, high, low, a, ledger: [*both[:31], 0, *both[32:]],  # the carry is lost
        lambda both, n, high, low, a, ledger: [*both[:63], 0],  # the lowest bit of the sum
        lambda both, n, high, low, a, ledger: [*both[:32], *low],  # the low word is not shifted
        lambda both, n, high, low, a, ledger: product_step(n, high, low, [0, *a[:31]], ledger),
        lambda both, n, high, low, a, ledger: product_step(n, high, low, [*a[:31], 0], ledger),
        lambda both, n, high, low, a, ledger: product_step(n, high, [low[1], *low[1:]], a, ledger),
        lambda both, n, high, low, a, ledger: product_step(n, high, low, low, ledger),
    ],
)
def test_other_rounds_make_no_product(
    change: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rv32_rounds, "product_step", other_product(change))
    n = Nodes()
    with pytest.raises(CheckError, match="do not make a product"):
        rv32_rounds.product_of_rounds(n, n.variables(32), n.variables(32))


def test_fewer_or_more_rounds_make_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for steps in (31, 33):
        monkeypatch.setattr(rv32_rounds, "STEPS", steps)
        n = Nodes()
        a, b = n.variables(32), n.variables(32)
        with pytest.raises(CheckError, match="do not make a product"):
            rv32_rounds.product_of_rounds(n, a, b)
        with pytest.raises(CheckError, match="do not make a quotient"):
            rv32_rounds.quotient_of_rounds(n, a, b, b)


@pytest.mark.parametrize("place", [0, 31, 32, 33, 63])
def test_every_bit_of_a_round_with_a_negative_divisor_is_compared(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(n: Nodes, high: list[int], low: list[int], b: list[int], negative: int) -> list[int]:
        both = division_step(n, high, low, b, negative)
        return [bit ^ (negative and at == place) for at, bit in enumerate(both)]

    rv32_rounds.prove_negative_divisors.__wrapped__()
    monkeypatch.setattr(rv32_rounds, "division_step", step)
    with pytest.raises(CheckError, match="adds something else"):
        rv32_rounds.prove_negative_divisors.__wrapped__()


# Whole nets


def _swapped(says: Callable[..., int]) -> Callable[..., int]:
    def compared(*seen: int) -> int:
        said = says(*seen)
        kept = said & ~(LESS | BELOW)
        return kept | (BELOW if said & LESS else 0) | (LESS if said & BELOW else 0)

    return compared


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("compared_rule", _swapped),
        ("sum_of", lambda f: lambda *terms: f(*terms[:2])),
        ("stage8_rule", lambda f: lambda op, shifts, sign, phase: f(op, 0, sign, phase)),
        ("moves_rule", lambda f: lambda call, good, count, there: f(call, good, count, 1)),
    ],
)
def test_other_token_programs_are_refused(
    name: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rv32_cells, name, change(getattr(rv32_cells, name)))
    _program.cache_clear()
    try:
        forged = net()
    finally:
        _program.cache_clear()
    with pytest.raises(CheckError, match=r"another token follows|depends on"):
        compare(forged, page())


def test_a_formula_is_assumed_wherever_it_occurs() -> None:
    n = Nodes()
    a, b, c = n.variables(3)
    both = n.and_(a, b)
    assert n.assuming(both, FALSE, [n.or_(both, c), n.xor(both, c), both ^ 1, a]) == [c, c, 1, a]
    assert n.assuming(both ^ 1, FALSE, [n.or_(both, c), n.xor(both, c)]) == [1, c ^ 1]


def test_the_proof_for_negative_divisors_is_for_all_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its bits is a variable of its own."""
    levels: list[int] = []

    class Noted(rv32_rounds.Diagrams):
        def variable(self, level: int) -> int:
            levels.append(level)
            return super().variable(level)

    monkeypatch.setattr(rv32_rounds, "Diagrams", Noted)
    rv32_rounds.prove_negative_divisors.__wrapped__()
    assert len(set(levels)) == len(levels) == 32 + 31 + 32
