"""Any learner as a machine on the grid, for a given number of samples."""

import numpy as np

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.passes import copied
from tapegrad.errors import InputError, Refused
from tapegrad.grid_learners.from_circuit import from_circuit
from tapegrad.grid_learners.layout import GridLearner
from tapegrad.learners.model import Learner
from tapegrad.learners.samples import Samples
from tapegrad.machines.grid import Cell

MOST_STATES = 1032
"""A cell has 6 s + 14 contents, and the network's engine `fast` numbers five cells together in 63 bits."""
MOST_WIRES = 200_000
"""Of the circuit before it is simplified."""
ADVICE = "Take fewer samples or features, or write the learner for the grid, with `GridBuilder`."


def grid_learner(learner: Learner, samples: int, seed: int = 0) -> GridLearner:
    """The grid machine that answers as the learner does once it has learned from `samples` samples.

    Learning from m samples and then answering is a function of the main grid, so it is a circuit: undo the
    XOR form, apply `learner.circuit` m times with wrong guesses, so that every sample is learned from, and
    once more on the test point. `from_circuit` walks through it. Bit 1 is the sign +. The random bits are
    those that `learner.start` draws from the seed; a learner that has not finished by then answers 0.

    Unlike the machines written for the grid, it has more states the more samples there are; it suits a few
    samples of a few bits. Measured:

        learner            m   d   gates   states   steps
        majority           3   2       8       38      21
        nearest            3   2      63      314     118
        conjunction        3   2      79      322     129
        parity             3   2     116      876     360
        conjunction        4   3     164      934     278
    """
    if samples < 1:
        raise InputError(f"a grid learner takes at least one sample, not {samples}")
    wires = (samples + 1) * learner.circuit.wires
    if wires > MOST_WIRES:
        raise Refused(
            f"{learner.name} with {samples:,} samples is a circuit of {wires:,} wires", advice=ADVICE
        )
    circuit, cells = _learning_circuit(learner, samples, seed)
    _check(circuit.size, "gates", circuit)  # over three states each is what was measured
    shape = samples + 1, learner.inputs + 1
    carrying = (1, 2)  # more wires in the state save steps, but double the states on every way
    found = [from_circuit(circuit, cells, *shape, carried) for carried in carrying]
    best = min(found, key=lambda made: len(made.machine.states))
    _check(len(best.machine.states), "states", circuit)
    return best


def _check(size: int, what: str, circuit: Circuit) -> None:
    if size > MOST_STATES:
        raise Refused(
            f"{circuit.name} needs {size:,} {what}, too many for a grid machine of {MOST_STATES:,} states",
            advice=ADVICE,
        )


def _learning_circuit(learner: Learner, samples: int, seed: int) -> tuple[Circuit, list[Cell]]:
    """What the learner answers as a function of the main grid, and the cell of each of its inputs. As + is
    1, a feature in its cell is y_i XOR x_i XOR x."""
    build = CircuitBuilder()
    rows, columns = range(samples), range(learner.inputs)
    cells = [(row, column) for row in rows for column in (*columns, learner.inputs)]
    cells += [(samples, column) for column in columns]
    grid = {cell: build.input(f"cell {cell}") for cell in cells}
    test = [grid[samples, column] for column in columns]
    nothing = np.zeros((samples, learner.inputs), np.uint8)
    random = Samples.drawn(nothing, nothing.sum(axis=1), seed).random.tolist()

    memory = [build.constant(bool(bit)) for bit in learner.first]
    for row in rows:
        label = grid[row, learner.inputs]
        x = [build.xor(grid[row, column], build.xor(label, test[column])) for column in columns]
        given = [*memory, *x, build.constant(bool(random[row])), build.not_(label)]
        answer, _, *if_wrong = copied(learner.circuit, build, given)
        wrong = build.xor(answer, label)
        memory = [build.where(wrong, new, old) for new, old in zip(if_wrong, memory, strict=True)]
    never = build.constant(False)
    answer, *_ = copied(learner.circuit, build, [*memory, *test, never, never])
    build.output("answer", answer)
    return build.circuit(f"{learner.name} from {samples} samples"), cells
