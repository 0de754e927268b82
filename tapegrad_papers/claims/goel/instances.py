"""What several claims share: data, machines run by the plain interpreter, and a network trained once."""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tapegrad.learners.on_grid import GridLearner, single_coordinate, start
from tapegrad.machines.grid import GridMachine
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.training import SgdStep, memorise

Signs = NDArray[np.int64]


def all_points(d: int) -> Signs:
    """Every point of {-1, 1}^d."""
    return np.array(list(product((-1, 1), repeat=d)))


def by_interpreter(machine: GridMachine, X: Signs, y: Signs, x: Signs) -> tuple[int, int]:
    """A(S)[x] and the number of steps, by the plain interpreter, step by step."""
    steps, last = -1, None
    for configuration in machine.run(start(machine, X, y, x)):
        steps, last = steps + 1, configuration
    assert last is not None
    return (1 if last.cells[0, 0] == "+" else -1), steps


@dataclass(frozen=True)
class TrainedNetwork:
    """A network of Definition 5 in ternary, and every step of its training by Algorithm 1 (`reference`)."""

    learner: GridLearner
    network: Rcnn
    X: Signs
    y: Signs
    steps: list[SgdStep]

    @property
    def memories(self) -> list[NDArray[np.float64]]:
        """W^(1), W^(2), ..., W^(m + 2)."""
        return [self.network.empty_memory(), *(step.memory for step in self.steps)]


@cache
def trained(samples: int = 3, features: int = 3, layers: int = 8, seed: int = 5) -> TrainedNetwork:
    """The single-coordinate learner on samples whose label is their second feature."""
    X = np.random.default_rng(seed).choice([-1, 1], (samples, features))
    y = X[:, 1]
    learner = single_coordinate()
    network = Rcnn.of(learner.machine, samples, features, layers, encoding="ternary", frame=learner.frame)
    return TrainedNetwork(learner, network, X, y, list(memorise(network, X.astype(float), y.astype(float))))


def written_out(network: Rcnn, memory: NDArray[np.float64], z: NDArray[np.float64]) -> float:
    """Definition 5 in plain numpy, with dense matrices and the f_head of B.2 as printed."""
    top, bottom, left, right = network.frame
    grid: NDArray[np.float64] = np.pad(memory * z, ((top, bottom), (left, right)), constant_values=1.0)
    rows, columns = np.shape(grid)[0], np.shape(grid)[1]
    dense = [m.dense() for m in network.filter.maps]  # type: ignore[union-attr]
    for _ in range(network.layers):
        padded = np.pad(grid, 1, constant_values=1 / 6)
        x = np.stack([padded[r : r + rows, c : c + columns].ravel() for r in range(3) for c in range(3)])
        for i, matrix in enumerate(dense):
            x = matrix[:, :-1] @ x + matrix[:, -1:]
            x = np.maximum(x, 0) if i in (0, 2) else x
        grid = x.reshape(rows, columns)
    return float(printed_head(grid[top : top + network.rows, left : left + network.columns]).sum())


def printed_head(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The five cases of f_head."""
    conditions = [x <= -1 / 6, x <= 0, x <= 1 / 9, x <= 1 / 6]
    values = [-np.ones_like(x), 18 * (x + 1 / 9), -18 * (x - 1 / 9), 18 * (x - 1 / 9)]
    return np.select(conditions, values, 1.0)
