"""What several claims share: small learners, the paper's activation for floats, random circuits."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits import Circuit, Gate, UInt
from tapegrad.compile import compile
from tapegrad.learners import FunctionLearner, Learner
from tapegrad.targets.emulator.net import PracticalNet


def activation(x: float) -> tuple[float, float]:
    """The f of section 4.1 and its derivative: x^3 up to 1, 2 from 3/2 on, and a smooth piece in between."""
    size, sign = abs(x), float(np.sign(x))
    if size >= 1.5:
        return 2 * sign, 0.0
    if size <= 1:
        return x**3, 3 * x**2
    u = 2 * (size - 1)
    return sign * (1 + u * (3 - u * u) / 2), 3 - 3 * u * u


def random_and_or_not(seed: int, inputs: int, size: int, outputs: int) -> Circuit:
    """A circuit of these gates alone, as the lemmas have them."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice([Gate.AND, Gate.OR, Gate.NOT], size)
    left = [int(rng.integers(inputs + i)) for i in range(size)]
    right = [0 if kind == Gate.NOT else int(rng.integers(inputs + i)) for i, kind in enumerate(kinds)]
    return Circuit(
        inputs=tuple(f"x{i}" for i in range(inputs)),
        outputs=tuple(f"y{i}" for i in range(outputs)),
        kinds=np.array(kinds, np.uint8),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        output_wires=np.arange(inputs + size - outputs, inputs + size, dtype=np.int32),
        name="random",
    )


def all_inputs(n: int) -> NDArray[np.int64]:
    """Every row of n bits."""
    return np.array(list(product((0, 1), repeat=n)))


def counter(bits: int, inputs: int = 1) -> FunctionLearner:
    """Counts the samples that it learns from, for ever."""
    return FunctionLearner(
        name="counter",
        x=UInt(inputs),
        memory=UInt(bits),
        update=lambda memory, x, y, r: memory + 1,
        predict=lambda memory, x: memory[0],
        done=lambda memory: memory[0] & ~memory[0],
    )


def practical(learner: Learner, **options: Any) -> PracticalNet:
    """The practical network of a learner."""
    net = compile(learner, "emulator", **options).net
    assert isinstance(net, PracticalNet)
    return net
