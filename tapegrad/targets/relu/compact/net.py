"""The compact ReLU network of a circuit, as a net: one step is one layer of units, the last the outputs."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num
from numpy.typing import ArrayLike, NDArray

from tapegrad._precision import in_double
from tapegrad.circuits.model import Bits, batch_of_bits
from tapegrad.errors import BrokenNet, InputError
from tapegrad.networks.form import Stack, formula
from tapegrad.networks.forms import of_units
from tapegrad.networks.jax import resized, room
from tapegrad.networks.network import Network
from tapegrad.networks.skips import Slots, Tiles, Units, run_tiles, slots_of, tiles_of
from tapegrad.targets.net import Net, bytes_of
from tapegrad.targets.relu.build import DTYPES
from tapegrad.targets.relu.compact.build import Made, stack_of
from tapegrad.targets.relu.compact.exactness import STATEMENT, largest_sum
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
CHUNK_BYTES = {"reference": 1 << 25, "fast": 1 << 27}
"""Values that `outputs` keeps at a time: what a processor's cache likes."""
LARGE_CHUNK = 1 << 32
"""The same for the reference engine on an accelerator, where starting a tile costs more than running it."""
MOST_READERS = 4
"""Readers of a unit that are named."""


def _on_host() -> bool:
    """Whether JAX has no device of its own: then NumPy moves values, and nothing is compiled for their
    number."""
    return jax.default_backend() == "cpu"


class RunningState(NamedTuple):
    """The values that later layers read, as (slots, patterns); what other rows hold has no meaning."""

    steps: int
    values: Float[Array, "slots patterns"]


class CompactNet(Net):
    """A circuit as gates of up to four inputs, each made of one to four ReLU units with small whole weights.
    A unit may read any earlier one, or, without skip connections, those of the layer before."""

    target: ClassVar[str] = "relu"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

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

    def given(self, carry: RunningState) -> dict[str, NDArray[Any]]:
        return {"bits": np.asarray(carry.values)[: self.own.inputs].T}

    @cached_property
    def slots(self) -> Slots:
        """Where the running state keeps each value."""
        return slots_of(self.own)

    @property
    def _rows(self) -> int:
        """Slots, with room for one that nobody reads."""
        return room(self.slots.total + 1)

    @cached_property
    def _tiles(self) -> Tiles:
        return tiles_of(self.own, self.dtype, self.slots)

    @cached_property
    def _program(self) -> Any:
        from tapegrad.networks.skips_numba import program_of  # slow to import, and not always needed

        return program_of(self.own, self.slots)

    @in_double
    def start(self, state: Bits) -> RunningState:
        """The inputs as values 0 and 1."""
        bits = batch_of_bits(state, self.input_names, "net")
        if not _on_host():  # the bits alone go over
            return RunningState(0, resized(jax.device_put(bits).T.astype(self.dtype), self._rows))
        values = np.zeros((self._rows, len(bits)), self.dtype)
        values[: bits.shape[1]] = bits.T
        return RunningState(0, jax.device_put(values))

    def step(self, carry: RunningState) -> RunningState:
        """One layer; the last step is that of the outputs, and leaves the state as it is."""
        return self.advance(carry, 1)

    @in_double
    def advance(self, carry: RunningState, steps: int, engine: str = "reference") -> RunningState:
        """At most so many layers."""
        self.check_engine(engine)
        end = min(carry.steps + steps, self.depth + 1)
        layers = carry.steps, min(end, self.depth)
        if layers[0] >= layers[1]:
            return RunningState(end, carry.values)
        if engine == "reference":
            return RunningState(end, run_tiles(self._tiles, carry.values, *layers))
        return RunningState(end, jnp.asarray(self._fast(np.asarray(carry.values), *layers)))

    def decode(self, carry: RunningState) -> Bits | None:
        """The inputs, or at the end the signs of the outputs; in between the circuit has no state."""
        if carry.steps == 0:
            return np.asarray(carry.values)[: self.own.inputs].T > 0.5
        return self.read_out(carry).T > 0 if self.done(carry) else None

    def silent(self, carry: RunningState) -> int:
        """All layers that are left: between inputs and outputs the circuit has no state."""
        return max(1, self.depth + 1 - carry.steps)

    def done(self, carry: RunningState) -> bool:
        """Whether the outputs have been computed."""
        return carry.steps > self.depth

    def deviation(self, carry: RunningState) -> float:
        """Largest distance of a value from a whole number, or of an output from -1 or +1."""
        values = np.asarray(carry.values)
        found = np.abs(values - np.round(values)).max(initial=0)
        if self.done(carry):
            found = np.maximum(found, np.abs(np.abs(self.read_out(carry)) - 1).max(initial=0))  # NaN stays
        return float(found)

    def outputs(self, bits: ArrayLike, engine: str = "reference") -> Float[np.ndarray, "patterns outputs"]:
        """The network's outputs, -1 and +1, for a batch of patterns (a row for each), in chunks that keep
        memory small."""
        self.check_engine(engine)
        batch = batch_of_bits(bits, self.input_names, "net")
        if engine == "fast" and (found := self._from_bits(batch)) is not None:
            return found
        large = engine == "reference" and not _on_host()
        budget = LARGE_CHUNK if large else CHUNK_BYTES[engine]
        chunk = max(64, budget // (self._rows * self.dtype.itemsize) // 64 * 64)
        found = np.empty((len(batch), len(self.output_names)), self.dtype)
        for first in range(0, len(batch), chunk):
            part = slice(max(0, min(first, len(batch) - chunk)), first + chunk)
            carry = self.advance(self.start(batch[part]), self.depth + 1, engine)
            found[part] = self.read_out(carry).T
        return found

    def read_out(self, carry: RunningState) -> Float[np.ndarray, "outputs patterns"]:
        """The last, linear layer."""
        values = (
            np.asarray(carry.values) if _on_host() else carry.values
        )  # elsewhere, what is read comes back
        return self._signs(np.asarray(values[self._out_slots]))

    @property
    def _out_slots(self) -> Int[np.ndarray, " outputs"]:
        """The slot that each output reads: the first for a constant, even where nothing has a slot."""
        return np.append(self.slots.of_place, 0)[self.own.out_places]

    def _signs(self, read: Num[np.ndarray, "outputs patterns"]) -> Float[np.ndarray, "outputs patterns"]:
        """Outputs from the values that they read."""
        weights, biases = (
            own[:, None].astype(self.dtype) for own in (self.own.out_weights, self.own.out_biases)
        )
        return weights * np.where(weights != 0, read, 0) + biases

    def _from_bits(self, batch: Bits) -> Float[np.ndarray, "patterns outputs"] | None:
        """The outputs, if sums fit into bytes."""
        from tapegrad.networks.skips_numba import run_bits  # slow to import, and not always needed

        read = run_bits(self._program, batch, self._out_slots)
        return None if read is None else self._signs(read).T

    def _fast(
        self, values: Float[np.ndarray, "slots patterns"], first: int, last: int
    ) -> Float[np.ndarray, "slots patterns"]:
        from tapegrad.networks.skips_numba import run_units  # slow to import, and not always needed

        return run_units(self._program, values, first, last)

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
    def from_saved(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
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
