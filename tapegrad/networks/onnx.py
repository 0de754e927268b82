"""Layers as nodes of an ONNX graph: a small writer of graphs that knows how each kind of layer is evaluated.

Dense layers take rows: a value of shape (places, width) or (width).
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tapegrad.errors import Refused
from tapegrad.networks.form import Activation, Affine, Attention, Convolution, Dense, Matrix, Stack

OPSET = 17
"""Operators of ONNX 1.12 (2022): old enough for every runtime in use."""
IR_VERSION = 8
"""The file format that goes with it."""

Shape = Sequence[int | str]
"""Sizes; a name stands for a size that is known when the model runs."""

LARGEST = 1 << 31
"""Bytes that a model in one file can have (a limit of protocol buffers)."""


class GraphWriter:
    """Grows a graph node by node. Every method that adds something gives back the name of its value.

    Where arrays are shared, two that are equal are stored once, under the name of the first: the layers of a
    machine that was unrolled repeat, and dense matrices are large."""

    def __init__(self, *, shared: bool = False, advice: str = "") -> None:
        self._stored: dict[bytes, str] | None = {} if shared else None
        self._bytes, self._advice = 0, advice
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: Any, shape: Shape) -> str:
        """An input of the model."""
        self._inputs.append(helper.make_tensor_value_info(name, _kind(dtype), shape))
        return name

    def output(self, name: str, value: str, dtype: Any, shape: Shape) -> None:
        """An output of the model: this value under this name."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, _kind(dtype), shape))

    def result(self, name: str, dtype: Any, shape: Shape) -> None:
        """An output of the model: the value of the last node, which takes this name."""
        self._nodes[-1].output[0] = name
        self._outputs.append(helper.make_tensor_value_info(name, _kind(dtype), shape))

    def constant(self, array: NDArray[Any], name: str = "") -> str:
        """An array stored in the model."""
        name = name or f"constant_{len(self._constants)}"
        if self._stored is not None:
            described = f"{array.dtype} {array.shape}".encode()
            first = self._stored.setdefault(hashlib.sha256(described + array.tobytes()).digest(), name)
            if first != name:
                return first
        self._bytes += array.nbytes
        if self._bytes > LARGEST:
            raise Refused(
                f"the arrays of the model take more than the {LARGEST >> 30} GiB that an ONNX file in one "
                "piece can hold",
                advice=self._advice,
            )
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def whole(self, *numbers: int) -> str:
        """A vector of whole numbers: axes, shapes, places."""
        return self.constant(np.array(numbers, np.int64))

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """A node with one output."""
        name = name or f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def model(self, name: str, notes: Mapping[str, str]) -> onnx.ModelProto:
        """The finished model, checked; `notes` become its metadata."""
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._constants)
        model = helper.make_model(
            graph,
            producer_name="tapegrad",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, dict(notes))
        onnx.checker.check_model(model, full_check=True)
        return model

    # Layers

    def affine(self, own: Affine | Matrix, x: str, name: str) -> str:
        """`x A^T + b`, with the matrix written out (transposed, as rows times matrix needs it)."""
        if len(own) * own.width * own.bias.dtype.itemsize > LARGEST:
            raise Refused(
                f"a map of {len(own):,} x {own.width:,} entries is too large for a file",
                advice="For target rcnn, compile with encoding=channels.",
            )
        written = own.dense()
        product = self.add("MatMul", x, self.constant(np.asarray(written.weight).T, f"{name}.weight"))
        return self.add("Add", product, self.constant(np.asarray(written.bias), f"{name}.bias"))

    def activate(self, activation: Activation, z: str, dtype: Any, name: str = "") -> str:
        """The activation of what a map gave."""
        if activation == "linear":
            return z
        if activation == "relu":
            return self.add("Relu", z, name=name)
        z = self.add("Relu", z)
        gain = self.constant(np.array(activation.gain, dtype))
        kinks = [self.constant(np.array(kink, dtype)) for kink in (activation.low, activation.high)]
        cuts = [self.add("Mul", gain, self.add("Relu", self.add("Sub", z, kink))) for kink in kinks]
        return self.add("Relu", self.add("Sub", *cuts), name=name)

    def chain(self, layers: Sequence[Dense], x: str, name: str) -> str:
        """Layers one after the other."""
        for number, layer in enumerate(layers):
            own = f"{name}.{number}"
            z = self.affine(layer.map, x, own)
            x = self.activate(layer.activation, z, layer.map.bias.dtype, f"{own}.values")
        return x

    def attend(
        self, attention: Attention, h: str, keys: str, values: str, temperature: float | None, name: str
    ) -> str:
        """h plus the values with the best scores, or their softmax; the null key and value come first."""
        first, null_key, null_value = self.whole(0), attention.null_key, attention.null_value
        dtype = null_key.dtype
        query = self.affine(attention.query, h, f"{name}.query")
        nulls = (self.constant(np.asarray(null)[None]) for null in (null_key, null_value))
        keys, values = (
            self.add("Concat", null, own, axis=0) for null, own in zip(nulls, (keys, values), strict=True)
        )
        scores = self.add("MatMul", keys, query)
        if temperature is not None:
            sharp = self.add("Mul", scores, self.constant(np.array(temperature, dtype)))
            shares = self.add("Softmax", sharp, axis=0)
        else:
            best = self.add("Equal", scores, self.add("ReduceMax", scores, axes=[0]))
            ones = self.add("Cast", best, to=_kind(dtype))
            shares = self.add("Div", ones, self.add("ReduceSum", ones, first))
        return self.add("Add", h, self.add("MatMul", shares, values))

    def convolve(self, convolution: Convolution, grid: str) -> str:
        """Dense layers on the 3x3 patch of every cell of a grid of any size. The first one is a convolution
        where the value outside is 0; otherwise the patches are cut out."""
        layers = convolution.layers
        if convolution.padding == 0 and len(convolution.cells) == 9:
            batch = self.whole(0)
            x = self.add("Unsqueeze", grid, batch)
            for number, layer in enumerate(layers):
                written, size = layer.map.dense(), 3 if number == 0 else 1
                kernel = np.asarray(written.weight).reshape(len(layer.map), -1, size, size)
                parts = self.constant(kernel), self.constant(np.asarray(written.bias))
                z = self.add("Conv", x, *parts, pads=[size // 2] * 4)
                x = self.activate(layer.activation, z, written.bias.dtype)
            return self.add("Squeeze", x, batch)
        around = self.whole(0, 1, 1, 0, 1, 1)
        padded = self.add("Pad", grid, around, self.constant(np.array(convolution.padding)))
        axes, neighbours = self.whole(1, 2), []
        for row, column in convolution.corners():
            # The window ends 2 - row and 2 - column short of the padded grid; 0 short is "to the end".
            ends = [n - 2 if n < 2 else np.iinfo(np.int64).max for n in (row, column)]
            window = self.add("Slice", padded, self.whole(row, column), self.whole(*ends), axes)
            neighbours.append(self.add("Unsqueeze", window, self.whole(1)))
        shape = self.whole(len(convolution.cells) * convolution.channels, -1)
        columns = self.add("Reshape", self.add("Concat", *neighbours, axis=1), shape)
        rows = self.chain(layers, self.add("Transpose", columns, perm=[1, 0]), "layer")
        return self.add("Reshape", self.add("Transpose", rows, perm=[1, 0]), self.add("Shape", grid))

    def stack(self, stack: Stack, values: str) -> str:
        """Layers of units with few inputs: gather the inputs, multiply, sum, add the bias."""
        last_axis = self.whole(2)
        for layer in range(stack.layers):
            own = slice(int(stack.bounds[layer]), int(stack.bounds[layer + 1]))
            inputs, weights, biases = (
                np.asarray(a[own]) for a in (stack.inputs, stack.weights, stack.biases)
            )
            if (
                stack.size(layer - 1) == 0
            ):  # rows of constants name place 0, which an empty layer does not have
                values = self.add("Pad", values, self.whole(0, 0, 0, 1))
            places = self.constant(inputs.astype(np.int64), f"layer_{layer}.inputs")
            pairs = self.add("Gather", values, places, axis=1)
            terms = self.add("Mul", pairs, self.constant(weights, f"layer_{layer}.weights"))
            sums = self.add("ReduceSum", terms, last_axis, keepdims=0)
            values = self.add("Add", sums, self.constant(biases, f"layer_{layer}.biases"))
            if layer < stack.layers - 1:
                values = self.add("Relu", values, name=f"layer_{layer}")
        return values


def _kind(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
