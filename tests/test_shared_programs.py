"""What XLA compiles for one source serves every other of like size: a second machine waits for nothing."""

from typing import Any

import jax.monitoring
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.circuits.sampler import random_circuit
from tapegrad.learners.kind import random_learner
from tapegrad.machines.sampler import random_machine

SOURCES = {
    "simplex": ([random_machine(seed, states=3, halt=0.4) for seed in (1, 3, 8)], {}),
    "tape": (
        [random_machine(seed, states=states) for seed, states in ((1, 3), (2, 4), (3, 5))],
        {"cells": 20},
    ),
    "emulator": ([random_learner(seed, cells=cells) for seed, cells in ((1, 4), (2, 4), (5, 3))], {}),
}
"""For each target sources of like size, and options."""


@pytest.fixture
def compiled():
    """A list with an entry for each program that XLA has compiled."""
    names: list[str] = []

    def listen(event: str, duration_secs: float, **about: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            names.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=[pytest.mark.slow] * (name == "simplex")) for name in SOURCES]
)
def test_a_second_source_compiles_nothing(target, compiled):
    sources, options = SOURCES[target]
    target = target.split(",")[0]
    jax.clear_caches()
    for number, source in enumerate(sources):
        net = tg.compile(source, target, **options)
        before = len(compiled)
        assert tg.verify(net, steps=8).agreed
        if number == 0:
            assert len(compiled) > before, "the first must compile something, or nothing is counted"
        else:
            assert len(compiled) == before, source.name


def test_compact_nets_share_the_compiled_engine(compiled):
    """The fast engine is compiled for types alone, not for sizes; the reference is not compiled at all."""
    from tapegrad.networks.backends import numba

    def code() -> list[int]:
        own: tuple[Any, ...] = numba._in_turn, numba._at_once, numba._bytes_in_turn, numba._bytes_at_once
        return [len(loop.signatures) for loop in own]

    nets: list[Any] = [
        tg.compile(random_circuit(seed, inputs=inputs, size=size), "relu", form="practical").net
        for seed, inputs, size in ((0, 5, 30), (1, 5, 35), (2, 9, 400))
    ]
    before, rng, seen = len(compiled), np.random.default_rng(0), []
    for net in nets:
        for patterns in (16, 16, 300, 20_000):
            bits = rng.integers(0, 2, (patterns, len(net.input_names))).astype(bool)
            assert np.array_equal(net.outputs(bits, "fast") > 0, net.outputs(bits) > 0)
        seen.append(code())
    assert seen[0] == seen[1], "another net of like size"
    assert seen[2][2] == seen[0][2] > 0, "and one of another size, where there are few patterns"
    assert len(compiled) == before
