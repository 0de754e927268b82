"""Programs executed: the formulas of a step, with numbers for all that they see, fold to numbers.

So the definitions of RV32IM and SUBLEQ (`rv32`, `subleq`) run programs as they are, and there is no second
interpreter to trust. The next byte of input is left open at first. If everything folds to numbers even so,
the instruction does the same whatever the input is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tapegrad_check.formulas.nodes import FALSE, TRUE, Nodes
from tapegrad_check.formulas.words import Word, number
from tapegrad_check.instructions import subleq
from tapegrad_check.instructions.ports import Layout
from tapegrad_check.instructions.rv32 import PAGE, Fixed, Hart, Rule, effect, illegal
from tapegrad_check.sources import Program

STACK_POINTER = 2


@dataclass(frozen=True)
class State:
    """Where a program stands. Memory is a list of words of SUBLEQ, of bytes of RV32IM."""

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
    words = (memory[at : at + size] for at in range(0, len(memory), size))
    return State(program.entry, tuple(int.from_bytes(word, "little") for word in words), (), given)


def stepped(program: Program, state: State) -> Stepped:
    """After one instruction, as the definition of the machine has it; a program that has stopped stays."""
    if state.trap:
        return Stepped(state, False)
    does = _rv32 if program.kind == "rv32im" else _subleq
    layout = Layout.sized(program.kind, program.width, program.ram, len(state.input) + 1, 1)
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


def _subleq(n: Nodes, layout: Layout, state: State, arriving: Word) -> State:
    width = layout.registers["pc"]

    def read(memory: str, address: Word, span: int) -> list[int]:
        if memory != "ram":
            return list(arriving) if memory == "input" else number(0, 8)
        at = _value(address)
        return number(state.memory[at] if at < len(state.memory) else 0, width)

    found = subleq.step(n, layout, _registers(layout, state), read)
    ram, emitted = list(state.memory), []
    for port in found.writes:
        change = _value(port.change)
        if port.memory == "ram" and change:
            ram[_value(port.address)] ^= change
        if port.memory == "output":
            written = _value(found.registers["written"]) - len(state.output)
            emitted = [change] * written
    return _after(state, found.registers, tuple(ram), (), emitted)


def _registers(layout: Layout, state: State) -> dict[str, list[int]]:
    held = {"pc": state.pc, "trap": 0, "copied": state.copied, "taken": state.taken}
    held["written"] = len(state.output)
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
