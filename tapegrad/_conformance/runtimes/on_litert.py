"""LiteRT (TensorFlow Lite): models are written with its own schema, and run by XNNPACK, by its own kernels,
or by its reference kernels."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from tapegrad._conformance.formats import INT8
from tapegrad._conformance.graph import Graph, Layer, walk
from tapegrad._conformance.runtimes.base import Program, Unsupported, cast

LEVELS = {
    "xnnpack": OpResolverType.AUTO,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}
TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int8": schema.TensorType.INT8,
    "int32": schema.TensorType.INT32,
    "bool": schema.TensorType.BOOL,
}
Operator = schema.BuiltinOperator
RELU = schema.ActivationFunctionType.RELU
NONE = schema.ActivationFunctionType.NONE


class Writer:
    """Grows a model; values are numbers of tensors. Images have their channels last."""

    def __init__(self, name: str) -> None:
        self.format = name
        self.model: Any = schema.ModelT()  # its lists are declared as possibly None
        self.model.version = 3
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
        self.graph: Any = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs, self.graph.outputs = [], []
        self.model.subgraphs = [self.graph]
        self._codes: dict[int, int] = {}

    def tensor(self, shape: Sequence[int], kind: str, content: NDArray[Any] | None = None) -> int:
        """A tensor; one with a content is a constant. In bytes, one unit is 1."""
        own = schema.TensorT()
        own.name, own.shape, own.type = f"t{len(self.graph.tensors)}", list(shape), TYPES[kind]
        own.buffer = 0
        if content is not None:
            buffer: Any = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            own.buffer = len(self.model.buffers) - 1
        if self.format == INT8 and kind in ("int8", "int32"):
            own.quantization = schema.QuantizationParametersT()
            own.quantization.scale, own.quantization.zeroPoint = [1.0], [0]
        self.graph.tensors.append(own)
        return len(self.graph.tensors) - 1

    def constant(self, array: NDArray[Any]) -> int:
        """An array in the format, or whole numbers."""
        own = cast(array, self.format)
        own = own.astype(np.int32) if own.dtype == np.int64 else own
        return self.tensor(own.shape, own.dtype.name, own)

    def shape(self, value: int) -> list[int]:
        """Of a tensor."""
        return list(self.graph.tensors[value].shape)

    def add(
        self, code: int, inputs: Sequence[int], shape: Sequence[int], options: Any = None, kind: str = ""
    ) -> int:
        """An operation with one result."""
        if code not in self._codes:
            own = schema.OperatorCodeT()
            own.builtinCode, own.deprecatedBuiltinCode, own.version = code, min(code, 127), 1
            if self.format == INT8:
                own.version = {Operator.FULLY_CONNECTED: 4, Operator.CONV_2D: 3}.get(code, 1)
            self._codes[code] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(own)
        node, after = schema.OperatorT(), self.tensor(shape, kind or self.format)
        node.opcodeIndex, node.inputs, node.outputs = self._codes[code], list(inputs), [after]
        if options is not None:
            kind_name = type(options).__name__.removesuffix("T")
            node.builtinOptionsType = getattr(schema.BuiltinOptions, kind_name)
            node.builtinOptions = options
        self.graph.operators.append(node)
        return after

    def content(self) -> bytes:
        """The file."""
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    # Layers

    def dense(self, layer: Layer, x: int) -> int:
        options = schema.FullyConnectedOptionsT()
        options.fusedActivationFunction = RELU if layer.relu else NONE
        weight, bias = self.constant(layer.weight.T), self.constant(layer.arrays["bias"])
        shape = [self.shape(x)[0], layer.weight.shape[1]]
        return self.add(Operator.FULLY_CONNECTED, [x, weight, bias], shape, options)

    def convolution(self, layer: Layer, x: int) -> int:
        options = schema.Conv2DOptionsT()
        options.padding, options.strideH, options.strideW = schema.Padding.SAME, 1, 1
        options.dilationHFactor = options.dilationWFactor = 1
        options.fusedActivationFunction = RELU if layer.relu else NONE
        kernel = self.constant(layer.weight.transpose(0, 2, 3, 1))
        shape = [*self.shape(x)[:3], len(layer.weight)]
        return self.add(Operator.CONV_2D, [x, kernel, self.constant(layer.arrays["bias"])], shape, options)

    def sparse(self, layer: Layer, x: int) -> int:
        if self.format == INT8:
            raise Unsupported("LiteRT has no sums of gathered bytes without a scale of their own")
        inputs = layer.arrays["inputs"]
        options = schema.GatherOptionsT()
        options.axis = 1
        rows = self.shape(x)[0]
        pairs = self.add(Operator.GATHER, [x, self.constant(inputs)], [rows, *inputs.shape], options)
        terms = self._binary(Operator.MUL, pairs, self.constant(layer.weight), schema.MulOptionsT())
        total = self._reduced(Operator.SUM, terms, 2, keep=False)
        bias = self.constant(layer.arrays["bias"])
        return self._binary(Operator.ADD, total, bias, schema.AddOptionsT(), relu=layer.relu)

    def _binary(self, code: int, x: int, y: int, options: Any, *, relu: bool = False) -> int:
        options.fusedActivationFunction = RELU if relu else NONE
        return self.add(code, [x, y], self.shape(x), options)

    def _reduced(self, code: int, x: int, axis: int, *, keep: bool) -> int:
        options = schema.ReducerOptionsT()
        options.keepDims = keep
        shape = self.shape(x)
        after = [*shape[:axis], 1, *shape[axis + 1 :]] if keep else [*shape[:axis], *shape[axis + 1 :]]
        return self.add(code, [x, self.constant(np.array([axis], np.int32))], after, options)

    def join(self, layer: Layer, x: int) -> int:
        first = self.constant(layer.arrays["first"])
        options = schema.ConcatenationOptionsT()
        options.axis, options.fusedActivationFunction = 0, NONE
        rows = self.shape(first)[0] + self.shape(x)[0]
        return self.add(Operator.CONCATENATION, [first, x], [rows, self.shape(x)[1]], options)

    def _product(self, x: int, y: int, *, transposed: bool) -> int:
        options = schema.BatchMatMulOptionsT()
        options.adjX, options.adjY = False, transposed
        width = self.shape(y)[0 if transposed else 1]
        return self.add(Operator.BATCH_MATMUL, [x, y], [self.shape(x)[0], width], options)

    def scores(self, layer: Layer, x: int, y: int) -> int:
        product = self._product(x, y, transposed=True)
        return self._binary(Operator.ADD, product, self.constant(layer.arrays["mask"]), schema.AddOptionsT())

    def choose(self, layer: Layer, x: int) -> int:
        greatest = self._reduced(Operator.REDUCE_MAX, x, 1, keep=True)
        equal = self.add(Operator.EQUAL, [x, greatest], self.shape(x), schema.EqualOptionsT(), "bool")
        options = schema.CastOptionsT()
        options.inDataType, options.outDataType = TYPES["bool"], TYPES[self.format]
        ones = self.add(Operator.CAST, [equal], self.shape(x), options)
        count = self._reduced(Operator.SUM, ones, 1, keep=True)
        return self._binary(Operator.DIV, ones, count, schema.DivOptionsT())

    def mix(self, layer: Layer, x: int, y: int, z: int) -> int:
        return self._binary(Operator.ADD, self._product(x, y, transposed=False), z, schema.AddOptionsT())


def _last(array: NDArray[Any]) -> NDArray[Any]:
    return np.moveaxis(array, 1, -1) if array.ndim == 4 else array


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    made: dict[tuple[int, ...], Interpreter] = {}

    def program(inputs: Any) -> dict[str, NDArray[Any]]:
        given = {key: np.ascontiguousarray(_last(own)) for key, own in inputs.items()}
        sizes = tuple(len(own) for own in given.values())
        if sizes not in made:
            writer = Writer(name)
            values = {key: writer.tensor(own.shape, name) for key, own in given.items()}
            writer.graph.inputs = list(values.values())
            kept = set(wanted)
            shown = [value for layer, value in walk(graph, writer, values) if layer.name in kept]
            writer.graph.outputs = shown
            made[sizes] = Interpreter(
                model_content=writer.content(), experimental_op_resolver_type=LEVELS[level], num_threads=1
            )
            made[sizes].allocate_tensors()
        own = made[sizes]
        for place, array in zip(own.get_input_details(), given.values(), strict=True):
            own.set_tensor(place["index"], array)
        own.invoke()
        found = [own.get_tensor(place["index"]) for place in own.get_output_details()]
        first = [np.moveaxis(array, -1, 1) if array.ndim == 4 else array for array in found]
        return dict(zip(wanted, first, strict=True))

    return program
