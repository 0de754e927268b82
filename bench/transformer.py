"""Decoder steps a second of both engines of the transformer, as T grows; each step is a machine step.

The machine is the 5-state busy-beaver champion, which runs far longer than any T here, and for comparison one
that enters a new cell at every step. Processor time of one core, best of a few runs, counted from the second
step on: the first prepares the engine. The reference engine scans all earlier steps, so it takes fewer.

The yardstick: in an engine that goes from layer to layer, each must at least multiply, add and correct one
number that the layer before has made. A chain of such links is timed in the same run, one for each layer.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numba import njit

import tapegrad as tg
from tapegrad.machines import Rule, TuringMachine
from tapegrad.machines.library import ready
from tapegrad.targets.transformer import TransformerNet

FAST = (8, 10, 12, 14, 16, 18, 20, 24)
MOST_STEPS = 1 << 20
REFERENCE = (8, 10, 12)
REFERENCE_STEPS = 256
CHAMPION = ready("busy-beaver-5x2")
ALWAYS_NEW_CELLS = TuringMachine({("a", ("0",)): Rule(("1",), (1,), "a")}, "a", blank="0")


def compiled(machine: TuringMachine, exponent: int, attention: str = "hardmax") -> TransformerNet:
    """The net for 2^exponent steps."""
    net = tg.compile(machine, "transformer", form="paper", steps=1 << exponent, attention=attention).net
    assert isinstance(net, TransformerNet)
    return net


def steps_a_second(net: TransformerNet, machine: TuringMachine, engine: str, steps: int) -> float:
    """The rate over the first `steps` steps after the one that prepares."""

    def seconds() -> float:
        begun = net.advance(net.start(machine.start()), 1, engine)
        return _seconds(lambda: net.advance(begun, steps, engine))

    return steps / min(seconds() for _ in range(3))


def seconds_of_a_link(links: int = 1 << 22) -> float:
    """The time from one layer to the next, if there is nothing to do but one number."""
    numbers = np.array([0, 1, 0.25, 0.75, 2], np.float32)
    _chain(1, numbers)
    return min(_seconds(lambda: _chain(links, numbers)) for _ in range(3)) / links


@njit
def _chain(links, numbers):
    nothing, bit, low, high, gain = numbers
    weight = bit
    for _ in range(links):
        total = max(nothing + weight * bit, nothing)
        bit = max(gain * max(total - low, nothing) - gain * max(total - high, nothing), nothing)
    return bit


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def rows() -> list[dict]:
    """Both engines, every T."""
    result = []
    for exponent in FAST:
        net = compiled(CHAMPION, exponent)
        fast = steps_a_second(net, CHAMPION, "fast", min(MOST_STEPS, 1 << exponent))
        row = {"what": f"fast, T = 2^{exponent}, {len(net.layers)} layers", "value": fast, "unit": "steps/s"}
        if exponent in REFERENCE:
            steps = min(REFERENCE_STEPS, 1 << exponent)
            slow = steps_a_second(net, CHAMPION, "reference", steps)
            result.append(
                {"what": f"reference, T = 2^{exponent}, {steps} steps", "value": slow, "unit": "steps/s"}
            )
            row |= {"rival": "reference", "ratio": fast / slow}
        result.append(row)
    return result + _at_full_length() + _with_memories()


def _at_full_length() -> list[dict]:
    """At T = 2^20: other runs, the time to prepare, and the yardstick."""
    new_cells, champion = compiled(ALWAYS_NEW_CELLS, 20), compiled(CHAMPION, 20)
    soft = compiled(CHAMPION, 19, "softmax")
    rates = {
        "fast, T = 2^20, a new cell at every step": (new_cells, ALWAYS_NEW_CELLS, MOST_STEPS),
        "fast, T = 2^19, softmax": (soft, CHAMPION, 1 << 19),
    }
    start = champion.start(CHAMPION.start())
    prepare = min(_seconds(lambda: replace(champion).advance(start, 1, "fast")) for _ in range(3))
    yardstick = 1 / (seconds_of_a_link() * len(champion.layers))
    return [
        *(
            {"what": what, "value": steps_a_second(net, machine, "fast", steps), "unit": "steps/s"}
            for what, (net, machine, steps) in rates.items()
        ),
        {"what": "fast, T = 2^20, to prepare", "value": 1e3 * prepare, "unit": "ms"},
        {"what": "yardstick at T = 2^20: one number a layer", "value": yardstick, "unit": "steps/s"},
    ]


LOOP = """
        .equ __ram, 4096
_start: la s1, data
outer:  li t0, 0
        mv t1, s1
inner:  lw t2, (t1)
        add t2, t2, t0
        xor s0, s0, t2
        sw t2, (t1)
        slli t3, t2, 3
        srli t4, t2, 5
        addi t1, t1, 4
        addi t0, t0, 1
        li t5, 64
        blt t0, t5, inner
        j outer
        .data
data:   .space 512
"""
"""Loads, adds and stores, for ever."""


def _with_memories() -> list[dict]:
    """Machines with memories, by heads and gates: an RV32IM program, and the champion by the same means."""
    program = tg.read(LOOP)
    result = []
    for what, source, exponent, engine, steps in (
        ("an RV32IM loop", program, 20, "fast", 1 << 18),
        ("an RV32IM loop", program, 24, "fast", 1 << 18),
        ("an RV32IM loop", program, 12, "reference", 1 << 10),
        ("the champion by gates", CHAMPION, 24, "fast", MOST_STEPS),
    ):
        net = tg.compile(source, "transformer", steps=1 << exponent, form="practical").net
        begun = net.advance(net.start(source.start()), 1, engine)
        seconds = _seconds(lambda net=net, begun=begun, s=steps, e=engine: net.advance(begun, s, e))
        result.append(
            {"what": f"{engine}, T = 2^{exponent}, {what}", "value": steps / seconds, "unit": "steps/s"}
        )
    return result


if __name__ == "__main__":
    for row in rows():
        print(row)
