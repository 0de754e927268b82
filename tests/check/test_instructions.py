"""The checker's page of RV32IM against the plain interpreter; and the proof by cases that the data path is
that page, which no other page passes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad.programs.model import Contents, Program, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad_check import instructions
from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.formulas.words import Word, number
from tapegrad_check.instructions import STEPS, cases, rv32
from tapegrad_check.instructions.ports import Layout
from tapegrad_check.passes.programs import _one_step
from tests.check.test_programs_on_tapes import checked
from tests.programs.states import EDGES, MACHINE, RAM, after, random_state

SMALL = Layout.sized("rv32im", 32, 64, 2, 4)
RULES = {name: (fixed, rule) for name, fixed, rule in rv32.PAGE}


def worth(word: Word) -> int:
    """The number that constants stand for: with nothing but constants, a formula folds to one."""
    assert set(word) <= {0, 1}
    return sum(bit << place for place, bit in enumerate(word))


def by_the_page(machine: RV32, state: ProgramState) -> ProgramState:
    """One step as the page has it, with constants for everything that it sees."""
    registers, memories = machine.contents(state)
    memories = {name: [*words, 0] for name, words in memories.items()}
    layout = Layout.sized("rv32im", 32, machine.ram, machine.input, machine.output)
    literals = {name: number(registers[name], width) for name, width in layout.registers.items()}
    n = Nodes(1 << 18)
    code = memories["ram"][state.pc // 4 % (machine.ram // 4)]
    rules = [rule for fixed, rule in RULES.values() if all(code >> b & 1 == v for b, v in fixed.items())]

    def pair(address: Word) -> int:
        return worth(address) // 4 % (machine.ram // 4)

    def memory(accesses: int, address: Word) -> list[int]:
        word, at = pair(address), worth(address[:2])
        two = [*number(memories["ram"][word], 32), *number(memories["ram"][word + 1], 32)]
        return rv32.at_byte(n, two, number(at * accesses, 2)) if accesses else number(0, 32)

    slot = registers["written"] % machine.output
    arriving, oldest = number(memories["input"][registers["taken"]], 9), number(memories["output"][slot], 8)

    def x(which: int, register: Word) -> list[int]:
        return number(memories["x"][worth(register)], 32)

    hart = rv32.Hart(n, layout, number(code, 32), literals, x, memory, arriving)
    does = (rules or [rv32.illegal])[0](hart)
    new = rv32.effect(hart, does, literals, oldest)
    memories["x"][worth(hart.rd)] ^= worth(new["x"])
    memories["output"][slot] ^= worth(new["output"])
    if changed := worth(new["ram"]):
        assert does.address is not None
        for half in range(2):
            memories["ram"][pair(does.address) + half] ^= changed >> 32 * half & 0xFFFF_FFFF
    return machine.state(
        Contents(
            {name: worth(new[name]) for name in layout.registers},
            {name: words[:-1] for name, words in memories.items()},
        )
    )


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_an_instruction_is_what_the_interpreter_makes_of_it(name: str) -> None:
    random = np.random.default_rng(len(name))
    for wild in (False, True):
        for _ in range(8):
            state = random_state(random, INSTRUCTIONS[name], wild=wild)
            assert by_the_page(MACHINE, state) == after(state)


def test_words_that_are_no_instruction() -> None:
    random = np.random.default_rng(1)
    for _, fixed, _ in list(cases.cases())[len(rv32.PAGE) :]:
        code = int(random.integers(0, 1 << 32))
        for bit, value in fixed.items():
            code = code & ~(1 << bit) | value << bit
        memory = bytearray(random.bytes(RAM))
        memory[64:68] = code.to_bytes(4, "little")
        state = ProgramState(64, bytes(memory), (0, *EDGES, *EDGES, *range(9)))
        assert by_the_page(MACHINE, state) == after(state)
        assert after(state).trap == "illegal instruction"


CALLS = ((40, 3, b"abc"), (40, 3, b"a"), (62, 3, b"abc"), (40, 0, b""), (2**32 - 1, 1, b"a"))


@pytest.mark.parametrize("call", [62, 63, 64, 93, 94])
@pytest.mark.parametrize("file", [0, 1, 2, 3])
def test_system_calls_byte_by_byte(call: int, file: int) -> None:
    for place, count, given in CALLS:
        machine = RV32(64, input=4, output=2)
        registers = [0] * 32
        registers[10:13], registers[17] = [file, place, count], call
        memory = bytearray(range(100, 164))
        memory[8:12] = (0x73).to_bytes(4, "little")
        state = ProgramState(8, bytes(memory), tuple(registers), input=given)
        for _ in range(5):
            found = by_the_page(machine, state)
            assert found == after(state, machine)
            state = after(state, machine)
            if state.trap:
                break


def test_pc_outside_and_traps_leave_everything_else() -> None:
    random = np.random.default_rng(2)
    for pc in (RAM - 4, RAM, RAM + 4, 2**32 - 4):
        state = ProgramState(pc, random.bytes(RAM), (0, *EDGES, *EDGES, *range(9)))
        assert by_the_page(MACHINE, state) == after(state)


def test_the_data_path_is_the_page() -> None:
    assert cases.prove(SMALL) == 124


def test_every_word_is_of_one_case() -> None:
    every = [fixed for _, fixed, _ in cases.cases()]
    assert sum(1 << 32 - len(fixed) for fixed in every) == 1 << 32
    random = np.random.default_rng(4)
    near = [sum(value << bit for bit, value in fixed.items()) for fixed in every]
    for code in (*near, *random.integers(0, 1 << 32, 40).tolist()):
        assert sum(all(code >> bit & 1 == value for bit, value in fixed.items()) for fixed in every) == 1


CODES = (0x01002503, 0x00A02823, 0x01051503, 0x00500513, 0x00000073, 0x01052023, 0xFE0518E3)
"""lw a0, 16(x0); sw a0, 16(x0); lh a0, 16(a0); addi a0, x0, 5; ecall; sw a6, 0(a0); bne a0, x0, -16."""


@pytest.mark.parametrize("ram", [16, 20, 36])
def test_the_data_path_on_constants_is_the_interpreter(ram: int) -> None:
    """Five and nine words too, which are one more than their addresses with a bit less could tell apart."""
    machine, random = RV32(ram, input=1, output=1), np.random.default_rng(ram)
    layout = Layout.sized("rv32im", 32, ram, 1, 1)
    for code in CODES:
        for pc in (0, ram - 4):
            memory = bytearray(random.bytes(ram))
            memory[pc : pc + 4] = code.to_bytes(4, "little")
            x = [0, *random.integers(0, 1 << 32, 31).tolist()]
            x[10], x[17] = int(random.integers(0, ram)), 93
            state = ProgramState(pc, bytes(memory), tuple(x))
            registers, memories = machine.contents(state)
            bits = [b for name, width in layout.registers.items() for b in number(registers[name], width)]
            for name, (width, _) in layout.memories.items():
                bits += [bit for word in memories[name] for bit in number(word, width)]
            _, _, found = _one_step(Nodes(1 << 18), STEPS["rv32im"], layout, bits)
            wanted = machine.contents(after(state, machine))
            held = [b for name, w in layout.registers.items() for b in number(wanted.registers[name], w)]
            for name, (width, _) in layout.memories.items():
                held += [bit for word in wanted.memories[name] for bit in number(word, width)]
            assert found == held


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(16, 1, 1), (48, 3, 2), (512, 64, 64), (4096, 9, 1024), (1 << 18, 1, 64)])
def test_the_data_path_is_the_page_in_all_sizes(sizes: tuple[int, int, int]) -> None:
    assert cases.prove(Layout.sized("rv32im", 32, *sizes)) == 124


def with_rule(name: str, rule: rv32.Rule) -> tuple[str, rv32.Fixed, rv32.Rule]:
    return name, RULES[name][0], rule


def altered(name: str, **changes: Callable[[Any, Any], Any]) -> rv32.Rule:
    """An instruction of which some part does something else."""

    def rule(h: rv32.Hart) -> rv32.Outcome:
        does = RULES[name][1](h)
        return does._replace(**{part: change(h, getattr(does, part)) for part, change in changes.items()})

    return rule


OTHER: dict[str, tuple[str, rv32.Rule]] = {
    "sub for add": ("add", RULES["sub"][1]),
    "add for sub": ("sub", RULES["add"][1]),
    "without a sign": ("lb", RULES["lbu"][1]),
    "with a sign": ("lhu", RULES["lh"][1]),
    "a byte more": ("lh", altered("lh", size=lambda h, size: size + 1)),
    "a byte less": ("sw", altered("sw", size=lambda h, size: size - 1)),
    "unsigned": ("blt", RULES["bltu"][1]),
    "not taken": ("beq", altered("beq", jumps=lambda h, flag: 0)),
    "target": ("jal", altered("jal", target=lambda h, target: h.following)),
    "lowest bit": ("jalr", altered("jalr", target=lambda h, target: [h.rs1[0], *target[1:]])),
    "link": ("jalr", altered("jalr", rd=lambda h, rd: h.pc)),
    "remainder": ("rem", RULES["remu"][1]),
    "high word": ("mulhsu", RULES["mulhu"][1]),
    "shift": ("srai", RULES["srli"][1]),
    "no trap": ("ebreak", RULES["fence"][1]),
    "another trap": ("ebreak", altered("ebreak", stop=lambda h, stop: rv32.EXIT)),
    "no exit": ("ecall", altered("ecall", stops=lambda h, flag: 0)),
    "no waiting": ("ecall", altered("ecall", waits=lambda h, flag: 0)),
    "input stays": ("ecall", altered("ecall", takes=lambda h, flag: 0)),
    "no output": ("ecall", altered("ecall", puts=lambda h, flag: 0)),
    "everywhere": ("ecall", altered("ecall", accesses=lambda h, flag: 1)),
    "not stored": ("ecall", altered("ecall", stores=lambda h, flag: 0)),
    "no instruction": ("fence.i", rv32.illegal),
    "another register": ("xor", lambda h: rv32.Outcome(rd=h.x(0, h.code[20:25]))),
}


@pytest.mark.parametrize("which", OTHER)
@pytest.mark.sampled(4)
def test_another_page_is_not_proved(which: str) -> None:
    name, rule = OTHER[which]
    with pytest.raises(CheckError, match=f"the data path is not {name}"):
        cases._prove(SMALL, *with_rule(name, rule))


def test_cases_that_leave_something_out(monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(cases.cases())
    monkeypatch.setattr(cases, "cases", lambda: every[:-1])
    with pytest.raises(CheckError, match="leave something out"):
        cases.prove(SMALL)


@pytest.mark.parametrize(
    ("memory", "said"),
    [("ram", "instruction is read"), ("input", "input is read"), ("output", "output is kept")],
)
def test_ports_that_look_elsewhere(memory: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data path that does the same with what it reads, and reads it from another address."""
    true_step = cases.datapath.step

    def step(n: Nodes, layout: Layout, registers: Any, read: Any) -> Any:
        seen: list[str] = []

        def elsewhere(name: str, address: Word, span: int) -> list[int]:
            first = name == memory and name not in seen
            seen.append(name)
            return read(name, [address[0] ^ 1, *address[1:]] if first else address, span)

        return true_step(n, layout, registers, elsewhere)

    monkeypatch.setattr(cases.datapath, "step", step)
    with pytest.raises(CheckError, match=f"{said} elsewhere"):
        cases.prove(SMALL)


WRITES: dict[str, tuple[str, Callable[[list[Any]], list[Any]]]] = {
    "another order": ("something else is written", lambda writes: [writes[1], writes[0], writes[2]]),
    "one write less": ("something else is written", lambda writes: writes[:2]),
    "another memory": (
        "something else is written",
        lambda writes: [*writes[:2], writes[2]._replace(memory="input")],
    ),
    "another address": (
        "was read elsewhere",
        lambda writes: [*writes[:2], writes[2]._replace(address=[writes[2].address[0] ^ 1])],
    ),
    "one word of two": ("was read elsewhere", lambda writes: [writes[0]._replace(span=1), *writes[1:]]),
    "over something else": (
        "was read elsewhere",
        lambda writes: [writes[0], writes[1]._replace(old=writes[1].change), writes[2]],
    ),
}


@pytest.mark.parametrize("which", WRITES)
def test_writes_that_are_not_where_something_was_read(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said, change = WRITES[which]
    true_step = cases.datapath.step

    def step(*args: Any) -> Any:
        found = true_step(*args)
        return found._replace(writes=change(list(found.writes)))

    monkeypatch.setattr(cases.datapath, "step", step)
    with pytest.raises(CheckError, match=said):
        cases.prove(SMALL)


# What is said of a machine


def test_the_formulas_of_a_machine_are_proved_for_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts: list[Layout] = []

    def prove(layout: Layout) -> int:
        layouts.append(layout)
        return 77

    monkeypatch.setattr(instructions.cases, "prove", prove)
    monkeypatch.setattr(instructions, "_cases", instructions._cases.__wrapped__)
    layout = Layout.sized("rv32im", 32, 80, 3, 8)
    start = checked(Program("p", RV32(80, input=3, output=8), bytes(80), entry=8))
    (said,) = instructions.proved(start, layout)
    assert "the 49 instructions of RV32IM" in said
    assert "77 cases" in said
    assert layouts == [layout]
    for entry in (4, 12):
        instructions.proved(replace(start, entry=entry), layout)
    for entry in (2, 6, 1):
        with pytest.raises(NotProved, match="no multiple of 4"):
            instructions.proved(replace(start, entry=entry), layout)
    other = checked(Program("p", Subleq(9, width=8), bytes(9), entry=3))
    assert instructions.proved(other, Layout.sized("subleq", 8, 9, 1, 1)) == []
