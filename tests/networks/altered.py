"""Nets of layers with other numbers in their network, to see who notices."""

from dataclasses import replace
from typing import Any

import numpy as np

from tapegrad.networks.network import Network
from tapegrad.networks.wiring import node_of
from tapegrad.targets.relu import LayeredNet


def network_with(network: Network, part: str, place: Any, value: Any) -> Network:
    """Another number in an array of the layers."""
    name = node_of(network).arrays[part]
    array = network.arrays[name].copy()
    array[place] = value
    return replace(network, arrays={**network.arrays, name: array})


def net_with(net: LayeredNet, part: str, place: Any, value: Any) -> Any:
    """The net with another number there."""
    return replace(net, network=network_with(net.network, part, place, value))


def layer_entries(net: LayeredNet, layer: int) -> np.ndarray:
    """The entries of the rows of a layer."""
    first, last = net.wiring.starts[net.bounds[layer : layer + 2]]
    return np.arange(first, last)
