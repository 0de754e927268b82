"""How programs are shown: as text, as JSON and as panels of the player."""

from collections import Counter
from typing import Any

from tapegrad._panels import Cells, CellsFrame, Fields, Panel, Table
from tapegrad.programs.compiler import STACK_GUARD, TRAP
from tapegrad.programs.instructions import REGISTERS, disassembled
from tapegrad.programs.model import Program, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad.source import shortened

BYTES_IN_A_ROW = 16
MOST_ROWS = 64
"""Rows of memory that are shown."""
MOST_INSTRUCTIONS = 1000
MOST_IN_TABLE = 4096
"""Rows of a table in which one is current: instructions, or lines of a source."""
WIDEST = 2000
"""Characters of output that are shown."""


def listing(program: Program) -> list[tuple[int, str]]:
    """Addresses and instructions, or words, of what is loaded at first; nothing else is known of a memory."""
    size = program.machine.word // 8
    names = {address: name for name, address in program.symbols.items()}
    lines = []
    for at in range(0, len(program.image), size):
        word = int.from_bytes(program.image[at : at + size], "little")
        if isinstance(program.machine, RV32):
            lines.append((at, disassembled(word, at, names)))
        else:
            lines.append((at // size, str(word - (word >> 8 * size - 1 << 8 * size))))
    return lines


def listing_text(program: Program) -> str:
    """What is loaded at first, with labels."""
    names: dict[int, list[str]] = {}
    for name, address in program.symbols.items():
        names.setdefault(address, []).append(name)
    machine = program.machine
    lines = [
        f"{program.name}: {machine.kind}, {len(program.image):,} bytes in a memory of {machine.ram:,}, "
        f"starts at {program.entry:#x}",
        "",
    ]
    whole = listing(program)
    for at, text in whole[:MOST_INSTRUCTIONS]:
        lines += [f"{name}:" for name in names.get(at, ())]
        if program.source is not None and (number := program.source.lines.get(at)):
            lines.append(f"; {number}: {program.source.text[number - 1].strip()}")
        lines.append(f"{at:6x}  {text}")
    if len(whole) > MOST_INSTRUCTIONS:
        lines.append(f"... {len(whole) - MOST_INSTRUCTIONS:,} more words")
    return "\n".join(lines)


def outcome(program: Program, state: ProgramState) -> str:
    """Whether the program runs, or what has stopped it, and where."""
    if state.trap == "exit":
        return f"exit code {exit_code(program, state)}"
    if state.trap == "end":
        return "ended"
    return f"stopped: {state.trap}{_guard(state)}" if state.trap else "running"


def _guard(state: ProgramState) -> str:
    """What a guard that a C program was compiled with has found."""
    before, here = state.memory[max(state.pc - 4, 0) : state.pc], state.memory[state.pc : state.pc + 4]
    if here == TRAP:
        return " (a null pointer, or another trap of the compiler)"
    return " (the stack has no room left)" if before + here == STACK_GUARD else ""


def exit_code(program: Program, state: ProgramState) -> int | None:
    """The low byte of a0, as a shell sees it; 0 for a machine that merely ends, None for any other trap."""
    if state.trap == "end":
        return 0
    return state.registers[10] & 255 if state.trap == "exit" else None


def place(program: Program, address: int) -> str:
    """An address, with the label before it."""
    before = [(at, name) for name, at in program.symbols.items() if at <= address]
    if not before:
        return f"{address:#x}"
    at, name = max(before)
    return f"{address:#x} ({name}{f'+{address - at}' if address > at else ''})"


def registers(program: Program, state: ProgramState) -> dict[str, int]:
    """The general registers by their names, and the further ones of an instruction set."""
    names = (
        REGISTERS
        if isinstance(program.machine, RV32)
        else tuple(f"x{n}" for n in range(len(state.registers)))
    )
    further = {name: held for name, held in state.extra.items() if isinstance(held, int)}
    return dict(zip(names, state.registers, strict=True)) | further


def state_json(program: Program, state: ProgramState) -> dict[str, Any]:
    """A state as plain JSON; the output is text as far as it is UTF-8."""
    return {
        "pc": state.pc,
        "trap": state.trap or None,
        "exit_code": exit_code(program, state),
        "registers": registers(program, state),
        "output": state.output.decode("utf-8", "replace"),
        "written": state.written,
        "read": state.taken,
    }


def state_text(program: Program, state: ProgramState) -> str:
    """The output, how the program ended, and registers that are not 0."""
    line = program.source.line(state.pc) if program.source and exit_code(program, state) is None else 0
    lines = [f"{outcome(program, state)}, at {place(program, state.pc)}{f', line {line}' if line else ''}"]
    if state.written:
        kept = len(state.output)
        cut = f" (the last {kept:,} of {state.written:,} bytes)" if kept < state.written else ""
        lines.append(f"output {shortened(state.output.decode('utf-8', 'replace'), WIDEST)!r}{cut}")
    held = [f"{name} {value:#x}" for name, value in registers(program, state).items() if value]
    if held:
        lines.append("registers " + ", ".join(held))
    return "\n".join(lines)


class ProgramView:
    """Instructions with the current one, registers, memory and output; the source, where there is one, with
    the current line."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = {address: name for name, address in program.symbols.items()}
        source = program.source
        self.lines = {} if source is None else {at: source.line(at) for at, _ in listing(program)}
        lines = listing(program)[:MOST_IN_TABLE]
        self.rows = {at: row for row, (at, _) in enumerate(lines)}
        self.shown = min(program.machine.ram, MOST_ROWS * BYTES_IN_A_ROW)
        whole = self.shown == program.machine.ram
        note = "" if whole else f"{self.shown:,} of {program.machine.ram:,} bytes are shown."
        self.panels: list[Panel] = [
            Fields("Program"),
            Fields("Registers"),
            Table(
                "Instructions, as they are loaded",
                columns=("instruction",),
                rows=tuple(f"{at:x}" for at, _ in lines),
                entries=[[text] for _, text in lines],
                words=[[f"At {place(program, at)}: {text}."] for at, text in lines],
            ),
            Cells(
                "Memory",
                "text",
                rows=tuple(f"{at:x}" for at in range(0, self.shown, BYTES_IN_A_ROW)),
                default=("00",),
                columns=(0, BYTES_IN_A_ROW - 1),
                note=note,
                column_name="byte",
                explain=lambda row, column: f"The byte at {row * BYTES_IN_A_ROW + column:#x}.",
            ),
        ]
        if source is not None:
            text = source.text[:MOST_IN_TABLE]
            code = Counter(self.lines.values())
            counted = [f"Line {n}: {code[n]:,} instructions." for n in range(1, len(text) + 1)]
            numbers = tuple(str(number) for number in range(1, len(text) + 1))
            lines_of_c = Table(
                program.name, ("",), numbers, [[line] for line in text], [[n] for n in counted]
            )
            self.panels.insert(1, lines_of_c)

    def _next(self, state: ProgramState) -> str:
        """The instruction at pc, as memory holds it now, which may not be what was loaded."""
        machine = self.program.machine
        size, count = machine.word // 8, 3 if isinstance(machine, Subleq) else 1
        at = state.pc // machine.alignment * size
        found = [
            int.from_bytes(state.memory[i : i + size], "little") for i in range(at, at + size * count, size)
        ]
        if state.trap or at + size * count > len(state.memory):
            return "·"
        if isinstance(machine, RV32):
            return disassembled(found[0], state.pc, self.names)
        return " ".join(str(word - (word >> 8 * size - 1 << 8 * size)) for word in found)

    def frame(self, state: ProgramState) -> list[Any]:
        fields = {
            "state": outcome(self.program, state),
            "pc": place(self.program, state.pc),
            "next": self._next(state),
            "input": f"{state.taken:,} of {len(state.input):,} bytes read",
            "output": shortened(state.output.decode("utf-8", "replace"), WIDEST),
        }
        held = {name: f"{value:#x}" for name, value in registers(self.program, state).items() if value}
        row = self.rows.get(state.pc)
        bytes_shown = [
            (*divmod(at, BYTES_IN_A_ROW), f"{byte:02x}")
            for at, byte in enumerate(state.memory[: self.shown])
            if byte
        ]
        frame = [fields, held, None if row is None else (row, 0), CellsFrame(bytes_shown)]
        if self.program.source is not None:
            line = self.lines.get(state.pc, 0)
            frame.insert(1, (line - 1, 0) if 0 < line <= MOST_IN_TABLE else None)
        return frame
