"""The units of a compact network: gates made by their recipes, shared, and put in layers.

A unit may read any unit of an earlier layer, and any input: what it reads stays where it is until its last
reader has read it (skip connections). Without skips, identities carry it along, so that each layer reads the
one before it and nothing else. Either way the sum of all lifetimes is what counts. So a unit is not put in
the first layer that it could be in: it moves as long as that makes the sum smaller.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from tapegrad._jit import njit
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.networks.form import Stack
from tapegrad.networks.skips import Units
from tapegrad.targets.relu.compact.cover import Cover, cover
from tapegrad.targets.relu.compact.graph import Graph, graph_of
from tapegrad.targets.relu.compact.recipes import Recipe, catalogue, ways

LARGEST, NUMBERS_EACH = 1 << 28, 5
"""Numbers of a network that is built, and of an identity in it."""
ROUNDS = 32
"""How often units may move; mostly they come to rest before."""


class Made(NamedTuple):
    """The network, and what its units are there for."""

    units: Units
    holds: Int[np.ndarray, " units"]
    """Twice the wire of the circuit whose value the unit has, plus one if negated; -1 for a unit within a
    gate."""


def made(circuit: Circuit, *, skips: bool) -> Made:
    """The compact network of a circuit."""
    graph = graph_of(circuit)
    found = _in_layers(_made(graph, cover(graph, catalogue())))
    return found if skips else with_identities(found)


_Unit = tuple[tuple[tuple[int, int], ...], int]
"""Places with their weights, and the bias."""


class _Making:
    """Units so far; two that are the same are one."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.units: list[_Unit] = []
        self._known: dict[_Unit, int] = {}

    def add(self, ways: list[tuple[Recipe, bool]], leaves: list[int]) -> tuple[int, bool]:
        """A gate on these places, in the way that needs the fewest new units: where it is, and whether that
        is its negation."""
        made = [(*self._units(recipe, leaves), negated) for recipe, negated in ways]
        new, place, negated = min(made, key=lambda way: len(way[0]))
        for unit in new:
            self._known[unit] = self.inputs + len(self.units)
            self.units.append(unit)
        return place, negated

    def _units(self, recipe: Recipe, leaves: list[int]) -> tuple[list[_Unit], int]:
        """The units of a recipe that are not there yet, and the place that the last one has or would have."""
        new: list[_Unit] = []
        own: list[int] = []
        for unit in recipe:
            total: dict[int, int] = {}
            for place, weight in zip(
                (*leaves, *own), (*unit.inputs[: len(leaves)], *unit.units), strict=False
            ):
                total[place] = total.get(place, 0) + weight
            made = tuple(sorted((place, weight) for place, weight in total.items() if weight)), unit.bias
            if made in self._known:
                own.append(self._known[made])
            elif made in new:
                own.append(self.inputs + len(self.units) + new.index(made))
            else:
                own.append(self.inputs + len(self.units) + len(new))
                new.append(made)
        return new, own[-1]


def _made(graph: Graph, chosen: Cover) -> Made:
    """Gate by gate. A gate may give its negation, which those that read it take into account: their truth
    tables are turned over in that input."""
    making = _Making(graph.inputs)
    place = [-1, *range(graph.inputs), *[-1] * (len(graph.left) - graph.inputs - 1)]
    negated = [False] * len(place)
    holds: dict[int, int] = {}
    gates = zip(chosen.node.tolist(), chosen.leaves.tolist(), chosen.table.tolist(), strict=True)
    for node, leaves, plain in gates:
        leaves, table = [leaf for leaf in leaves if leaf >= 0], plain
        for i, leaf in enumerate(leaves):
            if negated[leaf]:
                table = _turned(table, i)
        place[node], negated[node] = making.add(ways(table), [place[leaf] for leaf in leaves])
        holds.setdefault(place[node] - graph.inputs, int(graph.holds[node]) ^ negated[node])
    reads = [read for unit, _ in making.units for read in unit]
    out_nodes = graph.outputs >> 1
    signs = 1 - 2 * ((graph.outputs & 1) ^ np.array(negated)[out_nodes])
    constant = out_nodes == 0
    units = Units(
        graph.inputs,
        np.array([len(unit) for unit, _ in making.units], np.uint8),
        np.array([own for own, _ in reads], np.int32),
        np.array([weight for _, weight in reads], np.int8),
        np.array([bias for _, bias in making.units], np.int8),
        np.array([0, len(making.units)]),
        np.where(constant, 0, np.array(place)[out_nodes]).astype(np.int32),
        np.where(constant, 0, 2 * signs).astype(np.int8),
        (-signs).astype(np.int8),
    )
    return Made(units, np.array([holds.get(unit, -1) for unit in range(len(making.units))], np.int32))


_ROWS_WITH = (0xAAAA, 0xCCCC, 0xF0F0, 0xFF00)


def _turned(table: int, i: int) -> int:
    """A truth table whose input i is negated."""
    return (table & _ROWS_WITH[i]) >> (1 << i) | (table & ~_ROWS_WITH[i] & 0xFFFF) << (1 << i)


# Layers


def _in_layers(made: Made) -> Made:
    """Numbered layer by layer."""
    units = made.units
    starts = units.starts
    outs = units.out_places[units.out_weights != 0].astype(np.int64)
    layer = _layers(units.inputs, starts, units.places, outs)
    order = np.argsort(layer, kind="stable")
    number = _numbers(units.inputs, order)
    reads = _ranges(starts[order], units.counts[order])
    return Made(
        units._replace(
            counts=units.counts[order],
            places=number[units.places[reads]].astype(np.int32),
            weights=units.weights[reads],
            biases=units.biases[order],
            bounds=_bounds(layer, int(layer.max(initial=0))),
            out_places=np.where(units.out_weights != 0, number[units.out_places], 0).astype(np.int32),
        ),
        made.holds[order],
    )


def _numbers(inputs: int, order: Int[np.ndarray, " units"]) -> Int[np.ndarray, " places"]:
    """The new number of each place, once units are in this order. There is one more, so that place 0, which
    constants name, exists even in a network of nothing."""
    number = np.arange(inputs + len(order) + 1)
    number[inputs + order] = inputs + np.arange(len(order))
    return number


def _bounds(layer: Int[np.ndarray, " units"], depth: int) -> Int[np.ndarray, " ends"]:
    """Where each layer begins, from the layers of the units, which are counted from 1."""
    return np.concatenate([[0], np.cumsum(np.bincount(layer, minlength=depth + 1)[1:])]).astype(np.int64)


def _ranges(starts: Int[np.ndarray, " some"], counts: Int[np.ndarray, " some"]) -> Int[np.ndarray, " all"]:
    """The numbers from each start on, as many as it has, one after the other."""
    counts = counts.astype(np.int64)
    return np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


@njit()
def _layers(inputs, starts, places, outs):
    """The layer of every unit, from 1 on, with a small sum of lifetimes; the depth is the least possible.

    A place is kept from its own layer to that of its last reader, and to the end if it is an output. Let o_1
    <= o_2 <= ... be how long what a unit reads is kept for others. In layer t the unit costs
    sum max(t, o_i) - t: this falls up to o_1, is level up to o_2, and rises from there. Units go to the far
    end of the level part in one round and to the near end in the next, so that those behind them can
    follow."""
    total = len(starts) - 1
    layer = np.zeros(inputs + total, np.int64)
    for unit in range(total):
        for read in range(starts[unit], starts[unit + 1]):
            layer[inputs + unit] = max(layer[inputs + unit], layer[places[read]])
        layer[inputs + unit] += 1
    depth = 0
    for unit in range(total):
        depth = max(depth, layer[inputs + unit])
    to_end = np.zeros(inputs + total, np.bool_)
    to_end[outs] = True
    first, readers = _readers(inputs, starts, places)
    before = _lifetimes(layer, first, readers, to_end, inputs, depth)
    for number in range(ROUNDS):
        far = number % 2 == 0
        for step in range(total):
            unit = total - 1 - step if far else step
            own = inputs + unit
            low, high = np.int64(1), depth
            for reader in range(first[own], first[own + 1]):
                high = min(high, layer[inputs + readers[reader]] - 1)
            for read in range(starts[unit], starts[unit + 1]):
                low = max(low, layer[places[read]] + 1)
            near, next_ = high, high
            for read in range(starts[unit], starts[unit + 1]):
                place = places[read]
                kept = high if to_end[place] else layer[place]
                # The latest readers have high numbers, so they are found soon.
                reader = first[place + 1] - 1
                while reader >= first[place] and kept < high:
                    if readers[reader] != unit:
                        kept = max(kept, layer[inputs + readers[reader]])
                    reader -= 1
                if kept < near:
                    near, next_ = kept, near
                else:
                    next_ = min(next_, kept)
            layer[own] = min(max(next_ if far else near, low), high)
        if not far:
            after = _lifetimes(layer, first, readers, to_end, inputs, depth)
            if after > before - before // 256:
                break
            before = after
    return layer[inputs:]


@njit()
def _readers(inputs, starts, places):
    """For each place the units that read it, in order."""
    total = len(starts) - 1
    first = np.zeros(inputs + total + 1, np.int64)
    for place in places:
        first[place + 1] += 1
    first = np.cumsum(first)
    filled = first.copy()
    readers = np.zeros(len(places), np.int64)
    for unit in range(total):
        for read in range(starts[unit], starts[unit + 1]):
            readers[filled[places[read]]] = unit
            filled[places[read]] += 1
    return first, readers


@njit()
def _lifetimes(layer, first, readers, to_end, inputs, depth):
    """The sum over all places of the layers that they are kept for."""
    total = 0
    for place in range(len(layer)):
        last = depth if to_end[place] else layer[place]
        for reader in range(first[place], first[place + 1]):
            last = max(last, layer[inputs + readers[reader]])
        total += last - layer[place]
    return total


def with_identities(made: Made) -> Made:
    """The same, each layer reading the one before it alone: `relu(x)` of a bit carries it along. What a unit
    within a gate has is not a bit, but not negative either, so it is carried in the same way."""
    units, depth = made.units, made.units.layers
    inputs, layer = units.inputs, units.layer_of_place
    reader = np.repeat(layer[inputs:], units.counts)
    copies = np.maximum(units.last_read - 1, layer) - layer
    total = len(units.biases) + int(copies.sum())
    if NUMBERS_EACH * total > LARGEST:
        raise Refused(
            f"without skip connections the network would have {total:,} units, most of them identities",
            advice="Use skip connections.",
        )
    # The copy of a place in layer t has this number plus t, before sorting, if t is later than its own.
    behind = inputs + len(units.biases) + np.cumsum(copies) - copies - layer - 1
    source = np.repeat(np.arange(len(layer)), copies)
    copy_layer = np.arange(len(source)) + inputs + len(units.biases) - behind[source]
    layers = np.concatenate([layer[inputs:], copy_layer])
    order = np.argsort(layers, kind="stable")
    number = _numbers(inputs, order)

    def at(places: Int[np.ndarray, " some"], when: Int[np.ndarray, " some"]) -> Int[np.ndarray, " some"]:
        """Where the value of a place is found in a layer."""
        return number[np.where(when > layer[places], behind[places] + when, places)].astype(np.int32)

    places = np.concatenate([at(units.places, reader - 1), at(source, copy_layer - 1)])
    counts = np.concatenate([units.counts, np.ones(len(source), np.uint8)])
    reads = _ranges(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[order], counts[order])
    out_places, used = units.out_places.copy(), units.out_weights != 0
    out_places[used] = at(units.out_places[used], np.full(int(used.sum()), depth))
    return Made(
        units._replace(
            counts=counts[order],
            places=places[reads],
            weights=np.concatenate([units.weights, np.ones(len(source), np.int8)])[reads],
            biases=np.concatenate([units.biases, np.zeros(len(source), np.int8)])[order],
            bounds=_bounds(layers, depth),
            out_places=out_places,
        ),
        np.concatenate([made.holds, np.append(2 * np.arange(inputs), made.holds)[source]])[order].astype(
            np.int32
        ),
    )


def stack_of(made: Made, dtype: np.dtype) -> Stack:
    """The network without skip connections in the form of a stack, whose layers read the one before them."""
    units = with_identities(made).units
    total, outputs = len(units.biases), len(units.out_places)
    fan_in = max(2, int(units.counts.max(initial=0)))
    inputs = np.zeros((total + outputs, fan_in), np.int32)
    weights = np.zeros((total + outputs, fan_in), dtype)
    # What a place is called in its own layer: places are counted from the first of that layer.
    begins = np.concatenate([[0], units.inputs + units.bounds])[units.layer_of_place]
    within = np.arange(units.inputs + total) - begins
    unit = np.repeat(np.arange(total), units.counts)
    which = np.arange(len(unit)) - units.starts[unit]
    inputs[unit, which], weights[unit, which] = within[units.places], units.weights
    used = np.flatnonzero(units.out_weights)
    inputs[total + used, 0] = within[units.out_places[used]]
    weights[total:, 0] = units.out_weights
    biases = np.concatenate([units.biases, units.out_biases]).astype(dtype)
    return Stack(inputs, weights, biases, np.append(units.bounds, total + outputs), units.inputs)
