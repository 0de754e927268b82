"""What both forms of the target `relu` share: their network is one node `layers`, which is run at once or a
few layers at a time."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from tapegrad._trees import static, tree
from tapegrad.circuits.model import Bits, batch_of_bits
from tapegrad.errors import BrokenNet, InputError
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.form import formula
from tapegrad.networks.network import Network, Node
from tapegrad.networks.wiring import BITS, OUTPUTS, Wiring, node_of
from tapegrad.targets.net import Net, StateT
from tapegrad.targets.relu.build import DTYPES

CHUNK_BYTES = 1 << 25
"""Slots that the reference engine keeps at a time: what a processor's cache likes."""
SMALLEST_CHUNK = 64
LARGE_BATCH = 1 << 20
"""Patterns times numbers of the net that the reference engine takes a few milliseconds for."""


class Activations(NamedTuple):
    """The values that later layers read, as (slots, patterns); before the first layer the bits of the inputs,
    and nothing after a run through all layers at once. At the end there are the outputs, -1 and +1."""

    steps: int
    values: NDArray[Any]
    signs: Float[np.ndarray, "outputs patterns"] | None = None


@tree
class LayeredNet(Net[StateT, Activations]):
    """A circuit as layers of ReLU units, whose outputs are one more layer, which is linear."""

    network: Network = static()  # pyright: ignore[reportIncompatibleVariableOverride]

    target: ClassVar[str] = "relu"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")
    one_pass: ClassVar[bool] = True
    saves_network: ClassVar[bool] = True

    # What the network says

    @cached_property
    def node(self) -> Node:
        """All layers."""
        return node_of(self.network)

    @cached_property
    def bounds(self) -> list[int]:
        """Where each layer begins, the outputs included, and where the last one ends."""
        return self.network.array(self.node, "bounds").tolist()

    @cached_property
    def wiring(self) -> Wiring:
        """What each unit reads, by the unit that made it."""
        return Wiring.of(self.network)

    @property
    def input_names(self) -> tuple[str, ...]:
        return self.network.inputs[BITS].columns

    @property
    def output_names(self) -> tuple[str, ...]:
        return self.network.columns.get(self.network.outputs[OUTPUTS], ())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that the network runs in."""
        return np.dtype(self.network.inputs[BITS].dtype)

    @property
    def depth(self) -> int:
        """ReLU layers: the paper's d."""
        return len(self.bounds) - 2

    @property
    def width(self) -> int:
        """Units of a ReLU layer, at most: the paper's w."""
        return max((self.size(layer) for layer in range(self.depth)), default=0)

    def size(self, layer: int) -> int:
        """Units of a layer, counted from 0; layer `depth` are the outputs, and layer -1 the inputs."""
        return self.bounds[layer + 1] - self.bounds[layer] if layer >= 0 else len(self.input_names)

    # Running

    @property
    @abstractmethod
    def last_step(self) -> int:
        """The number of the step that gives the outputs."""

    @abstractmethod
    def layers_before(self, step: int) -> int:
        """Layers of the network that so many steps compute."""

    def given(self, carry: Activations) -> dict[str, NDArray[Any]]:
        return {BITS: carry.values[: len(self.input_names)].T.astype(self.dtype)}

    @cached_property
    def _reference(self) -> NumPy:
        return NumPy(self.network)

    @cached_property
    def _fast(self) -> NumPy:
        from tapegrad.networks.backends.numba import Numba  # slow to import, and not always needed

        return Numba(self.network)

    def started(self, bits: Bits) -> Activations:
        """The net before its first layer."""
        return Activations(0, bits.T)

    def step(self, carry: Activations) -> Activations:
        return self.advance(carry, 1)

    def advance(self, carry: Activations, steps: int, engine: str = "reference") -> Activations:
        """At most so many steps."""
        self.check_engine(engine)
        end = min(carry.steps + steps, self.last_step)
        if end <= carry.steps:
            return carry
        if carry.steps == 0 and end == self.last_step:
            return Activations(end, carry.values[:0], self._signs(carry.values.T, engine).T)
        values = self.between(carry, self.layers_before(end), engine)
        signs = values[self._reference.part(self.node, "out")] if end == self.last_step else None
        return Activations(end, values, signs)

    def between(self, carry: Activations, last: int, engine: str = "reference") -> NDArray[Any]:
        """The slots after so many layers in all."""
        node, backend = self.node, self._fast if engine == "fast" else self._reference
        values = carry.values if carry.steps else backend.begin(node, carry.values.astype(self.dtype))
        return backend.between(node, values, self.layers_before(carry.steps), last)

    def after(self, slots: NDArray[Any], layer: int) -> Float[np.ndarray, "units patterns"]:
        """What a layer has just given, from the slots after it; layer -1 are the inputs."""
        if layer < 0:
            return slots[: len(self.input_names)].astype(self.dtype)
        return slots[self.network.array(self.node, "to")[self.bounds[layer] : self.bounds[layer + 1]]]

    def engine_for(self, carry: Activations, steps: int) -> str:
        """The compiled loops, for a batch that is worth loading them, and once they are loaded."""
        loaded = "_fast" in vars(self)
        return "fast" if loaded or carry.values.shape[-1] * self._numbers > LARGE_BATCH else "reference"

    @cached_property
    def _numbers(self) -> int:
        """To count them takes longer than many a run."""
        return self.parameters

    def done(self, carry: Activations) -> bool:
        """Whether the outputs have been computed."""
        return carry.steps >= self.last_step

    def outputs(self, bits: ArrayLike, engine: str = "reference") -> Float[np.ndarray, "patterns outputs"]:
        """The network's outputs, near -1 and +1, for a batch of patterns (a row for each)."""
        self.check_engine(engine)
        return self._signs(batch_of_bits(bits, self.input_names, "net"), engine).astype(
            self.dtype, copy=False
        )

    def _signs(self, rows: Bits, engine: str) -> Float[np.ndarray, "patterns outputs"]:
        """The outputs; in chunks that keep memory small where an engine has none of its own."""
        node = self.node
        if engine == "fast":
            return self._fast.layers(node, rows)
        size = max(SMALLEST_CHUNK, CHUNK_BYTES // (1 + node.whole("slots") * self.dtype.itemsize))
        found = np.empty((len(rows), len(self.output_names)), self.dtype)
        for first in range(0, len(rows), size):
            part = rows[first : first + size].astype(self.dtype)
            found[first : first + size] = self._reference.layers(node, part)
        return found

    def off_from_signs(self, carry: Activations) -> float:
        """The largest distance of an output from -1 or +1."""
        if carry.signs is None or not carry.signs.size:
            return 0.0
        sizes = np.abs(carry.signs)
        return float(np.maximum(sizes.max() - 1, 1 - sizes.min()))  # NaN stays

    # Reading

    def chain(self) -> Wiring:
        """The same network as a chain: each layer reads the one before it alone."""
        return self.wiring

    # In words

    def units(self) -> Iterator[str]:
        """Every unit as LAYER.UNIT; the outputs are the layer after the last."""
        for layer in range(self.depth + 1):
            yield from (f"{layer}.{unit}" for unit in range(self.size(layer)))

    def explain(self, unit: str) -> str:
        """What a unit computes, and what of the circuit it serves."""
        layer, row = self._place(unit)
        if row >= self.size(layer):
            return f"Unit {row} of ReLU layer {layer}: padding, all weights zero (Lemma B.1)."
        number = self.bounds[layer] + row
        terms = [(self._term(place), weight) for place, weight in self.wiring.reads(number)]
        computed = formula(terms, float(self.wiring.biases[number]))
        if layer == self.depth:
            return (
                f"Output {self.output_names[row]!r}: {computed}, which is -1 for the bit 0 and +1 for the "
                "bit 1 (proof of Theorem 3.1)."
            )
        return f"Unit {row} of ReLU layer {layer}: relu({computed}). {self.served(layer, row)}"

    @abstractmethod
    def served(self, layer: int, row: int) -> str:
        """What of the circuit a unit is there for, in sentences."""

    def place_name(self, place: int) -> str:
        """An input by its name, a unit as LAYER.UNIT."""
        if place < self.wiring.inputs:
            return self.input_names[place]
        row = place - self.wiring.inputs
        layer = int(np.searchsorted(self.wiring.bounds, row, side="right")) - 1
        return f"{layer}.{row - self.bounds[layer]}"

    def _term(self, place: int) -> str:
        """A place in a formula."""
        return self.place_name(place) if place < self.wiring.inputs else f"unit[{self.place_name(place)}]"

    def _place(self, unit: str) -> tuple[int, int]:
        layer, dot, row = unit.partition(".")
        if not (dot and layer.isdecimal() and row.isdecimal() and len(unit) < 40):
            raise InputError(f"{unit[:40]!r} does not name a unit", advice="Write LAYER.UNIT, as in 0.3.")
        place = int(layer), int(row)
        if place[0] <= self.depth and place[1] < self.padded_size(place[0]):
            return place
        raise InputError(f"the net has no unit {unit!r}", advice=f"Its layers are 0 to {self.depth}.")

    def padded_size(self, layer: int) -> int:
        """Units of a layer, with those of weights 0 that it is padded with."""
        return self.size(layer)


def checked(network: Network | None) -> Network:
    """The network, if it has a name for each column of bits and of outputs, and layers to the outputs: what
    is read from a file is asked this."""
    if network is None:
        raise BrokenNet("the folder has no network", advice="Compile and save the net again.")
    node, port = node_of(network), network.inputs[BITS]
    outputs = network.columns.get(network.outputs[OUTPUTS], ())
    fits = len(network.inputs) == 1 and not network.state and port.shape == ("patterns", len(port.columns))
    if port.dtype not in DTYPES:
        raise BrokenNet("the precision of the net is unknown")
    if not fits or len(network.array(node, "bounds")) < 2 or len(outputs) != len(network.array(node, "out")):
        raise BrokenNet("the inputs or outputs of the net have other names than it has places")
    return network
