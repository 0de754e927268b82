"""The inputs that `verify` chooses where the user gives none."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError
from tapegrad.learners import Learner
from tapegrad.lowering.rewriting import Source
from tapegrad.machines.model import TuringMachine

EXHAUSTIVE_BITS = 20
"""Circuits of up to this many inputs are checked on all of them."""

RANDOM_PATTERNS = 4096
BATCH = 1 << 12
RANDOM_WORDS = 8
RANDOM_SAMPLES = 64


def default_inputs(source: Source, seed: int) -> tuple[Iterator[tuple[Any, ...]], bool]:
    """Inputs for this source, and whether they are all there are."""
    random = np.random.default_rng(seed)
    if isinstance(source, Circuit):
        bits = len(source.inputs)
        if bits <= EXHAUSTIVE_BITS:
            return _every_pattern(bits), True
        return iter([(random.integers(0, 2, (RANDOM_PATTERNS, bits), np.uint8),)]), False
    if isinstance(source, TuringMachine):
        return _words(source, random), False
    if isinstance(source, Learner):
        x = random.integers(0, 2, (RANDOM_SAMPLES, source.inputs), np.uint8)
        labels = random.integers(0, 2, RANDOM_SAMPLES, np.uint8), x.sum(axis=1) % 2
        return iter([(x, y, seed) for y in labels]), False
    raise InputError(
        f"there is no standard sample of inputs for {source.name!r}", advice="Give the inputs to check."
    )


def _every_pattern(bits: int) -> Iterator[tuple[Any, ...]]:
    for first in range(0, 1 << bits, BATCH):
        numbers = np.arange(first, min(first + BATCH, 1 << bits))[:, None]
        yield ((numbers >> np.arange(bits) & 1).astype(np.uint8),)


def _words(machine: TuringMachine, random: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """The empty input, then random words over the symbols that are not blank."""
    yield ()
    letters = [symbol for symbol in machine.alphabet if symbol != machine.blank]
    if not letters:
        return
    for length in range(1, RANDOM_WORDS + 1):
        yield tuple(
            [letters[i] for i in random.integers(0, len(letters), length)] for _ in range(machine.tapes)
        )
