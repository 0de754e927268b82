"""The target `transformer` in ONNX: one decoder step, with the keys and values so far going in and out.

A model with a loop inside would hide what is worth seeing; a step is small, and a loop around it is four
lines in any language:

    output, keys, values = first_output, no rows, no rows
    for step in 0, 1, ...:
        output, halted, keys, values = model(output, bits of step, tokens, keys, values)
        stop if halted
"""

import json

import numpy as np
import onnx

from tapegrad.interop.onnx.graph import GraphWriter
from tapegrad.targets.transformer.layers import Attention, FeedForward
from tapegrad.targets.transformer.net import TransformerNet

FLOAT = np.float32


class _Step:
    """The graph of one step. The caches of all layers stand side by side in two matrices, a row for each
    step of the past; `keys` and `values` say which columns belong to which layer."""

    def __init__(self, net: TransformerNet) -> None:
        self.net, self.graph = net, GraphWriter()
        own = [layer.self_attention for layer in net.layers if layer.self_attention is not None]
        self.columns = np.cumsum([0, *(len(attention.K_0) for attention in own)])
        self.width = net.layout.width
        self.caches = len(own)
        self.first = self.graph.constant(np.array([0], np.int64), "axis_0")
        self.second = self.graph.constant(np.array([1], np.int64), "axis_1")

    def model(self) -> onnx.ModelProto:
        net, graph, width = self.net, self.graph, self.width
        past = [int(self.columns[-1]), self.caches * width]
        output = graph.input("output", FLOAT, [width])
        time = graph.input("time", FLOAT, [len(net.layout.group("pos1"))])
        tokens = graph.input("tokens", FLOAT, ["cells", width])
        old = [
            graph.input(name, FLOAT, ["past", columns])
            for name, columns in zip(("past_keys", "past_values"), past, strict=True)
        ]
        spread = np.zeros((len(net.layout.group("pos1")), width), FLOAT)
        spread[np.arange(len(spread)), net.layout.group("pos1")] = 1
        h = graph.add("Add", output, graph.add("MatMul", time, graph.constant(spread, "time_to_width")))
        new_keys, new_values = [], []
        for number, layer in enumerate(net.layers):
            if layer.self_attention is not None:
                weights = self._weights(layer.self_attention, f"layer_{number}.dec")
                place = len(new_keys)
                key, value = (self._row(self._affine(weights, kind, h)) for kind in "KV")
                new_keys.append(key)
                new_values.append(value)
                keys = self._slice(old[0], int(self.columns[place]), int(self.columns[place + 1]))
                values = self._slice(old[1], place * width, (place + 1) * width)
                keys = graph.add("Concat", keys, key, axis=0)
                values = graph.add("Concat", values, value, axis=0)
                h = self._attended(weights, h, keys, values)
            if layer.encoder_attention is not None:
                weights = self._weights(layer.encoder_attention, f"layer_{number}.enc")
                keys, values = (self._affine(weights, kind, tokens) for kind in "KV")
                h = self._attended(weights, h, keys, values)
            h = self._feed_forward(layer.feed_forward, h, f"layer_{number}")
        graph.output("next_output", h, FLOAT, [width])
        graph.output("halted", self._halted(h), np.bool_, [1])
        for name, before, rows, columns in zip(
            ("keys", "values"), old, (new_keys, new_values), past, strict=True
        ):
            row = graph.add("Concat", *rows, axis=1)
            together = graph.add("Concat", before, row, axis=0)
            graph.output(name, together, FLOAT, ["past and now", columns])
        notes = {
            "first_output": json.dumps(net.h_0.tolist()),
            "coordinates": json.dumps(net.layout.names),
            "steps": str(net.layout.steps),
        }
        return graph.model("transformer", notes)

    def _weights(self, attention: Attention, name: str) -> dict[str, str]:
        """`W_Q` and the rest as constants; matrices are transposed, as rows times matrix needs them."""
        return {
            field: self.graph.constant(array.T if field[0] == "W" else array, f"{name}.{field}")
            for field, array in vars(attention).items()
        }

    def _affine(self, weights: dict[str, str], kind: str, h: str) -> str:
        product = self.graph.add("MatMul", h, weights[f"W_{kind}"])
        return self.graph.add("Add", product, weights[f"b_{kind}"])

    def _row(self, vector: str) -> str:
        return self.graph.add("Unsqueeze", vector, self.first)

    def _slice(self, matrix: str, first: int, last: int) -> str:
        ends = (self.graph.constant(np.array([place], np.int64)) for place in (first, last))
        return self.graph.add("Slice", matrix, *ends, self.second)

    def _attended(self, weights: dict[str, str], h: str, keys: str, values: str) -> str:
        """h plus the values with the best scores, or their softmax; the null key and value come first."""
        graph = self.graph
        query = self._affine(weights, "Q", h)
        keys = graph.add("Concat", self._row(weights["K_0"]), keys, axis=0)
        values = graph.add("Concat", self._row(weights["V_0"]), values, axis=0)
        scores = graph.add("MatMul", keys, query)
        if self.net.attention == "softmax":
            sharp = graph.add("Mul", scores, graph.constant(np.array(self.net.temperature, FLOAT)))
            shares = graph.add("Softmax", sharp, axis=0)
        else:
            best = graph.add("Equal", scores, graph.add("ReduceMax", scores, axes=[0]))
            ones = graph.add("Cast", best, to=onnx.TensorProto.FLOAT)
            shares = graph.add("Div", ones, graph.add("ReduceSum", ones, self.first))
        return graph.add("Add", h, graph.add("MatMul", shares, values))

    def _feed_forward(self, feed: FeedForward, h: str, name: str) -> str:
        """`relu(W_1 h + b_1)`, then the correction (Proposition 3.4)."""
        graph = self.graph
        z = graph.add("MatMul", h, graph.constant(feed.W_1.T, f"{name}.W_1"))
        z = graph.add("Relu", graph.add("Add", z, graph.constant(feed.b_1, f"{name}.b_1")))
        gain = graph.constant(np.array(feed.gain, FLOAT))
        cuts = [
            graph.add("Mul", gain, graph.add("Relu", graph.add("Sub", z, self.graph.constant(kink))))
            for kink in (np.array(feed.low, FLOAT), np.array(feed.high, FLOAT))
        ]
        return graph.add("Relu", graph.add("Sub", *cuts), name=name)

    def _halted(self, h: str) -> str:
        """Whether a pair of state and symbol without a rule is on: the first layer, read by `theta_halt`."""
        graph = self.graph
        pairs = graph.add("Relu", graph.add("Add", graph.add("MatMul", h, "layer_0.W_1"), "layer_0.b_1"))
        on = graph.add("MatMul", pairs, graph.constant(self.net.theta_halt[:, None], "theta_halt"))
        return graph.add("Greater", on, graph.constant(np.array(0.5, FLOAT)))


def transformer_model(net: TransformerNet) -> onnx.ModelProto:
    """One decoder step of the net."""
    return _Step(net).model()
