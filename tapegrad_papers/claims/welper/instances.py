"""Small algorithms and data for the extended network; what they compute is known without running them."""

from itertools import product

import numpy as np

from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended import Extended, FixedPoint, extend, linear

X = np.array([[1.0, -2.0], [0.5, 1.5]])
Y = np.array([[-1.0], [0.5]])
FORMAT = FixedPoint(4, 1)
CELLS = 64


def copying(bits: int) -> TuringMachine:
    """Two tapes, two symbols: copies the first `bits` data bits, cells 1, 2, ..., to the result tape."""
    rules = {}
    for data, result in product("01", repeat=2):
        rules["start", (data, result)] = Rule((data, result), (1, 1), "copy 0")
        for bit in range(bits):
            rules[f"copy {bit}", (data, result)] = Rule((data, data), (1, 1), f"copy {bit + 1}")
    return TuringMachine(rules, "start", blank="0", alphabet=("0", "1"), name="copy bits")


def first_numbers(y: np.ndarray = Y) -> Extended:
    """A linear network w . x + b whose weights the machine sets to the first three numbers of the data:
    theta = (x[0, 0], x[0, 1], x[1, 0]), after 1 + 12 steps."""
    return extend(linear(2), copying(3 * FORMAT.width), X, y, data_format=FORMAT, cells=CELLS)


def iterates(extended: Extended) -> list[Descent]:
    """The weights before training and after every gradient step, to the stop."""
    found = [extended.start()]
    while not extended.net.done(found[-1]):
        found.append(extended.net.step(found[-1]))
    return found
