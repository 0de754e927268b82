"""Networks of ReLU units with skip connections: any unit may read any unit of an earlier layer.

Such a network is run with a running state: a row of slots, each of which holds a value until the last layer
that reads it, and is then given to another. `Units` is the network, `Slots` where its values go.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from tapegrad.errors import BrokenNet


class Units(NamedTuple):
    """Every unit is `relu(weights . values + bias)` of the places that it reads: those of the inputs come
    first, then one for each unit, layer by layer. Layer i has the units from `bounds[i]` to `bounds[i + 1]`.
    Outputs are `weight * value + bias` of one place each; the weight of a constant is 0, and its place 0."""

    inputs: int
    counts: Int[np.ndarray, " units"]
    """How many places each unit reads."""
    places: Int[np.ndarray, " reads"]
    weights: Int[np.ndarray, " reads"]
    biases: Int[np.ndarray, " units"]
    bounds: Int[np.ndarray, " ends"]
    out_places: Int[np.ndarray, " outputs"]
    out_weights: Int[np.ndarray, " outputs"]
    out_biases: Int[np.ndarray, " outputs"]

    @property
    def layers(self) -> int:
        """ReLU layers; the outputs do not count."""
        return len(self.bounds) - 1

    @property
    def starts(self) -> Int[np.ndarray, " ends"]:
        """Where the reads of each unit begin."""
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    @property
    def layer_of_place(self) -> Int[np.ndarray, " places"]:
        """The layer of every place, counted from 1; inputs are at 0."""
        own = np.repeat(np.arange(1, self.layers + 1), np.diff(self.bounds))
        return np.concatenate([np.zeros(self.inputs, np.int64), own])

    @property
    def last_read(self) -> Int[np.ndarray, " places"]:
        """The last layer that reads each place: its own if there is none, one more than there are for an
        output."""
        layer = self.layer_of_place
        last = layer.copy()
        np.maximum.at(last, self.places, np.repeat(layer[self.inputs :], self.counts))
        last[self.out_places[self.out_weights != 0]] = self.layers + 1
        return last

    def check(self) -> "Units":
        """Itself, if everything that is read exists in an earlier layer: backends rely on it."""
        bounds, total = self.bounds, len(self.biases)
        if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != total or (np.diff(bounds) < 0).any():
            raise BrokenNet("the layers of the network do not follow one another")
        if len(self.counts) != total or int(self.counts.sum(dtype=np.int64)) != len(self.places):
            raise BrokenNet("the units do not read as many places as there are")
        if len(self.weights) != len(self.places):
            raise BrokenNet("not every place that is read has a weight")
        if not len(self.out_places) == len(self.out_weights) == len(self.out_biases):
            raise BrokenNet("not every output has a place, a weight and a bias")
        begins = np.repeat(np.repeat(bounds[:-1], np.diff(bounds)), self.counts)
        if ((self.places < 0) | (self.places >= self.inputs + begins)).any():
            raise BrokenNet("a unit reads what is in no earlier layer")
        used = self.out_weights != 0
        if (np.where(used, self.out_places, 0) != self.out_places).any():
            raise BrokenNet("an output that reads nothing names a place")
        if ((self.out_places < 0) | used & (self.out_places >= self.inputs + total)).any():
            raise BrokenNet("an output reads a place that does not exist")
        return self


class Slots(NamedTuple):
    """Where values are kept while they are needed."""

    of_place: Int[np.ndarray, " places"]
    total: int


def slots_of(units: Units) -> Slots:
    """A slot for every place. It is free again after the last layer that reads it, not before: the units of a
    layer may be computed in any order."""
    last, freed = units.last_read.tolist(), [[] for _ in range(units.layers + 2)]
    of_place = list(range(units.inputs))
    for place in range(units.inputs):
        freed[last[place]].append(place)
    free: list[int] = []
    count = units.inputs
    for layer, (begin, end) in enumerate(pairwise(units.bounds.tolist()), 1):
        free += freed[layer - 1]
        for place in range(units.inputs + begin, units.inputs + end):
            if not free:
                free.append(count)
                count += 1
            of_place.append(free.pop())
            freed[last[place]].append(of_place[-1])
    return Slots(np.array(of_place, np.int32), count)
