"""A machine that a search has found, put into the network: compiled, trained by SGD, compared in steps."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tapegrad.learners.on_grid import start
from tapegrad.machines.compiled import run as run_machine
from tapegrad.machines.model import GridConfiguration, GridMachine
from tapegrad.search.run import SearchResult
from tapegrad.search.tasks import task_named
from tapegrad.targets.rcnn.encoding import encoding_of
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import configuration, predict_many, roll_out
from tapegrad.targets.rcnn.training import memorise

MOST_LAYERS = 1_000_000
SIGN = {"+": 1, "-": -1}


@dataclass(frozen=True)
class Confirmation:
    """What was seen on one fresh problem. `memory_error` is the largest distance of the memory from
    Lemma 2, `output` the largest output while memorising; `agreed` of the test points ended as in the
    machine's own run, and `layers_compared` of the first one's `layers` decoded to the machine's
    configuration; `right` says whether that one, the problem's own, got the true answer."""

    samples: int
    features: int
    memory_error: float
    output: float
    points: int
    agreed: int
    right: bool
    layers: int
    layers_compared: int

    @property
    def agrees(self) -> bool:
        """Whether nothing differed."""
        return self.agreed == self.points and self.layers_compared == self.layers

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"agrees": self.agrees}


def confirm(result: SearchResult, *, form: str = "paper", points: int = 32, seed: int = 1) -> Confirmation:
    """Draws a problem of the task, trains the network of the winner on it, and runs it on test points."""
    rng = np.random.default_rng(seed)
    problem = task_named(result.task).draw(rng)
    X, y = problem.X, problem.y
    machine = result.machine
    network = Rcnn.of(machine, len(X), X.shape[1], MOST_LAYERS, encoding=encoding_of(form))
    steps = list(memorise(network, X.astype(float), y.astype(float), engine="fast"))
    memory = steps[-1].memory
    lemma_2 = np.vstack([np.column_stack([X, np.ones(len(X))]) * y[:, None], np.ones(X.shape[1] + 1)]) / 3
    T = np.vstack([problem.x, rng.choice([-1, 1], (points - 1, X.shape[1]))])
    found = predict_many([network], [memory], T)
    labels, layers = found.labels[0], int(found.layers[0, 0])
    own = [_by_interpreter(machine, X, y, x) for x in T]
    return Confirmation(
        samples=len(X),
        features=X.shape[1],
        memory_error=float(np.abs(memory - lemma_2).max()),
        output=max(abs(step.output) for step in steps),
        points=points,
        agreed=int((labels == own).sum()),
        right=bool(labels[0] == problem.answer),
        layers=layers,
        layers_compared=_compared(network.with_layers(layers), memory, X, y, T[0], machine),
    )


def _by_interpreter(machine: GridMachine, X: Any, y: Any, x: Any) -> int:
    """The machine's own answer; 0 where it gives none."""
    ended = run_machine(machine, start(machine, X, y, x), MOST_LAYERS)
    assert isinstance(ended.final, GridConfiguration)
    return SIGN.get(ended.final.cells.get((0, 0), ""), 0) if ended.halted else 0


def _compared(network: Rcnn, memory: Any, X: Any, y: Any, x: Any, machine: Any) -> int:
    """Steps one test point through every layer beside the machine; the first layer puts the head down."""
    count = 0
    states = machine.run(start(machine, X, y, x))
    expected = next(states)
    for layer, grid in enumerate(roll_out(network, memory, x)):
        if layer == 0:
            continue
        if configuration(network, grid) != expected:
            break
        count += 1
        expected = next(states, expected)
    return count
