"""Small algorithms as machines, for tests: what they compute is known without running them."""

from itertools import product
from typing import Any

import numpy as np

from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.targets.extended import Training, extend


def training(primary: Any, algorithm: Any, x: Any, y: Any, **options: Any) -> Training:
    """The network for data of this shape, with these data."""
    return extend(primary, algorithm, np.shape(x), np.shape(y), **options).on(x, y)


def copy_bits(count: int, blank: str = "0", stay: bool = False) -> TuringMachine:
    """Copies the first `count` data bits to the result tape. With `stay` each bit takes two steps, the first
    of which moves no head; with another blank than 0 the machine has three symbols."""
    rules = {}
    for data, result in product({blank, "0", "1"}, repeat=2):
        rules["start", (data, result)] = Rule((data, result), (1, 1), "copy 0")
        for bit in range(count):
            if data == blank and blank != "0":
                continue
            if stay:
                rules[f"copy {bit}", (data, result)] = Rule((data, data), (0, 0), f"go {bit}")
                rules[f"go {bit}", (data, result)] = Rule((data, result), (1, 1), f"copy {bit + 1}")
            else:
                rules[f"copy {bit}", (data, result)] = Rule((data, data), (1, 1), f"copy {bit + 1}")
    return TuringMachine(
        rules, "start", blank=blank, alphabet=tuple(dict.fromkeys((blank, "0", "1"))), name="copy bits"
    )
