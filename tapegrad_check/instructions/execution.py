"""Programs executed: the formulas of a step, with numbers for all that they see, fold to numbers.

So the definitions of RV32IM and SUBLEQ (`rv32`, `subleq`), and what a folder tells of others (`recorded`),
run programs as they are, and there is no second interpreter to trust. The next byte of input is left open at
first. If everything folds to numbers even so, the instruction does the same whatever the input is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.formulas.words import Word, number
from tapegrad_check.instructions import Formulas, formulas
from tapegrad_check.instructions.ports import Layout
from tapegrad_check.instructions.rv32 import PAGE, Fixed, Hart, Rule, effect, illegal
from tapegrad_check.sources import Program

STACK_POINTER = 2


@dataclass(frozen=True)
class State:
    """Where a program stands. Memory is a list of words, of RV32IM of bytes."""

    pc: int
    memory: tuple[int, ...]
    x: tuple[int, ...]
    """The general registers."""
    input: bytes
    trap: int = 0
    taken: int = 0
    """How much of the input has been read."""
    copied: int = 0
    output: bytes = b""
    own: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    """Further registers and memories of an instruction set that a folder tells, by name."""


@dataclass(frozen=True)
class Stepped:
    """The state after an instruction, and whether it could have been another with another input."""

    state: State
    looked: bool


class _Open(Exception):
    """A bit depends on what was left open."""


def first(program: Program, given: bytes) -> State:
    """Before the first instruction. The stack grows down from the end of memory."""
    memory = program.image.ljust(program.ram, b"\0")
    size = program.width // 8
    if program.kind == "rv32im":
        x = tuple(program.ram if which == STACK_POINTER else 0 for which in range(32))
        return State(program.entry, tuple(memory), x, given)
    split = (memory[at : at + size] for at in range(0, len(memory), size))
    words = tuple(int.from_bytes(word, "little") for word in split)
    if (own := program.instruction) is None:
        return State(program.entry, words, (), given)
    further: dict[str, int | tuple[int, ...]] = {
        name: 0 for name in own.registers if name not in ("pc", "trap")
    }
    further |= {name: (0,) * of[1] for name, of in own.memories.items() if name not in ("ram", "x")}
    return State(program.entry, words, own.first, given, own=further)


def stepped(program: Program, state: State) -> Stepped:
    """After one instruction, as the definition of the machine has it; a program that has stopped stays."""
    if state.trap:
        return Stepped(state, False)
    does = _rv32 if program.kind == "rv32im" else partial(_by_words, formulas(program))
    layout = Layout.of(program, len(state.input) + 1, 1)
    n = Nodes()
    try:
        return Stepped(does(n, layout, state, n.variables(9)), False)
    except _Open:
        there = state.taken < len(state.input)
        arriving = number(state.input[state.taken] | 256 if there else 0, 9)
        return Stepped(does(n, layout, state, arriving), True)


def _rv32(n: Nodes, layout: Layout, state: State, arriving: Word) -> State:
    held = state.memory
    code = sum(byte << 8 * i for i, byte in enumerate(held[state.pc : state.pc + 4]))

    def memory(accesses: int, address: Word) -> list[int]:
        at = _value(address)
        return number(sum(byte << 8 * i for i, byte in enumerate(held[at : at + 4])), 32)

    registers = _registers(layout, state)
    hart = Hart(
        n, layout, number(code, 32), registers,
        lambda which, register: number(state.x[_value(register)], 32), memory, arriving,
    )  # fmt: skip
    does = rule_of(code)(hart)
    new = effect(hart, does, registers, number(0, 8))
    x, ram = list(state.x), list(held)
    x[_value(hart.rd)] ^= _value(new["x"])
    if change := _value(new["ram"]):
        assert does.address is not None
        for i in range(8):
            if byte := change >> 8 * i & 255:
                ram[(_value(does.address) & ~3) + i] ^= byte
    written = _value(new["written"]) - len(state.output)
    return _after(state, new, tuple(ram), tuple(x), [_value(new["output"])] * written)


def rule_of(code: int) -> Rule:
    """What an instruction does, by its code."""
    return next((rule for _, fixed, rule in PAGE if _fits(code, fixed)), illegal)


def _fits(code: int, fixed: Fixed) -> bool:
    return all(code >> bit & 1 == value for bit, value in fixed.items())


def _by_words(step: Formulas, n: Nodes, layout: Layout, state: State, arriving: Word) -> State:
    held = {"ram": state.memory, "x": state.x}
    held |= {name: words for name, words in state.own.items() if isinstance(words, tuple)}

    def read(memory: str, address: Word, span: int) -> list[int]:
        if memory in ("input", "output"):
            return list(arriving) if memory == "input" else number(0, 8)
        words, at = held[memory], _value(address)
        width = layout.memories[memory][0]
        return [bit for word in (*words[at : at + span], *(0,) * span)[:span] for bit in number(word, width)]

    found = step(n, layout, _registers(layout, state), read)
    emitted: list[int] = []
    for port in found.writes:
        change = _value(port.change)
        if port.memory == "output":
            written = _value(found.registers["written"]) - len(state.output)
            emitted = [change] * written
        elif change:
            words, at, width = list(held[port.memory]), _value(port.address), layout.memories[port.memory][0]
            for i in range(port.span):
                if at + i < len(words):
                    words[at + i] ^= change >> width * i & (1 << width) - 1
            held[port.memory] = tuple(words)
    after = _after(state, found.registers, held.pop("ram"), held.pop("x"), emitted)
    registers = {name: _value(found.registers[name]) for name in state.own if name in found.registers}
    return replace(after, own={**state.own, **registers, **held})


def _registers(layout: Layout, state: State) -> dict[str, list[int]]:
    held = {"pc": state.pc, "trap": 0, "copied": state.copied, "taken": state.taken}
    held["written"] = len(state.output)
    held |= {name: value for name, value in state.own.items() if isinstance(value, int)}
    return {name: number(held[name], width) for name, width in layout.registers.items()}


def _after(
    state: State, new: Mapping[str, Word], memory: tuple[int, ...], x: tuple[int, ...], emitted: list[int]
) -> State:
    numbers = {name: _value(new[name]) for name in ("pc", "trap", "taken", "copied") if name in new}
    return replace(state, memory=memory, x=x, output=state.output + bytes(emitted), **numbers)


def _value(word: Word) -> int:
    if any(bit not in (FALSE, TRUE) for bit in word):
        raise _Open
    return sum(1 << i for i, bit in enumerate(word) if bit == TRUE)
