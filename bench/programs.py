"""Instructions a second of RV32IM: the plain interpreter, the compiled one, and SGD on the network.

The Sudoku solver of `examples/programs` where there is a compiler for C; otherwise a loop in assembler."""

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import tapegrad as tg
from bench.machines import best_rate
from tapegrad._compile import compile_for
from tapegrad._verify import run_and_verify
from tapegrad.programs import Program, read_assembler, read_c
from tapegrad.programs.compiled import run
from tapegrad.programs.compiler import compiler
from tapegrad.targets.emulator.fast import MANY
from tapegrad.targets.emulator.net import EmulatorCarry

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


def by_descent(ram: int, steps: int) -> tuple[float, float, int]:
    """Instructions a second of processor time by SGD with the fast engine, without its set-up; how many times
    as long whole steps take, forward and backward; and the number of weights."""
    program = read_assembler(SMALL.format(ram).encode())
    net: Any = tg.compile(program, "emulator", steps=10 * steps, input=1, output=1)
    whole = net.net.advance(net.start(), 2, "fast")
    rate_whole = best_rate(lambda: _taken(net.net, whole, 10))
    reached = net.net.advance(whole, MANY, "fast")

    def advanced() -> int:
        nonlocal reached
        reached = net.net.advance(reached, steps, "fast")
        return steps

    rate = best_rate(advanced)
    return rate, rate / rate_whole, len(reached.weights)


def _taken(net: Any, carry: EmulatorCarry, steps: int) -> int:
    net.advance(carry, steps, "fast")
    return steps


def sudoku_by_descent(program: Program) -> tuple[float, str]:
    """Instructions a second to the end, all included but compilation, and what came of comparing registers
    and memory with the compiled interpreter twenty times."""
    net = compile_for(program, "emulator", (b"",), 3_000_000)
    began = time.process_time()
    outcome, report = run_and_verify(net, b"", steps=3_000_000, engine="fast", every=100_000)
    return outcome.steps / (time.process_time() - began), str(report)


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
        rate, report = sudoku_by_descent(sudoku)
        add(f"emulator, Sudoku to its end, fast: {report}", rate)
    for ram, steps in ((512, 20_000), (4096, 20_000), (65536, 20_000)):
        rate, times, weights = by_descent(ram, steps)
        add(f"emulator, {ram:,} bytes of RAM, {weights:,} weights, fast", rate)
        found[-1] |= {"rival": "whole steps", "rival_value": round(rate / times, 1), "ratio": times}
    return found
