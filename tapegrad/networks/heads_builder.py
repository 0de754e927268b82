"""Networks of heads and gates, written layer by layer: what `heads` reads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.form import Dense
from tapegrad.networks.heads import Attention, Block
from tapegrad.networks.network import Network


class HeadsBuilder:
    """One step in the making: the vector of the step before, the number of the step, and the keys and values
    of the steps so far go in and out. A null key and value are those of a place before the first step, or
    before the first token."""

    def __init__(
        self,
        name: str,
        tokens: Sequence[str],
        coordinates: Sequence[str],
        start: NDArray[np.floating],
        time: Sequence[int],
        temperature: float | None,
    ) -> None:
        self.graph, self.coordinates = Builder(name), coordinates
        self.width, self.temperature = len(start), temperature
        self.blocks = 0
        self._tokens = self.graph.input(
            "tokens", "tokens", len(tokens), columns=tokens, about="one row for each place of the input"
        )
        own = np.asarray(start, np.float32)[None]
        about = "what the step before gave"
        self.h = self.graph.state("output", own, 1, self.width, columns=coordinates, about=about)
        about = "the number of this step"
        self._step = self.graph.state("step", np.zeros(1, np.int64), 1, about=about)
        self._made: dict[str, list[Value]] = {"keys": [], "values": []}
        self._nulls: dict[str, list[NDArray[np.floating]]] = {"keys": [], "values": []}
        if len(time):
            digits = self.graph.node("digits", self._step, count=len(time), name="time")
            self._put(self.h, digits, np.asarray(time))

    def block(self, block: Block) -> None:
        """Heads, and dense layers after them."""
        name = f"block_{self.blocks}"
        for own_steps, head in ((True, block.self_attention), (False, block.encoder_attention)):
            if head is not None:
                self._head(head, own_steps, name, block.purpose)
        self._feed(block, name)
        self.blocks += 1

    def levels(self, arrays: Mapping[str, NDArray[Any]], units: int, purpose: str) -> None:
        """Levels of gates as one node: their units, of which a level has so many at most, have slots of their
        own and are forgotten after the sums."""
        slots = self.width + units
        self.h = self.graph.node("layers", self.h, arrays=arrays, about=purpose, slots=slots)
        self.blocks += (len(arrays["bounds"]) - 1) // 2

    def network(self, halting: Sequence[Dense]) -> Network:
        """The network, which has ended where these layers give more than 1/2 of its output."""
        graph = self.graph
        graph.hand_on("output", self.h)
        graph.hand_on("step", self._step + graph.constant(np.ones(1, np.int64)))
        for side, made in self._made.items():
            nulls = np.concatenate([np.zeros(0, np.float32), *self._nulls[side]]).astype(np.float32)[None]
            about = f"{side} of the steps so far, of all heads side by side; the first place is the null one"
            past = graph.state(side, nulls, "places", nulls.shape[1], about=about)
            row = graph.join(*made, axis=-1) if made else graph.constant(np.zeros((1, 0), np.float32))
            graph.hand_on(side, graph.join(past, row, axis=-2))
        graph.output("output", graph.columns(self.h, self.coordinates))
        graph.output("halted", graph.dense(self.h, halting, "halting") > 0.5)
        return graph.network()

    def _head(self, head: Attention, own_steps: bool, name: str, purpose: str) -> None:
        graph, to, part = self.graph, head.targets(), "" if own_steps else "token_"
        value = head.value.entries().restricted(to)
        nulls = np.asarray(head.null_key), np.asarray(head.null_value)[to]
        seen = []
        for side, own, null, about in (
            ("key", head.key, nulls[0], purpose),
            ("value", value, nulls[1], ""),
        ):
            made = graph.affine(self.h if own_steps else self._tokens, own, f"{name}.{part}{side}", about)
            if own_steps:
                kept, first = f"{side}s", sum(map(len, self._nulls[f"{side}s"]))
                before = graph.take(Value(graph, kept), first + np.arange(len(null)))
                self._nulls[kept].append(null)
                self._made[kept].append(made)
            else:
                before = graph.constant(null.astype(np.float32)[None])
            seen.append(graph.join(before, made, axis=-2))
        query = graph.affine(self.h, head.query, f"{name}.{part}query")
        keys, values = seen
        where = name if own_steps else f"{name}.token"
        mean = graph.attend(query, keys, values, self.temperature, name=where)
        self._put(self.h, mean, to)

    def _feed(self, block: Block, name: str) -> None:
        """Where dense layers give a new vector of which most is 0, only the rest is made."""
        graph, layers = self.graph, block.feed_forward
        if block.adds_to is not None:
            made = graph.dense(self.h, layers, name, block.purpose)
            self._put(self.h, made, np.asarray(block.adds_to))
            return
        (layer,) = layers
        own = layer.map.entries()
        rows = np.flatnonzero(own.reads() | (np.asarray(own.bias) != 0))
        if 2 * len(rows) > len(own):
            self.h = graph.dense(self.h, layers, name, block.purpose)
            return
        part = [Dense(own.restricted(rows), layer.activation)]
        made = graph.dense(self.h, part, name, block.purpose)
        self._put(graph.constant(np.zeros((1, len(own)), np.float32)), made, rows)

    def _put(self, x: Value, made: Value, to: NDArray[np.integer]) -> None:
        """What was made as part of the vector, whose coordinates are named at both ends of a step."""
        self.h = self.graph.node("put", x, made, arrays={"to": np.asarray(to, np.int64)})
