"""Networks of ReLU units with skip connections: any unit may read any unit of an earlier layer.

Such a network is run with a running state: a row of slots, each of which holds a value until the last layer
that reads it, and is then given to another. `Units` is the network, `Slots` where its values go, `Tiles` the
same in pieces of one shape, which is how JAX runs it: however large a network is, one small program is
compiled, and nets of like size share it.
"""

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from tapegrad.errors import BrokenNet
from tapegrad.networks.jax import room

TILE, FAN_IN = 32, 8
"""Units that JAX computes together, and reads of each: eight suffice for every gate of four inputs, so that
gates do not make a difference to what is compiled."""


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


class Tiles(NamedTuple):
    """Units in groups of `TILE` from one layer each, all with the same number of reads; what is missing reads
    nothing and goes to the last slot, which nobody reads."""

    reads: Int[Array, "tiles tile fan_in"]
    weights: Float[Array, "tiles tile fan_in"]
    biases: Float[Array, "tiles tile"]
    to: Int[Array, "tiles tile"]
    bounds: Int[np.ndarray, " ends"]
    """Where the tiles of each layer begin."""


def tiles_of(units: Units, dtype: np.dtype, slots: Slots) -> Tiles:
    """The network on the device, in rooms that nets of like size share."""
    each = -(-np.diff(units.bounds) // TILE)
    bounds = np.concatenate([[0], np.cumsum(each)]).astype(np.int64)
    height, fan_in = room(max(1, int(bounds[-1]))), -(-int(units.counts.max(initial=1)) // FAN_IN) * FAN_IN
    width = room(slots.total + 1)
    layer = np.repeat(np.arange(units.layers), np.diff(units.bounds))
    within = np.arange(len(layer)) - units.bounds[layer]
    tile, row = bounds[layer] + within // TILE, within % TILE
    biases = np.zeros((height, TILE), dtype)
    biases[tile, row] = units.biases
    to = np.full((height, TILE), width - 1, np.int32)
    to[tile, row] = slots.of_place[units.inputs :]
    reads = np.full((height, TILE, fan_in), width - 1, np.int32)
    weights = np.zeros((height, TILE, fan_in), dtype)
    unit = np.repeat(np.arange(len(layer)), units.counts)
    which = np.arange(len(unit)) - units.starts[unit]
    reads[tile[unit], row[unit], which] = slots.of_place[units.places]
    weights[tile[unit], row[unit], which] = units.weights
    on_device = [jax.device_put(array) for array in (reads, weights, biases, to)]
    return Tiles(on_device[0], on_device[1], on_device[2], on_device[3], bounds)


def run_tiles(
    tiles: Tiles, values: Float[Array, "slots patterns"], first: int, last: int
) -> Float[Array, "slots patterns"]:
    """The layers from `first` up to `last`, not included."""
    begin, end = (jnp.int32(tiles.bounds[layer]) for layer in (first, last))
    return _run(tiles.reads, tiles.weights, tiles.biases, tiles.to, values, begin, end)


@jax.jit
def _run(
    reads: Int[Array, "tiles tile fan_in"],
    weights: Float[Array, "tiles tile fan_in"],
    biases: Float[Array, "tiles tile"],
    to: Int[Array, "tiles tile"],
    values: Float[Array, "slots patterns"],
    begin: Int[Array, ""],
    end: Int[Array, ""],
) -> Float[Array, "slots patterns"]:
    def tile(number: Int[Array, ""], values: Array) -> Array:
        own = values[reads[number]] * weights[number][..., None]
        return values.at[to[number]].set(jax.nn.relu(own.sum(axis=1) + biases[number][:, None]))

    return lax.fori_loop(begin, end, tile, values)
