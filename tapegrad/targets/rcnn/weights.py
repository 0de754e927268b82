"""The weight set U_s of the random initialisation, and the chance that random weights are the ones wanted."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.grid import GridMachine
from tapegrad.targets.rcnn.cells import Cells
from tapegrad.targets.rcnn.clauses import clauses_of
from tapegrad.targets.rcnn.size import filter_size
from tapegrad.targets.rcnn.ternary import TernaryFilter, ternary_filter


def weight_values(filter: TernaryFilter) -> NDArray[np.float64]:
    """The distinct weights and biases of a filter, 0 included."""
    parts = [part for m in filter.maps for part in (m.values, m.bias)]
    return np.unique(np.concatenate([[0.0], *parts]))


def initialisation_set(states: int) -> NDArray[np.float64]:
    """U_s: every weight that the filter of a learner with this many states can have. It depends on s alone,
    as the questions do; which of them are asked where, and what is added up, is decided by zeros."""
    idle = idle_machine(states)
    return weight_values(ternary_filter(Cells(3, states), clauses_of(idle))[0])


def idle_machine(states: int) -> GridMachine:
    """A learner that halts at once, with this many states."""
    names = tuple(f"q{i}" for i in range(states))
    return GridMachine({}, names[0], name="idle", alphabet=("+", "-"), states=names)


@dataclass(frozen=True)
class WeightCount:
    """What the theorem claims for s states, and what the filter here has."""

    states: int
    width: int
    claimed_width: int
    dense_parameters: int
    nonzero_weights: int
    values: int
    claimed_values: int
    log10_success: float
    """Of drawing this very filter, every place of its five matrices uniformly from U_s."""


def count_weights(machine: GridMachine) -> WeightCount:
    """Counts for the ternary filter of a learner."""
    size, states = filter_size(machine, "ternary"), len(machine.states)
    values = len(initialisation_set(states))
    success = -size.dense * math.log10(values)
    claimed = 24 * 16 * states + 5
    return WeightCount(states, size.width, 100 * states, size.dense, size.weights, values, claimed, success)
