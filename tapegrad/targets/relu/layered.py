"""What both forms of the target `relu` share: their network is one node `layers`, which is run at once or a
few layers at a time."""

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from tapegrad.circuits.model import Bits, batch_of_bits
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Node
from tapegrad.targets.net import Net

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


class LayeredNet(Net, eqx.Module):
    """A circuit as layers of ReLU units, whose outputs are one more layer, which is linear."""

    # Equinox makes a pytree of every method that is looked up, and looks at all arrays of the net for it,
    # which takes longer than most methods do. Here methods are only called.
    __getattribute__ = object.__getattribute__

    target: ClassVar[str] = "relu"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The precision that the network runs in."""

    @property
    @abstractmethod
    def last_step(self) -> int:
        """The number of the step that gives the outputs."""

    @abstractmethod
    def layers_before(self, step: int) -> int:
        """Layers of the network that so many steps compute."""

    def given(self, carry: Activations) -> dict[str, NDArray[Any]]:
        return {"bits": carry.values[: len(self._names)].T.astype(self.dtype)}

    @property
    def _names(self) -> tuple[str, ...]:
        """Of the inputs."""
        return self.network.inputs["bits"].columns

    @cached_property
    def _node(self) -> Node:
        return next(node for node in self.network.nodes if node.operation == "layers")

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
        signs = values[self._reference.part(self._node, "out")] if end == self.last_step else None
        return Activations(end, values, signs)

    def between(self, carry: Activations, last: int, engine: str = "reference") -> NDArray[Any]:
        """The slots after so many layers in all."""
        node, backend = self._node, self._fast if engine == "fast" else self._reference
        values = carry.values if carry.steps else backend.begin(node, carry.values.astype(self.dtype))
        return backend.between(node, values, self.layers_before(carry.steps), last)

    def engine_for(self, carry: Activations, steps: int) -> str:
        """For a batch that is worth it, the compiled loops."""
        return "fast" if carry.values.shape[-1] * self.parameters > LARGE_BATCH else "reference"

    def done(self, carry: Activations) -> bool:
        """Whether the outputs have been computed."""
        return carry.steps >= self.last_step

    def outputs(self, bits: ArrayLike, engine: str = "reference") -> Float[np.ndarray, "patterns outputs"]:
        """The network's outputs, near -1 and +1, for a batch of patterns (a row for each)."""
        self.check_engine(engine)
        return self._signs(batch_of_bits(bits, self._names, "net"), engine).astype(self.dtype, copy=False)

    def _signs(self, rows: Bits, engine: str) -> Float[np.ndarray, "patterns outputs"]:
        """The outputs; in chunks that keep memory small where an engine has none of its own."""
        node = self._node
        if engine == "fast":
            return self._fast.layers(node, rows)
        size = max(SMALLEST_CHUNK, CHUNK_BYTES // (1 + node.whole("slots") * self.dtype.itemsize))
        found = np.empty((len(rows), len(self._reference.part(node, "out"))), self.dtype)
        for first in range(0, len(rows), size):
            part = rows[first : first + size].astype(self.dtype)
            found[first : first + size] = self._reference.layers(node, part)
        return found

    def off_from_signs(self, carry: Activations) -> float:
        """The largest distance of an output from -1 or +1."""
        signs = np.zeros((0, 0)) if carry.signs is None else carry.signs
        return float(np.abs(np.abs(signs) - 1).max(initial=0))
