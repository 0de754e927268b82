"""The target `emulator`, as the compiler finds it."""

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tapegrad.errors import Refused
from tapegrad.learners import Learner, conjunction, parity
from tapegrad.targets.emulator.net import MEMORIES, EmulatorNet
from tapegrad.targets.emulator.practical_constants import PRECISIONS
from tapegrad.targets.emulator.sizes import exact_size, noisy_size, practical_size
from tapegrad.targets.target import Estimate, Example, Option, Target

OPTIONS: dict[str, Option] = {
    "memory": Option("practical", "how weights remember bits", tuple(MEMORIES)),
    "precision": Option("float64", "of a practical network", tuple(PRECISIONS)),
    "steps": Option(1_000_000, "steps for which a practical network would do even without rounding"),
    "exponent": Option("3", "of the activation of an exact network, a fraction such as 11/9"),
    "samples": Option(None, "how many samples a noise-tolerant network memorises"),
    "arithmetic": Option("double", "of a noise-tolerant network", ("double", "decimal")),
    "noise": Option(0.0, "sum of the noise on each weight of a noise-tolerant network"),
}


def build(source: Learner, *, memory: str, **options: Any) -> EmulatorNet:
    """The network of a learner."""
    _check_numbers(options)
    return import_module(MEMORIES[memory]).compiled(source, **options)


def estimate(source: Learner, *, memory: str, **options: Any) -> Estimate:
    """The size of the network, counted from the learner's circuit."""
    _check_numbers(options)
    cells, samples = source.cells, options["samples"] or 1
    depth = 2 * source.circuit.depth  # XOR takes two levels
    if memory == "practical":
        (vertices, edges), saved = practical_size(source), cells
        depth, width, precision = depth + 7, max(4 * cells, source.inputs + 3), options["precision"]
    elif memory == "exact":
        (vertices, edges), saved = exact_size(source), cells + 2
        depth, width, precision = depth + 2 * cells + 10, 4 * (2 * cells + 1), "exact"
    else:
        vertices, edges = noisy_size(source, samples)
        saved = (samples + 1) * (cells + 3) + edges + cells - 1
        depth = (depth + 7) * (samples + 1) + 2 * source.inputs + 12
        width, precision = 4 * samples * (source.inputs + 1), options["arithmetic"]
    weight_bytes = {"float32": 4, "exact": 5}.get(precision, 8)
    return Estimate(
        width=width,
        depth=depth,
        parameters=(3 if precision == "exact" else 2) * edges + vertices + 1 + saved,
        bytes=edges * (weight_bytes + 4) + 8 * (vertices + 1 + saved),
        steps=None,
        precision=precision,
        notes=(f"{cells:,} bits of memory, {source.circuit.size:,} gates, {edges:,} weights",),
    )


def _check_numbers(options: dict[str, Any]) -> None:
    for name in ("steps", "samples"):
        value = options[name]
        if value is not None and (not isinstance(value, int) or value < 1):
            raise Refused(f"the number of {name} must be a positive integer, not {value!r}")
    noise = options["noise"]
    if not isinstance(noise, int | float) or not 0 <= noise < math.inf:
        raise Refused(f"the noise must be a number of at least 0, not {noise!r}")


def examples() -> Sequence[Example]:
    """Small learners with samples, for demonstrations."""
    random = np.random.default_rng(7)
    x = random.integers(0, 2, (40, 8))
    few = random.integers(0, 2, (12, 2))
    return [
        Example(parity(8), (x, x[:, [1, 4, 5]].sum(axis=1) % 2, 1)),
        Example(conjunction(8, 20), (x, x[:, 2] * (1 - x[:, 6]), 2)),
        Example(parity(2), (few, few.sum(axis=1) % 2, 1), {"memory": "exact"}),
        Example(parity(2), (few, few[:, 0], 1, False), {"memory": "noise-tolerant", "samples": 6}),
    ]


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
