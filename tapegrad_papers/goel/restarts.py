"""Corollary 2: Algorithm 1 again and again, each time with another filter, and a validation set to choose by.

The filters are those of random machines, or have random weights (`RawNetwork`). Either way every one of them
is trained by SGD on the samples, and what it answers on the validation set decides.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.errors import InputError
from tapegrad.learners.on_grid import GRID_LEARNERS
from tapegrad.networks.form import Activation, Convolution, Dense, Matrix, Recurrence
from tapegrad.networks.jax import recur
from tapegrad.search import SearchOptions, run, task_named
from tapegrad.search.family import Family, Table, machine_of, option_count, set_entry
from tapegrad.search.run import deviation_bound, require_probability
from tapegrad.search.tasks import DataSet, draw_instances
from tapegrad.search.tree import COMPLETE, GO_ON, evaluate, sample
from tapegrad.targets.rcnn.encoding import PADDING
from tapegrad.targets.rcnn.exactness import count_weights, idle_machine, initialisation_set
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import distinct_points, predict_many
from tapegrad.targets.rcnn.training import RATE, memorise_many
from tapegrad_papers.goel import PAPER
from tapegrad_papers.goel.definitions import by_interpreter, validation_size
from tapegrad_papers.ledger import Outcome, holds, holds_corrected

# Algorithm 1 to the letter: a network whose weights are all drawn from U_s, and SGD on its memory.
#
# It learns in the sense of the theorem: with a probability that is positive and, for every machine that does
# anything, too small to be met. `success` says how small.


ACTIVATIONS: tuple[Activation, ...] = ("linear", "relu", "linear", "relu", "linear")


class RawNetwork(eqx.Module):
    """Definition 5 with dense matrices (biases as last columns): filter `V5 relu(V4 V3 relu(V2 V1 z))`, head
    `U1 relu(U2 z)`, and work cells on the right as in the paper."""

    V: tuple[Any, ...]
    U1: Any
    U2: Any
    layers: int = eqx.field(static=True)

    @property
    def form(self) -> Recurrence:
        """The network as data."""
        one = np.ones((1, 1))
        filter = Convolution(tuple(map(_dense, self.V, ACTIVATIONS)), 1, PADDING)
        head = _dense(self.U2, "relu"), _dense(self.U1, "linear")
        frame = (0, 0, 0, self.layers)
        return Recurrence(Matrix(one, 0 * one[0]), (), one[0], filter, head, frame, self.layers)


def _dense(matrix: jax.Array, activation: Activation) -> Dense:
    return Dense(Matrix(matrix[:, :-1], matrix[:, -1]), activation)


def draw_raw_network(
    states: int, layers: int, rng: np.random.Generator, width: int | None = None
) -> RawNetwork:
    """Every weight uniform in U_s; default widths `100 s` and 100, as in Algorithm 1."""
    values = initialisation_set(states)
    wide, head = width or 100 * states, width or 100
    shapes = [(wide, 10), (wide, wide + 1), (wide, wide + 1), (wide, wide + 1), (1, wide + 1)]
    V = tuple(rng.choice(values, shape) for shape in shapes)
    return RawNetwork(V, rng.choice(values, (1, head + 1)), rng.choice(values, (head, 2)), layers)


@in_double
def train_raw(network: RawNetwork, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Algorithm 1: from memory 0, one step of SGD on the squared loss for each sample and one for the dummy
    sample. What overflows stays so: most random filters blow every number up."""
    samples = np.vstack([X, np.ones(X.shape[1])]).astype(float)
    labels = np.append(y, 1).astype(float)
    return np.asarray(
        _train(network, jnp.column_stack([samples, np.ones(len(samples))]), jnp.asarray(labels))
    )


@eqx.filter_jit
def _train(network: RawNetwork, Z: jax.Array, labels: jax.Array) -> jax.Array:
    def loss(memory: jax.Array, z: jax.Array, label: jax.Array) -> jax.Array:
        return (label - recur(network.form, memory, z)) ** 2 / 2

    def step(memory: jax.Array, sample: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return memory - RATE * jax.grad(loss)(memory, *sample), None

    return jax.lax.scan(step, jnp.zeros(Z.shape), (Z, labels))[0]


@in_double
def predict_raw(network: RawNetwork, memory: NDArray[np.float64], X: NDArray[Any]) -> NDArray[np.int64]:
    """The signs of the outputs; 0 where the output is 0 or no number, which is no answer."""
    Z, which = distinct_points(X)
    signs = np.sign(_outputs(network, jnp.asarray(memory), jnp.asarray(Z, float)))
    return np.nan_to_num(signs, nan=0).astype(np.int64)[which]


@eqx.filter_jit
def _outputs(network: RawNetwork, memory: jax.Array, Z: jax.Array) -> jax.Array:
    return jax.vmap(partial(recur, network.form, memory))(Z)


@dataclass(frozen=True)
class RawChance:
    """Parameters, values for each, and the chance of one given setting, as a power of ten."""

    parameters: int
    values: int
    log10_probability: float


def success(states: int, width: int | None = None) -> RawChance:
    """The chance that one draw is a given filter: the theorem's `s^(-c s^2)` with its constants."""
    if states < 1:
        raise InputError("a machine has at least one state")
    values = len(initialisation_set(states))
    wide, head = width or 100 * states, width or 100
    parameters = 10 * wide + 3 * wide * (wide + 1) + wide + 1 + 3 * head + 1
    return RawChance(parameters, values, -parameters * math.log10(values))


TOGETHER = 256
"""Filters trained and tried together."""

F = TypeVar("F")
Progress = Callable[[int, float], None]
"""Told the restarts done and the least error so far."""


@dataclass(frozen=True)
class Sizes:
    """What the corollary asks for: `chance` is that of drawing one given machine, `restarts` are
    `log(2 / delta) / chance`, and `validation` examples tell that many candidates apart."""

    chance: float
    restarts: int
    validation: int


def sizes(family: Family, accuracy: float, failure: float) -> Sizes:
    """With these, the filter chosen is within `accuracy` of the family's best machine, but for a probability
    of `failure`: half of it for never drawing that machine, half for a misleading validation set."""
    require_probability(accuracy, "accuracy")
    require_probability(failure, "failure")
    options: list[int] = []

    def first(count: int) -> int:
        options.append(count)
        return 0

    _filled(family, first)
    chance = 1 / math.prod(options)
    restarts = math.ceil(math.log(2 / failure) / chance)
    return Sizes(chance, restarts, validation_size(restarts, accuracy, failure / 2))


def random_table(family: Family, rng: np.random.Generator) -> Table:
    """Every entry uniform among its choices."""
    return _filled(family, lambda options: int(rng.integers(options)))


def _filled(family: Family, choose: Callable[[int], int]) -> Table:
    """A whole table, all states in use: `choose` is told how many options an entry has, and takes one."""
    code, used = family.code(), np.array([family.single, family.pairs])
    table = np.full((3 * family.states, 3), -1)
    for entry in range(len(table)):
        if table[entry, 1] < 0:  # else it is the mirror image of one before
            set_entry(table, entry, choose(option_count(entry, code, used)), code, used)
    return table


@dataclass(frozen=True)
class Chosen(Generic[F]):
    """The filter that did best, the memory that SGD gave it, and its share of errors on the validation set.
    `answering` of the restarts gave an answer at all, on some point."""

    filter: F
    memory: NDArray[np.float64]
    error: float
    restarts: int
    answering: int


Trial = tuple[F, NDArray[np.float64], NDArray[np.int64]]
"""A filter, its memory after SGD, and its labels on the validation set; 0 where it has no answer."""


def _choose(trials: Iterator[Trial[F]], answers: NDArray[np.int64], progress: Progress | None) -> Chosen[F]:
    best, restarts, answering = None, 0, 0
    for filter, memory, labels in trials:
        restarts += 1
        answering += bool(labels.any())
        error = float((labels != answers).mean())
        if best is None or error < best[2]:
            best = filter, memory, error
        if progress is not None:
            progress(restarts, best[2])
    if best is None:
        raise InputError("restarts must be at least 1")
    return Chosen(*best, restarts, answering)


class MachineFilter(NamedTuple):
    """The network of a random machine, and the machine's table."""

    network: Rcnn
    table: Table


def best_machine_filter(
    data: DataSet,
    family: Family,
    restarts: int,
    *,
    exponent: int = 2,
    encoding: str = "channels",
    seed: int = 0,
    progress: Progress | None = None,
) -> Chosen[MachineFilter]:
    """Random machines of the family, each compiled to its filter. A machine has `(2 d m)^exponent` steps, and
    as many more as the answer takes to its place."""
    rng = np.random.default_rng(seed)
    X, y, points, answers = data
    m, d = X.shape
    layers = (2 * d * m) ** exponent + 3 * (m + 3) * (d + 3)

    def trials() -> Iterator[Trial[MachineFilter]]:
        for done in range(0, restarts, TOGETHER):
            count = min(TOGETHER, restarts - done)
            tables = [random_table(family, rng) for _ in range(count)]
            networks = [Rcnn.of(machine_of(t, family), m, d, layers, encoding=encoding) for t in tables]
            memories = memorise_many(networks, X.astype(float), y.astype(float))
            labels = predict_many(networks, memories, points).labels
            yield from zip(map(MachineFilter, networks, tables), memories, labels, strict=True)

    return _choose(trials(), answers, progress)


def best_raw_filter(
    data: DataSet,
    states: int,
    restarts: int,
    *,
    layers: int | None = None,
    width: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Chosen[RawNetwork]:
    """Filters with every weight drawn from U_s. By default as many layers as a time bound of
    `2 d m` takes. Nothing is expected to come of it: see `success`."""
    rng = np.random.default_rng(seed)
    X, y, points, answers = data
    m, d = X.shape
    depth = 2 * d * m + m + d if layers is None else layers

    def trials() -> Iterator[Trial[RawNetwork]]:
        for _ in range(restarts):
            network = draw_raw_network(states, depth, rng, width)
            memory = train_raw(network, X, y)
            yield network, memory, predict_raw(network, memory, points)

    return _choose(trials(), answers, progress)


EPSILON, DELTA = 0.2, 0.2
TASK, FAMILY, EXPONENT = "last-label", Family(2), 2


def _best_of(restarts: int, validation: int, seed: int) -> float:
    """The error, on fresh problems, of the best of this many random machines on a validation set."""
    drawn = (draw_instances(task_named(TASK), validation, seed + shift) for shift in (0, 10_000))
    problems, fresh = (instances.problems(EXPONENT) for instances in drawn)
    _, tables, errors, _ = sample(FAMILY.code(), problems, validation, seed, restarts, 1, GO_ON)
    if errors[0] > validation:
        return 1.0  # not one of them answered
    right = evaluate(tables, FAMILY.states, fresh)
    return 1 - float(right[0]) / validation


def _chance(draws: int) -> float:
    """How often a random machine solves the task: no error on 60 problems."""
    problems = draw_instances(task_named(TASK), 60, 5).problems(EXPONENT)
    counts, *_ = sample(FAMILY.code(), problems, 0, 9, draws, 1, GO_ON)
    return counts[COMPLETE] / draws


@PAPER.claim(
    "Corollary 2", "Restarts and a validation set make Algorithm 1 (epsilon, delta, s, k)-Turing-optimal"
)
def corollary_2(long: bool) -> Outcome:
    trials = 40 if long else 10
    chance = _chance(300_000)
    restarts = math.ceil(math.log(2 / DELTA) / chance)
    validation = validation_size(restarts, EPSILON, DELTA / 2)
    printed = math.ceil(DELTA / (2 * chance))
    failures, printed_failures = (
        sum(_best_of(count, validation, seed) > EPSILON for seed in range(trials))
        for count in (restarts, printed)
    )
    large, larger = (count_weights(idle_machine(s)).dense_parameters for s in (256, 512))
    growth = larger / large
    checks = {
        "log(2/delta)/p restarts and the N of B.5 fail in a share of delta at most (2 deviations)": failures
        <= trials * DELTA + 2 * math.sqrt(trials * DELTA),
        "delta/(2p) restarts, as B.5 has it, fail in most trials": printed_failures > trials / 2,
        "2 sqrt(log(2M/delta)/2N) <= epsilon": 2 * deviation_bound(restarts, validation, DELTA / 2)
        <= EPSILON,
        "the places to fill nearly quadruple when s doubles: s^2 of them, not s": growth > 3,
    }
    return holds_corrected(
        checks,
        stated="s^(c1 s) log(1/delta) restarts, c2 s log s log(1/delta)/epsilon^2 examples; in B.5 M = delta "
        "s^(c2 s^2)/2",
        measured=f"random machines of 2 states, a share p = {chance:.4f} of them good: {restarts} restarts "
        f"with {validation} examples fail {failures} times in {trials}, the printed {printed} restarts "
        f"{printed_failures} times",
        correction="One candidate in s^(c s^2) is good (Theorem 1), so M = s^(c s^2) log(2/delta). B.5 sets "
        "M s^(-c s^2) = delta/2, with which a good one is met with probability delta/2 only. N is then of "
        "the order s^2 log s log(1/delta)/epsilon^2.",
        chance=chance,
        restarts=restarts,
        validation=validation,
        failures=failures / trials,
        printed_failures=printed_failures / trials,
    )


@PAPER.claim("Section 5", "One filter, chosen on a few learning problems, learns new ones")
def section_5(long: bool) -> Outcome:
    found = run("single-coordinate", SearchOptions(single=2, pairs=1, mirrored=True, allowed_errors=2))
    rng, task = np.random.default_rng(77), task_named("single-coordinate")
    problems = [task.draw(rng) for _ in range(200 if long else 60)]
    ready = GRID_LEARNERS["single-coordinate"]().machine

    def wrong(machine) -> float:
        runs = [by_interpreter(machine, p.X, p.y, p.x)[0] != p.answer for p in problems]
        return float(np.mean(runs))

    reused, by_hand = wrong(found.machine), wrong(ready)
    special = run("first-coordinate", SearchOptions(allowed_errors=0))
    specialised = wrong(special.machine)
    checks = {
        "the machine found by search solves new problems nearly as well as the one written by hand": reused
        <= by_hand + 0.05,
        "a machine chosen for one problem (the first coordinate) does not": specialised > 0.15,
    }
    return holds(
        checks,
        stated="the filter that does best on some learning problems does as well on future ones",
        measured=f"best of {found.candidates:,} machines on 24 problems, each with a coordinate of its own: "
        f"wrong on {reused:.1%} of {len(problems)} new ones (by hand {by_hand:.1%}, first coordinate only "
        f"{specialised:.1%})",
        candidates=found.candidates,
        error=reused,
    )
