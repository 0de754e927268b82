"""Instructions a second of RV32IM: the plain interpreter, the compiled one, and SGD on the network.

The Sudoku solver of `examples/programs` where there is a compiler for C; otherwise a loop in assembler."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import tapegrad as tg
from bench.machines import best_rate
from tapegrad.programs import Program, read_assembler, read_c
from tapegrad.programs.compiled import run
from tapegrad.programs.compiler import compiler

EXAMPLE = Path(__file__).parents[1] / "examples" / "programs" / "sudoku.c"
LOOP = b"""
        li t0, 50000000
next:   addi t1, t1, 3
        xor t2, t1, t0
        sw t2, -4(sp)
        lw t3, -4(sp)
        add t4, t4, t3
        addi t0, t0, -1
        bnez t0, next
        li a7, 93
        ecall
"""
SMALL = ".equ __ram, {}\nloop: addi t0, t0, 1\nsw t0, 64(zero)\nlw t1, 64(zero)\nj loop"


def plain(program: Program, steps: int) -> int:
    """So many steps of the plain interpreter."""
    return sum(1 for _ in islice(program.run(program.start()), steps))


def by_descent(ram: int, steps: int) -> tuple[float, int]:
    """Instructions a second of processor time by SGD with the fast engine, and the number of weights."""
    program = read_assembler(SMALL.format(ram).encode())
    net = tg.compile(program, "emulator", steps=10 * steps, input=1, output=1)
    start = net.start()
    net.net.advance(start, 2, "fast")

    def advanced() -> int:
        net.net.advance(start, steps, "fast")
        return steps

    return best_rate(advanced), len(start.weights)


def rows() -> list[dict[str, Any]]:
    """Rates, each with the program that was run."""
    found: list[dict[str, Any]] = []

    def add(what: str, rate: float) -> None:
        found.append({"what": what, "value": round(rate), "unit": "instructions/s"})

    def timed(what: str, steps: Callable[[], int]) -> None:
        add(what, best_rate(steps))

    loop = read_assembler(LOOP, "loop")
    run(loop, loop.start(), 1000)  # compile first
    timed("plain interpreter, a loop", lambda: plain(loop, 20_000))
    timed("compiled interpreter, a loop", lambda: run(loop, loop.start()).steps)
    if compiler() is not None:
        sudoku = read_c(EXAMPLE.read_bytes(), "sudoku")
        timed("compiled interpreter, Sudoku", lambda: run(sudoku, sudoku.start()).steps)
    for ram in (512, 4096):
        rate, weights = by_descent(ram, 300)
        add(f"emulator, {ram:,} bytes of RAM, {weights:,} weights, fast", rate)
    return found
