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
PATTERNS_ONE_BY_ONE = 64
"""A circuit that runs as a machine takes its inputs one after the other, so fewer are sampled."""

RANDOM_WORDS = 8
RANDOM_SAMPLES = 64


def default_inputs(compiled: Compiled, seed: int) -> tuple[Iterator[tuple[Any, ...]], bool]:
    """Inputs for the source of a net, and whether they are all there are."""
    source, random = compiled.source, np.random.default_rng(seed)
    if isinstance(source, Circuit):
        bits = len(source.inputs)
        one_by_one = not any(isinstance(p.after, LayeredCircuit) for p in compiled.passes)
        most = PATTERNS_ONE_BY_ONE if one_by_one else 1 << EXHAUSTIVE_BITS
        every = 1 << bits <= most
        if every:
            batches = _every_pattern(bits)
        else:
            count = min(most, RANDOM_PATTERNS)
            batches = iter([random.integers(0, 2, (count, bits), np.uint8)])
        if one_by_one:
            batches = (row[None] for batch in batches for row in batch)
        return ((batch,) for batch in batches), every
    if isinstance(source, TuringMachine):
        return _words(source, random), False
    raise InputError(
        f"there is no standard sample of inputs for {source.name!r}", advice="Give the inputs to check."
    )


def _every_pattern(bits: int) -> Iterator[np.ndarray]:
    for first in range(0, 1 << bits, BATCH):
        numbers = np.arange(first, min(first + BATCH, 1 << bits))[:, None]
        yield (numbers >> np.arange(bits) & 1).astype(np.uint8)


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
