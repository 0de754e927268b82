"""A small class of functions as ReLU networks: all conjunctions of literals over a few bits."""

from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.compile import compile
from tapegrad.targets.relu import ReluNet


@dataclass(frozen=True)
class NetworkClass:
    """F and G at once. Row f of `predictions` is what network f says (0 or 1) on every pattern, row f of
    `labels` what conjunction f is, computed from its definition."""

    inputs: NDArray[np.int64]
    predictions: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def disagreements(self) -> NDArray[np.int64]:
        """0-1 losses of every network for every target on every pattern."""
        return (self.predictions[None, :, :] != self.labels[:, None, :]).astype(np.int64)


def conjunctions(bits: int) -> NetworkClass:
    """For each bit: absent, as it is, or negated. All 3^bits of them, each compiled to a network."""
    inputs = np.array(list(product((0, 1), repeat=bits)))
    predictions, labels = [], []
    for signs in product((0, 1, -1), repeat=bits):
        net = compile(_circuit(signs), "relu").net
        assert isinstance(net, ReluNet)
        predictions.append((net.outputs(inputs, "fast")[:, 0] > 0).astype(int))
        labels.append(np.all([(s == 0) | (inputs[:, i] == (s > 0)) for i, s in enumerate(signs)], axis=0))
    return NetworkClass(inputs, np.array(predictions), np.array(labels).astype(int))


def _circuit(signs: tuple[int, ...]) -> Circuit:
    make = CircuitBuilder()
    wires = [make.input(f"x{i}") for i in range(len(signs))]
    literals = [w if s > 0 else make.not_(w) for w, s in zip(wires, signs, strict=True) if s]
    everything = make.or_(wires[0], make.not_(wires[0]))
    make.output("out", reduce(make.and_, literals, everything))
    return make.circuit("conjunction")
