"""Sources that several of these tests share."""

import numpy as np

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Gate


def random_circuit(seed: int, inputs: int = 5, gates: int = 25):
    """Gates of all kinds, constants and repeated operands included."""
    random = np.random.default_rng(seed)
    make = CircuitBuilder(simplify=False)
    wires = [make.input(f"x{i}") for i in range(inputs)]
    for _ in range(gates):
        kind = Gate(random.choice([int(g) for g in Gate]))
        a, b = (wires[random.integers(len(wires))] for _ in range(2))
        wires.append(make.gate(kind, a, b))
    for i in range(4):
        make.output(f"y{i}", wires[-1 - i])
    return make.circuit(f"random {seed}")


def all_patterns(inputs: int) -> np.ndarray:
    return (np.arange(1 << inputs)[:, None] >> np.arange(inputs) & 1).astype(bool)
