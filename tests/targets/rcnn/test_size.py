"""Sizes of filters, counted before they are built."""

import pytest

from tapegrad.machines.sampler import random_grid_machine
from tapegrad.targets.rcnn.exactness import filter_size
from tapegrad.targets.rcnn.net import RcnnNet


@pytest.mark.parametrize("symbols", [2, 3, 5])
@pytest.mark.parametrize("encoding", ["ternary", "channels"])
def test_sizes_are_those_of_the_net_that_is_saved(encoding, symbols):
    machine = random_grid_machine(symbols, states=3, symbols=symbols)
    size, arrays = filter_size(machine, encoding), RcnnNet.of(machine, encoding, 2).arrays()
    assert size.parameters == sum(array.size for array in arrays.values())
    assert size.bytes == sum(array.nbytes for array in arrays.values())
    if encoding == "channels":
        filters = [arrays[name] for name in ("kernel", "bias", "mix")]
        assert size.dense == size.weights == sum(part.size for part in filters)
        assert (size.width, size.depth) == (len(arrays["kernel"]), 2)
        return
    shapes = [(len(arrays[f"V{n}.bias"]), int(arrays[f"V{n}.width"][0])) for n in range(1, 6)]
    assert size.dense == sum(rows * (columns + 1) for rows, columns in shapes)
    assert (size.width, size.depth) == (max(rows for rows, _ in shapes), 5)
    parts = [arrays[f"V{n}.{part}"] for n in range(1, 6) for part in ("values", "bias")]
    assert size.weights == sum(part.size for part in parts)
