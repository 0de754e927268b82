"""Tables of instruction sets, proved for all that their tapes can hold; and altered ones, which are not."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tapegrad.lowering import program_machine as lowering
from tapegrad.machines.model import TuringMachine
from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import CheckError, NotProved, require
from tapegrad_check.formulas.diagrams import Diagrams
from tapegrad_check.formulas.words import number
from tapegrad_check.instructions.cases import cases
from tapegrad_check.on_tapes import paths
from tapegrad_check.on_tapes import rv32 as rv32_on_tapes
from tapegrad_check.on_tapes.rounds import Repeating
from tapegrad_check.passes.tables import PROOFS, Table, _random_states, followed
from tapegrad_check.sources import Machine, Rule
from tapegrad_check.sources import Program as Checked
from tests.check.test_programs_on_tapes import checked, deaf, program, spying, table_of

SMALL = "subleq 8 5\n0 0 0"


def of(machine: TuringMachine) -> Machine:
    return table_of(machine).machine


def proved(source: Checked, machine: Machine) -> bool:
    try:
        return PROOFS[source.kind](source, machine) > 0
    except NotProved:
        return False


# What is genuine


@pytest.mark.parametrize("size", ["8 1", "8 2", "8 33"])
def test_the_table_of_subleq_is_proved_for_words_and_memories_of_any_size(size: str) -> None:
    assert proved(checked(program(f"subleq {size}\n0")), of(lowering.subleq_machine()))


@pytest.mark.slow
@pytest.mark.parametrize("size", ["8 3", "8 127", "16 100", "32 1000"])
def test_so_it_is_for_others(size: str) -> None:
    assert proved(checked(program(f"subleq {size}\n0")), of(lowering.subleq_machine()))


RV32 = ".equ __ram, {}\nebreak"
CASES = list(cases())


@cache
def rv32_machine() -> Machine:
    return of(lowering.rv32_machine())


def of_rv32(name: str, machine: Machine, ram: int = 64) -> int:
    """The ways of an instruction, by its name."""
    table, source = paths.Table(machine), checked(program(RV32.format(ram)))
    return sum(rv32_on_tapes.case(source, table, *case) for case in CASES if case[0] == name)


@pytest.mark.parametrize("name", ["addi", "mulhu"])
def test_an_instruction_of_rv32_is_proved(name: str) -> None:
    assert of_rv32(name, rv32_machine()) > 2


@pytest.mark.slow
@pytest.mark.parametrize("ram", [128, 4096])
def test_the_table_of_rv32_is_proved(ram: int) -> None:
    assert rv32_on_tapes.prove(checked(program(RV32.format(ram))), rv32_machine()) > 300


def test_a_round_of_the_product_and_of_the_division_done_32_times_is_what_they_are_said_to_be() -> None:
    """The one step of the argument that is no comparison of diagrams, against Python's numbers."""
    n, draw = Nodes(), random.Random(3)
    rounds = Repeating(None, type("Ground", (), {"n": n})(), None)  # type: ignore[arg-type]
    for _ in range(20):
        a, d = draw.getrandbits(draw.randrange(1, 33)), draw.getrandbits(draw.randrange(1, 33))
        high, low = number(0, 32), number(a, 32)
        quotient, remainder = number(a, 32), number(0, 32)
        for _ in range(32):
            high, low = rounds._product(high, low, number(d, 32))
            remainder, quotient = rounds._division(remainder, quotient, number(d, 32))
        assert value([*low, *high]) == a * d
        assert (value(quotient), value(remainder)) == (divmod(a, d) if d else (0xFFFF_FFFF, a))


def value(word: list[int]) -> int:
    return sum(bit << place for place, bit in enumerate(word))


@pytest.mark.parametrize(
    ("label", "tape", "name"),
    [
        *(("add", 3, "add"), ("which opcode?", 3, "fence"), ("count round", 2, "mul")),
        *(("set lowest", 2, "divu"), pytest.param("write out", 3, "ecall", marks=pytest.mark.slow)),
    ],
)
def test_a_table_of_rv32_that_writes_other_bits_is_not_proved(label: str, tape: int, name: str) -> None:
    machine = rv32_machine()
    rules = {
        (state, seen): replace(
            rule, write=(*rule.write[:tape], "10"[int(rule.write[tape])], *rule.write[tape + 1 :])
        )
        for (state, seen), rule in machine.rules.items()
        if state.split(".")[0] == label and seen[:2] == ("1", "0")
    }
    assert rules
    with pytest.raises(NotProved):
        of_rv32(name, replace(machine, rules={**machine.rules, **rules}))


# What is not


@pytest.mark.parametrize("table", [deaf, spying])
def test_tables_that_do_something_else_with_their_input_are_not(table: object) -> None:
    assert not proved(checked(program(SMALL)), of(table()))  # type: ignore[operator]


def altered(rule: Rule, states: tuple[str, ...], draw: random.Random) -> Iterator[tuple[str, Rule]]:
    """The rule with another next state, another symbol written, and another move."""
    tape, other = draw.randrange(4), draw.randrange(4)
    yield "state", replace(rule, state=draw.choice([state for state in states if state != rule.state]))
    write = ["10"[int(bit)] if at == tape else bit for at, bit in enumerate(rule.write)]
    yield "symbol", replace(rule, write=tuple(write))
    move = draw.choice([move for move in (-1, 0, 1) if move != rule.moves[other]])
    yield (
        "move",
        replace(rule, moves=tuple(move if at == other else was for at, was in enumerate(rule.moves))),
    )


def run(source: Checked, machine: Machine) -> Table:
    """The table after single instructions on random memories, and some runs, beside the page of SUBLEQ;
    `CheckError` where they part, or where the table does not come to the end of an instruction."""
    table, larger = Table(machine), replace(source, ram=64)
    for state in _random_states(larger, np.random.default_rng(5)):
        alone = followed(replace(larger, image=bytes(state.memory)), table, state.input, 1 << 14)
        require(alone.instructions, "an instruction takes too long")
    for given in (b"", b"ab"):
        require(followed(checked(program("subleq-echo")), table, given, 1 << 18).ended, "it takes too long")
    return table


def used_rules(source: Checked, machine: Machine) -> list[tuple[str, tuple[str, ...]]]:
    used = run(source, machine).used
    return sorted((machine.states[q], tuple("01"[code >> tape & 1] for tape in range(4))) for q, code in used)


def harmless(source: Checked, machine: Machine) -> bool:
    """Whether nothing is noticed in runs."""
    try:
        return bool(run(source, machine))
    except CheckError:
        return False


@pytest.mark.parametrize("seed", range(3))
def test_an_altered_rule_that_occurs_is_proved_only_where_it_does_no_harm(seed: int) -> None:
    draw, source, machine = random.Random(seed), checked(program(SMALL)), of(lowering.subleq_machine())
    case = draw.choice(used_rules(source, machine))
    for _, rule in altered(machine.rules[case], machine.states, draw):
        forged = replace(machine, rules={**machine.rules, case: rule})
        assert not proved(source, forged) or harmless(source, forged), (case, rule)


@pytest.mark.slow
def test_so_it_is_all_over_the_table() -> None:
    """A rule passes where it cannot occur, or does no harm: on words that are not needed any more."""
    draw, source, machine = random.Random(1), checked(program(SMALL)), of(lowering.subleq_machine())
    used = {*used_rules(source, machine)}
    count = Counter[str]()
    for case in draw.sample(sorted(machine.rules), 60):
        for _, rule in altered(machine.rules[case], machine.states, draw):
            forged = replace(machine, rules={**machine.rules, case: rule})
            if not proved(source, forged):
                count["refused"] += 1
                continue
            assert harmless(source, forged), (case, rule)
            count["passed, and occurs" if case in used else "passed, and never occurs"] += 1
    print(dict(count))
    assert count["refused"] > 50
    assert count["passed, and occurs"] < 5


@pytest.mark.parametrize("seed", range(5))
def test_what_was_forgotten_leaves_no_trace(seed: int) -> None:
    """Numbers of nodes are given again to others, of which nothing must be known from before."""
    draw, n = random.Random(seed), Diagrams(1 << 12)
    columns = [sum(1 << row for row in range(64) if row >> bit & 1) for bit in range(6)]
    full = (1 << 64) - 1
    known = {0: 0, 1: full, **{n.variable(7 * bit): column for bit, column in enumerate(columns[:4])}}

    def works(known: dict[int, int], times: int) -> None:
        for _ in range(times):
            a, b = draw.choice(list(known)), draw.choice(list(known))
            for found, table in ((n.and_(a, b), known[a] & known[b]), (n.xor(a, b), known[a] ^ known[b])):
                assert known.setdefault(found, table) == table
                assert known.setdefault(found ^ 1, table ^ full) == table ^ full
            assert n.disjoint(a, b) == (known[a] & known[b] == 0)
            assert b == 0 or n.and_(n.xor(n.within(a, b), a), b) == 0

    for _ in range(30):
        works(known, 4)
        mark, meanwhile = n.mark(), dict(known)
        meanwhile |= {n.variable(7 * bit): columns[bit] for bit in draw.sample((4, 5), 2)}
        works(meanwhile, 12)
        n.forget(mark)
        assert n.mark() == mark
