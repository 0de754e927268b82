"""The networks as ONNX models, for the runtimes that read these."""

from collections.abc import Sequence

import numpy as np
import onnx

from tapegrad._conformance.formats import INT8
from tapegrad._conformance.graph import Graph, Layer, shapes, walk
from tapegrad._conformance.runtimes.base import Unsupported, cast, dtype_of
from tapegrad.networks.onnx_writer import OPSET, GraphWriter

INT32 = onnx.TensorProto.INT32


class OnnxOperations:
    """Layers as nodes. In bytes, products are those of `MatMulInteger` and `ConvInteger`."""

    def __init__(self, graph: GraphWriter, name: str) -> None:
        self.graph, self.format = graph, name
        self.kind = onnx.helper.np_dtype_to_tensor_dtype(dtype_of(name))

    def constant(self, layer: Layer, name: str) -> str:
        """One of the layer's arrays."""
        return self.graph.constant(cast(layer.arrays[name], self.format), f"{layer.name}.{name}")

    def _after(self, layer: Layer, z: str) -> str:
        if layer.relu:
            z = self.graph.add("Relu", z)
        return self.graph.add("Cast", z, to=self.kind) if self.format == INT8 else z

    def dense(self, layer: Layer, x: str) -> str:
        operator = "MatMulInteger" if self.format == INT8 else "MatMul"
        product = self.graph.add(operator, x, self.constant(layer, "weight"))
        return self._after(layer, self.graph.add("Add", product, self.constant(layer, "bias")))

    def sparse(self, layer: Layer, x: str) -> str:
        graph, weight = self.graph, layer.weight
        pairs = graph.add("Gather", x, self.constant(layer, "inputs"), axis=1)
        if self.format == INT8:
            pairs, weight = graph.add("Cast", pairs, to=INT32), weight.astype(np.int32)
        terms = graph.add("Mul", pairs, graph.constant(cast(weight, self.format), f"{layer.name}.weight"))
        total = graph.add("ReduceSum", terms, graph.whole(2), keepdims=0)
        return self._after(layer, graph.add("Add", total, self.constant(layer, "bias")))

    def convolution(self, layer: Layer, x: str) -> str:
        graph, pads = self.graph, [layer.weight.shape[-1] // 2] * 4
        kernel = self.constant(layer, "kernel")
        if self.format != INT8:
            return self._after(layer, graph.add("Conv", x, kernel, self.constant(layer, "bias"), pads=pads))
        z = graph.add("ConvInteger", x, kernel, pads=pads)
        bias = graph.constant(layer.arrays["bias"].reshape(-1, 1, 1), f"{layer.name}.bias")
        return self._after(layer, graph.add("Add", z, bias))

    def join(self, layer: Layer, x: str) -> str:
        return self.graph.add("Concat", self.constant(layer, "first"), x, axis=0)

    def scores(self, layer: Layer, x: str, y: str) -> str:
        product = self.graph.add("MatMul", x, self.graph.add("Transpose", y, perm=[1, 0]))
        return self.graph.add("Add", product, self.constant(layer, "mask"))

    def choose(self, layer: Layer, x: str) -> str:
        graph = self.graph
        best = graph.add("Equal", x, graph.add("ReduceMax", x, axes=[1]))
        ones = graph.add("Cast", best, to=self.kind)
        return graph.add("Div", ones, graph.add("ReduceSum", ones, graph.whole(1)))

    def mix(self, layer: Layer, x: str, y: str, z: str) -> str:
        return self.graph.add("Add", self.graph.add("MatMul", x, y), z)


def model_of(graph: Graph, name: str, wanted: Sequence[str], rows: dict[str, int]) -> onnx.ModelProto:
    """A model that gives the layers that are wanted; `rows` are the sizes of the first axis of its inputs."""
    writer = GraphWriter()
    operations = OnnxOperations(writer, name)
    kind = dtype_of(name)
    inputs = {key: writer.input(key, kind, [rows[key], *shape]) for key, shape in graph.inputs.items()}
    kept, sizes = set(wanted), shapes(graph, rows)
    for layer, value in walk(graph, operations, inputs):
        if layer.name in kept:
            writer.output(layer.name, value, kind, sizes[layer.name])
    try:
        return writer.model(graph.name, {"about": graph.about})
    except onnx.shape_inference.InferenceError as error:
        raise Unsupported(f"ONNX, operators of version {OPSET}: {error}") from error
