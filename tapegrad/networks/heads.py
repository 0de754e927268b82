"""The heads and gates of a network that takes steps, read off its graph.

A step begins with what the step before gave, to which the digits of the step's number are added. Then come

    heads      product(shares, values) put to some coordinates, where the shares are those of the scores of a
               query with keys: of the steps so far and a null key, which are state, or of the tokens
    gates      affine, relu, affine, put to coordinates; or many such levels as one node `layers`
    corrected  affine, then a correction as two ReLU layers: a new vector, or the part of it that is not 0

one after the other, each on the vector of the one before; what the last gives is the output and goes to the
next step, and a last few layers say whether the run has ended. They are told apart by what they compute and
not by their names. Whatever is of another form is refused, so that who reads a network here has seen all of
it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from tapegrad._trees import static, tree
from tapegrad.errors import BrokenNet
from tapegrad.networks.form import Affine, Correction, Dense, Matrix, Numbers
from tapegrad.networks.network import LAYERS, MAP, Network, Node
from tapegrad.networks.steps import Steps

MOST_PARTS = 1000
"""A threshold is taken for the fraction that rounds to it and has a denominator of at most this."""


@tree
class Attention:
    """`h + mean of the values with the best scores`, or their mean by softmax; a score is the product of the
    query of `h` with a key, and a null key and a null value stand beside those of the vectors attended to."""

    query: Affine | Matrix
    key: Affine | Matrix
    value: Affine | Matrix
    null_key: Float[Numbers, "*layers rows"]
    null_value: Float[Numbers, "*layers width"]

    def targets(self) -> Int[np.ndarray, " some"]:
        """The coordinates that it can add to."""
        value = self.value.entries()
        return np.flatnonzero(value.reads() | (value.bias != 0) | (np.asarray(self.null_value) != 0))


@tree
class Block:
    """One layer: attention to the vectors of earlier steps and this one, attention to the tokens of an input,
    then dense layers. An attention that is not there is the identity. What the dense layers give takes the
    place of the vector, or is added to the coordinates `adds_to` of it."""

    purpose: str = static()
    feed_forward: tuple[Dense, ...]
    self_attention: Attention | None = None
    encoder_attention: Attention | None = None
    adds_to: Int[Numbers, "*layers rows"] | None = None

    def attentions(self) -> tuple[Attention, ...]:
        """Those it has."""
        return tuple(a for a in (self.self_attention, self.encoder_attention) if a is not None)

    def attended(self) -> Int[np.ndarray, " some"]:
        """The coordinates that its attentions can add to."""
        return np.concatenate([np.zeros(0, np.intp), *(a.targets() for a in self.attentions())])

    def expanded(self) -> "Block":
        """The same with ReLU layers in place of corrections."""
        layers = tuple(layer for dense in self.feed_forward for layer in dense.expanded())
        return Block(self.purpose, layers, self.self_attention, self.encoder_attention, self.adds_to)


@tree
class Decoder:
    """Blocks run again and again, each step on the output of the one before plus the number of the step."""

    blocks: tuple[Block, ...]
    start: Float[Numbers, " width"]
    """What the first step reads."""
    halting: tuple[Dense, ...]
    """Layers whose one output is above 1/2 where the decoder has ended."""
    time: tuple[int, ...] = static()
    """The coordinates to which the bits of the step's number are added, lowest first."""
    temperature: float | None = static()
    """By how much softmax magnifies scores; None for hard-max."""


@dataclass(frozen=True)
class Reading:
    """A decoder as its network has it, and where in the network values stand."""

    decoder: Decoder
    begins: str
    """The vector that a step begins with, the step's number added."""
    after: tuple[str, ...]
    """For each block the vector after it; of a node of many levels the vector after the last of them."""
    shares: tuple[tuple[int, bool, str], ...]
    """For each head its block, whether it looks at steps, and what it gives to each place, the null key's
    first."""

    @property
    def vectors(self) -> tuple[str, ...]:
        """The values that are vectors of the stream, whose columns have one meaning each."""
        return self.begins, *self.after


class Look(NamedTuple):
    """One head at one step."""

    block: int
    own_steps: bool
    weights: Float[np.ndarray, " places"]
    """What it gives to each place: the null key's first, then the steps up to this one, or the tokens."""


class Watched(NamedTuple):
    """One step: the vector that it began with, that before the last block, its output, and where its heads
    looked. Where blocks add to what was 0, the second holds all that was computed between."""

    start: Float[np.ndarray, " width"]
    made: Float[np.ndarray, " width"]
    output: Float[np.ndarray, " width"]
    looks: list[Look]
    values: dict[str, NDArray[Any]]
    """All values of the step by name."""


class Watching:
    """A run of a network of heads and gates, whose heads are looked at step by step."""

    def __init__(self, network: Network, reading: Reading, given: Mapping[str, NDArray[Any]]) -> None:
        self._steps, self._shares = Steps(network), reading.shares
        self._running = self._steps.begin(given)
        self._vectors = reading.begins, (reading.begins, *reading.after)[-2], reading.after[-1]

    def step(self) -> Watched:
        """The next step."""
        found, self._running = self._steps.watch(self._running)
        looks = [Look(block, own_steps, found[name][0]) for block, own_steps, name in self._shares]
        start, made, output = (found[name][0] for name in self._vectors)
        return Watched(start, made, output, looks, found)


def read(network: Network) -> Reading:
    """The heads and gates of a network, or a refusal."""
    return _Reader(network).reading()


class _Reader:
    """The graph with the node of each value and its readers, and what was read of it so far."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.nodes = {node.name: node for node in network.nodes}
        self.readers: dict[str, list[Node]] = {}
        for node in network.nodes:
            for name in node.reads:
                self.readers.setdefault(name, []).append(node)
        _require(network.inputs.keys() == {"tokens"}, "its one input is the tokens")
        _require(network.state.keys() == {"output", "step", "keys", "values"}, "its state is that of steps")
        _require(network.outputs.keys() == {"output", "halted"}, "its outputs are a vector and a halt")
        self.start = self._array(network.state["output"].first)[0]
        self.width, self.end = len(self.start), network.state["output"].next
        self.seen: set[str] = set()
        self.blocks: list[Block] = []
        self.after: list[str] = []
        self.shares: list[tuple[int, bool, str]] = []
        self.temperatures: set[float | None] = set()
        self.made: dict[str, list[str]] = {"keys": [], "values": []}
        """For each side the rows that heads add to what they look at, head by head."""

    def reading(self) -> Reading:
        h, time = "output", ()
        if (put := self._put(h)) is not None and self.nodes[put.reads[1]].operation == "digits":
            (digits,) = self._nodes(put.reads[1])
            _require(digits.reads == ("step",), "digits are those of the step's number")
            self._see(digits)
            h, time = self._see(put).name, tuple(self._part(put, "to").tolist())
        begins = h
        self.filled = self._filled(time)
        while h != self.end:
            h = self._block(h)
        halting = self._halting(h)
        self._handed_on()
        left = self.nodes.keys() - self.seen
        _require(not left, f"every value has a use that is known, but {min(left, default='')!r} has none")
        _require(len(self.temperatures) < 2, "all heads have one temperature")
        (temperature,) = self.temperatures or {None}
        decoder = Decoder(tuple(self.blocks), self.start, halting, time, temperature)
        return Reading(decoder, begins, tuple(self.after), tuple(self.shares))

    # Blocks

    def _block(self, h: str) -> str:
        """The layers after a vector, up to the next vector that is neither a head's nor between gates."""
        if (node := self._only(h, "layers")) is not None:
            return self._levels(node)
        heads: dict[bool, Attention] = {}
        while (put := self._put(h)) is not None and self.nodes[put.reads[1]].operation == "product":
            own_steps, attention, shares = self._attention(h, put)
            _require(own_steps not in heads and False not in heads, "a layer has one head of a kind")
            heads[own_steps] = attention
            self.shares.append((len(self.blocks), own_steps, shares))
            self.filled[attention.targets()] = True
            h = put.name
        return self._feed(h, heads.get(True), heads.get(False))

    def _attention(self, h: str, put: Node) -> tuple[bool, Attention, str]:
        """One head: whether it looks at steps, its maps, and its shares."""
        (mean,) = self._nodes(put.reads[1])
        shares, values = self._nodes(*mean.reads)
        _require(shares.operation in ("hardmax", "softmax"), "shares are those of the best scores")
        soft = shares.operation == "softmax"
        self.temperatures.add(shares.number("temperature") if soft else None)
        (scores,) = self._nodes(*shares.reads)
        _require(
            scores.operation == "product" and scores.settings["turned"] is True, "scores are of query and key"
        )
        _require(mean.settings["turned"] is False, "a mean is one of values")
        query, keys = self._nodes(*scores.reads)
        _require(query.reads == (h,), "a query is one of the vector so far")
        asks = self._map(query, self.width)
        own_steps = self.nodes[keys.reads[0]].operation == "take"
        key, null_key = self._looked_at(h, keys, "keys", own_steps)
        value, null = self._looked_at(h, values, "values", own_steps)
        for node in (mean, shares, scores, put):
            self._see(node)
        to = self._part(put, "to")
        _require(len(np.unique(to)) == len(to), "a head adds to different coordinates")
        null_value = np.zeros(self.width, np.float32)
        null_value[to] = null
        rows = to[value.rows]
        bias = np.zeros(self.width, value.bias.dtype)
        bias[to] = value.bias
        order = np.argsort(rows, kind="stable")
        placed = Affine(rows[order], value.columns[order], value.values[order], bias, value.width)
        return own_steps, Attention(asks, key, placed, null_key, null_value), shares.name

    def _looked_at(
        self, h: str, joined: Node, side: str, own_steps: bool
    ) -> tuple[Affine, NDArray[np.floating]]:
        """The map that makes keys or values, and those of the null place, which come first."""
        _require(joined.operation == "join" and joined.whole("axis") == -2, "a null key comes first")
        first, new = self._nodes(*joined.reads)
        self._see(joined)
        self._see(first)
        if own_steps:
            _require(first.operation == "take" and first.reads == (side,), f"a head looks at {side} of steps")
            begin = sum(len(self._part(self.nodes[name], "bias")) for name in self.made[side])
            index = self._part(first, "index")
            expected = np.arange(begin, begin + len(index))
            _require(np.array_equal(index, expected), f"{side} of heads stand side by side")
            null = self._array(self.network.state[side].first)[0, index]
            self.made[side].append(new.name)
            _require(new.reads == (h,), f"{side} are of the vector so far")
            return self._map(new, self.width), null
        _require(first.operation == "constant", "a null key is a constant")
        _require(new.reads == ("tokens",), "a head looks at steps or at tokens")
        null = self._part(first, "value")
        width = self.network.inputs["tokens"].shape[-1]
        own = self._map(new, int(width))
        _require(null.shape == (1, len(own)), "there is one null key")
        return own, null[0]

    def _feed(self, h: str, own_steps: Attention | None, tokens: Attention | None) -> str:
        """Dense layers after a vector: gates that are added to it, or a correction that takes its place."""
        firsts = [node for node in self.readers.get(h, ()) if node.operation == "affine"]
        _require(len(firsts) == 1, f"one layer reads {h!r}")
        (first,) = firsts
        relu = self._next(first, "relu")
        second = self._next(relu, "affine")
        units = self._map(first, self.width)
        sums = self._map(second, len(units))
        self._see(relu)
        if (put := self._put(h)) is not None:
            _require(put.reads == (h, second.name), "gates are added to the vector that they read")
            to = self._part(self._see(put), "to")
            feed = Dense(units, "relu"), Dense(sums, "linear")
            return self._made(Block(first.about, feed, own_steps, tokens, to), put.name)
        relu_2 = self._next(second, "relu")
        third = self._next(relu_2, "affine")
        last = self._next(third, "relu")
        correction = _correction(sums, self._map(third, len(sums)), len(units))
        for node in (relu_2, last):
            self._see(node)
        put = self._only(last.name, "put")
        if put is None:
            _require(len(units) == self.width, "a new vector has all coordinates")
            feed = (Dense(units, correction),)
            return self._made(Block(first.about, feed, own_steps, tokens), last.name)
        (zero,) = self._nodes(put.reads[0])
        self._see(self._see(put) and zero)
        _require(put.reads[1] == last.name and zero.operation == "constant", "a new vector begins as zeros")
        _require(not self._part(zero, "value").any(), "a new vector begins as zeros")
        whole = _spread(units, self._part(put, "to"), self.width)
        return self._made(Block(first.about, (Dense(whole, correction),), own_steps, tokens), put.name)

    def _levels(self, node: Node) -> str:
        """Levels of gates, each a layer of units, which have slots of their own, and one of their sums. A sum
        that goes where something may stand reads that as well, and is one that adds to it."""
        self._see(node)
        bounds, starts, columns, values, biases, to, relu, out = (self._part(node, part) for part in LAYERS)
        _require(np.array_equal(out, np.arange(self.width)), "levels of gates give the whole vector")
        _require(len(bounds) % 2 == 1, "units have sums")
        sizes = np.diff(bounds)
        layer = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.repeat(np.arange(len(biases)), np.diff(starts))
        sums, summed = layer % 2 == 1, layer[rows] % 2 == 1
        _require(np.array_equal(relu == 0, sums), "units have a ReLU, and sums have none")
        slots = self.width + np.arange(len(biases)) - bounds[layer]
        _require(np.array_equal(to[~sums], slots[~sums]), "units have slots of their own")
        _require(bool((to[sums] < self.width).all()), "sums go to the vector")
        _require(bool((columns[~summed] < self.width).all()), "units read the vector")
        kept = summed & (columns < self.width)
        _require(
            np.array_equal(columns[kept], to[rows[kept]]) and bool((values[kept] == 1).all()),
            "sums add to what stands at their own place",
        )
        places = np.flatnonzero(sums)
        again = np.ones(len(places), bool)
        again[np.unique(to[places], return_index=True)[1]] = False
        _require(
            np.array_equal(rows[kept], places[again | self.filled[to[places]]]),
            "sums add to what stands where they go",
        )
        others = summed & ~kept
        below = self.width + sizes[np.maximum(layer[rows[others]] - 1, 0)]
        _require(bool((columns[others] < below).all()), "sums are of the units of their level")
        places, entries = columns - self.width * summed, np.flatnonzero(~kept)
        rows, places, values = rows[entries], places[entries], values[entries]
        ends, names = np.searchsorted(rows, bounds).tolist(), bounds.tolist()
        rows = rows - bounds[layer[rows]]
        to = to.astype(np.int64)

        def level(number: int, width: int) -> Affine:
            own, bias = slice(*ends[number : number + 2]), biases[slice(*names[number : number + 2])]
            return Affine(rows[own], places[own], values[own], bias, width)

        for number in range(0, len(sizes), 2):
            units = level(number, self.width)
            feed = Dense(units, "relu"), Dense(level(number + 1, len(units)), "linear")
            adds_to = to[slice(*names[number + 1 : number + 3])]
            self.blocks.append(Block(f"{node.about}, level {number // 2 + 1}", feed, None, None, adds_to))
            self.after.append(node.name)
        self.filled[to[sums]] = True
        return node.name

    def _made(self, block: Block, after: str) -> str:
        self.blocks.append(block)
        self.after.append(after)
        self.filled[slice(None) if block.adds_to is None else np.asarray(block.adds_to)] = True
        return after

    # Ends

    def _filled(self, time: Sequence[int]) -> NDArray[np.bool_]:
        """Coordinates that may hold something when a step begins: what the last layer hands on, and the
        time."""
        filled, end = self.start != 0, self.nodes[self.end]
        filled[list(time)] = True
        if end.operation == "put" and self.nodes[end.reads[0]].operation == "constant":
            filled[self._part(end, "to")] = True
            return filled
        # Of a new vector, rows of the map that is corrected, two ReLU layers and a ReLU before the last.
        for _ in range(5):
            _require(len(end.reads) == 1, "the last layer is a new vector")
            (end,) = self._nodes(*end.reads)
        _require(end.operation == "affine", "the last layer is a new vector")
        own = self.network.map(end, self.width)
        _require(len(own) == self.width, "the last layer is a new vector")
        return filled | own.reads() | (own.bias > 0)

    def _halting(self, h: str) -> tuple[Dense, ...]:
        (greater,) = self._nodes(self.network.outputs["halted"])
        _require(greater.operation == "greater", "a run has ended where a number is above 1/2")
        last, half = self._nodes(*greater.reads)
        _require(half.operation == "constant" and self._part(half, "value") == 0.5, "the bound is 1/2")
        self._see(self._see(greater) and half)
        _require(self.network.outputs["output"] == h, "the output is the last vector")
        if last.reads == (h,):
            return (Dense(self._map(last, self.width), "linear"),)
        (relu,) = self._nodes(*last.reads)
        (first,) = self._nodes(*relu.reads)
        _require(relu.operation == "relu" and first.reads == (h,), "the end is read off the output")
        self._see(relu)
        units = self._map(first, self.width)
        return Dense(units, "relu"), Dense(self._map(last, len(units)), "linear")

    def _handed_on(self) -> None:
        """One more step, and one more row of keys and values, those of all heads side by side."""
        (step,) = self._nodes(self.network.state["step"].next)
        _require(step.operation == "add" and step.reads[0] == "step", "steps are counted")
        (one,) = self._nodes(step.reads[1])
        _require(
            one.operation == "constant" and self._part(one, "value").tolist() == [1], "steps are counted"
        )
        _require(not self._array(self.network.state["step"].first).any(), "the first step is 0")
        self._see(self._see(step) and one)
        for side, rows in self.made.items():
            (grown,) = self._nodes(self.network.state[side].next)
            _require(grown.operation == "join" and grown.reads[0] == side, f"{side} are kept")
            _require(grown.whole("axis") == -2, f"{side} are kept")
            self._see(grown)
            _require(list(self._side_by_side(grown.reads[1])) == rows, f"{side} of all heads are kept")

    def _side_by_side(self, name: str) -> Iterator[str]:
        node = self.nodes[name]
        if node.operation == "join":
            _require(self._see(node).whole("axis") == -1, "what heads add stands side by side")
            for part in node.reads:
                yield from self._side_by_side(part)
        elif node.operation == "constant":
            _require(not self._part(self._see(node), "value").size, "a constant is no key")
        else:
            yield name

    # Nodes

    def _see(self, node: Node) -> Node:
        self.seen.add(node.name)
        return node

    def _array(self, name: str) -> NDArray[Any]:
        return np.asarray(self.network.arrays[name])

    def _part(self, node: Node, part: str) -> NDArray[Any]:
        return self._array(node.arrays[part])

    def _nodes(self, *names: str) -> list[Node]:
        _require(all(name in self.nodes for name in names), "a value is made, and not given")
        return [self.nodes[name] for name in names]

    def _map(self, node: Node, width: int) -> Affine:
        _require(node.operation == "affine", f"{node.name!r} is a map")
        return self.network.map(self._see(node), width)

    def _put(self, h: str) -> Node | None:
        """The node that adds something to a vector, which is read by nothing else of its kind."""
        found = [n for n in self.readers.get(h, ()) if n.operation == "put" and n.reads[0] == h]
        _require(len(found) < 2, f"{h!r} is changed in one way")
        return found[0] if found else None

    def _only(self, name: str, operation: str) -> Node | None:
        found = self.readers.get(name, [])
        return found[0] if len(found) == 1 and found[0].operation == operation else None

    def _next(self, node: Node, operation: str) -> Node:
        found = self._only(node.name, operation)
        _require(found is not None, f"{node.name!r} goes to one {operation}")
        assert found is not None
        return found


def _spread(own: Affine, to: NDArray[np.integer], width: int) -> Affine:
    """The map to all coordinates, of one to some of them in rising order."""
    _require(bool((np.diff(to) > 0).all()), "coordinates are in order")
    bias = np.zeros(width, own.bias.dtype)
    bias[to] = own.bias
    return Affine(to[own.rows], own.columns, own.values, bias, own.width)


def _correction(cuts: Affine, difference: Affine, width: int) -> Correction:
    """The correction that these two layers are."""
    _require(len(cuts) == 2 * width > 0, "a correction has two units for each bit")
    _require(bool(np.isfinite(cuts.bias).all()), "a threshold is a number")
    low, high = (
        float(Fraction(-float(bias)).limit_denominator(MOST_PARTS)) for bias in (cuts.bias[0], cuts.bias[-1])
    )
    _require(0 <= low < high, "a correction has two thresholds")
    correction = Correction(low, high)
    for found, wanted in zip((cuts, difference), correction.layers(width), strict=True):
        own = wanted.map.entries()
        same = all(np.array_equal(getattr(found, part), getattr(own, part)) for part in MAP)
        _require(same, "these layers are no correction")
    return correction


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenNet(f"the network is not one of heads and gates, of which {what}")
