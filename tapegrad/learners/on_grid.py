"""How a learning machine finds its data and leaves its answer (Goel et al., B.1.2).

The main grid has a row for each sample and one for the test point. Row i holds `y_i x_i * x` (feature by
feature) and then `y_i`; the last row holds `x` and then `+`. The head starts on the last cell of the
last row. At the end the answer stands alone in the top left cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.machines.builder import ControlFlow, GridBuilder, Loop
from tapegrad.machines.many_heads import HeadsConfiguration, ManyHeadMachine
from tapegrad.machines.model import GridConfiguration, GridMachine, GridRule

BLANK, PLUS, MINUS = "0", "+", "-"
"""The symbols of a learner: blank, +1 and -1."""

SIGNS = (PLUS, MINUS)


class Frame(NamedTuple):
    """How many rows and columns of work cells surround the main grid. The paper has them on the right only;
    then a machine cannot notice the other edges, and walks off."""

    top: int = 1
    bottom: int = 1
    left: int = 1
    right: int = 1


Machine = TypeVar("Machine", bound=GridMachine | ManyHeadMachine, covariant=True)


@dataclass(frozen=True)
class GridLearner(Generic[Machine]):
    """A learning machine, and the frame of work cells that it needs around the main grid."""

    machine: Machine
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


@overload
def start(machine: GridMachine, X: NDArray[Any], y: NDArray[Any], x: NDArray[Any]) -> GridConfiguration: ...


@overload
def start(
    machine: ManyHeadMachine, X: NDArray[Any], y: NDArray[Any], x: NDArray[Any]
) -> HeadsConfiguration: ...


def start(
    machine: GridMachine | ManyHeadMachine, X: NDArray[Any], y: NDArray[Any], x: NDArray[Any]
) -> GridConfiguration | HeadsConfiguration:
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
    """From the start to above the last column: row i times its own label and times the test row is `x_i`.
    Every row is gone through once, then every column: 2 (m + 1)(d + 1) steps there and as many back."""
    b.move("up")
    with b.until(BLANK):
        with b.if_(MINUS):
            b.move("left")
            flip(b, "left")
            b.move("right")
            b.seek("right", BLANK)
            b.move("left")
        b.move("up")
    b.move("left", "down")
    b.seek("down", BLANK)
    b.move("up")
    with b.until(BLANK):
        with b.if_(MINUS):
            b.move("up")
            flip(b, "up")
            b.move("down")
            b.seek("down", BLANK)
            b.move("up")
        b.move("left")
    b.move("right")
    b.seek("right", BLANK)
    b.move("left")
    b.seek("up", BLANK)


def flip(b: ControlFlow, direction: str) -> None:
    """Changes every sign up to the next blank."""
    with b.until(BLANK):
        for sign in b.each(*SIGNS):
            b.write(times(sign, MINUS))
        b.move(direction)


def _erase(b: ControlFlow, direction: str) -> None:
    """Blanks every sign up to the next blank."""
    with b.until(BLANK):
        b.write(BLANK)
        b.move(direction)


def finish(b: GridBuilder, answer: str) -> None:
    """From any cell of the main grid, while the frame beside it is blank: clears the grid row by row from the
    bottom, always leftwards, and writes the answer into the top left cell."""
    b.seek("right", BLANK)
    b.move("left")
    b.seek("down", BLANK)
    b.move("up")
    with b.loop():
        _erase(b, "left")
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


# A conjunction of literals, by elimination: keep the literals that no positive sample contradicts.


def conjunction() -> GridLearner[GridMachine]:
    """A literal is left where the positive samples all agree, and the test point contradicts it where they
    all differ from the point. In XOR form: the answer is + if every column has a + in some row labelled +,
    else -. Without a positive sample all literals are left, and the answer is -."""
    b = builder("conjunction")
    b.move("left")
    with b.until(BLANK):
        b.move("up")
        with b.loop() as rows:
            with b.if_(BLANK):
                b.move("down")
                finish(b, MINUS)
            with b.if_(PLUS):
                b.write(BLANK)  # so that the way back from the label is known
                b.move("right")
                b.seek("right", BLANK)
                b.move("left")
                for label in b.each(*SIGNS):
                    b.move("left")
                    b.seek("left", BLANK)
                    b.write(PLUS)
                    if label == PLUS:
                        b.break_(rows)
            b.move("up")
        b.seek("down", BLANK)
        b.move("up", "left")
    b.move("right")
    finish(b, PLUS)
    return GridLearner(b.machine())


# The label that most samples have; + where they are equally many.


def majority() -> GridLearner[GridMachine]:
    """A stack of equal signs grows upwards in the frame on the right, on a mark below it: a label equal to
    the sign on top is pushed, another one pops. What is left at the end is the majority."""
    b = builder("majority")
    b.move("right", "down")
    b.write(PLUS)  # the mark below the stack; unlike the stack it has a blank on its left
    b.move("left", "up", "up")
    with b.until(BLANK):
        for label in b.each(*SIGNS):
            b.write(BLANK)  # so that the way back is known
            _push_or_pop(b, label)
            b.move("left")
            b.seek("up", BLANK)
            b.write(label)
        b.move("up")
    b.move("right")
    b.seek("down", *SIGNS)
    for sign in b.each(*SIGNS):
        b.move("left")
        with b.if_(BLANK):
            _clear_stack_and_finish(b, PLUS)
        _clear_stack_and_finish(b, sign)
    return GridLearner(b.machine(), Frame(bottom=2))


def _push_or_pop(b: GridBuilder, label: str) -> None:
    """From the label's cell to the top of the stack."""
    other = MINUS if label == PLUS else PLUS
    b.move("right")
    b.seek("down", *SIGNS)
    b.move("left")
    with b.if_(BLANK):
        b.move("right", "up")
        b.write(label)
    with b.else_():
        b.move("right")
        with b.if_(other):
            b.write(BLANK)
        with b.else_():
            b.move("up")
            b.write(label)


def _clear_stack_and_finish(b: GridBuilder, answer: str) -> None:
    b.move("right")
    with b.while_(*SIGNS):
        b.write(BLANK)
        b.move("down")
    b.move("up", "up", "left")
    finish(b, answer)


# The label of the sample that differs from the test point in the fewest places; the last of several.


def nearest_neighbour() -> GridLearner[GridMachine]:
    """In XOR form a place of row i differs from the label where sample and test point differ. Round after
    round one such place in every row is put right; the first row found without any is the nearest. A
    sample equal to the test point wins in the first round: look-up is the special case."""
    b = builder("nearest neighbour")
    b.move("up")
    with b.loop():
        for label in b.each(*SIGNS):
            b.move("left")
            b.skip("left", label)
            with b.if_(BLANK):
                b.move("right")
                finish(b, label)
            other = MINUS if label == PLUS else PLUS
            with b.if_(other):
                b.write(label)
        b.seek("right", BLANK)
        b.move("left", "up")
        with b.if_(BLANK):
            b.move("down")
            b.seek("down", BLANK)
            b.move("up", "up")
    return GridLearner(b.machine())


# Parity of an unknown set of coordinates, by Gaussian elimination, with states that do not depend on sizes.
#
# Signs stand for bits, products for sums. A head that carried each bit of a pivot row to every other row
# would walk past m cells for it. So rows that are combined stand next to each other: the pivot row of a
# column changes places with the row below it again and again, and each row that it passes is added to on
# the way, in 4 steps for each cell. Below the test row it is erased. So the grid loses its first column,
# and its last row with it if the column has a pivot: the steps are of the order m d^2, and not m^2 d^2.


def parity() -> GridLearner[GridMachine]:
    """The coordinates that no pivot was found in count as absent from the set. What remains at the end are
    labels; the test row's, at the bottom, is the prediction."""
    b = builder("parity")
    undo_xor_form(b)
    b.move("down")
    b.seek("left", BLANK)
    b.move("up")
    mark_corner(b)
    with b.loop() as columns:
        to_pivot(b, columns)
        with b.if_(MINUS):
            b.move("down")
            with b.if_(BLANK):  # in the test row, so there is no pivot
                b.move("up")
                b.write(BLANK)
                b.move("down")
            with b.else_():
                b.move("up")
                _sink(b)
        b.move("right", "up")
        b.seek("up", BLANK)
        b.move("down")
    answer_at_mark(b)
    return GridLearner(b.machine())


def mark_corner(b: ControlFlow) -> None:
    """From the cell above and before the top left one to that one, which is found again by a mark there."""
    b.write(PLUS)
    b.move("right", "down")


def to_pivot(b: ControlFlow, columns: Loop) -> None:
    """From the top of the first column that is left to its first -, or below it, over signs that are erased;
    out of the loop if it is the column of the labels."""
    b.move("right")
    with b.if_(BLANK):
        b.break_(columns)
    b.move("left")
    with b.while_(PLUS):
        b.write(BLANK)
        b.move("down")


def answer_at_mark(b: ControlFlow) -> None:
    """From beside the top of the only column that is left: its last sign is the answer."""
    b.move("left")
    b.seek("down", BLANK)
    b.move("up")
    for answer in b.each(*SIGNS):
        _erase(b, "up")
        b.seek("left", PLUS)
        b.move("down", "right")
        b.write(answer)
        b.halt("done")


def _sink(b: GridBuilder) -> None:
    """From a pivot to below the column, which is then blank: the pivot's row goes down past all others."""
    with b.loop() as rows:
        b.write(BLANK)
        b.move("down")
        for bit in b.each(*SIGNS):
            b.write(MINUS)
            b.move("up", "right")
            with b.until(BLANK):
                for pivot in b.each(*SIGNS):
                    b.move("down")
                    for other in b.each(*SIGNS):
                        b.write(pivot)
                        b.move("up")
                        b.write(times(other, pivot) if bit == MINUS else other)
                b.move("right")
        b.move("down", "left", "down")
        with b.if_(BLANK):
            b.break_(rows)
        b.move("up")
        b.seek("left", BLANK)
        b.move("right")
    b.move("up")
    _erase(b, "left")
    b.move("right")


# The label is one coordinate of the sample, and the samples tell which.


def single_coordinate() -> GridLearner[GridMachine]:
    """In XOR form the column of the right coordinate is constant, and its sign is the answer. Columns are
    tried from the right; if none is constant the answer is +."""
    b = builder("single coordinate")
    b.move("left")
    with b.until(BLANK):
        for sign in b.each(*SIGNS):
            b.skip("up", sign)
            with b.if_(BLANK):
                b.move("down")
                finish(b, sign)
            other = MINUS if sign == PLUS else PLUS
            with b.if_(other):
                b.seek("down", BLANK)
        b.move("left", "up")
    b.move("right")
    finish(b, PLUS)
    return GridLearner(b.machine())


GRID_LEARNERS = {
    "majority": majority,
    "single-coordinate": single_coordinate,
    "conjunction": conjunction,
    "nearest-neighbour": nearest_neighbour,
    "parity": parity,
}
