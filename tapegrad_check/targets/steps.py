"""The layers of a net that takes steps, walked through node by node: heads, gates, corrections, the end.

A step begins with what the step before gave, to which the digits of its number are added. A head is a mean of
values with the best scores, put to coordinates; keys and values of earlier steps are state, those of tokens
are made of the tokens. Gates are units and their sums, put to coordinates, or many such levels in one node. A
correction is what `2 relu(z - 1/4) - 2 relu(z - 3/4)` and its like are, and makes a new vector. What the last
layer gives is the output, and is handed on; a run ends where some last layers give more than 1/2.

Every node, state and output must be one of these: what is left over is refused. So who has looked at all
layers has seen all that the net computes with.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import require
from tapegrad_check.graph import Graph, Node
from tapegrad_check.maps import Map, map_by_entries

SIDES = "keys", "values"
QUARTERS, THIRDS = (1 / 4, 3 / 4), (1 / 3, 2 / 3)
"""The thresholds of corrections."""


@dataclass(frozen=True)
class Head:
    """A head. Its values are to all coordinates."""

    own_steps: bool
    query: Map
    key: Map
    value: Map
    null_key: list[float]
    null_value: list[float]


@dataclass(frozen=True)
class Layer:
    """Heads, then units and their sums, which are added at these places; or rows that are corrected, which
    are the new vector."""

    about: str
    heads: list[Head]
    units: Map
    sums: Map | None = None
    to: list[int] = field(default_factory=list)
    correction: tuple[float, float] | None = None


class Steps:
    """The layers of a graph."""

    def __init__(self, graph: Graph) -> None:
        require(graph.inputs.keys() == {"tokens"}, "the net is given something else than tokens")
        known = {"output", "step", *SIDES}
        require(graph.state.keys() == known, "the net hands on something else than a step does")
        require(graph.outputs.keys() == {"output", "halted"}, "the net has other outputs than a step")
        self.graph, self.nodes = graph, {node.name: node for node in graph.nodes}
        self._waiting = dict(self.nodes)
        """Nodes that nothing has accounted for yet."""
        self._readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.reads:
                self._readers.setdefault(name, []).append(node)
        output = graph.state["output"]
        self.start, self.names = np.asarray(output.first), output.port.columns
        require(self.start.ndim == 2 and len(self.start) == 1, "a step does not begin with one vector")
        self.start, self.width = self.start[0], self.start.shape[1]
        self.tokens = graph.inputs["tokens"].columns
        ports = graph.inputs["tokens"], output.port, *(graph.state[side].port for side in SIDES)
        require({port.dtype for port in ports} == {"float32"}, "the net is not in single precision")
        require(len(set(self.names)) == self.width, "coordinates lack names, or two have the same")
        named = {name: own for name, own in graph.columns.items() if name != "tokens"}
        require(set(named.values()) <= {self.names}, "vectors have other names than coordinates")
        self.temperatures: set[float | None] = set()
        self._kept: dict[str, list[str]] = {side: [] for side in SIDES}
        self._sizes: dict[str, int] = dict.fromkeys(SIDES, 0)
        self.layers = []
        at, self.time = self._begin()
        while at != output.next:
            made, at = self._layer(at)
            self.layers += made
        self.halting = self._end(at)
        self._hand_on()
        require(not self._waiting, f"the node {min(self._waiting, default='')!r} has no part in a step")
        require(len(self.temperatures) <= 1, "heads have different temperatures")

    @property
    def temperature(self) -> float | None:
        """By how much softmax magnifies scores; None where shares are those of hard-max."""
        return next(iter(self.temperatures), None)

    def _begin(self) -> tuple[str, list[int]]:
        put = self._put("output")
        if put is None or self._node(put.reads[1]).operation != "digits":
            return "output", []
        digits = self._used(put.reads[1], "digits")
        require(digits.reads == ("step",), "digits are of another number than the step's")
        to = self._part(self._used(put.name, "put"), "to").tolist()
        require(len(set(to)) == len(to), "two digits stand at one place")
        return put.name, to

    def _layer(self, at: str) -> tuple[list[Layer], str]:
        """What comes after a vector, and the next vector."""
        readers = self._readers.get(at, [])
        if len(readers) == 1 and readers[0].operation == "layers":
            return list(self._levels(self._used(readers[0].name, "layers"))), readers[0].name
        heads = []
        while (put := self._put(at)) is not None and self._node(put.reads[1]).operation == "product":
            heads.append(self._head(at, put))
            at = put.name
        return self._dense(at, heads)

    def _head(self, at: str, put: Node) -> Head:
        mean = self._used(put.reads[1], "product")
        shares = self._used(mean.reads[0], "hardmax", "softmax")
        temperature = shares.settings.get("temperature")
        require(not isinstance(temperature, tuple), "a temperature is a list")
        assert not isinstance(temperature, tuple)
        self.temperatures.add(None if temperature is None else float(temperature))
        scores = self._used(shares.reads[0], "product")
        require(scores.setting("turned") == 1 and mean.setting("turned") == 0, "a head multiplies otherwise")
        require(self._node(scores.reads[0]).reads == (at,), "a query is made of another vector")
        query = self._map(scores.reads[0], self.width)
        before = self._node(self._node(scores.reads[1]).reads[0])
        own_steps = before.operation == "take"
        key, null_key = self._seen(at, scores.reads[1], "keys", own_steps)
        value, null_value = self._seen(at, mean.reads[1], "values", own_steps)
        to = self._part(self._used(put.name, "put"), "to").tolist()
        require(sorted(set(to)) == to, "what a head finds is not put to places in order")
        nulls = np.zeros(self.width)
        nulls[to] = null_value
        return Head(own_steps, query, key, _spread(value, to, self.width), null_key, nulls.tolist())

    def _seen(self, at: str, joined: str, side: str, own_steps: bool) -> tuple[Map, list[float]]:
        """Keys or values: the map that makes them, and those of the null place, which is the first."""
        join = self._used(joined, "join")
        require(join.setting("axis") == -2, "keys are joined otherwise than place by place")
        if not own_steps:
            require(self._node(join.reads[1]).reads == ("tokens",), "a head looks at what is no place")
            first = self._part(self._used(join.reads[0], "constant"), "value")
            own = self._map(join.reads[1], len(self.tokens))
            require(first.shape == (1, len(own)), "a head has more null places than one")
            return own, first[0].tolist()
        require(self._node(join.reads[1]).reads == (at,), "a key or a value is made of another vector")
        own = self._map(join.reads[1], self.width)
        take, begin = self._used(join.reads[0], "take"), self._sizes[side]
        require(take.reads == (side,), "a head takes keys for values")
        index = self._part(take, "index").tolist()
        self._sizes[side] = begin + len(own)
        require(index == list(range(begin, begin + len(own))), "a head looks at what another has kept")
        first = np.asarray(self.graph.state[side].first)
        require(first.ndim == 2 and len(first) == 1, "there are more null places than one")
        self._kept[side].append(join.reads[1])
        return own, first[0, index].tolist()

    def _dense(self, at: str, heads: list[Head]) -> tuple[list[Layer], str]:
        firsts = [node for node in self._readers.get(at, []) if node.operation == "affine"]
        require(len(firsts) == 1, f"{at!r} is read by other layers than one")
        (first,) = firsts
        units, relu = self._map(first.name, self.width), self._after(first.name, "relu")
        second = self._after(relu, "affine")
        sums = self._map(second, len(units))
        put = self._put(at)
        if put is not None:
            require(put.reads[1] == second, "something else is added to the vector than sums of units")
            to = self._part(self._used(put.name, "put"), "to").tolist()
            return [Layer(first.about, heads, units, sums, to)], put.name
        third = self._after(self._after(second, "relu"), "affine")
        correction = _correction(len(units), sums, self._map(third, len(sums)))
        last = self._after(third, "relu")
        readers = self._readers.get(last, [])
        if len(readers) != 1 or readers[0].operation != "put":
            require(len(units) == self.width, "a new vector lacks coordinates")
            return [Layer(first.about, heads, units, correction=correction)], last
        put = self._used(readers[0].name, "put")
        require(put.reads[1] == last, "a new vector is added to")
        zero = self._part(self._used(put.reads[0], "constant"), "value")
        require(not zero.any(), "a new vector begins with something else than zeros")
        to = self._part(put, "to").tolist()
        require(sorted(set(to)) == to, "a new vector is not in order")
        whole = _spread(units, to, self.width)
        return [Layer(first.about, heads, whole, correction=correction)], put.name

    def _levels(self, node: Node) -> Iterator[Layer]:
        """Units and sums in turn. Units have slots behind those of the vector, one after the other, and read
        the vector; sums go to the vector and read the units before them."""
        bounds, starts, columns, values, biases, to, relu, out = (
            self._part(node, part)
            for part in ("bounds", "starts", "columns", "values", "biases", "to", "relu", "out")
        )
        require(out.tolist() == list(range(self.width)), "levels of gates give something else than a vector")
        require(len(bounds) % 2 == 1, "units have no sums")
        ends = [*zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        places, rows = columns.astype(np.int64), np.repeat(np.arange(len(biases)), np.diff(starts))
        for number in range(0, len(ends), 2):
            (first, middle), (_, last) = ends[number : number + 2]
            count = middle - first
            own = range(self.width, self.width + count)
            require(to[first:middle].tolist() == list(own), "a unit has the slot of something else")
            fits = (relu[first:middle] == 1).all() and (relu[middle:last] == 0).all()
            require(fits, "units and sums do not take turns")
            made = []
            for begin, end, shift, width in (
                (first, middle, 0, self.width),
                (middle, last, self.width, count),
            ):
                part = slice(int(starts[begin]), int(starts[end]))
                shifted = places[part] - shift
                inside = ((shifted >= 0) & (shifted < width)).all()
                require(inside, "a level of gates reads what is not there for it")
                made.append(
                    map_by_entries(
                        "a level", rows[part] - begin, shifted, values[part], biases[begin:end], width
                    )
                )
            require((to[middle:last] < self.width).all(), "a sum goes to the slot of a unit")
            about = f"{node.about}, level {number // 2 + 1}"
            yield Layer(about, [], made[0], made[1], to[middle:last].tolist())

    def _end(self, at: str) -> list[Map]:
        """The layers that say that a run has ended."""
        greater = self._used(self.graph.outputs["halted"], "greater")
        half = self._part(self._used(greater.reads[1], "constant"), "value")
        require(half.size == 1 and half.reshape(-1)[0] == 0.5, "a run ends at another number than 1/2")
        require(self.graph.outputs["output"] == at, "the output is not what is handed on")
        last = self._node(greater.reads[0])
        if last.reads == (at,):
            return [self._map(last.name, self.width)]
        relu = self._used(last.reads[0], "relu")
        require(self._node(relu.reads[0]).reads == (at,), "the end is read off something else")
        units = self._map(relu.reads[0], self.width)
        return [units, self._map(last.name, len(units))]

    def _hand_on(self) -> None:
        state = self.graph.state
        add = self._used(state["step"].next, "add")
        one = self._part(self._used(add.reads[1], "constant"), "value").tolist()
        counts = add.reads[0] == "step" and one == [1] and state["step"].first.tolist() == [0]
        require(counts, "the number of a step is not counted from 0")
        for side in SIDES:
            join = self._used(state[side].next, "join")
            require(join.reads[0] == side and join.setting("axis") == -2, f"{side} are not kept in order")
            require(self._in_a_row(join.reads[1]) == self._kept[side], f"{side} are kept for other heads")
            require(state[side].first.shape == (1, self._sizes[side]), f"{side} begin otherwise")

    def _in_a_row(self, name: str) -> list[str]:
        """Values that are joined side by side, from the left; the first may be joined itself."""
        found: list[str] = []
        while self._node(name).operation == "join":
            join = self._used(name, "join")
            require(join.setting("axis") == -1, "keys of heads do not stand side by side")
            name, last = join.reads
            found.append(last)
        if self._node(name).operation == "constant":
            require(not self._part(self._used(name, "constant"), "value").size, "a key is a constant")
            return found[::-1]
        return [name, *found[::-1]]

    def _node(self, name: str) -> Node:
        require(name in self.nodes, f"{name!r} is given where it should be made")
        return self.nodes[name]

    def _used(self, name: str, *operations: str) -> Node:
        """A node that has found its place, in which one of these operations belongs."""
        node = self._node(name)
        require(node.operation in operations, f"{name!r} is {node.operation} and should be {operations[0]}")
        require(self._waiting.pop(name, None) is not None, f"{name!r} stands in two places")
        return node

    @staticmethod
    def _part(node: Node, part: str) -> NDArray[Any]:
        return np.asarray(node.arrays[part])

    def _map(self, name: str, width: int) -> Map:
        node = self._used(name, "affine")
        rows, columns, values, bias = (
            self._part(node, part) for part in ("rows", "columns", "values", "bias")
        )
        return map_by_entries(repr(name), rows, columns, values, bias, width)

    def _put(self, at: str) -> Node | None:
        """The node that adds to a vector, if one does."""
        found = [
            node for node in self._readers.get(at, []) if node.operation == "put" and node.reads[0] == at
        ]
        require(len(found) <= 1, f"{at!r} goes on in two ways")
        return found[0] if found else None

    def _after(self, name: str, operation: str) -> str:
        """The name of the one node that reads a value; a ReLU is accounted for."""
        readers = self._readers.get(name, [])
        require(
            len(readers) == 1 and readers[0].operation == operation, f"after {name!r} there is no {operation}"
        )
        if operation == "relu":
            self._used(readers[0].name, operation)
        return readers[0].name


def _spread(own: Map, to: Sequence[int], width: int) -> Map:
    """A map whose rows go to some of so many places, in order, as one to all of them."""
    counts, bias = np.zeros(width, np.int64), np.zeros(width)
    counts[list(to)], bias[list(to)] = np.diff(own.starts), own.bias
    starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
    return Map(starts, own.columns, own.values, bias.tolist(), own.width)


def _correction(bits: int, cuts: Map, difference: Map) -> tuple[float, float]:
    """The thresholds of a correction: two copies of every bit, each less a threshold, and their difference
    times the gain."""
    require(len(cuts) == 2 * bits and len(difference) == bits > 0, "a correction has two units for each bit")
    for low, high in (QUARTERS, THIRDS):
        gain, steps = float(np.float32(1 / (high - low))), np.array([-low, -high], np.float32)
        rows = [([row % bits], [1.0], float(steps[row // bits])) for row in range(2 * bits)]
        sides = [([row, row + bits], [gain, -gain], 0.0) for row in range(bits)]
        if [cuts.row(row) for row in range(2 * bits)] == rows and [
            difference.row(row) for row in range(bits)
        ] == sides:
            return low, high
    require(False, "unknown correction")
    return QUARTERS
