"""What scripts for verifiers share, and the scorer with them: an instance in, an answer out. Needs NumPy and
onnx, and nothing of tapegrad, since a verifier may live in a Python of its own."""

import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

LONGEST = 64 << 20
"""Bytes of a property that is read."""
_BOUND = re.compile(r"\(assert \((<=|>=) ([XY])_([0-9]{1,7}) (-?[0-9]{1,40}\.[0-9]{1,60})\)\)")
_DECLARED = re.compile(r"\(declare-const [XY]_[0-9]{1,7} Real\)")


class Layer(NamedTuple):
    """`weight x + bias`, with a ReLU or without."""

    weight: np.ndarray
    bias: np.ndarray
    relu: bool


class Instance(NamedTuple):
    """A network and a property: an input in the box with an output of at least the threshold."""

    layers: list[Layer]
    box: list[tuple[Fraction, Fraction]]
    threshold: Fraction

    def value(self, point: Sequence[float]) -> float:
        """The output of the network, in double precision."""
        x = np.array(point, np.float64)
        for layer in self.layers:
            x = layer.weight.astype(np.float64) @ x + layer.bias
            x = np.maximum(x, 0) if layer.relu else x
        return float(x[0])


def read_instance(onnx_path: str | Path, vnnlib_path: str | Path) -> Instance:
    """Both files of an instance of ours; a ValueError for any other."""
    box, threshold = read_property(Path(vnnlib_path).read_text())
    return Instance(read_layers(onnx_path), box, threshold)


def read_layers(path: str | Path) -> list[Layer]:
    """The layers of a model of MatMul, Add and Relu."""
    graph = onnx.load(path).graph
    arrays = {own.name: numpy_helper.to_array(own) for own in graph.initializer}
    layers: list[Layer] = []
    weight = np.zeros((0, 0))
    for node in graph.node:
        if node.op_type == "MatMul":
            weight = arrays[node.input[1]].T
        elif node.op_type == "Add":
            layers.append(Layer(weight, arrays[node.input[1]], False))
        elif node.op_type == "Relu":
            layers[-1] = layers[-1]._replace(relu=True)
        else:
            raise ValueError(f"the model has the operator {node.op_type}")
    return layers


def read_property(text: str) -> tuple[list[tuple[Fraction, Fraction]], Fraction]:
    """Box and threshold of a property of ours in VNN-LIB 1.0."""
    if len(text) > LONGEST:
        raise ValueError(f"a property longer than {LONGEST >> 20} MiB is not read")
    bounds: dict[tuple[str, str, int], Fraction] = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        found = _BOUND.fullmatch(line)
        if found:
            bounds[found[2], found[1], int(found[3])] = Fraction(found[4])
        elif line and not line.startswith(";") and not _DECLARED.fullmatch(line):
            raise ValueError(f"line {number} of the property is not a bound of a box")
    inputs = 1 + max((place for kind, _, place in bounds if kind == "X"), default=-1)
    try:
        box = [(bounds["X", ">=", place], bounds["X", "<=", place]) for place in range(inputs)]
        return box, bounds["Y", ">=", 0]
    except KeyError as error:
        raise ValueError(f"the property has no bound {error.args[0]}") from error
