"""Nets of every forward target and form, small enough for a backend in plain Python."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import tapegrad as tg
from tapegrad.interop.layers import layer_network
from tapegrad.networks.network import Network

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
    "transformer, paper": Case("increment", "transformer", {"steps": 16}, ("11",)),
    "transformer, paper, softmax": Case(
        "increment", "transformer", {"steps": 16, "attention": "softmax", "correction": "quarters"}, ("11",)
    ),
    "transformer, circuit": Case("adder2", "transformer", {}, ([[1, 0, 1, 1]],)),
    "transformer, clock": Case("counter8", "transformer", {"steps": 8}, (TRACE,)),
    "transformer, program": Case("subleq-hello", "transformer", {"steps": 32, "input": 1, "output": 4}, ()),
    "decoder, machine": Case("increment", "decoder", {"tokens": 200}, ("1",)),
    "decoder, RASP": Case("rasp-reverse", "decoder", {}, ("abc",)),
    "decoder, RASP with means": Case("rasp-fraction", "decoder", {}, ("aba",)),
    "rcnn, channels": Case("increment", "rcnn", {"margin": 2}, ("1",)),
    "rcnn, ternary": Case("increment", "rcnn", {"margin": 2, "encoding": "ternary"}, ("1",)),
}


LAYER = "layer on transformer"


@lru_cache
def network_of(name: str) -> Network:
    """The network of a case, or that of a circuit as a layer."""
    if name == LAYER:
        return layer_network(compiled("transformer, circuit"), "none")
    return compiled(name).net.network


@lru_cache
def compiled(name: str) -> tg.Compiled:
    case = CASES[name]
    return tg.compile(case.source, case.target, **case.options)


def given(name: str) -> dict[str, np.ndarray]:
    """Inputs and the first state of the network of a case."""
    if name == LAYER:
        return {"bits": np.array([[1, 0, 1, 1], [0, 1, 0, 0]], np.float32)}
    own = compiled(name)
    carry = own.start(*CASES[name].inputs)
    return own.net.network.first_state() | own.net.given(carry)
