"""How a learning machine finds its data and leaves its answer (Goel et al., B.1.2).

The main grid has a row for each sample and one for the test point. Row i holds `y_i x_i * x` (feature by
feature) and then `y_i`; the last row holds `x` and then `+`. The head starts on the last cell of the
last row. At the end the answer stands alone in the top left cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.machines.grid import GridConfiguration, GridMachine, GridRule
from tapegrad.machines.grid_builder import GridBuilder
from tapegrad.targets.rcnn.network import BLANK, MINUS, PLUS, Frame

SIGNS = (PLUS, MINUS)


@dataclass(frozen=True)
class GridLearner:
    """A learning machine, and the frame of work cells that it needs around the main grid."""

    machine: GridMachine
    frame: Frame = Frame()  # noqa: RUF009
    features: int | None = None
    """How many features it is made for; None if for any number."""
    samples: int | None = None
    """How many samples there is room for; None if for any number."""

    def check_sizes(self, samples: int, features: int) -> None:
        """Refuses data that the machine is not made for: it would answer, and wrongly."""
        if self.features not in (None, features):
            raise InputError(f"{features} features, and {self.machine.name!r} is made for {self.features}")
        if self.samples is not None and samples > self.samples:
            raise InputError(f"{samples} samples, and {self.machine.name!r} is made for {self.samples}")


def xor_form(X: NDArray[Any], y: NDArray[Any], x: NDArray[Any]) -> NDArray[np.int64]:
    """The main grid as signs."""
    rows = np.column_stack([X * x * y[:, None], y])
    return np.vstack([rows, np.append(x, 1)]).astype(np.int64)


def start(machine: GridMachine, X: NDArray[Any], y: NDArray[Any], x: NDArray[Any]) -> GridConfiguration:
    """The machine's first configuration; the main grid begins at cell (0, 0)."""
    signs = xor_form(X, y, x)
    rows = [[PLUS if sign > 0 else MINUS for sign in row] for row in signs]
    return machine.start(rows, (signs.shape[0] - 1, signs.shape[1] - 1))


def builder(name: str) -> GridBuilder:
    """A builder for learners."""
    return GridBuilder(name, symbols=SIGNS, blank=BLANK)


def times(*signs: str) -> str:
    """The product of signs."""
    return MINUS if signs.count(MINUS) % 2 else PLUS


def undo_xor_form(b: GridBuilder) -> None:
    """From the start to above the last column, training rows upwards: row i times the test row and times its
    own label is `x_i`."""
    b.move("up")
    with b.until(BLANK):
        for label in b.each(*SIGNS):
            b.move("left")
            with b.until(BLANK):
                for symbol in b.each(*SIGNS):
                    b.write(BLANK)
                    b.move("down")
                    b.seek("down", BLANK)
                    b.move("up")
                    for test in b.each(*SIGNS):
                        b.seek("up", BLANK)
                        b.write(times(label, symbol, test))
                b.move("left")
            b.move("right")
            b.seek("right", BLANK)
            b.move("left")
        b.move("up")


def finish(b: GridBuilder, answer: str) -> None:
    """From any cell of the main grid, while the frame beside it is blank: clears the grid row by row from the
    bottom, always leftwards, and writes the answer into the top left cell."""
    b.seek("right", BLANK)
    b.move("left")
    b.seek("down", BLANK)
    b.move("up")
    with b.loop():
        with b.until(BLANK):
            b.write(BLANK)
            b.move("left")
        b.move("up", "right")
        with b.if_(BLANK):
            b.move("down")
            b.write(answer)
            b.halt("done")
        b.seek("right", BLANK)
        b.move("left")


def joined(name: str, *parts: Mapping[tuple[str, str], GridRule]) -> GridMachine:
    """One machine whose rules come in parts, the first of them with the start state first; a part halts in a
    state that another begins with."""
    rules = {key: rule for part in parts for key, rule in part.items()}
    start_state, _ = next(iter(rules))
    return GridMachine(rules, start_state, BLANK, name, SIGNS)
