"""`to_onnx`: a compiled net as an ONNX model (extra `onnx`)."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tapegrad._compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.exporting import net_of
from tapegrad.interop.layers import dense_layers
from tapegrad.networks.backends.onnx import model_of
from tapegrad.networks.form import Dense
from tapegrad.networks.onnx_writer import LARGEST, GraphWriter
from tapegrad.targets.net import Net
from tapegrad.targets.relu import LayeredNet


def to_onnx(compiled: Compiled | Net) -> onnx.ModelProto:
    """The net as a checked ONNX model, straight from its arrays: the whole pass of `relu`, one decoder step
    of `transformer`, one application of the filter of `rcnn`, more tokens of a text of `decoder`, the loss of
    `simplex`, `tape` and `emulator`. What is handed on goes in and comes out."""
    net = net_of(compiled)
    if sum(array.nbytes for array in net.all_arrays().values()) > LARGEST:
        raise Refused("the net has more parameters than an ONNX file in one piece can hold (2 GiB)")
    network = net.network
    notes = {
        f"{name}_columns": json.dumps(own.columns) for name, own in network.inputs.items() if own.columns
    }
    notes |= {
        name: json.dumps(network.columns[value])
        for name, value in network.outputs.items()
        if value in network.columns
    }
    return model_of(network, notes)


def to_plain_onnx(compiled: Compiled | Net) -> onnx.ModelProto:
    """A net of target `relu` in the operators that every verifier of networks knows, on one pattern; a
    compact one has identities in place of its skip connections."""
    net = net_of(compiled)
    if not isinstance(net, LayeredNet):
        raise Refused(
            f"target {net.target!r} is no chain of ReLU layers",
            advice="Use target relu, or to=onnx, which has other operators too.",
        )
    names = {"inputs": json.dumps(net.input_names), "outputs": json.dumps(net.output_names)}
    return plain_model(dense_layers(net), names)


def plain_model(layers: Sequence[Dense], notes: Mapping[str, str]) -> onnx.ModelProto:
    """ReLU layers as MatMul, Add and Relu and nothing else, shapes fixed: `bits` (1, inputs) to `outputs`
    (1, outputs). Matrices are written out, and those that are equal stored once."""
    graph = GraphWriter(
        shared=True, advice="A smaller net, or a narrower and deeper one, has smaller layers."
    )
    first, last = layers[0].map, layers[-1].map
    bits = graph.input("bits", first.bias.dtype, [1, first.width])
    value = bits
    for number, layer in enumerate(layers):
        written = layer.map.dense()
        weight = graph.constant(np.asarray(written.weight).T, f"layer.{number}.weight")
        bias = graph.constant(np.asarray(written.bias), f"layer.{number}.bias")
        value = graph.add("Add", graph.add("MatMul", value, weight), bias)
        if layer.activation == "relu":
            value = graph.add("Relu", value, name=f"layer.{number}.values")
    graph.result("outputs", last.bias.dtype, [1, len(last)])
    return graph.model("relu", notes)
