"""LiteRT (TensorFlow Lite): models are written with its own schema, and run by XNNPACK, by its own kernels,
or by its reference kernels."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from tapegrad._conformance.formats import INT8, Form
from tapegrad._conformance.runtimes.base import Patches, Program, Runtime, Unsupported
from tapegrad._conformance.writing import fused
from tapegrad.networks.network import Node

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
OPTIONS = {"SUM": "Reducer", "REDUCE_MAX": "Reducer", "CONV_2D": "Conv2D", "BATCH_MATMUL": "BatchMatMul"}
"""Of operators whose options have another name."""


class Writer(Runtime):
    """Grows a model; values are numbers of tensors."""

    def __init__(self, form: Form) -> None:
        super().__init__(form.cast)
        self.form, self.format, self._fused = form, form.format, fused(form.network)
        self.model: Any = schema.ModelT()  # its lists are declared as possibly None
        self.model.version = 3
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
        self.graph: Any = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs, self.graph.outputs = [], []
        self.model.subgraphs = [self.graph]
        self._codes, self._options = dict[str, int](), dict[int, Any]()

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

    def constant_of(self, array: NDArray[Any]) -> int:
        own = array.astype(np.int32) if array.dtype == np.int64 else array
        return self.tensor(own.shape, own.dtype.name, own)

    def shape(self, value: int) -> list[int]:
        """Of a tensor."""
        return list(self.graph.tensors[value].shape)

    def operator(self, code: str, inputs: Sequence[int], shape: Sequence[int], **fields: Any) -> int:
        """An operation with one result, and its options."""
        if code not in self._codes:
            own, number = schema.OperatorCodeT(), getattr(schema.BuiltinOperator, code)
            own.builtinCode, own.deprecatedBuiltinCode = number, min(number, 127)
            own.version = {"FULLY_CONNECTED": 4, "CONV_2D": 3}.get(code, 1) if self.format == INT8 else 1
            self._codes[code] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(own)
        node, after = schema.OperatorT(), self.tensor(shape, "bool" if code == "EQUAL" else self.format)
        node.opcodeIndex, node.inputs, node.outputs = self._codes[code], list(inputs), [after]
        name = OPTIONS.get(code, code.title().replace("_", "")) + "Options"
        if hasattr(schema, f"{name}T"):
            node.builtinOptionsType = getattr(schema.BuiltinOptions, name)
            node.builtinOptions = self._options[after] = getattr(schema, f"{name}T")()
            vars(node.builtinOptions).update(fields)
        self.graph.operators.append(node)
        return after

    def content(self) -> bytes:
        """The file."""
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    # Operations

    def affine(self, node: Node, x: Any) -> int:
        bias = self.part(node, "bias")
        if isinstance(x, Patches):
            return self._convolution(node, x.grid, bias)
        shape = [*self.shape(x)[:-1], *self.shape(bias)]
        if self.form.written:
            weight = self.constant_of(self.form.matrix(node, self.shape(x)[-1]).T)
            return self.operator("FULLY_CONNECTED", [x, weight, bias], shape, keepNumDims=len(shape) > 2)
        if self.format == INT8:
            raise Unsupported("LiteRT has no sums of gathered bytes without a scale of their own")
        pairs = self._gathered(x, self.form.gathers(node)[0])
        terms = self._binary("MUL", pairs, self.constant_of(self.form.read_weights(node)))
        return self._binary("ADD", self._reduced("SUM", terms, shape), bias)

    def _convolution(self, node: Node, x: int, bias: int) -> int:
        shape = [1, *self.shape(x)]
        kernel = self.constant_of(self.kernel(node, shape[-1]).transpose(0, 2, 3, 1))
        steps = dict.fromkeys(("strideH", "strideW", "dilationHFactor", "dilationWFactor"), 1)
        made, same = [*shape[:-1], *self.shape(bias)], schema.Padding.SAME
        reads = [self._shaped(x, shape), kernel, bias]
        found = self.operator("CONV_2D", reads, made, padding=same, **steps)
        flat = self._shaped(found, made[1:])
        self._options[flat] = self._options[found]
        return flat

    def _shaped(self, x: int, shape: list[int]) -> int:
        return self.operator("RESHAPE", [x, self._whole(shape)], shape, newShape=shape)

    def _whole(self, numbers: Any) -> int:
        return self.constant_of(np.array(numbers, np.int32))

    def _gathered(self, x: int, index: NDArray[Any]) -> int:
        *shape, _ = self.shape(x)
        return self.operator("GATHER", [x, self._whole(index)], [*shape, *index.shape], axis=len(shape))

    def _binary(self, code: str, x: int, y: int) -> int:
        return self.operator(code, [x, y], np.broadcast_shapes(self.shape(x), self.shape(y)))

    def _reduced(self, code: str, x: int, shape: Sequence[int]) -> int:
        """Over the last axis."""
        axis = len(self.shape(x)) - 1
        return self.operator(code, [x, self._whole([axis])], shape, keepDims=len(shape) > axis)

    def relu(self, node: Node, x: int) -> int:
        """Part of what makes x, where nothing else reads it."""
        options: Any = self._options.get(x)
        if node.reads[0] in self._fused and hasattr(options, "fusedActivationFunction"):
            options.fusedActivationFunction = schema.ActivationFunctionType.RELU
            return x
        return self.operator("RELU", [x], self.shape(x))

    def add(self, node: Node, x: int, y: int) -> int:
        return self._binary("ADD", x, y)

    def multiply(self, node: Node, x: int, y: int) -> int:
        return self._binary("MUL", x, y)

    def take(self, node: Node, x: int) -> int:
        return self._gathered(x, self.network.array(node, "index"))

    def put(self, node: Node, x: int, y: int) -> int:
        """For each column the one that is put there, or one of zeros behind all."""
        to, (*batch, width) = self.network.array(node, "to"), self.shape(y)
        if len(np.unique(to)) < width:
            raise Unsupported("this form of LiteRT puts nothing twice to a column")
        behind = self._whole([*[[0, 0]] * len(batch), [0, 1]])
        padded, places = (
            self.operator("PAD", [y, behind], [*batch, width + 1]),
            np.full(self.shape(x)[-1], width),
        )
        places[to] = np.arange(width)
        return self._binary("ADD", x, self._gathered(padded, places))

    def join(self, node: Node, x: int, y: int) -> int:
        shape, axis = self.shape(x), node.whole("axis")
        shape[axis] += self.shape(y)[axis]
        return self.operator("CONCATENATION", [x, y], shape, axis=len(shape) + axis)

    def product(self, node: Node, x: int, y: int) -> int:
        turned = bool(node.settings["turned"])
        shape = [*self.shape(x)[:-1], self.shape(y)[-2 if turned else -1]]
        return self.operator("BATCH_MATMUL", [x, y], shape, adjY=turned)

    def transpose(self, node: Node, x: int) -> int:
        order = node.list("order")
        return self.operator("TRANSPOSE", [x, self._whole(order)], [self.shape(x)[axis] for axis in order])

    def hardmax(self, node: Node, x: int) -> int:
        shape = self.shape(x)
        greatest = self._reduced("REDUCE_MAX", x, [*shape[:-1], 1])
        kinds = {"inDataType": TYPES["bool"], "outDataType": TYPES[self.format]}
        ones = self.operator("CAST", [self.operator("EQUAL", [x, greatest], shape)], shape, **kinds)
        return self._binary("DIV", ones, self._reduced("SUM", ones, [*shape[:-1], 1]))


def prepare(form: Form, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    made: dict[tuple[int, ...], Interpreter] = {}

    def program(inputs: Any) -> dict[str, NDArray[Any]]:
        given = {key: np.ascontiguousarray(own) for key, own in inputs.items()}
        sizes = tuple(len(own) for own in given.values())
        if sizes not in made:
            writer = Writer(form)
            values = {key: writer.tensor(own.shape, form.format) for key, own in given.items()}
            writer.graph.inputs = list(values.values())
            writer.graph.outputs = writer.wanted(values, wanted)
            made[sizes] = Interpreter(
                model_content=writer.content(), experimental_op_resolver_type=LEVELS[level], num_threads=1
            )
            made[sizes].allocate_tensors()
        own = made[sizes]
        for place, array in zip(own.get_input_details(), given.values(), strict=True):
            own.set_tensor(place["index"], array)
        own.invoke()
        found = [own.get_tensor(place["index"]) for place in own.get_output_details()]
        return dict(zip(wanted, found, strict=True))

    return program
