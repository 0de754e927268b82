"""Circuits of the paper's four gates, and their layers evaluated gate by gate."""

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.layered import LayeredCircuit
from tapegrad.circuits.model import Circuit
from tapegrad.compile import Compiled, compile
from tapegrad.targets.relu import ReluNet


def adder(bits: int) -> Circuit:
    """a + b of AND, OR and NOT: the sum bit is (x or y) and not (x and y), twice."""
    make = CircuitBuilder()
    a = [make.input(f"a{i}") for i in range(bits)]
    b = [make.input(f"b{i}") for i in range(bits)]

    def exclusive(x, y):
        return make.and_(make.or_(x, y), make.not_(make.and_(x, y)))

    carry = None
    for i in range(bits):
        half, both = exclusive(a[i], b[i]), make.and_(a[i], b[i])
        make.output(f"s{i}", half if carry is None else exclusive(half, carry))
        carry = both if carry is None else make.or_(both, make.and_(half, carry))
    assert carry is not None
    make.output(f"s{bits}", carry)
    return make.circuit(f"{bits}-bit adder")


def every_pattern(bits: int) -> NDArray[np.int64]:
    """All inputs, one row each."""
    return np.arange(2**bits)[:, None] >> np.arange(bits) & 1


def compiled_relu(circuit: Circuit, correction: str = "thirds", **options: int) -> tuple[Compiled, ReluNet]:
    """The network of a circuit, in double precision."""
    compiled = compile(circuit, "relu", correction=correction, dtype="float64", **options)
    assert isinstance(compiled.net, ReluNet)
    return compiled, compiled.net


def layered_of(compiled: Compiled) -> LayeredCircuit:
    """The layered circuit that the network was built from."""
    assert isinstance(compiled.lowered, LayeredCircuit)
    return compiled.lowered


def gate_layer(circuit: LayeredCircuit, number: int, bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """g_i on any bits of the layer before: bit 2a + b of a gate's kind is its value at (a, b)."""
    layer = circuit.layer(number)
    left, right = bits[:, layer.left], bits[:, layer.right]
    return layer.kinds.astype(int) >> (2 * left + right) & 1


def dense(net: ReluNet, layer: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """W_i and b_i."""
    weight, bias = net.dense_layer(layer)
    return np.asarray(weight, float), np.asarray(bias, float)
