"""The inputs that `verify` chooses where the user gives none."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.circuits.layered import LayeredCircuit
from tapegrad.circuits.model import Circuit
from tapegrad.compile import Compiled
from tapegrad.errors import InputError
from tapegrad.learners import Learner
from tapegrad.machines.model import TuringMachine

EXHAUSTIVE_BITS = 20
"""Circuits of up to this many inputs are checked on all of them."""

RANDOM_PATTERNS = 4096
BATCH = 1 << 12
PATTERNS_ONE_BY_ONE = 64
"""A circuit that runs as a machine takes its inputs one after the other, so fewer are sampled."""

RANDOM_WORDS = 8
RANDOM_SAMPLES = 64
SAMPLES_FOR_MACHINES = 8
"""A learner that runs as a machine takes many steps for each sample, so fewer are drawn."""

Inputs = Iterator[tuple[Any, ...]]


def default_inputs(compiled: Compiled, seed: int) -> tuple[Inputs, bool]:
    """Inputs for the source of a net, and whether they are all there are."""
    source, random = compiled.source, np.random.default_rng(seed)
    if isinstance(source, Circuit):
        in_batches = any(isinstance(p.after, LayeredCircuit) for p in compiled.passes)
        return _patterns(len(source.inputs), in_batches, random)
    if isinstance(source, TuringMachine):
        return _words(source, random), False
    if isinstance(source, Learner):
        count = SAMPLES_FOR_MACHINES if compiled.passes else RANDOM_SAMPLES
        x = random.integers(0, 2, (count, source.inputs), np.uint8)
        labels = random.integers(0, 2, count, np.uint8), x.sum(axis=1) % 2
        return iter([(x, y, seed) for y in labels]), False
    raise InputError(
        f"there is no standard sample of inputs for {source.name!r}", advice="Give the inputs to check."
    )


def _patterns(bits: int, in_batches: bool, random: np.random.Generator) -> tuple[Inputs, bool]:
    """All patterns of a few bits, or a sample."""
    most = 1 << EXHAUSTIVE_BITS if in_batches else PATTERNS_ONE_BY_ONE
    if exhaustive := 1 << bits <= most:
        batches = _every_pattern(bits)
    else:
        batches = iter([random.integers(0, 2, (min(most, RANDOM_PATTERNS), bits), np.uint8)])
    if not in_batches:
        batches = (row[None] for batch in batches for row in batch)
    return ((batch,) for batch in batches), exhaustive


def _every_pattern(bits: int) -> Iterator[np.ndarray]:
    for first in range(0, 1 << bits, BATCH):
        numbers = np.arange(first, min(first + BATCH, 1 << bits))[:, None]
        yield (numbers >> np.arange(bits) & 1).astype(np.uint8)


def _words(machine: TuringMachine, random: np.random.Generator) -> Inputs:
    """The empty input, then random words over the symbols that are not blank."""
    yield ()
    letters = [symbol for symbol in machine.alphabet if symbol != machine.blank]
    if not letters:
        return
    for length in range(1, RANDOM_WORDS + 1):
        yield tuple(
            [letters[i] for i in random.integers(0, len(letters), length)] for _ in range(machine.tapes)
        )
