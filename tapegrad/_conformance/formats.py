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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.exact import Dyadic, Expected
from tapegrad.networks.network import Network, Node


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
LARGEST_BYTE, LARGEST_SUM = 127, 1 << 31
IN_BYTES = {"affine", "relu", "take", "join", "transpose", "patches"}


def dtype_of(name: str) -> Any:
    """The NumPy type of a format."""
    if name == "bfloat16":
        from ml_dtypes import bfloat16

        return np.dtype(bfloat16)
    return np.dtype(name)


def cast(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Floats in a format; whole numbers as they are."""
    return array.astype(dtype_of(name)) if array.dtype.kind == "f" else array


def shortfall(network: Network, expected: Expected, inputs: Mapping[str, NDArray[Any]], name: str) -> str:
    """Why a format does not owe the exact result; empty where it does."""
    if name == INT8:
        return _bytes_shortfall(network, expected, inputs)
    own = FORMATS[name]
    for layer, demand in expected.demands.items():
        if demand.bits > own.bits:
            return f"layer {layer} needs {demand.bits} bits, {name} has {own.bits}"
        if demand.largest > own.largest or demand.places > own.places:
            return f"the values of layer {layer} leave the range of {name}"
    for where, array in {**network.arrays, **inputs}.items():
        if array.dtype.kind == "f" and _widest(array) > own.bits:
            return f"the numbers of {where} need {_widest(array)} bits, {name} has {own.bits}"
    return ""


def _widest(array: NDArray[Any]) -> int:
    """Bits between the first and the last 1 of a number, at most."""
    mantissa, _ = np.frexp(np.asarray(array, np.float64).ravel())
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    whole = whole[whole != 0]
    return int((53 - np.log2((whole & -whole).astype(np.float64))).max(initial=1))


def scale_of(network: Network, inputs: Mapping[str, NDArray[Any]]) -> int:
    """The s above."""
    arrays = [
        *(network.array(own, "bias") for own in network.nodes if "bias" in own.arrays),
        *inputs.values(),
    ]
    return 1 << max(Dyadic.of(array).places for array in arrays)


def _bytes_shortfall(network: Network, expected: Expected, inputs: Mapping[str, NDArray[Any]]) -> str:
    strange = {own.operation for own in network.nodes} - IN_BYTES
    if strange:
        return f"{', '.join(sorted(strange))} have no form in bytes"
    scale = scale_of(network, inputs)
    for own in network.nodes:
        if own.operation == "affine":
            weight = network.array(own, "values")
            if Dyadic.of(weight).places or np.abs(weight).max(initial=0) > LARGEST_BYTE:
                return f"the weights of layer {own.name} are no bytes"
            most = scale * float(np.abs(expected.values[own.name]).max(initial=0))
            if most > LARGEST_BYTE:
                return f"layer {own.name} has values up to {most:g} in units of 1/{scale}"
            if scale * expected.demands[own.name].largest >= LARGEST_SUM:
                return f"the sums of layer {own.name} leave 32 bits"
    return ""


@dataclass(frozen=True)
class Form:
    """A network in a format, as runtimes get it."""

    network: Network
    """In floats."""
    format: str = "float32"
    scale: int = 1
    """In bytes all values are times this."""
    written: bool = True
    """Whether the matrices of maps are written out, zeros and all. Else a unit gathers what it reads."""

    @cached_property
    def cast(self) -> Network:
        """The network with the arrays of the format: of a map in bytes weights in int8, biases in int32."""
        if self.format != INT8:
            own = {name: cast(array, self.format) for name, array in self.network.arrays.items()}
            return replace(self.network, arrays=own)
        arrays = dict(self.network.arrays)
        for node in self.network.nodes:
            if node.operation == "affine":
                weights, biases = node.arrays["values"], node.arrays["bias"]
                arrays[weights] = self.network.arrays[weights].astype(np.int8)
                arrays[biases] = np.round(self.network.arrays[biases] * self.scale).astype(np.int32)
        return replace(self.network, arrays=arrays)

    def inputs(self, given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inputs in the format."""
        if self.format != INT8:
            return {name: cast(array, self.format) for name, array in given.items()}
        return {name: np.round(array * self.scale).astype(np.int8) for name, array in given.items()}

    def matrix(self, node: Node, width: int) -> NDArray[Any]:
        """The map of an affine node, which reads so many columns: a row for each of them."""
        weight = np.asarray(self.network.map(node, width).dense().weight).T
        return np.ascontiguousarray(weight.astype(dtype_of(self.format)))

    def gathers(self, node: Node) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """For each row of an affine node the columns that it reads, their entries, and whether they count:
        rows that read fewer than others are filled up."""
        rows, columns, bias = (self.network.array(node, part) for part in ("rows", "columns", "bias"))
        counts = np.bincount(rows, minlength=len(bias))
        shape = len(bias), max(1, int(counts.max(initial=0)))
        reads, entries, there = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape)
        which = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        reads[rows, which], entries[rows, which], there[rows, which] = columns, np.arange(len(rows)), 1
        return reads, entries, there.astype(dtype_of(self.format))

    def read_weights(self, node: Node) -> NDArray[Any]:
        """The weights of what the rows of an affine node read, in the order of `gathers`."""
        _, entries, there = self.gathers(node)
        values = self.cast.array(node, "values")
        return np.append(values, values.dtype.type(0))[entries] * there
