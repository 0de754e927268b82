"""Ready examples: three ways of finding weights, each carried out by gradient descent alone."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.arrays import where
from tapegrad.circuits.types import Bit, Int
from tapegrad.errors import InputError
from tapegrad.machines.model import LEFT, RIGHT, Rule, TuringMachine
from tapegrad.targets.extended.formats import FixedPoint
from tapegrad.targets.extended.net import Progress, Training, TrainingRun, extend
from tapegrad.targets.extended.primary import MLP, linear, perceptron

# The machine for XOR


SAMPLES, BITS = 4, 18
SAMPLE_TIME, UPDATE_TIME = 34, 36
FIRST_READ, LAST_READ = 2, 1 + BITS
"""When the first and the last bit of the candidate are read, in a sample and in an update alike."""
VERDICT = LAST_READ + 1
"""When the label is read."""

Moves = tuple[int, int, int]
Written = tuple[int, int]


class Trying(NamedTuple):
    """Evaluating the candidate on a sample: its `inputs`, and the outputs of the `hidden` units so far."""

    sample: int
    time: int
    allowed: int
    mistakes: int
    inputs: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    total: int = 0


class Updating(NamedTuple):
    """Counting the candidate up by one and, if it was the best so far, copying it to the result."""

    sample: int
    """The last sample that was tried: where the data head comes from."""
    time: int
    allowed: int
    better: bool
    carry: int = 1


State = Trying | Updating
DONE, BEGIN = "done", "begin"


def threshold_search() -> TuringMachine:
    """A machine that tries every threshold network with two inputs, two hidden units and one output.

    Nine weights of two bits each (-2, -1, 0, 1), so 2^18 candidates, in the order of a binary counter; four
    samples. The machine keeps the best candidate so far on its result tape, leaves a candidate as soon as it
    makes more mistakes than that, and stops when one makes none or all have been tried.

    Tapes: the data (two-bit numbers, read-only), the result, the candidate. Every head moves at every step
    and no two states lead to each other, so the machine needs no rewriting for the target `tape`. Where the
    heads are depends on the time within a sample only; the head that has nothing to do steps to and fro. The
    states are found by following the machine from its start.
    """
    first = Trying(0, 0, allowed=SAMPLES, mistakes=0)
    rules: dict[tuple[str, tuple[str, ...]], Rule] = {}
    for read in product("01", repeat=3):
        rules[BEGIN, read] = Rule(read, (RIGHT, RIGHT, RIGHT), _name(first))
    found: dict[State, None] = {first: None}
    waiting: list[State] = [first]
    while waiting:
        state = waiting.pop()
        for data, result, candidate in product((0, 1), repeat=3):
            act: Callable = _try if isinstance(state, Trying) else _update
            after, written = act(state, data, result, candidate)
            symbols = (str(data), *map(str, written))
            name = DONE if after is None else _name(after)
            rules[_name(state), (str(data), str(result), str(candidate))] = Rule(
                symbols, _moves(state, after), name
            )
            if after is not None and after not in found:
                found[after] = None
                waiting.append(after)
    return TuringMachine(rules, BEGIN, blank="0", accept=frozenset({DONE}), name="threshold search")


def _name(state: State) -> str:
    return f"{type(state).__name__.lower()} {' '.join(str(part) for part in state)}"


def _try(state: Trying, data: int, result: int, candidate: int) -> tuple[State | None, Written]:
    time = state.time
    if time in (0, FIRST_READ):
        state = state._replace(inputs=(*state.inputs, data))
    if FIRST_READ <= time <= LAST_READ:
        state = _with_bit(state, time - FIRST_READ, candidate)
    if time == VERDICT:
        mistakes = state.mistakes + (state.hidden[-1] != data)
        if mistakes > state.allowed:
            return Updating(state.sample, time + 1 - SAMPLE_TIME, state.allowed, False), (result, candidate)
        state = Trying(state.sample, time, state.allowed, mistakes)
        if state.sample == SAMPLES - 1:
            better = Updating(state.sample, time + 1 - SAMPLE_TIME, mistakes - 1, True)
            return better, (result, candidate)
    if time + 1 < SAMPLE_TIME:
        return state._replace(time=time + 1), (result, candidate)
    return Trying(state.sample + 1, 0, state.allowed, state.mistakes), (result, candidate)


def _with_bit(state: Trying, place: int, bit: int) -> Trying:
    """Adds a bit of a weight, times its input, to the sum of its unit: weights are two's complement, so the
    second bit counts -2. After the last bit of a unit its output is known."""
    unit, weight, is_high = place // 6, place % 6 // 2, place % 2
    inputs = (*(state.inputs if unit < 2 else state.hidden), 1)
    total = state.total + bit * inputs[weight] * (-2 if is_high else 1)
    if place % 6 < 5:
        return state._replace(total=total)
    fires = int(total >= 0)
    if unit == 2:
        return Trying(state.sample, state.time, state.allowed, state.mistakes, hidden=(fires,))
    hidden = (*state.hidden, fires)
    inputs = state.inputs if unit == 0 else ()  # the output unit sees the hidden ones only
    return state._replace(hidden=hidden, total=0, inputs=inputs)


def _update(state: Updating, data: int, result: int, candidate: int) -> tuple[State | None, Written]:
    time, carry = state.time, state.carry
    if FIRST_READ <= time <= LAST_READ:
        result = candidate if state.better else result
        candidate, carry = candidate ^ carry, candidate & carry
        if time == LAST_READ and (carry or state.allowed < 0):
            return None, (result, candidate)
    if time + 1 < UPDATE_TIME:
        return state._replace(time=time + 1, carry=carry), (result, candidate)
    return Trying(0, 0, state.allowed, mistakes=0), (result, candidate)


def _moves(state: State, after: State | None) -> Moves:
    """The data head goes its own way; the heads of result and candidate go together."""
    return _data_move(state, after), _candidate_move(state), _candidate_move(state)


def _candidate_move(state: State) -> int:
    """Right over the candidate, back to its first cell; one step to and fro before the first sample."""
    time = state.time
    if isinstance(state, Trying) and state.sample == 0 and time < FIRST_READ:
        return RIGHT if time == 0 else LEFT
    return RIGHT if FIRST_READ <= time < LAST_READ else LEFT


def _data_move(state: State, after: State | None) -> int:
    """From the first input of the sample to the second, on to its label, then to the next sample or back to
    the first."""
    sample, time = state.sample, state.time
    if isinstance(state, Trying) and time < FIRST_READ:
        return RIGHT
    if isinstance(state, Trying) and time < VERDICT:
        return _towards(14 - 2 * sample, VERDICT - time)
    if isinstance(state, Updating) or isinstance(after, Updating):
        left = UPDATE_TIME - time if isinstance(state, Updating) else SAMPLE_TIME + UPDATE_TIME - time
        return _towards(-(16 + 2 * sample), left)
    return _towards(-(12 - 2 * sample), SAMPLE_TIME - time)


def _towards(distance: int, left: int) -> int:
    """With `left` steps to go to a place that lies at this distance from where the way began: to and fro
    until it is time, then straight. Both have the same parity all along."""
    if left <= abs(distance):
        return RIGHT if distance > 0 else LEFT
    return RIGHT if left % 2 == 0 else LEFT


# The examples

TWO_BITS, THREE_BITS = FixedPoint(2), FixedPoint(3)
CORNERS = [[0, 0], [0, 1], [1, 0], [1, 1]]


@dataclass(frozen=True)
class TrainingExample:
    """An extended network that can be built and trained."""

    name: str
    summary: str
    build: Callable[[], Training]

    def run(self, progress: Progress | None = None, engine: str = "fast") -> TrainingRun:
        """Builds and trains it."""
        return self.build().train(engine=engine, progress=progress)


def _xor() -> Training:
    search = extend(MLP((2, 2, 1), "step"), threshold_search(), (4, 2), (4, 1), data_format=TWO_BITS)
    return search.on(CORNERS, [[0], [1], [1], [0]])


def three_epochs(x: Any, y: Any) -> list[Any]:
    """Three epochs of Rosenblatt's rule, for features and labels that are 0 or 1: on a mistake, the weights
    of the features that are present go up or down by one, and so does the bias."""
    weight = Int(THREE_BITS.width)
    w = [weight(0), weight(0), weight(0)]
    for _ in range(3):
        for (a, b), (label,) in zip(x, y, strict=True):
            present = (a > 0, b > 0, Bit(1))
            fires = (
                sum((where(here, w_i, weight(0)) for here, w_i in zip(present, w, strict=True)), weight(0))
                >= 0
            )
            step = where(fires == (label > 0), weight(0), where(fires, weight(-1), weight(1)))
            w = [where(here, w_i + step, w_i) for here, w_i in zip(present, w, strict=True)]
    return w


def _perceptron() -> Training:
    shapes = (4, 2), (4, 1)
    rule = extend(perceptron(2), three_epochs, *shapes, data_format=TWO_BITS, weight_format=THREE_BITS)
    return rule.on(CORNERS, [[0], [1], [1], [1]])


LINE_X: NDArray[np.float64] = np.array([[-1.0], [0.0], [1.0]])
LINE_Y: NDArray[np.float64] = np.array([[-2.0], [-1.0], [1.0]])
GRID = (-1, 0, 1)


def least_squares_on_grid(x: Any, y: Any) -> list[Any]:
    """The line w x + b with w and b on a grid that has the least sum of squares. Expanded, the sum is
    w^2 Sxx + 2 w b Sx - 2 w Sxy - 2 b Sy + n b^2 (and Syy, the same for all), so four sums of the data and
    a few additions for each point of the grid will do. For three samples from -2 to 1 it is at most 63."""
    wide, weight = Int(7), Int(TWO_BITS.width)
    pairs = [(a.to(wide), b.to(wide)) for (a,), (b,) in zip(x, y, strict=True)]
    s_x, s_y = sum((a for a, _ in pairs), wide(0)), sum((b for _, b in pairs), wide(0))
    s_xx, s_xy = sum((a * a for a, _ in pairs), wide(0)), sum((a * b for a, b in pairs), wide(0))
    best, theta = None, [weight(0), weight(0)]
    for w in GRID:
        for b in GRID:
            error = s_xx * (w * w) + s_x * (2 * w * b) - s_xy * (2 * w) - s_y * (2 * b) + len(pairs) * b * b
            better = True if best is None else error < best
            best = where(better, error, best)
            theta = where(better, [weight(w), weight(b)], theta)
    return theta


def _line() -> Training:
    fit = extend(linear(1), least_squares_on_grid, (3, 1), (3, 1), data_format=TWO_BITS)
    return fit.on(LINE_X, LINE_Y)


EXAMPLES = {
    example.name: example
    for example in (
        TrainingExample("xor", "exhaustive search for the best 2-2-1 threshold network on XOR", _xor),
        TrainingExample("perceptron", "three epochs of the perceptron rule on OR", _perceptron),
        TrainingExample("line", "least squares for a line, weights on a grid", _line),
    )
}


def example_named(name: str) -> TrainingExample:
    """The ready example of this name."""
    if name not in EXAMPLES:
        raise InputError(
            f"there is no training example {name!r}", advice=f"Choose one of {', '.join(EXAMPLES)}."
        )
    return EXAMPLES[name]
