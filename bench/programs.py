"""Instructions a second of RV32IM: the plain interpreter, the compiled one, and SGD on the network.

The Sudoku solver of `examples/programs` where there is a compiler for C; otherwise a loop in assembler."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import tapegrad as tg
from bench.machines import best_rate
from tapegrad._compile import compile_for
from tapegrad._verify import run_and_verify
from tapegrad.lowering.program_learner import program_learner
from tapegrad.programs import Program, read_assembler, read_c
from tapegrad.programs.compiled import run
from tapegrad.programs.compiler import compiler
from tapegrad.targets.emulator.fast import MUCH
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
Row = dict[str, Any]
SMALL = ".equ __ram, {}\nloop: addi t0, t0, 1\nsw t0, 64(zero)\nlw t1, 64(zero)\nj loop"


def plain(program: Program, steps: int) -> int:
    """So many steps of the plain interpreter."""
    return sum(1 for _ in islice(program.run(program.start()), steps))


def by_descent(ram: int, steps: int) -> Iterator[Row]:
    """SGD with the fast engine on a machine with so much memory: what compiling it takes, its instructions a
    second without the set-up, beside whole steps, forward and backward; and its memory."""
    program = read_assembler(SMALL.format(ram).encode())
    began = time.process_time()
    net: Any = tg.compile(program, "emulator", steps=10 * steps, input=1, output=1).net
    compiling = time.process_time() - began
    name, weights = f"emulator, {ram:,} bytes of RAM", f"{net.graph.edges:,} weights"
    yield {"what": f"{name}, {weights}: compiling", "value": round(compiling, 1), "unit": "s"}
    start = net.start(program_learner(program, 10 * steps, 1, 1).encode(program.start()))
    whole = best_rate(lambda: _taken(net, net.advance(start, 2, "fast"), 10))
    reached = net.advance(start, 1 + MUCH // net.graph.edges, "fast")

    def advanced() -> int:
        nonlocal reached
        reached = net.advance(reached, steps, "fast")
        return steps

    rate = best_rate(advanced)
    yield {
        "what": f"{name}, fast, {reached.state.computed[0] / reached.steps:,.0f} of "
        f"{net.graph.vertices:,} vertices visited in a step",
        "value": round(rate),
        "unit": "instructions/s",
        "rival": "whole steps",
        "rival_value": round(whole, 1),
        "ratio": rate / whole,
    }
    room = sum(array.nbytes for array in reached.state) + 3 * net.weights.nbytes
    yield {"what": f"{name}: memory in training", "value": room / net.graph.edges, "unit": "bytes/weight"}


def _taken(net: Any, carry: EmulatorCarry, steps: int) -> int:
    net.advance(carry, steps, "fast")
    return steps


def to_the_end(program: Program, steps: int) -> Row:
    """Instructions a second to the end, all included but compilation, and what came of comparing registers
    and memory with the compiled interpreter."""
    net = compile_for(program, "emulator", (b"",), steps)
    began = time.process_time()
    outcome, report = run_and_verify(net, b"", steps=steps, engine="fast", every=steps // 20)
    rate = outcome.steps / (time.process_time() - began)
    what = f"emulator, {program.name} to its end, fast: {report}"
    return {"what": what, "value": round(rate), "unit": "instructions/s"}


def rows() -> list[Row]:
    """Rates, each with the program that was run."""
    found: list[Row] = []

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
        found.append(to_the_end(sudoku, 3_000_000))
    for ram in (512, 4096, 65536):
        found += by_descent(ram, 50_000)
    found.append(to_the_end(read_assembler(LOOP.replace(b"50000000", b"1430000"), "a loop"), 11_000_000))
    return found
