"""Programs as a kind of source."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.programs.assembler import read_assembler
from tapegrad.programs.compiler import read_c
from tapegrad.programs.elf import MAGIC, read_elf
from tapegrad.programs.instruction_sets import machine_from_json, machine_to_json
from tapegrad.programs.instructions import NUMBERS
from tapegrad.programs.library import FIBONACCI, HELLO, READY, random_subleq
from tapegrad.programs.model import Program, ProgramState, SourceText
from tapegrad.programs.subleq import looks_like_subleq, read_subleq
from tapegrad.programs.view import ProgramView, listing_text, state_json, state_text
from tapegrad.source import (
    Arrays,
    Call,
    Format,
    Inputs,
    Lowering,
    Option,
    Ready,
    ReadyBy,
    SourceKind,
    opening,
)

C_EXAMPLE = """\
#include <stdio.h>
int main(void) { puts("hello"); return 0; }
"""


def _to_json(program: Program) -> tuple[dict[str, Any], Arrays]:
    source = program.source
    machine, arrays = machine_to_json(program.machine)
    return {
        "name": program.name,
        "machine": machine,
        "entry": program.entry,
        "symbols": dict(program.symbols),
        "source": source and {"text": list(source.text), "lines": sorted(source.lines.items())},
    }, {"image": np.frombuffer(program.image, np.uint8), **arrays}


def _from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Program:
    machine = machine_from_json(data["machine"], arrays)
    image = arrays["image"]
    if image.dtype != np.uint8 or image.ndim != 1:
        raise ValueError("the image of a program consists of bytes")
    symbols = {str(name): int(address) for name, address in data["symbols"].items()}
    source = None
    if (given := data["source"]) is not None:
        lines = {int(address): int(line) for address, line in given["lines"]}
        source = SourceText(tuple(map(str, given["text"])), lines)
        if not all(0 <= line <= len(source.text) for line in lines.values()):
            raise ValueError("the lines of a program are not those of its text")
    return Program(data["name"], machine, image.tobytes(), int(data["entry"]), symbols, source)


_MAIN = re.compile(rb"(?:^|[;}/])[ \t]*+(?:(?!main\b)\w++[ \t*]++)*+main\s*+\([^;{}]*+(\{?)", re.MULTILINE)
"""The head of `main`, up to its body or something else. Nothing is gone over twice, however long the file."""
_ASSEMBLER = re.compile(
    r"^[ \t]*(?:[A-Za-z_.$][\w.$]*:[ \t]*|\d+:[ \t]*)*"
    rf"(?:[a-z.]+[ \t]+(?:{'|'.join(NUMBERS)})[ \t]*,|(?:nop|ret|ecall|ebreak)[ \t]*(?:[#;/]|$)"
    r"|(?:j|jal|call|tail)[ \t]+[\w.]+[ \t]*(?:[#;/]|$)|\.(?:text|globl|global|section|equ)\b)",
    re.MULTILINE,
)
"""A line with a register, an instruction without operands, a jump, or a directive."""


def _is_c(data: bytes) -> bool:
    return any(head[1] for head in _MAIN.finditer(data))


def _is_assembler(data: bytes) -> bool:
    return _ASSEMBLER.search(opening(data)) is not None


FORMATS = (
    Format("ELF", "a 32-bit RISC-V program", "", lambda data: data.startswith(MAGIC), read_elf),
    Format("C", "a C file with `main`, compiled for RISC-V", C_EXAMPLE, _is_c, read_c, names_files=True),
    Format("RISC-V assembler", "RV32IM", FIBONACCI, _is_assembler, read_assembler),
    Format("SUBLEQ", "words of three", HELLO, lambda data: looks_like_subleq(opening(data)), read_subleq),
)


def _input(program: Program, texts: Sequence[str]) -> tuple[bytes]:
    """What the program reads, as it was typed; several texts are lines."""
    return ("\n".join(texts).encode("utf-8", "surrogateescape"),)


def _call(program: Program, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """What the program reads; what comes back is what it prints."""
    if named or len(given) > 1:
        raise InputError(f"{program.name!r} takes one input, a text or bytes")

    def result(state: ProgramState) -> str:
        if state.written > len(state.output):
            raise Refused(
                f"of {state.written:,} bytes that {program.name!r} wrote, {len(state.output):,} were kept",
                advice=f"Compile with room for all, as in output={1 << (state.written - 1).bit_length()}.",
            )
        return state.output.decode("utf-8", "replace")

    return Call(given, result)


def _default_inputs(program: Program, random: np.random.Generator, in_batches: bool) -> tuple[Inputs, bool]:
    """No input, a few numbers, and random letters."""
    letters = bytes(random.integers(97, 123, 8, np.uint8).tolist())
    return iter([(b"",), (b"5 3 8\n",), (letters,)]), False


_ROOM = {
    "input": Option(64, "bytes of input that there is room for"),
    "output": Option(64, "bytes of output that are kept, the last ones; a power of two"),
}

PROGRAM = SourceKind(
    name="program",
    type=Program,
    to_json=_to_json,
    from_json=_from_json,
    formats=FORMATS,
    ready=ReadyBy(READY, lambda name, entry: Ready(entry.summary, entry.build, lambda: (entry.example,))),
    parse_input=_input,
    call=_call,
    default_inputs=_default_inputs,
    covering="tapegrad.programs.covering:inputs",
    sample=random_subleq,
    describe=listing_text,
    state_json=state_json,
    state_text=state_text,
    written=lambda program, state: (state.written, state.output),
    view=ProgramView,
    one_by_one=True,
    refuses="tapegrad.programs.limits:refuse",
    fitted="tapegrad.programs.fitting:fitted",
    sizes=lambda program: {"memory": program.machine.ram},
    compiled_run="tapegrad.programs.compiled:run",
    lowerings=(
        Lowering(
            "learner",
            "tapegrad.lowering.program_learner:program_learner",
            {
                "steps": Option(..., "how many samples are shown: as many as the program takes steps"),
                **_ROOM,
            },
            suits="tapegrad.lowering.program_learner:suiting",
        ),
        Lowering("turing machine", "tapegrad.lowering.program_machine:program_machine"),
        Lowering(
            "circuit",
            "tapegrad.lowering.program_learner:program_circuit",
            {"instructions": Option(..., "how many instructions of the program the circuit takes"), **_ROOM},
            suits="tapegrad.lowering.program_learner:suiting_circuit",
        ),
    ),
)
