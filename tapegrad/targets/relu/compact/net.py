"""The compact ReLU network of a circuit, as a net: one step is one layer of units, the last the outputs."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from tapegrad._trees import static, tree
from tapegrad.circuits.model import Bits, batch_of_bits
from tapegrad.errors import BrokenNet
from tapegrad.networks.network import Network
from tapegrad.networks.wiring import Wiring
from tapegrad.targets.relu.compact.build import with_identities
from tapegrad.targets.relu.compact.exactness import STATEMENT, largest_sum
from tapegrad.targets.relu.layered import Activations, LayeredNet, checked

FORM = "practical"
MOST_READERS = 4
"""Readers of a unit that are named."""


@tree
class CompactNet(LayeredNet[Bits]):
    """A circuit as gates of up to four inputs, each made of one to four ReLU units with small whole weights.
    A unit may read any earlier one, or, without skip connections, those of the layer before."""

    holds: Int[np.ndarray, " units"]
    skips: bool = static()

    summary: ClassVar[str] = "the forward pass of a ReLU network with skip connections, layer by layer"

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

    def chain(self) -> Wiring:
        """Without skip connections, identities in their place."""
        return with_identities(self.wiring, self.holds).wiring

    def served(self, layer: int, row: int) -> str:
        """Which wire of the circuit it holds, or which units read it."""
        number = self.bounds[layer] + row
        held = int(self.holds[number])
        if held >= 0:
            return f"It holds {'the negation of ' * (held & 1)}wire {held >> 1} of the circuit."
        wiring = self.wiring
        entries = np.flatnonzero(wiring.places == wiring.inputs + number)
        readers = np.unique(np.searchsorted(wiring.starts, entries, side="right") - 1).tolist()
        named = [self.place_name(wiring.inputs + reader) for reader in readers[:MOST_READERS]]
        more = f" and {len(readers) - MOST_READERS} more" if len(readers) > MOST_READERS else ""
        return f"It is a unit within a gate, read by {', '.join(named)}{more}."

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the units hold."""
        return {"holds": self.holds}

    def config(self) -> dict[str, Any]:
        """Which form it is, and whether each layer reads the one before it alone."""
        return {"form": FORM, "skips": self.skips}

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net again."""
        if type(config["skips"]) is not bool:
            raise BrokenNet("the shape of the net is unknown")
        net = cls(checked(network), arrays["holds"], config["skips"])
        if net.holds.shape != (net.bounds[-2],) or net.holds.dtype != np.int32:
            raise BrokenNet("not every unit says what it holds")
        return net

    def certificate(self) -> dict[str, Any]:
        """What holds for every input, in numbers (`tapegrad.targets.relu.compact.exactness`)."""
        return {
            "statement": STATEMENT,
            "units": len(self.holds),
            "held": int((self.holds >= 0).sum()),
            "largest_sum": largest_sum(self.wiring, self.holds),
            "at_outputs": 0.0,
        }
