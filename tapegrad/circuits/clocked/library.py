"""Circuits with state from Python functions, ready ones by name, and random ones.

def step(registers, inputs):
    return {"count": registers["count"] + inputs["up"]}, {"count": registers["count"]}

clocked(step, registers={"count": UInt(8)}, inputs={"up": Bit}, resets={"count": 5})
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegrad.circuits.arrays import where
from tapegrad.circuits.clocked.model import ANY, SequentialCircuit, next_names
from tapegrad.circuits.reductions import concat
from tapegrad.circuits.sampler import random_circuit
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import Bit, Layout, UInt, names, to_bits
from tapegrad.errors import SourceError

Step = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[dict[str, Any], dict[str, Any]]]
"""From registers and inputs to what the registers become, and the outputs of the cycle."""


def clocked(
    step: Step,
    *,
    registers: Mapping[str, Layout],
    inputs: Mapping[str, Layout] | None = None,
    resets: Mapping[str, Any] | None = None,
    name: str = "",
) -> SequentialCircuit:
    """The circuit that takes this step in every cycle. Registers without a reset begin at 0."""
    given, held = dict(inputs or {}), dict(registers)

    def taken(inputs: Any, registers: Any) -> dict[str, Any]:
        after, outputs = step(registers, inputs)
        return {"outputs": outputs, "registers": {register: after[register] for register in held}}

    title = name or getattr(step, "__name__", "clocked")
    traced = trace(taken, given, held, name=title)
    for register, layout in held.items():
        if (found := traced.output["registers"][register]) != layout:
            raise SourceError(
                f"the step of {title!r} makes the register {register!r} {found!r}, and it is {layout!r}",
                advice="Cast integers back to their type with .to(type), and give bits as Bit.",
            )
    values = dict(resets or {})
    if unknown := values.keys() - held.keys():
        raise SourceError(f"{title!r} has no register {min(unknown)!r} to reset")
    bits = []
    for register, layout in held.items():
        width = sum(1 for _ in names(layout, register))
        bits += list(to_bits(layout, values[register])) if register in values else [0] * width
    outputs, latches = tuple(names(traced.output["outputs"], "")), tuple(names(held, ""))
    logic = replace(
        traced.circuit,
        inputs=(*names(given, ""), *latches),
        outputs=(*outputs, *next_names(outputs, latches)),
    )
    return SequentialCircuit(logic, tuple(bits))


def random_sequential(
    seed: int, *, inputs: int = 2, latches: int = 3, outputs: int = 2, size: int = 20
) -> SequentialCircuit:
    """A circuit whose logic is random, and whose latches are reset to 0, to 1 or to whatever is given."""
    logic = random_circuit(seed, inputs=inputs + latches, size=size, outputs=outputs + latches)
    drawn = np.random.Generator(np.random.PCG64(seed)).random(latches)
    return SequentialCircuit(logic, tuple((drawn * (1 + ANY)).astype(int).tolist()))


# Ready ones.


def _count(registers: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Counts the cycles in which `enable` is 1; `clear` begins anew."""
    count = registers["count"]
    counted = where(inputs["enable"], count + 1, count)
    after = where(inputs["clear"], UInt(8)(0), counted)
    return {"count": after}, {"count": count, "full": inputs["enable"] & (count == 255)}


def _shift(registers: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A register that shifts in the parity of four of its bits: all 65,535 states but 0, one by one."""
    bits = registers["state"].bits()
    fed = bits[0] ^ bits[2] ^ bits[3] ^ bits[5]
    return {"state": concat(*bits[1:], fed)}, {"bit": bits[0]}


def _crc(registers: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """CRC-32 of a stream of bits, the lowest bit of every byte first; the sum is that of what came before."""
    remainder = registers["remainder"]
    bit = remainder[0] ^ inputs["bit"]
    shifted = remainder >> 1
    after = where(bit, shifted ^ 0xEDB88320, shifted)
    return {"remainder": after}, {"sum": ~after}


TICKS = 4
"""Cycles that the transmitter takes for each bit."""


def _transmit(
    registers: Mapping[str, Any], inputs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sends a byte as a start bit 0, eight bits from the lowest on, and a stop bit 1."""
    shift, left, tick = registers["shift"], registers["left"], registers["tick"]
    idle = left == 0
    begins = idle & inputs["send"]
    last = tick == TICKS - 1
    frame = concat(Bit(0), *inputs["data"].bits(), Bit(1))
    after = {
        "shift": where(begins, frame, where(last & ~idle, concat(*shift.bits()[1:], Bit(1)), shift)),
        "left": where(begins, UInt(4)(10), where(last & ~idle, left - 1, left)),
        "tick": where(begins | last | idle, UInt(2)(0), tick + 1),
    }
    return after, {"tx": idle | shift[0], "busy": ~idle}


@dataclass(frozen=True)
class ReadySequential:
    """What it does, how it is built, and a trace that shows it at work."""

    summary: str
    build: Callable[[], SequentialCircuit]
    example: Callable[[], tuple[Any, ...]]


def _bits_of(text: bytes) -> list[list[int]]:
    return [[byte >> place & 1] for byte in text for place in range(8)]


def _frame(byte: int) -> list[list[int]]:
    sent = [byte >> place & 1 for place in range(8)]
    return [[*sent, 1], *[[*sent, 0]] * (10 * TICKS + 1)]


READY: dict[str, ReadySequential] = {
    "counter8": ReadySequential(
        "counts cycles up to 255 and round again, with enable and clear",
        lambda: clocked(
            _count, registers={"count": UInt(8)}, inputs={"enable": Bit, "clear": Bit}, name="counter8"
        ),
        lambda: ([[1, 0]] * 9 + [[0, 0]] * 2 + [[1, 1]] + [[1, 0]] * 3,),
    ),
    "lfsr16": ReadySequential(
        "a shift register with feedback: 65,535 bits before they come again",
        lambda: clocked(_shift, registers={"state": UInt(16)}, resets={"state": 0xACE1}, name="lfsr16"),
        lambda: (32,),
    ),
    "crc32": ReadySequential(
        "CRC-32, a bit in every cycle",
        lambda: clocked(
            _crc,
            registers={"remainder": UInt(32)},
            inputs={"bit": Bit},
            resets={"remainder": 0xFFFFFFFF},
            name="crc32",
        ),
        lambda: (_bits_of(b"123456789"),),
    ),
    "uart": ReadySequential(
        f"a serial transmitter: a byte as start bit, eight bits and stop bit, {TICKS} cycles each",
        lambda: clocked(
            _transmit,
            registers={"shift": UInt(10), "left": UInt(4), "tick": UInt(2)},
            inputs={"data": UInt(8), "send": Bit},
            resets={"shift": 0x3FF},
            name="uart",
        ),
        lambda: (_frame(ord("A")),),
    ),
}
