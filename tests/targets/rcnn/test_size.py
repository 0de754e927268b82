"""Sizes of filters, counted before they are built."""

import pytest

from tapegrad.machines.sampler import random_grid_machine
from tapegrad.targets.rcnn.exactness import filter_size
from tapegrad.targets.rcnn.net import RcnnNet


@pytest.mark.parametrize("symbols", [2, 3, 5])
@pytest.mark.parametrize("encoding", ["ternary", "channels"])
def test_sizes_are_those_of_the_net_that_is_saved(encoding, symbols):
    machine = random_grid_machine(symbols, states=3, symbols=symbols)
    net, size = RcnnNet.of(machine, encoding, 2), filter_size(machine, encoding)
    arrays = net.all_arrays()
    assert size.parameters == sum(array.size for array in arrays.values())
    assert size.bytes == sum(array.nbytes for array in arrays.values())
    assert size.weights == sum(array.size for array in arrays.values() if array.dtype.kind == "f")
    maps = net.filter.maps
    assert (size.width, size.depth) == (max(map(len, maps)), len(maps))
    places = [len(own) * own.width for own in maps]
    biases = [len(own) for own in (maps if encoding == "ternary" else maps[:1])]
    assert size.dense == sum(places) + sum(biases)
