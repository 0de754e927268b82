"""The compact ReLU network of a circuit, as a net: one step is one layer of units, the last the outputs."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Self

import equinox as eqx
import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from tapegrad.circuits.model import Bits, batch_of_bits
from tapegrad.errors import BrokenNet, InputError
from tapegrad.networks.form import Stack, formula
from tapegrad.networks.forms import of_units
from tapegrad.networks.network import Network
from tapegrad.networks.skips import Slots, Units, slots_of
from tapegrad.targets.net import bytes_of
from tapegrad.targets.relu.build import DTYPES
from tapegrad.targets.relu.compact.build import Made, stack_of
from tapegrad.targets.relu.compact.exactness import STATEMENT, largest_sum
from tapegrad.targets.relu.layered import Activations, LayeredNet
from tapegrad.targets.target import Counts

FORM = "compact"
ARRAYS = {
    "units.counts": np.uint8,
    "units.places": np.int32,
    "units.weights": np.int8,
    "units.biases": np.int8,
    "units.holds": np.int32,
    "units.layers": np.int64,
    "outputs.places": np.int32,
    "outputs.weights": np.int8,
    "outputs.biases": np.int8,
}
"""The arrays of a saved net."""
MOST_READERS = 4
"""Readers of a unit that are named."""


class CompactNet(LayeredNet):
    """A circuit as gates of up to four inputs, each made of one to four ReLU units with small whole weights.
    A unit may read any earlier one, or, without skip connections, those of the layer before."""

    own: Units
    holds: Int[np.ndarray, " units"]
    input_names: tuple[str, ...] = eqx.field(static=True)
    output_names: tuple[str, ...] = eqx.field(static=True)
    dtype_name: str = eqx.field(static=True)
    skips: bool = eqx.field(static=True)

    def __post_init__(self) -> None:
        self.own.check()
        if len(self.holds) != len(self.own.biases):
            raise BrokenNet("not every unit says what it holds")
        if self.own.inputs != len(self.input_names) or len(self.own.out_places) != len(self.output_names):
            raise BrokenNet("the inputs or outputs of the net have other names than it has places")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that the network runs in."""
        return np.dtype(self.dtype_name)

    @property
    def depth(self) -> int:
        """ReLU layers."""
        return self.own.layers

    @property
    def width(self) -> int:
        """Units of a layer, at most."""
        return int(np.diff(self.own.bounds).max(initial=0))

    # Running

    @cached_property
    def network(self) -> Network:
        """Bits to bits: all units, and the outputs -1 and +1 as 0 and 1."""
        return of_units(self.target, self.own, self.slots, self.dtype, self.input_names, self.output_names)

    @cached_property
    def slots(self) -> Slots:
        """Where the running state keeps each value."""
        return slots_of(self.own)

    @property
    def last_step(self) -> int:
        """One step for each ReLU layer, and one for the outputs."""
        return self.depth + 1

    def layers_before(self, step: int) -> int:
        return step

    def start(self, state: Bits) -> Activations:
        """The bits of the inputs."""
        return self.started(batch_of_bits(state, self.input_names, "net"))

    def decode(self, carry: Activations) -> Bits | None:
        """The inputs, or at the end the signs of the outputs; in between the circuit has no state."""
        if carry.signs is not None:
            return carry.signs.T > 0
        return carry.values.T > 0.5 if carry.steps == 0 else None

    def silent(self, carry: Activations) -> int:
        """All layers that are left: between inputs and outputs the circuit has no state."""
        return max(1, self.last_step - carry.steps)

    def deviation(self, carry: Activations) -> float:
        """Largest distance of a value from a whole number, or of an output from -1 or +1."""
        if carry.steps == 0:
            return 0.0
        off = np.abs(carry.values - np.round(carry.values)).max(initial=0)
        return float(np.maximum(off, self.off_from_signs(carry)))  # NaN stays

    # Reading

    def stack(self) -> Stack:
        """The same network without skip connections, identities in their place."""
        return stack_of(Made(self.own, self.holds), self.dtype)

    def reads(self, unit: int) -> list[tuple[int, int]]:
        """What a unit reads: places and weights."""
        part = slice(self._starts[unit], self._starts[unit + 1])
        return list(zip(self.own.places[part].tolist(), self.own.weights[part].tolist(), strict=True))

    @cached_property
    def _starts(self) -> list[int]:
        return self.own.starts.tolist()

    def place_name(self, place: int) -> str:
        """An input by its name, a unit as LAYER.UNIT."""
        if place < self.own.inputs:
            return self.input_names[place]
        unit = place - self.own.inputs
        layer = int(np.searchsorted(self.own.bounds, unit, side="right")) - 1
        return f"{layer}.{unit - int(self.own.bounds[layer])}"

    def _term(self, place: int) -> str:
        """A place in a formula."""
        return self.place_name(place) if place < self.own.inputs else f"unit[{self.place_name(place)}]"

    def units(self) -> Iterator[str]:
        """Every unit as LAYER.UNIT; the outputs are the layer after the last."""
        for unit in range(len(self.own.biases)):
            yield self.place_name(self.own.inputs + unit)
        yield from (f"{self.depth}.{output}" for output in range(len(self.output_names)))

    def explain(self, unit: str) -> str:
        """What a unit computes, and which wire of the circuit it holds."""
        layer, row = self._place(unit)
        if layer == self.depth:
            return self._explained_output(row)
        number = int(self.own.bounds[layer]) + row
        terms = [(self._term(place), weight) for place, weight in self.reads(number)]
        said = f"Unit {row} of ReLU layer {layer}: relu({formula(terms, int(self.own.biases[number]))})."
        held = int(self.holds[number])
        if held >= 0:
            return f"{said} It holds {'the negation of ' * (held & 1)}wire {held >> 1} of the circuit."
        owners = np.flatnonzero(self.own.places == self.own.inputs + number)
        readers = np.unique(np.searchsorted(self._starts, owners, side="right") - 1).tolist()
        named = [self.place_name(self.own.inputs + reader) for reader in readers[:MOST_READERS]]
        more = f" and {len(readers) - MOST_READERS} more" if len(readers) > MOST_READERS else ""
        return f"{said} It is a unit within a gate, read by {', '.join(named)}{more}."

    def _explained_output(self, output: int) -> str:
        weight, bias = int(self.own.out_weights[output]), int(self.own.out_biases[output])
        terms = [(self._term(int(self.own.out_places[output])), weight)] if weight else []
        return (
            f"Output {self.output_names[output]!r}: {formula(terms, bias)}, which is -1 for the bit 0 and +1 "
            "for the bit 1."
        )

    def _place(self, unit: str) -> tuple[int, int]:
        layer, dot, row = unit.partition(".")
        if not (dot and layer.isdecimal() and row.isdecimal() and len(unit) < 40):
            raise InputError(f"{unit[:40]!r} does not name a unit", advice="Write LAYER.UNIT, as in 0.3.")
        at, number = int(layer), int(row)
        sizes = [*np.diff(self.own.bounds).tolist(), len(self.output_names)]
        if at < len(sizes) and number < sizes[at]:
            return at, number
        raise InputError(f"the net has no unit {unit!r}", advice=f"Its layers are 0 to {self.depth}.")

    # Saving

    @property
    def counts(self) -> Counts:
        """All weights and biases are fixed; they are kept as whole numbers."""
        own = self.own
        fixed = sum(a.size for a in (own.weights, own.biases, own.out_weights, own.out_biases))
        return Counts(0, fixed, bytes_of(self.arrays().values()))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The units layer by layer, and the outputs."""
        own = self.own
        found = own.counts, own.places, own.weights, own.biases, self.holds, own.bounds
        outputs = own.out_places, own.out_weights, own.out_biases
        return dict(zip(ARRAYS, (*found, *outputs), strict=True))

    def config(self) -> dict[str, Any]:
        """Names of inputs and outputs, and the shape."""
        return {
            "form": FORM,
            "inputs": list(self.input_names),
            "outputs": list(self.output_names),
            "dtype": self.dtype_name,
            "skips": self.skips,
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
        if config["dtype"] not in DTYPES or type(config["skips"]) is not bool:
            raise BrokenNet("the precision or the shape of the net is unknown")
        for name, kind in ARRAYS.items():
            if arrays[name].dtype != kind or arrays[name].ndim != 1:
                raise BrokenNet(f"the array {name!r} is not a list of type {np.dtype(kind)}")
        counts, places, weights, biases, holds, bounds, *outputs = (arrays[name] for name in ARRAYS)
        inputs, names = tuple(map(str, config["inputs"])), tuple(map(str, config["outputs"]))
        own = Units(len(inputs), counts, places, weights, biases, bounds, *outputs)
        return cls(own, holds, inputs, names, config["dtype"], config["skips"])

    def certificate(self) -> dict[str, Any]:
        """What holds for every input, in numbers (`tapegrad.targets.relu.compact.exactness`)."""
        return {
            "statement": STATEMENT,
            "units": len(self.own.biases),
            "held": int((self.holds >= 0).sum()),
            "largest_sum": largest_sum(self.own, self.holds),
            "at_outputs": 0.0,
        }
