"""The ReLU network of a circuit, as a net: one step is one circuit layer."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray

from tapegrad.circuits.layered import LayerState
from tapegrad.circuits.model import Gate
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.form import Stack, formula
from tapegrad.networks.forms import of_stack
from tapegrad.networks.network import Network
from tapegrad.targets.relu.build import CORRECTIONS, DTYPES, GADGETS, HIDDEN_COUNT, relu_layers
from tapegrad.targets.relu.exactness import prove
from tapegrad.targets.relu.layered import Activations, LayeredNet

LARGEST_DENSE = 1 << 28
"""Most entries of a matrix that is written out."""


class Gates(NamedTuple):
    """The layered circuit that the network was built from: provenance, not used to run it."""

    kinds: UInt8[np.ndarray, " gates"]
    left: Int[np.ndarray, " gates"]
    right: Int[np.ndarray, " gates"]
    wires: Int[np.ndarray, " gates"]


class ReluNet(LayeredNet):
    """A layered circuit as ReLU layers with two inputs to a unit (Wei et al., section 3).

    The paper's `W_0, b_0, ..., W_d, b_d`: d ReLU layers, then a linear one. `dense_layer(i)`
    writes one of them out.
    """

    stack: Stack
    gates: Gates
    input_names: tuple[str, ...] = eqx.field(static=True)
    output_names: tuple[str, ...] = eqx.field(static=True)
    correction: str = eqx.field(static=True)
    padded_width: int | None = eqx.field(static=True)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that the network runs in."""
        return np.dtype(self.stack.weights.dtype)

    @property
    def depth(self) -> int:
        """The paper's d: ReLU layers."""
        return self.stack.layers - 1

    @property
    def width(self) -> int:
        """The paper's w: units of a ReLU layer, at most, or as many as the net is padded to."""
        return self.padded_width or int(np.diff(self.stack.bounds)[:-1].max(initial=0))

    @property
    def circuit_layers(self) -> int:
        """Layers of the circuit: steps of the net."""
        return self.depth // relu_layers(self.correction)

    def layer_width(self, step: int) -> int:
        """Values in a circuit layer; layer 0 are the inputs."""
        return self.stack.size(step * relu_layers(self.correction) - 1)

    # Running

    @cached_property
    def network(self) -> Network:
        """Bits to bits: the paper's layers, and its outputs -1 and +1 as 0 and 1."""
        return of_stack(self.target, self.stack, self.input_names, self.output_names)

    @property
    def last_step(self) -> int:
        """A step for each circuit layer; the last one gives the outputs, too."""
        return self.circuit_layers

    def layers_before(self, step: int) -> int:
        return step * relu_layers(self.correction) + (step == self.last_step)

    def start(self, state: LayerState) -> Activations:
        """The inputs as bits."""
        if state.layer != 0 or state.bits.shape[1] != len(self.input_names):
            raise InputError(f"the net starts at layer 0, with {len(self.input_names)} bits in a pattern")
        return self.started(state.bits)

    def decode(self, carry: Activations) -> LayerState:
        """The bits nearest to the values; at the end, the signs of the network's outputs."""
        bits = self.values(carry) > 0.5 if carry.signs is None else carry.signs > 0
        return LayerState(carry.steps, bits.T)

    def deviation(self, carry: Activations) -> float:
        """Largest distance of a value from its bit, or of an output from -1 or +1."""
        values = self.values(carry)
        return float(np.maximum(np.abs(values - (values > 0.5)).max(initial=0), self.off_from_signs(carry)))

    def values(self, carry: Activations) -> Float[np.ndarray, "units patterns"]:
        """Those of the circuit layer; none after a run through all layers at once."""
        if carry.steps == 0:
            return carry.values.astype(self.dtype)
        return self.after(carry.values, carry.steps * relu_layers(self.correction))

    def partly(self, carry: Activations, layers: int) -> Float[np.ndarray, "units patterns"]:
        """What the first so many layers of the next step give."""
        first = self.layers_before(carry.steps)
        return self.after(self.between(carry, first + layers), first + layers)

    def after(self, values: NDArray[Any], layers: int) -> Float[np.ndarray, "units patterns"]:
        """What a layer of the network gave: layers take turns with two halves of the slots."""
        first = layers % 2 * (self._node.whole("slots") // 2)
        return values[first : first + self.stack.size(layers - 1)].astype(self.dtype)

    # Reading

    def dense_layer(
        self, layer: int
    ) -> tuple[Float[np.ndarray, "units inputs"], Float[np.ndarray, " units"]]:
        """`W_i` and `b_i` as ordinary arrays, padded with zeros if the net is padded to a width."""
        if not 0 <= layer <= self.depth:
            raise InputError(f"the net has layers 0 to {self.depth}, not {layer}")
        own = self.stack.layer(layer)
        rows = len(own) if layer == self.depth else self.padded_width or len(own)
        columns = own.width if layer == 0 else self.padded_width or own.width
        if rows * columns > LARGEST_DENSE:
            raise Refused(f"layer {layer} as a matrix would have {rows:,} x {columns:,} entries")
        written, padding = own.dense(), ((0, rows - len(own)), (0, columns - own.width))
        return np.pad(written.weight, padding), np.pad(written.bias, padding[0])

    def units(self) -> Iterator[str]:
        """Every unit as LAYER.UNIT: row UNIT of `W_LAYER`, padding left out."""
        for layer in range(self.stack.layers):
            yield from (f"{layer}.{unit}" for unit in range(self.stack.size(layer)))

    def explain(self, unit: str) -> str:
        """What a unit computes, for which gate, and which line of the paper says so."""
        layer, row = _place(self, unit)
        here = int(self.stack.bounds[layer]) + row
        if layer < self.depth and row >= self.stack.size(layer):
            return f"Unit {row} of ReLU layer {layer}: padding, all weights zero (Lemma B.1)."
        computed = _formula(self, here)
        if layer == self.depth:
            return (
                f"Output {self.output_names[row]!r}: {computed}, which takes the bits 0 and 1 to -1 and +1 "
                "(proof of Theorem 3.1)."
            )
        step, part = divmod(layer, relu_layers(self.correction))
        place = _gate_of(self, step, part, row)
        said = (
            f"Unit {row} of ReLU layer {layer}: relu({computed}).",
            _role(self, part, row),
            f"It serves {_gate(self, step, place)}.",
        )
        return " ".join(said)

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The units layer by layer, and the gates they serve."""
        own = self.stack
        units = {"weights": own.weights, "biases": own.biases, "inputs": own.inputs, "layers": own.bounds}
        return {f"units.{name}": np.asarray(array) for name, array in units.items()} | {
            f"gates.{name}": array for name, array in self.gates._asdict().items()
        }

    def config(self) -> dict[str, Any]:
        """Names of inputs and outputs, and the shape."""
        return {
            "inputs": list(self.input_names),
            "outputs": list(self.output_names),
            "correction": self.correction,
            "dtype": self.dtype.name,
            "padded_width": self.padded_width,
            "circuit_layers": self.circuit_layers,
            "relu_layers": self.depth,
        }

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net again; engines may trust its places."""
        dtype, correction, width = config["dtype"], config["correction"], config["padded_width"]
        if dtype not in DTYPES or correction not in CORRECTIONS or not (width is None or type(width) is int):
            raise BrokenNet("the precision, the correction or the width of the net is unknown")
        wanted = {"weights": dtype, "biases": dtype, "inputs": "int32", "layers": "int64"}
        for name, kind in wanted.items():
            if arrays[f"units.{name}"].dtype != kind:
                raise BrokenNet(f"the array 'units.{name}' is not of type {kind}")
        gates = Gates(*(arrays[f"gates.{name}"] for name in Gates._fields))
        inputs, outputs = tuple(map(str, config["inputs"])), tuple(map(str, config["outputs"]))
        reads, weights, biases, bounds = (
            arrays[f"units.{name}"] for name in ("inputs", "weights", "biases", "layers")
        )
        stack = Stack(reads, weights, biases, bounds, len(inputs))
        return cls(stack.check(), gates, inputs, outputs, correction, width)

    def certificate(self) -> dict[str, Any]:
        """The static proof, in numbers (`tapegrad.targets.relu.exactness`)."""
        kinds, counts = np.unique(self.gates.kinds, return_counts=True)
        proof = prove(map(Gate, kinds.tolist()), self.correction, self.dtype.name)
        return {
            "statement": "for every input, every value after every circuit layer is within after_correction "
            "of the circuit's bit, and every output within at_outputs of -1 or +1",
            "gates": {Gate(k).name: c for k, c in zip(kinds.tolist(), counts.tolist(), strict=True)},
            "unit_roundoff": float(np.finfo(self.dtype).eps) / 2,
            **proof.to_json(),
        }


# In words: which gate a unit serves, what it computes, and which line of the paper it comes from.


def _place(net: "ReluNet", unit: str) -> tuple[int, int]:
    layer, dot, row = unit.partition(".")
    if not (dot and layer.isdecimal() and row.isdecimal() and len(unit) < 40):
        raise InputError(f"{unit[:40]!r} does not name a unit", advice="Write LAYER.UNIT, as in 0.3.")
    place = int(layer), int(row)
    if place[0] <= net.depth:
        size = net.stack.size(place[0])
        if place[0] < net.depth:
            size = net.padded_width or size
        if place[1] < size:
            return place
    raise InputError(f"the net has no unit {unit!r}", advice=f"Its layers are 0 to {net.depth}.")


def _formula(net: "ReluNet", unit: int) -> str:
    """The unit's own weights and bias, as stored: `x[3] + x[5] - 1`."""
    pairs = zip(net.stack.inputs[unit].tolist(), net.stack.weights[unit].tolist(), strict=True)
    terms = [(f"x[{place}]", weight) for place, weight in pairs if weight]
    return formula(terms, float(net.stack.biases[unit]))


def _gates_before(net: "ReluNet", step: int) -> int:
    """Gates in the circuit layers before this one (counting from 0)."""
    return sum(net.layer_width(i) for i in range(1, step + 1))


def _gate_of(net: "ReluNet", step: int, part: int, row: int) -> int:
    """The place of the gate that a unit serves, in its circuit layer."""
    if part == 0:
        first = _gates_before(net, step)
        kinds = net.gates.kinds[first : first + net.layer_width(step + 1)]
        return int(np.searchsorted(np.cumsum(HIDDEN_COUNT[kinds]), row, side="right"))
    return row // 2 if part == 2 else row


def _role(net: "ReluNet", part: int, row: int) -> str:
    if part == 0:
        return "It is a hidden unit of a gate, W1 of Lemma B.1."
    if part == 1:
        return "It gives the value of a gate, W2 of Lemma B.1."
    correction = CORRECTIONS[net.correction]
    assert correction is not None
    if part == 2:
        threshold = correction.high if row % 2 else correction.low
        return f"It cuts at the threshold {threshold} of the correction ({correction.line})."
    return f"It gives the corrected value ({correction.line})."


def _gate(net: "ReluNet", step: int, place: int) -> str:
    gate = _gates_before(net, step) + place
    kind = Gate(int(net.gates.kinds[gate]))
    operands = [int(net.gates.left[gate]), int(net.gates.right[gate])][: kind.arity]
    reads = f" of {' and '.join(map(str, operands))} in the layer before" if operands else ""
    return (
        f"gate {place} of circuit layer {step + 1}, {kind.name}{reads}, which holds wire "
        f"{int(net.gates.wires[gate])} of the circuit: {GADGETS[kind].formula} ({GADGETS[kind].line})"
    )
