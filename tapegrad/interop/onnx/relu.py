"""The target `relu` in ONNX: five nodes for a layer (gather two inputs, multiply, sum, add bias, ReLU)."""

import json

import numpy as np
import onnx

from tapegrad.interop.onnx.graph import GraphWriter
from tapegrad.targets.relu.net import ReluNet


def relu_model(net: ReluNet) -> onnx.ModelProto:
    """`bits` (patterns, inputs) as 0.0 and 1.0 to `outputs` (patterns, outputs) near -1 and +1."""
    graph, bounds = GraphWriter(), net.bounds.tolist()
    inputs, weights, biases = (np.asarray(a) for a in (net.inputs, net.weights, net.biases))
    width = len(net.input_names)
    values = graph.input("bits", net.dtype, ["patterns", width])
    last_axis = graph.constant(np.array([2], np.int64), "last_axis")
    for layer in range(net.depth + 1):
        own = slice(bounds[layer], bounds[layer + 1])
        if width == 0:  # rows of constants name place 0, which an empty layer does not have
            one_column = graph.constant(np.array([0, 0, 0, 1], np.int64))
            values = graph.add("Pad", values, one_column)
        places = graph.constant(inputs[own].astype(np.int64), f"layer_{layer}.inputs")
        pairs = graph.add("Gather", values, places, axis=1)
        terms = graph.add("Mul", pairs, graph.constant(weights[own], f"layer_{layer}.weights"))
        sums = graph.add("ReduceSum", terms, last_axis, keepdims=0)
        values = graph.add("Add", sums, graph.constant(biases[own], f"layer_{layer}.biases"))
        if layer < net.depth:
            values = graph.add("Relu", values, name=f"layer_{layer}")
        width = bounds[layer + 1] - bounds[layer]
    graph.output("outputs", values, net.dtype, ["patterns", width])
    notes = {"inputs": json.dumps(net.input_names), "outputs": json.dumps(net.output_names)}
    return graph.model("relu", notes)
