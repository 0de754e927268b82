"""The ReLU network of a circuit, as a net: one step is one circuit layer."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from tapegrad.circuits.layered import LayerState
from tapegrad.circuits.model import Gate, batch_of_bits
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.precision import in_double
from tapegrad.targets.net import Net
from tapegrad.targets.relu import reference
from tapegrad.targets.relu.corrections import CORRECTIONS, relu_layers
from tapegrad.targets.relu.exactness import prove
from tapegrad.targets.relu.explain import explain, unit_names
from tapegrad.targets.relu.units import Units, check_places

DTYPES = ("float32", "float64")
LARGEST_DENSE = 1 << 28
"""Most entries of a matrix that is written out."""
CHUNK_BYTES = {"cpu": 1 << 25}
LARGE_CHUNK = 1 << 30
"""Activations that `outputs` keeps at a time: what a processor's cache likes, and an accelerator."""


class Gates(NamedTuple):
    """The layered circuit that the network was built from: provenance, not used to run it."""

    kinds: NDArray[np.uint8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    wires: NDArray[np.int32]


class Activations(NamedTuple):
    """The values of a circuit layer as (units, patterns), with rows of zeros for padding."""

    steps: int
    values: Array


class ReluNet(Net):
    """A layered circuit as ReLU layers with two inputs to a unit (Wei et al., section 3).

    The paper's `W_0, b_0, ..., W_d, b_d`: d ReLU layers, then a linear one. They are stored as flat
    arrays (see `Units`); `dense_layer(i)` writes one out.
    """

    target: ClassVar[str] = "relu"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    weights: Array
    biases: Array
    inputs: Array
    bounds: NDArray[np.int64]
    gates: Gates
    input_names: tuple[str, ...] = eqx.field(static=True)
    output_names: tuple[str, ...] = eqx.field(static=True)
    correction: str = eqx.field(static=True)
    padded_width: int | None = eqx.field(static=True)

    @classmethod
    @in_double
    def of(
        cls,
        units: Units,
        gates: Gates,
        input_names: tuple[str, ...],
        output_names: tuple[str, ...],
        correction: str,
        padded_width: int | None,
    ) -> Self:
        """A net from its flat arrays."""
        check_places(units, len(input_names))
        return cls(
            weights=jnp.asarray(units.weights),
            biases=jnp.asarray(units.biases),
            inputs=jnp.asarray(units.inputs),
            bounds=units.bounds,
            gates=gates,
            input_names=input_names,
            output_names=output_names,
            correction=correction,
            padded_width=padded_width,
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that the network runs in."""
        return np.dtype(self.weights.dtype)

    @property
    def depth(self) -> int:
        """The paper's d: ReLU layers."""
        return len(self.bounds) - 2

    @property
    def width(self) -> int:
        """The paper's w: units of a ReLU layer, at most, or as many as the net is padded to."""
        return self.padded_width or int(np.diff(self.bounds)[:-1].max(initial=0))

    @property
    def circuit_layers(self) -> int:
        """Layers of the circuit: steps of the net."""
        return self.depth // relu_layers(self.correction)

    def layer_width(self, step: int) -> int:
        """Values in a circuit layer; layer 0 are the inputs."""
        if step == 0:
            return len(self.input_names)
        layer = step * relu_layers(self.correction)
        return int(self.bounds[layer] - self.bounds[layer - 1])

    # Running

    @in_double
    def start(self, state: LayerState) -> Activations:
        """The inputs as values 0 and 1."""
        patterns, width = state.bits.shape
        if state.layer != 0 or width != len(self.input_names):
            raise InputError(f"the net starts at layer 0, with {len(self.input_names)} bits in a pattern")
        values = np.zeros((reference.room(width), patterns), self.dtype)
        values[:width] = state.bits.T
        return Activations(0, jnp.asarray(values))

    @in_double
    def step(self, carry: Activations) -> Activations:
        """One circuit layer: two ReLU layers for its gates, two for the correction."""
        if self.done(carry):
            return carry
        each = relu_layers(self.correction)
        bounds = self.bounds[carry.steps * each : (carry.steps + 1) * each + 1]
        # Hidden units and cuts are at most twice the gates, and a layer runs in the larger of the rooms
        # before and after it: so as many programs are compiled as there are rooms.
        after = reference.room(self.layer_width(carry.steps + 1))
        rows = max(len(carry.values), after)
        heights = tuple(rows * (2 if i % 2 == 0 else 1) for i in range(each))
        values = reference.resized(carry.values, rows)
        values = reference.relu_layers(self._weights(), values, bounds, heights)
        values = reference.resized(values, after)
        return Activations(carry.steps + 1, values)

    def advance(self, carry: Activations, steps: int, engine: str = "reference") -> Activations:
        """At most `steps` circuit layers, by the engine asked for."""
        if engine != "fast":
            return super().advance(carry, steps, engine)
        end = min(carry.steps + steps, self.circuit_layers)
        if end == carry.steps:
            return carry
        each = relu_layers(self.correction)
        found = self._fast(carry, self.bounds[carry.steps * each : end * each + 1], linear=False)
        values = np.zeros((reference.room(len(found)), found.shape[1]), self.dtype)
        values[: len(found)] = found
        return Activations(end, in_double(jnp.asarray)(values))

    def decode(self, carry: Activations) -> LayerState:
        """The bits nearest to the values; at the end, the signs of the network's outputs."""
        bits = self.read_out(carry) > 0 if self.done(carry) else self._values(carry) > 0.5
        return LayerState(carry.steps, bits.T)

    def done(self, carry: Activations) -> bool:
        """Whether the last circuit layer has been computed."""
        return carry.steps >= self.circuit_layers

    def deviation(self, carry: Activations) -> float:
        """Largest distance of a value from its bit, or of an output from -1 or +1."""
        values = self._values(carry)
        found = np.abs(values - (values > 0.5)).max(initial=0)
        if self.done(carry):
            found = max(found, np.abs(np.abs(self.read_out(carry)) - 1).max(initial=0))
        return float(found)

    def outputs(self, bits: ArrayLike, engine: str = "reference") -> NDArray[np.floating]:
        """The network's outputs, near -1 and +1, for a batch of patterns (a row for each), in chunks that
        keep memory small."""
        self.check_engine(engine)
        batch = batch_of_bits(bits, self.input_names, "net")
        rows = reference.room(max(self.layer_width(step) for step in range(self.circuit_layers + 1)))
        budget = CHUNK_BYTES.get(jax.default_backend(), LARGE_CHUNK)
        chunk = max(1, budget // (2 * rows * self.dtype.itemsize))
        found = np.empty((len(batch), len(self.output_names)), self.dtype)
        for first in range(0, len(batch), chunk):
            # The last chunk starts early enough to be as large as the others: nothing is compiled again.
            start = max(0, min(first, len(batch) - chunk))
            carry = self.start(LayerState(0, batch[start : start + chunk]))
            carry = self.advance(carry, self.circuit_layers, engine)
            found[start : start + chunk] = self.read_out(carry, engine).T
        return found

    @in_double
    def read_out(self, carry: Activations, engine: str = "reference") -> NDArray[np.floating]:
        """The last, linear layer on the values of the last circuit layer, as (outputs, patterns)."""
        last = self.bounds[-2:]
        if engine == "fast":
            return self._fast(carry, last, linear=True)
        count = int(last[1] - last[0])
        values = reference.linear_layer(self._weights(), carry.values, last, reference.room(count))
        return np.asarray(values)[:count]

    def _weights(self) -> reference.Weights:
        return reference.Weights(self.inputs, self.weights, self.biases)

    def _fast(self, carry: Activations, bounds: NDArray[np.int64], linear: bool) -> NDArray[np.floating]:
        from tapegrad.targets.relu.fast import run_layers  # numba is slow to import, and not always needed

        inputs, weights, biases = (np.asarray(a) for a in (self.inputs, self.weights, self.biases))
        return run_layers(np.asarray(carry.values), inputs, weights, biases, bounds, linear)

    def _values(self, carry: Activations) -> NDArray[np.floating]:
        return np.asarray(carry.values)[: self.layer_width(carry.steps)]

    # Reading

    def dense_layer(self, layer: int) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """`W_i` and `b_i` as ordinary arrays, padded with zeros if the net is padded to a width."""
        if not 0 <= layer <= self.depth:
            raise InputError(f"the net has layers 0 to {self.depth}, not {layer}")
        units = slice(self.bounds[layer], self.bounds[layer + 1])
        count = int(self.bounds[layer + 1] - self.bounds[layer])
        rows = count if layer == self.depth else self.padded_width or count
        before = len(self.input_names) if layer == 0 else int(self.bounds[layer] - self.bounds[layer - 1])
        columns = before if layer == 0 else self.padded_width or before
        if rows * columns > LARGEST_DENSE:
            raise Refused(f"layer {layer} as a matrix would have {rows:,} x {columns:,} entries")
        weight, bias = np.zeros((rows, columns), self.dtype), np.zeros(rows, self.dtype)
        bias[:count] = np.asarray(self.biases[units])
        own, inputs = np.asarray(self.weights[units]), np.asarray(self.inputs[units])
        unit, side = np.nonzero(own)
        # Added, not set: both inputs of a unit may come from the same place.
        np.add.at(weight, (unit, inputs[unit, side]), own[unit, side])
        return weight, bias

    def units(self) -> Iterator[str]:
        """Every unit as LAYER.UNIT: row UNIT of `W_LAYER`, padding left out."""
        return unit_names(self)

    def explain(self, unit: str) -> str:
        """What a unit computes, for which gate, and which line of the paper says so."""
        return explain(self, unit)

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The units layer by layer, and the gates they serve."""
        units = {"weights": self.weights, "biases": self.biases, "inputs": self.inputs, "layers": self.bounds}
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
    def from_saved(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The net again; engines may trust its places."""
        dtype, correction, width = config["dtype"], config["correction"], config["padded_width"]
        if dtype not in DTYPES or correction not in CORRECTIONS or not (width is None or type(width) is int):
            raise BrokenNet("the precision, the correction or the width of the net is unknown")
        wanted = {"weights": dtype, "biases": dtype, "inputs": "int32", "layers": "int64"}
        for name, kind in wanted.items():
            if arrays[f"units.{name}"].dtype != kind:
                raise BrokenNet(f"the array 'units.{name}' is not of type {kind}")
        units = Units(*(arrays[f"units.{name}"] for name in ("inputs", "weights", "biases", "layers")))
        gates = Gates(*(arrays[f"gates.{name}"] for name in Gates._fields))
        names = tuple(map(str, config["inputs"])), tuple(map(str, config["outputs"]))
        return cls.of(units, gates, *names, correction, width)

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
