"""Corollary 2: Algorithm 1 again and again, each time with another filter, and a validation set to choose by.

The filters are those of random machines, or have random weights (`RawNetwork`). Either way every one of them
is trained by SGD on the samples, and what it answers on the validation set decides.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.search.family import Family, Table, machine_of, option_count, set_entry
from tapegrad.search.run import require_probability
from tapegrad.search.tasks import DataSet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import predict_many
from tapegrad.targets.rcnn.training import memorise_many
from tapegrad_papers.goel.definitions import validation_size
from tapegrad_papers.goel.drawn import RawNetwork, draw_raw_network, predict_raw, train_raw

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


def chosen_of(
    trials: Iterator[Trial[F]], answers: NDArray[np.int64], progress: Progress | None = None
) -> Chosen[F]:
    """The trial with the fewest errors on the validation set, the first of several."""
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
    tables = (random_table(family, rng) for _ in range(restarts))
    return chosen_of(trained_machines(tables, family, data, exponent, encoding), data.answers, progress)


def layers_for(m: int, d: int, exponent: int) -> int:
    """The steps that a machine has, and as many more as an answer takes to its place."""
    return (2 * d * m) ** exponent + 3 * (m + 3) * (d + 3)


def trained_machines(
    tables: Iterable[Table], family: Family, data: DataSet, exponent: int, encoding: str = "channels"
) -> Iterator[Trial[MachineFilter]]:
    """Each machine compiled to its filter, trained by SGD on the samples, and run on the points."""
    X, y, points, _ = data
    m, d = X.shape
    layers = layers_for(m, d, exponent)
    left = iter(tables)
    while some := list(islice(left, TOGETHER)):
        networks = [Rcnn.of(machine_of(t, family), m, d, layers, encoding=encoding) for t in some]
        memories = memorise_many(networks, X.astype(float), y.astype(float))
        labels = predict_many(networks, memories, points).labels
        yield from zip(map(MachineFilter, networks, some), memories, labels, strict=True)


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

    return chosen_of(trials(), answers, progress)
