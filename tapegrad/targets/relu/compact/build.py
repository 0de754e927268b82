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
from tapegrad.networks.wiring import Wiring
from tapegrad.targets.relu.compact.cover import Cover, cover
from tapegrad.targets.relu.compact.graph import Graph, graph_of
from tapegrad.targets.relu.compact.recipes import Recipe, catalogue, ways

LARGEST, NUMBERS_EACH = 1 << 28, 5
"""Numbers of a network that is built, and of an identity in it."""
ROUNDS = 32
"""How often units may move; mostly they come to rest before."""


class Made(NamedTuple):
    """The network, and what its units are there for."""

    wiring: Wiring
    holds: Int[np.ndarray, " units"]
    """Twice the wire of the circuit whose value the unit has, plus one if negated; -1 for a unit within a
    gate."""


def made(circuit: Circuit, *, skips: bool) -> Made:
    """The compact network of a circuit."""
    graph = graph_of(circuit)
    found = _in_layers(_made(graph, cover(graph, catalogue())))
    return found if skips else with_identities(*found)


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
    out_nodes = graph.outputs >> 1
    signs = 1 - 2 * ((graph.outputs & 1) ^ np.array(negated)[out_nodes])
    ends: list[_Unit] = [
        (((place[node], 2 * sign),) if node else (), -sign)
        for node, sign in zip(out_nodes.tolist(), signs.tolist(), strict=True)
    ]
    rows = [*making.units, *ends]
    reads = [read for row, _ in rows for read in row]
    wiring = Wiring(
        graph.inputs,
        np.array([0, len(making.units), len(rows)]),
        np.cumsum([0, *(len(row) for row, _ in rows)]),
        np.array([own for own, _ in reads], np.int64),
        np.array([weight for _, weight in reads], np.float64),
        np.array([bias for _, bias in rows], np.float64),
    )
    return Made(wiring, np.array([holds.get(unit, -1) for unit in range(len(making.units))], np.int32))


_ROWS_WITH = (0xAAAA, 0xCCCC, 0xF0F0, 0xFF00)


def _turned(table: int, i: int) -> int:
    """A truth table whose input i is negated."""
    return (table & _ROWS_WITH[i]) >> (1 << i) | (table & ~_ROWS_WITH[i] & 0xFFFF) << (1 << i)


# Layers


def _in_layers(made: Made) -> Made:
    """Numbered layer by layer."""
    wiring, units = made.wiring, len(made.holds)
    ends = int(wiring.starts[units])  # what is read after these is read by the outputs
    layer = _layers(wiring.inputs, wiring.starts[: units + 1], wiring.places[:ends], wiring.places[ends:])
    last = int(layer.max(initial=0)) + 1
    layers = np.append(layer, np.full(len(wiring.biases) - units, last))
    order = np.argsort(layer, kind="stable")
    return Made(_sorted(wiring, wiring.places, layers, last), made.holds[order])


def _sorted(
    wiring: Wiring, places: Int[np.ndarray, " reads"], layers: Int[np.ndarray, " rows"], last: int
) -> Wiring:
    """Rows in the order of their layers, which are counted from 1; what they read goes with them."""
    order, inputs, counts = np.argsort(layers, kind="stable"), wiring.inputs, np.diff(wiring.starts)
    number = np.arange(inputs + len(order))
    number[inputs + order] = inputs + np.arange(len(order))
    starts = np.concatenate([[0], np.cumsum(counts[order])])
    reads = np.repeat(wiring.starts[order] - starts[:-1], counts[order]) + np.arange(len(places))
    return wiring._replace(
        bounds=np.concatenate([[0], np.cumsum(np.bincount(layers, minlength=last + 1)[1:])]),
        starts=starts,
        places=number[places[reads]],
        values=wiring.values[reads],
        biases=wiring.biases[order],
    )


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


def with_identities(wiring: Wiring, holds: Int[np.ndarray, " units"]) -> Made:
    """The same, each layer reading the one before it alone: `relu(x)` of a bit carries it along. What a unit
    within a gate has is not a bit, but not negative either, so it is carried in the same way."""
    inputs, layer = wiring.inputs, wiring.layer_of_place
    rows, units, counts = len(wiring.biases), len(holds), np.diff(wiring.starts)
    reader = np.repeat(layer[inputs:], counts)
    copies = np.maximum(wiring.last_read - 1, layer) - layer
    total = units + int(copies.sum())
    if NUMBERS_EACH * total > LARGEST:
        raise Refused(
            f"without skip connections the network would have {total:,} units, most of them identities",
            advice="Use skip connections.",
        )
    # The copy of a place in layer t has this number plus t, before sorting, if t is later than its own.
    behind = inputs + rows + np.cumsum(copies) - copies - layer - 1
    source = np.repeat(np.arange(len(layer)), copies)
    copy_layer = np.arange(len(source)) + inputs + rows - behind[source]
    layers = np.concatenate([layer[inputs:], copy_layer])

    def at(places: Int[np.ndarray, " some"], when: Int[np.ndarray, " some"]) -> Int[np.ndarray, " some"]:
        """Where the value of a place is found in a layer."""
        return np.where(when > layer[places], behind[places] + when, places)

    ones = np.ones(len(source), wiring.values.dtype)
    more = wiring._replace(
        starts=np.concatenate([wiring.starts, wiring.starts[-1] + 1 + np.arange(len(source))]),
        values=np.concatenate([wiring.values, ones]),
        biases=np.concatenate([wiring.biases, 0 * ones]),
    )
    places = np.concatenate([at(wiring.places, reader - 1), at(source, copy_layer - 1)])
    order = np.argsort(np.delete(layers, np.s_[units:rows]), kind="stable")
    held = np.concatenate([2 * np.arange(inputs), holds, np.full(rows - units, -1)])[source]
    return Made(
        _sorted(more, places, layers, wiring.layers), np.concatenate([holds, held])[order].astype(np.int32)
    )
