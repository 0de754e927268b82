"""Number formats, which of them owe an exact result, and the form of a network in bytes.

**In bytes.** Let all weights be whole numbers, and s a power of two such that s times every bias and input is
whole. A ReLU is positively homogeneous, relu(s z) = s relu(z), so a network that is given s x in place of x
and s b in place of every bias b gives s times every value: by induction, layer after layer. All its numbers
are whole. Where the values and weights are between -128 and 127, they are bytes, and their sums, of magnitude
below 2^31, are what integer kernels accumulate in. Thresholds in quarters (`correction=quarters`) make s = 4
and the greatest value 8.

**Ternary.** With `correction=none` every gate of the construction has weights -1, 0 and 1 already (AND =
relu(a + b - 1), OR = 1 - relu(1 - a - b), XOR = relu(a - b) + relu(b - a)); only the reading of outputs as
signs, 2 z - 1, has a 2. So no other gates are needed: the network `adder-ternary` leaves the reading out and
gives the bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.exact import Dyadic, Expected
from tapegrad._conformance.graph import AFFINE, Graph, with_arrays


@dataclass(frozen=True)
class Format:
    """A binary floating-point format."""

    bits: int
    """Of precision, the leading one included."""
    largest: float
    places: int
    """The smallest number above 0 is 2^-places."""


FORMATS = {
    "float64": Format(53, 1.7e308, 1074),
    "float32": Format(24, 3.4e38, 149),
    "float16": Format(11, 65504.0, 24),
    "bfloat16": Format(8, 3.3e38, 133),
}
INT8 = "int8"
NAMES = (*FORMATS, INT8)
LARGEST_SUM = 1 << 31


def shortfall(graph: Graph, expected: Expected, inputs: Mapping[str, NDArray[Any]], name: str) -> str:
    """Why a format does not owe the exact result; empty where it does."""
    if name == INT8:
        return _bytes_shortfall(graph, expected, inputs)
    own = FORMATS[name]
    for layer, demand in expected.demands.items():
        if demand.bits > own.bits:
            return f"layer {layer} needs {demand.bits} bits, {name} has {own.bits}"
        if demand.largest > own.largest or demand.places > own.places:
            return f"the values of layer {layer} leave the range of {name}"
    for where, array in {**graph.arrays(), **inputs}.items():
        if array.dtype.kind == "f" and _widest(array) > own.bits:
            return f"the numbers of {where} need {_widest(array)} bits, {name} has {own.bits}"
    return ""


def _widest(array: NDArray[Any]) -> int:
    """Bits between the first and the last 1 of a number, at most."""
    mantissa, _ = np.frexp(np.asarray(array, np.float64).ravel())
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    whole = whole[whole != 0]
    return int((53 - np.log2((whole & -whole).astype(np.float64))).max(initial=1))


def scale_of(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> int:
    """The s above."""
    arrays = [*(own.arrays["bias"] for own in graph.layers if "bias" in own.arrays), *inputs.values()]
    return 1 << max(Dyadic.of(array).places for array in arrays)


def _bytes_shortfall(graph: Graph, expected: Expected, inputs: Mapping[str, NDArray[Any]]) -> str:
    if any(own.kind not in AFFINE for own in graph.layers):
        return "attention has no form in bytes"
    scale = scale_of(graph, inputs)
    for own in graph.layers:
        if Dyadic.of(own.weight).places or np.abs(own.weight).max(initial=0) > 127:
            return f"the weights of layer {own.name} are no bytes"
        most = scale * float(np.abs(expected.values[own.name]).max(initial=0))
        if most > 127:
            return f"layer {own.name} has values up to {most:g} in units of 1/{scale}"
        if scale * expected.demands[own.name].largest >= LARGEST_SUM:
            return f"the sums of layer {own.name} leave 32 bits"
    return ""


def in_bytes(graph: Graph, scale: int) -> Graph:
    """The network with weights in int8 and biases, times the scale, in int32."""
    layers = []
    for own in graph.layers:
        name = "kernel" if own.kind == "convolution" else "weight"
        weight = {name: own.weight.astype(np.int8)}
        layers.append(with_arrays(own, **weight, bias=np.round(own.arrays["bias"] * scale).astype(np.int32)))
    return Graph(graph.name, graph.about, graph.inputs, tuple(layers))
