"""Definitions 1 to 5 as types and predicates, each met by something and violated by something else; and what
other claims share: machines run by the plain interpreter, and a network trained once."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.learners import on_grid as grid_learners
from tapegrad.learners.on_grid import GridLearner, single_coordinate, start
from tapegrad.machines.model import GridMachine
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.search import Family, machine_of
from tapegrad.search.run import require_probability
from tapegrad.search.tasks import Problem, laid_out
from tapegrad.search.tree import GO_ON, evaluate, explore, sample
from tapegrad.targets.rcnn.net import RcnnNet, Sheet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.training import SgdStep, memorise
from tapegrad_papers.goel import PAPER
from tapegrad_papers.ledger import Outcome, holds, holds_corrected

Signs = NDArray[np.int64]


def all_points(d: int) -> Signs:
    """Every point of {-1, 1}^d."""
    return np.array(list(product((-1, 1), repeat=d)))


MOST_STEPS = 20_000
"""Of the plain interpreter, so that a broken machine gives no answer, and is not waited for."""


def by_interpreter(machine: GridMachine, X: Signs, y: Signs, x: Signs) -> tuple[int, int]:
    """A(S)[x] and the number of steps, by the plain interpreter, step by step; 0 where the machine does not
    halt, or does not leave its answer alone in the main grid."""
    steps, last = -1, None
    for configuration in islice(machine.run(start(machine, X, y, x)), MOST_STEPS):
        steps, last = steps + 1, configuration
    assert last is not None
    left = {cell: symbol for cell, symbol in last.cells.items() if min(cell) >= 0}
    inside = {c: s for c, s in left.items() if c[0] <= len(X) and c[1] <= X.shape[1]}
    halted = machine.step(last) is None
    answer = {"+": 1, "-": -1}.get(inside.get((0, 0), ""), 0)
    return (answer if halted and len(inside) == 1 else 0), steps


def single_coordinate_rule(X: Signs, y: Signs, x: Signs) -> int:
    """What the single-coordinate learner should say: the last feature that is the label on all samples, else
    +."""
    fitting = np.flatnonzero((y[:, None] == X).all(axis=0))
    return int(x[fitting[-1]]) if len(fitting) else 1


def most_steps(m: int, d: int) -> int:
    """A bound on the steps of the single-coordinate learner, counted by hand: up and down each of d columns;
    then, to clear the grid, to the last column and row, and left and right each of m + 1 rows."""
    return d * (2 * (m + 1) + 2) + (m + d + 6) + (m + 1) * (2 * (d + 1) + 4) + 3


@dataclass(frozen=True)
class TrainedNetwork:
    """A network of Definition 5 in ternary, and every step of its training by Algorithm 1 (`reference`)."""

    learner: GridLearner[GridMachine]
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


def validation_size(candidates: int, accuracy: float, failure: float) -> int:
    """The N for which twice the deviation bound is at most the accuracy: then the candidate chosen is within
    `accuracy` of the best one tried."""
    require_probability(accuracy, "accuracy")
    require_probability(failure, "failure")
    return math.ceil(2 * math.log(2 * candidates / failure) / accuracy**2)


def written_out(network: Rcnn, memory: NDArray[np.float64], z: NDArray[np.float64]) -> float:
    """Definition 5 in plain numpy, with dense matrices and the f_head of B.2 as printed."""
    top, bottom, left, right = network.frame
    grid: NDArray[np.float64] = np.pad(memory * z, ((top, bottom), (left, right)), constant_values=1.0)
    rows, columns = np.shape(grid)[0], np.shape(grid)[1]
    dense = [m.dense() for m in network.filter.maps]
    for _ in range(network.layers):
        padded = np.pad(grid, 1, constant_values=1 / 6)
        x = np.stack([padded[r : r + rows, c : c + columns].ravel() for r in range(3) for c in range(3)])
        for i, matrix in enumerate(dense):
            x = np.asarray(matrix.weight) @ x + np.asarray(matrix.bias)[:, None]
            x = np.maximum(x, 0) if i in (0, 2) else x
        grid = x.reshape(rows, columns)
    return float(printed_head(grid[top : top + network.rows, left : left + network.columns]).sum())


def printed_head(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The five cases of f_head."""
    conditions = [x <= -1 / 6, x <= 0, x <= 1 / 9, x <= 1 / 6]
    values = [-np.ones_like(x), 18 * (x + 1 / 9), -18 * (x - 1 / 9), 18 * (x - 1 / 9)]
    return np.select(conditions, values, 1.0)


Labelling = Callable[[Signs], int]
Learner = Callable[[Signs, Signs], Labelling]
"""From features and labels to a classifier."""


@dataclass(frozen=True)
class BoundedLearner:
    """Definition 1: at most s states, and t steps on at most m examples (in our form the steps include those
    that evaluate the classifier on a test point)."""

    machine: GridMachine
    s: int
    m: int
    t: int

    def respected_on(self, X: Signs, y: Signs, x: Signs) -> bool:
        return (
            len(self.machine.states) <= self.s
            and len(X) <= self.m
            and by_interpreter(self.machine, X, y, x)[1] <= self.t
        )


@PAPER.claim(
    "Definition 1", "An (s, m, t)-bounded learner: a machine of size s, within t steps on m examples"
)
def definition_1(long: bool) -> Outcome:
    machine, (m, d) = grid_learners.single_coordinate().machine, (2, 2) if not long else (3, 3)
    datasets = [
        (np.array(X).reshape(m, d), np.array(y), x)
        for X in product((-1, 1), repeat=m * d)
        for y in product((-1, 1), repeat=m)
        for x in all_points(d)
    ]
    runs = [by_interpreter(machine, *data) for data in datasets]
    answers, steps = zip(*runs, strict=True)
    met = {
        configuration.state
        for data in datasets
        for configuration in islice(machine.run(start(machine, *data)), MOST_STEPS)
    }
    bound = most_steps(m, d)
    learner = BoundedLearner(machine, len(met), m, max(steps))
    slowest = datasets[int(np.argmax(steps))]
    checks = {
        "its classifier is that of the rule written in NumPy, on every dataset and test point": answers
        == tuple(single_coordinate_rule(*data) for data in datasets),
        "the steps are within the bound counted by hand, and more than half of it": max(steps)
        <= bound
        < 2 * max(steps),
        "s is the number of states that are ever entered": learner.s == len(machine.states),
        "with one step, one state or one sample less the bounds do not hold": not any(
            replace(learner, **{name: getattr(learner, name) - 1}).respected_on(*slowest) for name in "smt"
        ),
    }
    return holds(
        checks,
        stated="a learner of size s that ends within t steps on any m examples",
        measured=f"the single-coordinate learner is ({learner.s}, {m}, {learner.t})-bounded on all "
        f"{len(datasets):,} inputs with d = {d}; counted by hand, t <= {bound}",
        s=learner.s,
        t=learner.t,
        bound=bound,
    )


FAMILY: dict[str, Learner] = {
    name: lambda X, y, make=make: lambda x: by_interpreter(make().machine, X, y, x)[0]
    for name, make in grid_learners.GRID_LEARNERS.items()
    if name != "parity"
}
"""Four learning machines, run by the interpreter."""


def error_of(classifier: Labelling, points: Signs, labels: Signs) -> float:
    """The share of points that the classifier gets wrong."""
    return float(np.mean([classifier(x) != label for x, label in zip(points, labels, strict=True)]))


def pao_failures(learner: str | None, epsilon: float, extra: int, trials: int, seed: int) -> float:
    """How often err(A(Z; Z')) > min over the family of err(B(Z)) + epsilon, for labels by a random feature:
    with A one learner of the family, or the one with the fewest errors on the extra examples. Points are
    uniform, so errors are means over all of them."""
    rng, d, failures = np.random.default_rng(seed), 3, 0
    points = all_points(d)
    for _ in range(trials):
        hidden = int(rng.integers(d))
        X, more = rng.choice([-1, 1], (4, d)), rng.integers(0, len(points), extra)
        y, truth = X[:, hidden], points[:, hidden]
        wrong = {name: np.array([B(X, y)(x) for x in points]) != truth for name, B in FAMILY.items()}
        chosen = learner or min(FAMILY, key=lambda name: wrong[name][more].mean())
        failures += wrong[chosen].mean() > min(w.mean() for w in wrong.values()) + epsilon
    return failures / trials


@PAPER.claim("Definition 2", "A PAO learner does nearly as well as the best algorithm of a family")
def definition_2(long: bool) -> Outcome:
    epsilon, delta, trials = 0.25, 0.25, 40 if long else 8
    extra = validation_size(len(FAMILY), epsilon, delta)
    by_choice = pao_failures(None, epsilon, extra, trials, 1)
    alone = pao_failures("majority", epsilon, 1, trials, 1)
    checks = {
        "choosing by M extra examples fails in at most a share delta": by_choice <= delta,
        "one fixed member of the family (majority) is no PAO learner": alone > delta,
    }
    return holds(
        checks,
        stated=f"Pr[err(A(Z; Z')) <= min err(B(Z)) + epsilon] >= 1 - delta; here epsilon = delta = {delta}",
        measured=f"four machines, {extra} extra examples: fails in {by_choice:.0%} of {trials} draws; "
        f"majority alone in {alone:.0%}",
        extra=extra,
        failures=by_choice,
        failures_alone=alone,
    )


@PAPER.claim("Definition 3", "Turing-optimal: a PAO learner for all machines of s states and polynomial time")
def definition_3(long: bool) -> Outcome:
    rng = np.random.default_rng(2)
    m, d, k = 3, 2, 2
    X, extra = rng.choice([-1, 1], (m, d)), rng.choice([-1, 1], (12, d))
    problems = laid_out([Problem(X, X[:, 0], x, int(x[0])) for x in extra]).problems(k)
    least, beaten, slowest = {}, 0, 0
    for s in (1, 2):
        code, draws = Family(s).code(), 200_000 if long else 20_000
        _, tables, errors, _ = explore(code, problems, len(extra), np.zeros(0, np.int64), 0, 4, GO_ON)
        best = tables[int(np.argmin(errors))]
        least[s] = int(len(extra) - evaluate(best[None], s, problems)[0])
        _, _, others, _ = sample(code, problems, len(extra), 7, draws, 1, GO_ON)
        beaten += int((others < least[s]).sum())
        machine = machine_of(best, Family(s))
        slowest = max(slowest, *(by_interpreter(machine, X, X[:, 0], x)[1] for x in extra))
    checks = {
        "no random machine of s states makes fewer errors than the least of all": beaten == 0,
        "two states can learn this, and one cannot": least[2] == 0 < least[1],
        "the best machine ends within (2dm)^k steps": slowest <= (2 * d * m) ** k,
    }
    return holds(
        checks,
        stated="A PAO-learns B_(s,k): machines of at most s states that run for at most (2dm)^k steps",
        measured=f"fewest errors over all machines of 1 and 2 states: {least[1]} and {least[2]} of "
        f"{len(extra)}; at most {slowest} steps of {(2 * d * m) ** k}",
        errors=list(least.values()),
        steps=slowest,
    )


@PAPER.claim(
    "Definition 4", "PAC learning: error at most epsilon with probability 1 - delta on consistent data"
)
def definition_4(long: bool) -> Outcome:
    d, delta, trials = 2, 1 / 8, 60 if long else 20
    m = d + 3  # m random vectors fail to span with probability at most 2^(d - m)
    rng, machine, failures = np.random.default_rng(3), grid_learners.parity().machine, 0
    majority_failures = 0
    points = all_points(d)
    for _ in range(trials):
        subset = rng.integers(0, 2, d)
        X = rng.choice([-1, 1], (m, d))
        y, truth = (np.where(subset, part, 1).prod(axis=1) for part in (X, points))
        failures += error_of(lambda x, X=X, y=y: by_interpreter(machine, X, y, x)[0], points, truth) > 0
        majority_failures += error_of(FAMILY["majority"](X, y), points, truth) > 0
    allowed = trials * delta + 3 * np.sqrt(trials * delta)
    checks = {
        "Gaussian elimination on the grid learns parities: failures within 3 deviations of delta": failures
        <= allowed,
        "the majority label does not": majority_failures > allowed,
    }
    return holds(
        checks,
        stated="Pr[err(A(Z)) <= epsilon] >= 1 - delta for m >= p(d, 1/epsilon, 1/delta)",
        measured=f"parity machine, d = {d}, m = d + log2(1/delta) = {m}: wrong in {failures} of {trials} "
        f"draws (delta = {delta}); majority in {majority_failures}",
        failures=failures / trials,
    )


@PAPER.claim("Definition 5", "The network: memory layer, 3x3 filter applied L times, head, sum")
def definition_5(long: bool) -> Outcome:
    case = trained()
    network, memory = case.network, case.steps[-1].memory
    points = all_points(network.columns - 1)[:: 1 if long else 3]
    worst = max(
        abs(written_out(network, memory, z) - _output(network, memory, z))
        for z in np.column_stack([points, np.ones(len(points))])
    )
    machine, margin = case.learner.machine, 2
    net = RcnnNet.of(machine, "ternary", margin)
    whole = net.start(start(machine, case.X, case.y, points[0]))
    printed = Sheet(whole.grid[:, margin:-margin, margin:], (0, 0))
    ended, lost = net.advance(whole, 1000, "fast"), ""
    try:
        net.advance(printed, 1000, "fast")
    except Refused as refusal:
        lost = refusal.what
    checks = {
        "plain numpy with dense matrices gives the same outputs": worst < 1e-9,
        "five affine maps with a ReLU after the first and the third": len(network.filter.maps) == 5,
        "with work cells on all sides the machine halts": net.done(ended),
        "with work cells on the right only, the same filter loses the head": "left the grid" in lost,
    }
    return holds_corrected(
        checks,
        stated="f(z) = sum f_head(f_Conv2D^(L)([W diag(z), 1])), V5 relu(V4 V3 relu(V2 V1 z))",
        measured=f"outputs agree to {worst:.1e}; on the printed grid: {lost}",
        correction="A machine that reads only the symbol under its head cannot notice the top and left "
        "edges of the printed grid, and walks off. The main grid gets a frame of work cells on all sides. "
        "The five maps are grouped 1-2-2 (Lemma 5), not 2-2-1: the same class of functions. For "
        "U1 relu(U2 z), U1 is a row and U2 a column; they are printed the other way round.",
        difference=worst,
    )


def _output(network: Rcnn, memory: NDArray[np.float64], z: NDArray[np.float64]) -> float:
    """The output of the network itself."""
    outputs, _ = NumPy(network.network).run({"memory": memory, "z": z, "label": np.zeros(())})
    return float(outputs["output"])
