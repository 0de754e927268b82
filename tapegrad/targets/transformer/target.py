"""What `compile(machine, "transformer")` takes, costs and shows."""

from collections.abc import Sequence
from typing import Any

from tapegrad.errors import Refused
from tapegrad.lowering.one_tape import one_tape
from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.source import Rewriting
from tapegrad.targets.target import Estimate, Example, Option, Target
from tapegrad.targets.transformer.build import CORRECTIONS, Layout
from tapegrad.targets.transformer.net import TransformerNet

LARGEST = 4 << 30
"""Nets of more bytes than this are refused."""


def build(machine: TuringMachine, steps: int, attention: str, correction: str) -> TransformerNet:
    """The net, if it fits."""
    cost = estimate(machine, steps, attention, correction)
    if cost.bytes > LARGEST:
        raise Refused(
            f"the net would need {cost.bytes / 2**30:.1f} GiB: width {cost.width:,}, {cost.depth} layers",
            advice="The width grows with states x symbols; use a smaller machine or the target tape.",
        )
    return TransformerNet.build(machine, steps, attention, correction)


def estimate(machine: TuringMachine, steps: int, attention: str, correction: str) -> Estimate:
    """Counted from the layout: see `build.build_layers`."""
    layout = Layout.of(machine, steps)
    w, pos, time = layout.width, layout.position_bits, layout.time_bits
    layers = pos + time + 7
    searching = [pos + 1, *(pos + known + 2 for known in range(time)), pos + time + 1]
    rows = [*searching, pos + 1]
    parameters = layers * (w * w + w) + sum(2 * r * (w + 1) + w * w + 2 * w + r for r in rows)
    parameters += 3 * w + w * len(layout.symbols)
    return Estimate(
        width=w,
        depth=layers,
        parameters=parameters,
        bytes=4 * parameters,
        steps=steps + 1,
        precision="float32",
        notes=(
            f"{layers} = w_pos + w_time + 7 layers with w_pos = {pos}, w_time = {time}",
            f"positions are shifted by T = {steps}, so that the tape is two-way: one more bit",
        ),
    )


def passes(machine: TuringMachine, **options: Any) -> Sequence[Rewriting]:
    """One tape is enough; more are put on one."""
    return [] if machine.tapes == 1 else [one_tape(machine)]


def examples() -> Sequence[Example]:
    """A word accepted and a number incremented."""
    return [
        Example(ready("palindrome"), ("abba",), {"steps": 64}),
        Example(ready("increment"), ("1011",), {"steps": 32, "attention": "softmax"}),
    ]


TARGET = Target(
    name="transformer",
    summary="a decoder step is a step of the machine; attention finds the last write to a cell",
    paper="Wei, Chen, Ma, section 4",
    takes=TuringMachine,
    net=TransformerNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options={
        "steps": Option(4096, "T, the most steps of the machine"),
        "attention": Option(
            "hardmax", "hardmax, or softmax at a derived temperature", ("hardmax", "softmax")
        ),
        "correction": Option(
            "quarters", "quarters (exact in binary) or thirds (the paper's)", tuple(CORRECTIONS)
        ),
    },
    passes=passes,
)
