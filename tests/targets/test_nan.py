"""Networks with a weight that is not a number: whatever runs them notices, and says nothing else."""

import dataclasses
from contextlib import suppress
from typing import Any

import jax
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import TapegradError


@pytest.mark.parametrize(
    ("name", "target", "inputs", "engine"),
    [
        ("adder2", "relu", None, "reference"),
        ("increment", "rcnn", [("10",)], "reference"),
        ("increment", "rcnn", [("10",)], "fast"),
    ],
)
def test_weights_that_are_nan_are_a_mismatch_or_refused(
    name: str, target: str, inputs: Any, engine: str
) -> None:
    net = tg.compile(tg.read(name), target)
    assert tg.verify(net, inputs, engine=engine).agreed
    leaves, form = jax.tree.flatten(net.net)
    weights = [i for i, leaf in enumerate(leaves) if np.issubdtype(leaf.dtype, np.floating) and leaf.size]
    assert weights
    for number in weights:
        parts = [*leaves]
        parts[number] = np.full_like(leaves[number], np.nan)
        poisoned = dataclasses.replace(net, net=jax.tree.unflatten(form, parts))
        with suppress(TapegradError):  # such as a head that is nowhere
            assert not tg.verify(poisoned, inputs, engine=engine).agreed
