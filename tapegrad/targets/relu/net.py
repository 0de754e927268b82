"""The ReLU network of a circuit, as a net: one step is one circuit layer."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray

from tapegrad._trees import static, tree
from tapegrad.circuits.layered import LayerState
from tapegrad.circuits.model import Gate
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.network import Network
from tapegrad.targets.relu.build import CORRECTIONS, GADGETS, HIDDEN_COUNT, relu_layers
from tapegrad.targets.relu.exactness import STATEMENT, claims
from tapegrad.targets.relu.layered import Activations, LayeredNet, checked

LARGEST_DENSE = 1 << 28
"""Most entries of a matrix that is written out."""


class Gates(NamedTuple):
    """The gates that the network was built from, layer by layer: provenance, not used to run it."""

    kinds: UInt8[np.ndarray, " gates"]
    wires: Int[np.ndarray, " gates"]
    """Those of the circuit that they hold."""


@tree
class ReluNet(LayeredNet[LayerState]):
    """A layered circuit as ReLU layers with two inputs to a unit (Wei et al., section 3).

    The paper's `W_0, b_0, ..., W_d, b_d`: d ReLU layers, then a linear one. `dense_layer(i)`
    writes one of them out.
    """

    gates: Gates
    correction: str = static()
    padded_width: int | None = static()

    @property
    def width(self) -> int:
        """The paper's w: units of a ReLU layer, at most, or as many as the net is padded to."""
        return self.padded_width or super().width

    @property
    def circuit_layers(self) -> int:
        """Layers of the circuit: steps of the net."""
        return self.depth // relu_layers(self.correction)

    def layer_width(self, step: int) -> int:
        """Values in a circuit layer; layer 0 are the inputs."""
        return self.size(step * relu_layers(self.correction) - 1)

    def padded_size(self, layer: int) -> int:
        return self.size(layer) if layer == self.depth else self.padded_width or self.size(layer)

    # Running

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
        if carry.steps and not len(carry.values):
            return carry.values.astype(self.dtype)
        return self.after(carry.values, carry.steps * relu_layers(self.correction) - 1)

    def partly(self, carry: Activations, layers: int) -> Float[np.ndarray, "units patterns"]:
        """What the last of the first so many layers of the next step gives."""
        last = self.layers_before(carry.steps) + layers
        return self.after(self.between(carry, last), last - 1)

    # Reading

    def dense_layer(
        self, layer: int
    ) -> tuple[Float[np.ndarray, "units inputs"], Float[np.ndarray, " units"]]:
        """`W_i` and `b_i` as ordinary arrays, padded with zeros if the net is padded to a width."""
        if not 0 <= layer <= self.depth:
            raise InputError(f"the net has layers 0 to {self.depth}, not {layer}")
        own = self.wiring.layer(layer)
        rows, columns = self.padded_size(layer), self.padded_size(layer - 1) if layer else own.width
        if rows * columns > LARGEST_DENSE:
            raise Refused(f"layer {layer} as a matrix would have {rows:,} x {columns:,} entries")
        written, padding = own.dense(), ((0, rows - len(own)), (0, columns - own.width))
        return np.pad(written.weight, padding), np.pad(written.bias, padding[0])

    def served(self, layer: int, row: int) -> str:
        """Which gate, and which line of the paper says so."""
        step, part = divmod(layer, relu_layers(self.correction))
        first = self._gates_before[step]
        place = row // 2 if part == 2 else row
        if part == 0:
            own = HIDDEN_COUNT[self.gates.kinds[first : self._gates_before[step + 1]]]
            place = int(np.searchsorted(np.cumsum(own), row, side="right"))
        return f"{self._role(part, row)} It serves {self._gate(step, first + place)}."

    @cached_property
    def _gates_before(self) -> list[int]:
        """Gates in the circuit layers before each, and in all."""
        widths = [self.layer_width(step) for step in range(1, self.circuit_layers + 1)]
        return np.cumsum([0, *widths]).tolist()

    def _role(self, part: int, row: int) -> str:
        if part == 0:
            return "It is a hidden unit of a gate, W1 of Lemma B.1."
        if part == 1:
            return "It gives the value of a gate, W2 of Lemma B.1."
        correction = CORRECTIONS[self.correction]
        assert correction is not None
        if part == 2:
            threshold = correction.high if row % 2 else correction.low
            return f"It cuts at the threshold {threshold} of the correction ({correction.line})."
        return f"It gives the corrected value ({correction.line})."

    def _gate(self, step: int, gate: int) -> str:
        kind = Gate(int(self.gates.kinds[gate]))
        reads = " and ".join(map(str, self.operands(step, gate - self._gates_before[step])))
        return (
            f"gate {gate - self._gates_before[step]} of circuit layer {step + 1}, {kind.name}"
            f"{f' of {reads} in the layer before' if reads else ''}, which holds wire "
            f"{int(self.gates.wires[gate])} of the circuit: {GADGETS[kind].formula} ({GADGETS[kind].line})"
        )

    def operands(self, step: int, place: int) -> list[int]:
        """What a gate reads, by the places in the circuit layer before: what its first hidden unit reads."""
        layer = step * relu_layers(self.correction)
        hidden = self.wiring.reads(self.bounds[layer + 1] + place)
        first = 0 if layer == 0 else self.wiring.inputs + self.bounds[layer - 1]
        return (
            [read - first for read, _ in self.wiring.reads(hidden[0][0] - self.wiring.inputs)]
            if hidden
            else []
        )

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The gates that the units serve."""
        return {f"gates.{name}": array for name, array in self.gates._asdict().items()}

    def config(self) -> dict[str, Any]:
        """What the network does not say of its shape."""
        return {"correction": self.correction, "padded_width": self.padded_width}

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net again."""
        correction, width = config["correction"], config["padded_width"]
        if correction not in CORRECTIONS or not (width is None or type(width) is int):
            raise BrokenNet("the correction or the width of the net is unknown")
        net = cls(checked(network), Gates(arrays["gates.kinds"], arrays["gates.wires"]), correction, width)
        kinds, gates = net.gates.kinds, net._gates_before
        if net.depth % relu_layers(correction) or not kinds.shape == net.gates.wires.shape == (gates[-1],):
            raise BrokenNet("the net does not have a unit for each gate")
        hidden = np.append(0, np.cumsum(HIDDEN_COUNT[kinds & 15]))[gates]
        sizes = [net.size(layer) for layer in range(0, net.depth, relu_layers(correction))]
        if not np.isin(kinds, list(GADGETS)).all() or np.diff(hidden).tolist() != sizes:
            raise BrokenNet("the net does not have the hidden units of its gates")
        return net

    def certificate(self) -> dict[str, Any]:
        """What holds for every input, in numbers (`tapegrad.targets.relu.exactness`)."""
        kinds, counts = np.unique(self.gates.kinds, return_counts=True)
        return {
            "statement": STATEMENT,
            "gates": {Gate(k).name: c for k, c in zip(kinds.tolist(), counts.tolist(), strict=True)},
            **claims(self.correction, self.dtype),
        }
