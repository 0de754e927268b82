"""Nets of every forward target and form, small enough for a backend in plain Python."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import tapegrad as tg
from tapegrad.interop.layers import bits_to_bits
from tapegrad.learners import dictator
from tapegrad.machines.model import Configuration
from tapegrad.networks.network import Network
from tapegrad.targets.extended import FixedPoint, Training, linear
from tests.targets.extended.algorithms import copy_bits, training

TRACE = [[1, 0], [1, 0], [1, 1]]
"""Three cycles of a counter: enable, clear."""


class Case(NamedTuple):
    """A source, its target and options, and an input."""

    source: str
    target: str
    options: Mapping[str, Any]
    inputs: tuple[Any, ...]


CASES = {
    "relu, compact": Case("adder2", "relu", {}, ([[1, 0, 1, 1], [1, 1, 1, 1]],)),
    "relu, without skips": Case("adder2", "relu", {"skips": False}, ([[1, 0, 1, 1], [1, 1, 1, 1]],)),
    "relu, paper": Case("adder2", "relu", {"form": "paper", "correction": "quarters"}, ([[1, 0, 1, 1]],)),
    "transformer, paper": Case("increment", "transformer", {"form": "paper", "steps": 16}, ("11",)),
    "transformer, paper, softmax": Case(
        "increment", "transformer", {"form": "paper", "steps": 16, "attention": "softmax"}, ("11",)
    ),
    "transformer, machine": Case("increment", "transformer", {"steps": 16}, ("11",)),
    "transformer, circuit": Case("adder2", "transformer", {}, ([[1, 0, 1, 1]],)),
    "transformer, clock": Case("counter8", "transformer", {"steps": 8}, (TRACE,)),
    "transformer, program": Case("subleq-hello", "transformer", {"steps": 32, "input": 1, "output": 4}, ()),
    "decoder, machine": Case("increment", "decoder", {"tokens": 200}, ("1",)),
    "decoder, RASP": Case("rasp-reverse", "decoder", {}, ("abc",)),
    "decoder, RASP with means": Case("rasp-fraction", "decoder", {}, ("aba",)),
    "rcnn, channels": Case("increment", "rcnn", {"margin": 2}, ("1",)),
    "rcnn, ternary": Case("increment", "rcnn", {"margin": 2, "form": "paper"}, ("1",)),
}


EXTENDED = "extended"
X, Y = np.array([[1.0, -2.0], [0.5, 1.5]]), np.array([[-1.0], [0.5]])
DATA = "".join(("0100", "0011", "1000", "1100", "0111", "1000"))
"""Both, row by row, as halves in bits of two's complement, the lowest first."""
FIRST = Configuration("start", ({i: "1" for i, bit in enumerate(DATA, 1) if bit == "1"}, {}), (0, 0))
"""Where the machine starts that copies twelve of these bits, which are theta."""
SAMPLES = [[0, 1], [1, 1], [1, 0], [0, 0], [1, 0]], [1, 1, 0, 0, 1], 3
TRAINED = {
    "simplex": Case("increment", "simplex", {"inputs": [["11"]]}, ("11",)),
    "tape": Case("increment", "tape", {"cells": 8}, ("11",)),
    EXTENDED: Case("copy bits", "tape", {"cells": 64}, (FIRST,)),
    "emulator, practical": Case("dictator", "emulator", {}, SAMPLES),
    "emulator, noise-tolerant": Case(
        "dictator", "emulator", {"form": "noise-tolerant", "samples": 3}, (*SAMPLES[:2], 3, False)
    ),
}
"""Nets that run while they are trained."""
BEGUN = {"emulator, noise-tolerant": 1}
"""Steps of training that were taken, if not three."""
EXACT_MEMORY = "emulator, exact"
COMPILED = {**CASES, **TRAINED, EXACT_MEMORY: Case("dictator", "emulator", {"form": "paper"}, SAMPLES)}
"""Whatever compiles."""


LAYER = "layer on transformer"


@lru_cache
def network_of(name: str) -> Network:
    """The network of a case, or that of a circuit as a layer."""
    if name == LAYER:
        network = bits_to_bits(compiled("transformer, circuit"))
        assert network is not None
        return network
    return compiled(name).net.network


@lru_cache
def extended() -> Training:
    return training(linear(2), copy_bits(12), X, Y, data_format=FixedPoint(4, 1), cells=64)


@lru_cache
def compiled(name: str) -> tg.Compiled:
    if name == EXTENDED:
        return extended().compiled
    case = COMPILED[name]
    source = dictator(2, 2) if case.source == "dictator" else case.source
    return tg.compile(source, case.target, **case.options)


def given(name: str) -> dict[str, np.ndarray]:
    """Inputs and the first state of the network of a case."""
    if name == LAYER:
        return {"bits": np.array([[1, 0, 1, 1], [0, 1, 0, 0]], np.float32)}
    own = compiled(name)
    carry = own.start(*COMPILED[name].inputs)
    carry = begun(name) if name in TRAINED else carry
    return own.net.network.first_state() | own.net.given(carry)


@lru_cache
def begun(name: str) -> Any:
    """A net that is trained, after some steps."""
    own = compiled(name)
    carry = own.start(*COMPILED[name].inputs)
    for _ in range(BEGUN.get(name, 3)):
        carry = own.net.step(carry)
    return carry
