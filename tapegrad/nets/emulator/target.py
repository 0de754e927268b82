"""The target `emulator`, as the compiler finds it."""

from collections.abc import Sequence
from importlib import import_module

import numpy as np

from tapegrad.errors import Refused
from tapegrad.learners import Learner, conjunction, parity
from tapegrad.nets.emulator.computation import circuit_size
from tapegrad.nets.emulator.net import MEMORIES, EmulatorNet
from tapegrad.nets.emulator.practical_constants import PRECISIONS
from tapegrad.nets.net import Estimate, Example, Option, Target


def build(source: Learner, *, memory: str, precision: str, steps: int) -> EmulatorNet:
    """The network of a learner."""
    if not isinstance(steps, int) or steps < 1:
        raise Refused(f"the number of steps must be a positive integer, not {steps!r}")
    return import_module(MEMORIES[memory]).compiled(source, precision, steps)


def estimate(source: Learner, *, memory: str, precision: str, steps: int) -> Estimate:
    """The size of the network, from the size of the learner's circuit."""
    circuit, cells = source.circuit, source.cells
    gates, gate_edges = circuit_size(circuit, cells)
    inputs = source.inputs + 2
    vertices = gates + 8 * cells + inputs + 1
    edges = gate_edges + 30 * cells + inputs + 1
    return Estimate(
        width=max(4 * cells, inputs + 1),
        depth=2 * circuit.depth + 7,  # XOR takes two levels
        parameters=2 * edges + vertices + 1 + cells,
        bytes=edges * (np.dtype(precision).itemsize + 4) + 8 * (vertices + 1 + cells),
        steps=None,
        precision=precision if memory == "practical" else memory,
        notes=(f"{cells:,} bits of memory, {circuit.size:,} gates, {edges:,} weights",),
    )


def examples() -> Sequence[Example]:
    """Small learners with samples, for demonstrations."""
    random = np.random.default_rng(7)
    x = random.integers(0, 2, (40, 8))
    return [
        Example(parity(8), (x, x[:, [1, 4, 5]].sum(axis=1) % 2, 1)),
        Example(conjunction(8, 20), (x, x[:, 2] & ~x[:, 6] & 1, 2)),
    ]


OPTIONS: dict[str, Option] = {
    "memory": Option("practical", "how weights remember bits", tuple(MEMORIES)),
    "precision": Option("float64", "of the practical network", tuple(PRECISIONS)),
    "steps": Option(1_000_000, "steps for which the drift of all other weights is bounded"),
}


TARGET = Target(
    name="emulator",
    summary="any learner, emulated by plain SGD on a fixed network",
    paper="Abbe, Sandon, section 4",
    takes=Learner,
    net=EmulatorNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options=OPTIONS,
)
