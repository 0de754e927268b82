"""A small writer of ONNX graphs: values by name, constants and nodes in the order they are asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 17
"""Operators of ONNX 1.12 (2022): old enough for every runtime in use."""
IR_VERSION = 8
"""The file format that goes with it."""

Shape = Sequence[int | str]
"""Sizes; a name stands for a size that is known when the model runs."""

LARGEST = 1 << 31
"""Bytes that a model in one file can have (a limit of protocol buffers)."""


class GraphWriter:
    """Grows a graph node by node. Every method that adds something gives back the name of its value."""

    def __init__(self) -> None:
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

    def constant(self, array: NDArray[Any], name: str = "") -> str:
        """An array stored in the model."""
        name = name or f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

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


def _kind(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
