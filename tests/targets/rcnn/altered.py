"""Filters with other weights than the compiler gave them."""

from dataclasses import replace
from typing import Any

from tapegrad.targets.rcnn.build import Filter
from tapegrad.targets.rcnn.network import Rcnn


def altered(filter: Filter, place: int, **parts: Any) -> Filter:
    """With other arrays in one of its maps."""
    layers = list(filter.layers)
    layers[place] = replace(layers[place], map=replace(layers[place].map, **parts))
    return replace(filter, layers=tuple(layers))


def with_altered(network: Rcnn, place: int, **parts: Any) -> Rcnn:
    """The network of a learner with such a filter."""
    return replace(network, filter=altered(network.filter, place, **parts))
