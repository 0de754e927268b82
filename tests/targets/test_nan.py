"""Networks with a weight that is not a number: whatever runs them notices, and says nothing else."""

import dataclasses
from contextlib import suppress
from typing import Any

import jax
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import BrokenNet, TapegradError
from tapegrad.targets.rcnn.fast import Roller


@pytest.mark.parametrize(
    ("name", "target", "options", "inputs"),
    [("adder2", "relu", {"form": "paper"}, None), ("increment", "rcnn", {}, [("10",)])],
)
def test_weights_that_are_nan_are_a_mismatch_or_refused(
    name: str, target: str, options: dict[str, str], inputs: Any
) -> None:
    net = tg.compile(tg.read(name), target, **options)
    assert tg.verify(net, inputs).agreed
    leaves, form = jax.tree.flatten(net.net)
    arrays = [(i, np.asarray(leaf)) for i, leaf in enumerate(leaves)]
    weights = [i for i, array in arrays if np.issubdtype(array.dtype, np.floating) and array.any()]
    assert weights
    for number in weights:
        parts = [*leaves]
        parts[number] = np.where(leaves[number] != 0, np.nan, leaves[number])
        poisoned = dataclasses.replace(net, net=jax.tree.unflatten(form, parts))
        with suppress(TapegradError):  # such as a head that is nowhere
            assert not tg.verify(poisoned, inputs).agreed
        if target == "rcnn":  # whose fast engine skips what is 0, and would skip this
            with pytest.raises(BrokenNet, match="not finite"):
                Roller(poisoned.net.filter, poisoned.net.encoding)
