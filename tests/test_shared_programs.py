"""What XLA compiles for one source serves every other of like size: a second machine waits for nothing."""

import jax.monitoring
import pytest

import tapegrad as tg
from tapegrad.circuits.sampler import random_circuit
from tapegrad.learners.kind import random_learner
from tapegrad.machines.sampler import random_grid_machine, random_machine

SOURCES = {
    "simplex": ([random_machine(seed, states=3, halt=0.4) for seed in (1, 3, 8)], {}),
    "tape": (
        [random_machine(seed, states=states) for seed, states in ((1, 3), (2, 4), (3, 5))],
        {"cells": 20},
    ),
    "transformer": (
        [random_machine(seed, states=states) for seed, states in ((0, 3), (1, 4), (2, 2))],
        {"steps": 20},
    ),
    "rcnn": ([random_grid_machine(seed) for seed in (0, 2, 5)], {"margin": 9}),
    "emulator": ([random_learner(seed, cells=cells) for seed, cells in ((1, 4), (2, 4), (5, 3))], {}),
    "relu": (
        [random_circuit(seed, inputs=5, size=size) for seed, size in ((0, 30), (1, 35), (2, 25))],
        {"form": "paper"},
    ),
}
"""For each target sources of like size, and options."""

INPUTS = {"rcnn": [[(rows,)] for rows in ([], ["1"], ["01", "1"])]}
"""Where there are no standard ones: grids of like size."""


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
    jax.clear_caches()
    for number, source in enumerate(sources):
        inputs = INPUTS[target][number] if target in INPUTS else None
        net = tg.compile(source, target, **options)
        before = len(compiled)
        assert tg.verify(net, inputs, steps=8).agreed
        if number == 0:
            assert len(compiled) > before, "the first must compile something, or nothing is counted"
        else:
            assert len(compiled) == before, source.name
