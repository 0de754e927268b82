"""RV32 programs on target `decoder`: every instruction, system calls and traps, beside the interpreter."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.attention.rv32_tokens import Rv32Tokens
from tapegrad.attention.tokens import END, Interpreter
from tapegrad.errors import Refused
from tapegrad.networks.texts import Reading
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad.programs.model import Program, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.targets.decoder import DecoderNet
from tapegrad.targets.decoder.fast import Fast
from tapegrad.targets.net import SHORT_RUN
from tests.programs.states import MACHINE, NAMES, RAM, after, random_state
from tests.programs.test_step import call

TESTS = Path(os.environ.get("TAPEGRAD_CORPUS") or "none") / "programs" / "riscv-tests"
ROUNDS = ("mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu")


@cache
def net() -> DecoderNet:
    """One net for all tests: programs are in prompts."""
    return DecoderNet.build(Rv32Tokens(MACHINE, 2), 30_000)


def stepped(state: ProgramState) -> ProgramState:
    """One step of the net, by the fast engine."""
    own, record = net(), net().words.record
    story, prompt = own.words.follow(state), own.words.prompt(state, own.tokens)
    running, text, steps = Fast(own._tables), list(prompt), 0
    while steps < 2:
        first = len(text)
        text = running.advance(text, first + record)
        steps += story.read(text[first:])
    found = story.configuration()
    assert isinstance(found, ProgramState)
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(4)
def test_every_instruction(name):
    random = np.random.default_rng(NAMES.index(name))
    for trial in range(4):
        state = random_state(random, INSTRUCTIONS[name], wild=trial % 2 == 1)
        assert stepped(state) == after(state), (name, trial)


def test_words_that_are_no_instructions():
    random = np.random.default_rng(1)
    seen = set()
    for trial in range(60):
        state = random_state(random, INSTRUCTIONS["add"])
        word = int(random.integers(0, 1 << 32)) | (3 if trial % 3 else 0)
        if trial % 3 == 2:  # near an instruction
            near = INSTRUCTIONS[("ecall", "ebreak", "fence", "srai", "sub")[trial % 5]].encoded()
            word = near ^ 1 << int(random.integers(32))
        memory = bytearray(state.memory)
        memory[state.pc : state.pc + 4] = word.to_bytes(4, "little")
        state = ProgramState(state.pc, bytes(memory), state.registers)
        seen.add(after(state).trap)
        assert stepped(state) == after(state), hex(word)
    assert {"", "illegal instruction"} <= seen


@pytest.mark.parametrize(
    "state",
    [
        call(93, 7, 0, 0), call(94, 7, 0, 0), call(12, 7, 0, 0), call(64, 3, 8, 1), call(63, 1, 8, 1),
        call(64, 1, 8, 0), call(64, 1, 8, 1), call(64, 2, 8, 5), call(64, 2, 8, 5, copied=4),
        call(64, 1, RAM - 1, 5), call(64, 1, RAM - 1, 5, copied=1), call(64, 1, RAM, 1), call(63, 0, 9, 3),
        call(63, 0, 9, 3, input=b"ab"), call(63, 0, 9, 3, input=b"ab", taken=1, copied=1),
        call(63, 0, 9, 3, input=b"ab", taken=2, copied=2), call(63, 0, 9, 2, input=b"abc", taken=1, copied=1),
        call(63, 0, 2**32 - 1, 2, input=b"abc"), call(63 + 256, 0, 9, 3, input=b"ab"),
        call(64, 1 << 31, 8, 1), call(64, 1, 8, 1 << 28), call(63 + (1 << 31), 0, 9, 3),
    ],
)  # fmt: skip
def test_system_calls(state):
    assert stepped(state) == after(state)


@pytest.mark.parametrize("name", ["lb", "lhu", "lw", "sb", "sh", "sw"])
def test_where_memory_ends(name):
    for at in (*range(RAM - 5, RAM + 2), 2**32 - 1):
        code = INSTRUCTIONS[name].encoded(rd=5, rs1=6, rs2=7, imm=0).to_bytes(4, "little")
        registers = tuple({6: at, 7: 0x12345678}.get(number, 0) for number in range(32))
        state = ProgramState(0, code + bytes(RAM - 4), registers)
        assert stepped(state) == after(state)


def test_jumps_outside():
    for pc in (RAM - 4, RAM, 2**32 - 4):
        state = ProgramState(pc, bytes(RAM), (0,) * 32)
        assert stepped(state) == after(state)


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.sampled(4)
def test_multiplication_and_division_at_the_edges(name):
    code = INSTRUCTIONS[name].encoded(rd=5, rs1=6, rs2=7).to_bytes(4, "little")
    for a in (0, 5, 0x8000_0000, 0xFFFF_FFFF):
        for b in (0, 3, 0x8000_0000, 0xFFFF_FFFF):
            state = ProgramState(0, code + bytes(RAM - 4), tuple({6: a, 7: b}.get(n, 0) for n in range(32)))
            assert stepped(state) == after(state), (a, b)


def test_weights_beside_the_interpreter_of_tokens():
    compiled = tg.compile(tg.read("rv32-fibonacci"), "decoder", tokens=10_000)
    own = compiled.net
    assert isinstance(own, DecoderNet)
    first = tg.read("rv32-fibonacci").start()
    prompt = own.words.prompt(first, own.tokens)
    told = Interpreter(own.words.program).run(prompt)
    text = [*prompt, *(next(told) for _ in range(40 * own.words.record))]
    assert Fast(own._tables).advance(prompt, len(text)) == text
    # The weights themselves, from the prompt to the second record.
    reading, last = Reading(own.network), len(prompt) + own.words.record
    reading.feed(prompt[:-1])
    for at in range(len(prompt), last):
        assert reading.feed([text[at - 1]]).argmax() == text[at]


def test_a_memory_that_is_smaller_than_a_record_of_the_prompt():
    """Of a record with room for 64 bytes, 16 are memory: the others do not answer in their place."""
    memory = (0x0080_0503, 0x00A0_04A3, 0x0000_006F, 0x0000_00B7)  # lb a0, 8(x0); sb a0, 9(x0); j .; data
    image = b"".join(word.to_bytes(4, "little") for word in memory)
    program = Program("small", RV32(16), image)
    compiled = tg.compile(program, "decoder", tokens=1024)
    report = tg.verify(compiled, [()], steps=3, engine="fast")
    assert report.agreed, report
    assert report.states == 4


def test_a_step_of_many_records_is_not_cut_off_by_the_horizon():
    """Nor taken for done: there is no room for it, and the net says so."""
    code = (0x0273_02B3, 0xFFDF_F06F)  # mul t0, t1, t2; j .-4
    image = b"".join(word.to_bytes(4, "little") for word in code)
    own, first = net(), ProgramState(0, image + bytes(RAM - 8), (0,) * 32)
    room = own.room(first)
    assert 8 <= room <= 12  # some 200 records, and every second step takes 36
    last = own.advance(own.begin(first, "fast"), room, "fast")
    assert own.steps_taken(last) == room
    with pytest.raises(Refused, match="has not halted"):
        own.advance(last, 1, "fast")


def test_long_runs_are_those_of_many_tokens():
    """A step of a processor is a record of over a hundred tokens, of many weights."""
    assert 2 < net().short_run < 100
    assert tg.compile(tg.read("increment"), "decoder").net.short_run == SHORT_RUN


@cache
def net_for(ram: int) -> DecoderNet:
    return DecoderNet.build(Rv32Tokens(RV32(ram), 3), 1 << 21)


@pytest.mark.slow
@pytest.mark.skipif(not TESTS.is_dir(), reason="TAPEGRAD_CORPUS does not point to a corpus")
@pytest.mark.parametrize("path", sorted(TESTS.glob("*.elf")), ids=lambda path: path.stem)
def test_riscv_tests(path):
    """At every step, and a0 = 0 at the last."""
    program = tg.read(str(path))
    assert isinstance(program, Program)
    own, first = net_for(program.machine.ram), program.start()
    text, story, running = own.words.prompt(first, own.tokens), own.words.follow(first), Fast(own._tables)
    at = len(text)
    state = first
    for state in program.run(first):
        steps = False
        while not steps:
            if at == len(text):  # a thousand records at a time
                text = running.advance(text, at + 1000 * own.words.record)
            steps = story.read(text[at : at + own.words.record])
            at = min(at + own.words.record, len(text))
        assert story.configuration() == state
    assert text[-1] == END
    assert at == len(text)
    assert (state.trap, state.registers[10]) == ("exit", 0)


@pytest.mark.slow
def test_a_c_program_is_run_by_the_same_net():
    """It reads numbers and sorts them; multiplication and division are among its instructions."""
    program = tg.read(str(Path(__file__).parents[2] / "examples" / "programs" / "quicksort.c"))
    compiled = tg.compile(program, "decoder", tokens=1 << 21)
    report = tg.verify(compiled, [(b"5 3 8\n",)], steps=3000, engine="fast", every=100)
    assert report.agreed, report
