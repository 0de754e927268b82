"""The target `relu`: what it takes, how it is built, and what it costs."""

from collections.abc import Sequence

import numpy as np

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.layered import LayeredCircuit, layered
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import Refused
from tapegrad.source import Rewriting
from tapegrad.targets.relu.build import CORRECTIONS, DTYPES, lay_out, layer_sizes, padded
from tapegrad.targets.relu.exactness import prove
from tapegrad.targets.relu.net import Gates, ReluNet
from tapegrad.targets.target import Estimate, Example, Option, Target


def build(
    circuit: LayeredCircuit, *, correction: str, dtype: str, width: int | None, depth: int | None
) -> ReluNet:
    """The network of a layered circuit (which `passes` has padded to the depth)."""
    prove(_kinds(circuit), correction, dtype)
    _padded_width(layer_sizes(circuit, correction), width)
    gates = Gates(circuit.kinds, circuit.left, circuit.right, circuit.wires)
    stack = lay_out(circuit, correction, dtype)
    return ReluNet.of(stack, gates, circuit.inputs, circuit.outputs, correction, width)


def estimate(
    circuit: LayeredCircuit, *, correction: str, dtype: str, width: int | None, depth: int | None
) -> Estimate:
    """The numbers of the built net: per unit two inputs, two weights and a bias; per gate its kind, two
    operands and its wire; and where each layer ends."""
    prove(_kinds(circuit), correction, dtype)
    sizes = layer_sizes(circuit, correction)
    units, number = int(sizes.sum()), np.dtype(dtype).itemsize
    return Estimate(
        width=_padded_width(sizes, width),
        depth=len(sizes) - 1,
        parameters=5 * units + 4 * circuit.size + len(sizes) + 1,
        bytes=(8 + 3 * number) * units + 13 * circuit.size + 8 * (len(sizes) + 1),
        steps=circuit.depth,
        precision=dtype,
        notes=(f"{circuit.size:,} gates in {circuit.depth:,} layers, identities included",),
    )


def passes(
    circuit: Circuit, *, correction: str, dtype: str, width: int | None, depth: int | None
) -> Sequence[Rewriting]:
    """Layers first, then identity layers up to the depth asked for."""
    steps = [layered(circuit)]
    if depth is not None:
        steps.append(padded(steps[-1].after, depth, correction))  # type: ignore[arg-type]
    return steps


def _kinds(circuit: LayeredCircuit) -> list[Gate]:
    return [Gate(kind) for kind in np.unique(circuit.kinds).tolist()]


def _padded_width(sizes: np.ndarray, width: int | None) -> int:
    own = int(sizes[:-1].max(initial=0))
    if width is not None and width < own:
        raise Refused(
            f"the net needs a width of {own:,}, more than {width:,}", advice=f"Give at least {own}."
        )
    return width or own


def examples() -> Sequence[Example]:
    """The sum of two two-bit numbers."""
    make = CircuitBuilder()
    a0, a1, b0, b1 = (make.input(name) for name in ("a0", "a1", "b0", "b1"))
    carry = make.and_(a0, b0)
    half = make.xor(a1, b1)
    make.output("s0", make.xor(a0, b0))
    make.output("s1", make.xor(half, carry))
    make.output("s2", make.or_(make.and_(a1, b1), make.and_(half, carry)))
    return [Example(make.circuit("two-bit adder"), ([1, 1, 1, 0],))]


TARGET = Target(
    name="relu",
    summary="the forward pass of a ReLU network, two ReLU layers and a correction for each circuit layer",
    paper="Wei, Chen, Ma, section 3 and appendix B",
    takes=Circuit,
    net=ReluNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options={
        "correction": Option("thirds", "round between layers as in Proposition 3.4", tuple(CORRECTIONS)),
        "dtype": Option("float32", "precision of weights and values", DTYPES),
        "width": Option(None, "pad every ReLU layer to this many units"),
        "depth": Option(None, "pad with identities to this many ReLU layers"),
    },
    passes=passes,
)
