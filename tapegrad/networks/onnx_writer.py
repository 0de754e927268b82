"""ONNX graphs node by node."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tapegrad.errors import Refused

OPSET = 17
"""Operators of ONNX 1.12 (2022): old enough for every runtime in use."""
IR_VERSION = 8
"""The file format that goes with it."""

Shape = Sequence[int | str]
"""Sizes; a name stands for a size that is known when the model runs."""

LARGEST = 1 << 31
"""Bytes that a model in one file can have (a limit of protocol buffers)."""


class GraphWriter:
    """Grows a graph node by node. Every method that adds something gives back the name of its value. Names
    begin with the prefix: those of a graph inside another must differ from those around it.

    Where arrays are shared, two that are equal are stored once, under the name of the first: the layers of a
    machine that was unrolled repeat, and dense matrices are large."""

    def __init__(self, *, prefix: str = "", shared: bool = False, advice: str = "") -> None:
        self.prefix = prefix
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
        name = self.prefix + (name or f"constant_{len(self._constants)}")
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
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def whole(self, *numbers: int) -> str:
        """A vector of whole numbers: axes, shapes, places."""
        return self.constant(np.array(numbers, np.int64))

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """A node with one output."""
        name = self.prefix + (name or f"{operator.lower()}_{len(self._nodes)}")
        self._nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def graph(self, name: str) -> onnx.GraphProto:
        """All of it, as the graph of a model or the body of a loop."""
        return helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._constants)

    def model(self, name: str, notes: Mapping[str, str]) -> onnx.ModelProto:
        """The finished model, checked; `notes` become its metadata."""
        model = helper.make_model(
            self.graph(name),
            producer_name="tapegrad",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, dict(notes))
        onnx.checker.check_model(model, full_check=True)
        return model


def _kind(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
