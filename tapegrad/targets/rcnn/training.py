"""Algorithm 1 of Goel et al.: plain SGD on the memory layer, one pass, and the dummy sample at the end.

The engine `fast` leaves out what stays 0 while a network memorises, and computes what changes from layer to
layer alone (`sparse_gradient`). A unit of the last ReLU layer adds up one number for each cell of its patch.
If the largest such sum over the contents that occur while memorising is below 0, the unit is 0 and so is its
gradient, and leaving it out changes nothing. A channel, or a digit, that no unit is left to write is 0 as
well."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.networks.backends.jax import Jax
from tapegrad.networks.form import Dense, Matrix
from tapegrad.targets.rcnn.build import Filter
from tapegrad.targets.rcnn.encoding import SYMBOLS, Cells, Encoding
from tapegrad.targets.rcnn.network import RATE, Rcnn, check_engine
from tapegrad.targets.rcnn.sparse_gradient import contents_while_memorising, local_maps, slope_of

MARGIN = 0.1
"""How far below its threshold a unit must stay to be left out; rounding is far smaller."""
CROSS = (1, 3, 4, 5, 7)
"""The cells of a patch that are read: the centre and its four neighbours."""
MOST_KEPT = 1 << 32
"""Bytes of grids that the engine `reference` keeps for a gradient, at most."""

Progress = Callable[[int], None]
Task = TypeVar("Task")
Result = TypeVar("Result")


class SgdStep(NamedTuple):
    """What one step of SGD did."""

    memory: NDArray[np.float64]
    output: float
    """The network's output before the step: 0 while it memorises."""
    layers: int
    """Layers that were differentiated; in `fast` those after which the grid was at rest are not counted."""


@in_double
def sgd_step(network: Rcnn, memory: NDArray[np.float64], x: NDArray[np.float64], y: float) -> SgdStep:
    """One step: automatic differentiation of the loss through every layer, nothing skipped."""
    z, label = (jnp.asarray(own, memory.dtype) for own in (np.append(x, 1.0), y))
    gradient, output = _gradient(network)(jnp.asarray(memory), z, label)
    after = memory - memory.dtype.type(RATE) * np.asarray(gradient)
    return SgdStep(after, float(output), network.layers)


@lru_cache(maxsize=8)
def _gradient(network: Rcnn) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """The derivative of the network's loss by the memory, and its output."""
    graph = Jax(network.network)

    def loss(memory: jax.Array, z: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array]:
        found, _ = graph.run({"memory": memory, "z": z, "label": label})
        return found["loss"], found["output"]

    return jax.jit(jax.grad(loss, has_aux=True))


def memorise(
    network: Rcnn, X: NDArray[np.float64], y: NDArray[np.float64], *, engine: str = "reference"
) -> Iterator[SgdStep]:
    """Algorithm 1: one step for each sample, then one for the dummy sample (1, ..., 1; 1).

    The engine `fast` has the units that can be active while memorising alone (`memorising_part`), and
    computes a cell or its gradient where something near it has changed; it refuses where that would not do.
    """
    check_engine(engine)
    check_samples(network, X, y)
    if engine == "reference":
        _require_room(network)
    memory = network.empty_memory()
    if engine == "fast":
        yield from _quick_steps(network, *with_dummy(X, y))
        return
    for z, label in zip(*with_dummy(X, y), strict=True):
        step = sgd_step(network, memory, z[:-1], label)
        memory = step.memory
        yield step


def _require_room(network: Rcnn) -> None:
    """Refuses more layers than there is room for: the grid is kept between any two of them (`Rcnn`)."""
    top, bottom, left, right = network.frame
    cells = (network.rows + top + bottom) * (network.columns + left + right)
    grid = cells * network.filter.channels * np.dtype(network.filter.dtype).itemsize
    if network.layers * grid > MOST_KEPT:
        raise Refused(
            f"{network.layers:,} layers keep {network.layers * grid / 2**30:,.1f} GiB for the gradient",
            advice=f"Give layers=..., about the machine's steps and at most {MOST_KEPT // grid:,}, or take "
            "engine='fast'.",
        )


def with_dummy(X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What SGD sees: each sample with a last 1, then the dummy sample; and the labels."""
    Z = np.column_stack([X, np.ones(len(X))])
    return np.vstack([Z, np.ones(X.shape[1] + 1)]), np.append(y, 1.0)


def _quick_steps(network: Rcnn, Z: NDArray[Any], labels: NDArray[Any]) -> Iterator[SgdStep]:
    part, memory = memorising_part(network), network.empty_memory()
    maps, rate = local_maps(part), memory.dtype.type(RATE)
    for z, label in zip(Z, labels, strict=True):
        found = slope_of(part, maps, memory, z)
        gradient = (found.output - label) * found.by_memory
        memory = memory - rate * gradient.astype(memory.dtype)
        yield SgdStep(memory, found.output, found.layers)


def check_samples(network: Rcnn, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Refuses samples that the network has no rows or columns for, and values other than -1 and +1."""
    if X.ndim != 2 or y.shape != (len(X),):
        raise InputError(f"features of shape {X.shape} and labels of shape {y.shape} do not belong together")
    if len(X) > network.rows - 1:
        raise InputError(f"{len(X)} samples for a memory of {network.rows - 1} rows and the test row")
    if len(X) < network.rows - 1:
        raise InputError(
            f"{len(X)} samples leave rows of a memory of {network.rows - 1} empty, and it waits for them",
            advice="Build the network for the number of samples at hand.",
        )
    check_features(network, X)
    if not np.isin(y, (-1, 1)).all():
        raise InputError("labels must be -1 or +1", where=f"sample {int(np.argmin(np.isin(y, (-1, 1)))) + 1}")


def check_features(network: Rcnn, X: NDArray[np.float64]) -> None:
    """Refuses features that do not fit."""
    if X.ndim != 2:
        raise InputError(f"features of shape {X.shape}, and a row is needed for each point")
    if X.shape[1] != network.columns - 1:
        raise InputError(f"{X.shape[1]} features, and the network has {network.columns - 1}")
    good = np.isin(X, (-1, 1))
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise InputError(
            f"features must be -1 or +1, not {X[row, column].item()!r}",
            where=f"sample {row + 1}, feature {column + 1}",
            advice="Write 0 as -1; the classifiers of tapegrad.sklearn do so by themselves.",
        )


def memorising_part(network: Rcnn) -> Rcnn:
    """The network without the units, channels and digits that stay 0 while it memorises; it has the encoding
    of a machine with one state, and no names."""
    encoding = network.encoding
    table = encoding.table()[contents_while_memorising(encoding.cells)].astype(np.float64)
    of_channels = encoding.name == "channels"
    built = _of_channels(network.filter, table) if of_channels else _of_ternary(network.filter, table[:, 0])
    part = Encoding(encoding.name, Cells(3, 1))
    return replace(network, filter=built, encoding=part, states=(), symbols=())


def _of_channels(own: Filter, table: Float[np.ndarray, "contents channels"]) -> Filter:
    first, second = (own_map.dense() for own_map in own.maps)
    kernel, bias, mix = np.asarray(first.weight), np.asarray(first.bias), np.asarray(second.weight)
    by_cell = kernel.reshape(len(bias), -1, 9)[:, :, CROSS]
    largest = np.einsum("uck,nc->ukn", by_cell, table).max(axis=2).sum(axis=1)
    units = np.flatnonzero(largest + bias > -MARGIN)
    set_by_memory = np.arange(len(mix)) < SYMBOLS + 2
    channels = np.flatnonzero(set_by_memory | mix[:, units].any(axis=1))
    kept = by_cell[np.ix_(units, channels)].reshape(len(units), -1)
    mixing = Matrix(mix[np.ix_(channels, units)], np.zeros(len(channels), mix.dtype))
    return _part(own, [Matrix(kept, bias[units]), mixing], len(channels))


def _of_ternary(own: Filter, values: Float[np.ndarray, " contents"]) -> Filter:
    maps = [own_map.entries() for own_map in own.maps]
    first, second, third, fourth, _ = maps
    active = np.maximum(values[None, :] + first.bias[:, None], 0)  # every unit reads one cell with weight 1
    answers = np.repeat(second.bias[:, None], len(values), axis=1)
    np.add.at(answers, second.rows, second.values[:, None] * active[second.columns])
    cell = np.zeros(len(second.bias), dtype=np.int64)
    cell[second.rows] = first.columns[second.columns]
    seen = np.zeros((9, len(third.bias), len(values)))
    np.add.at(seen, (cell[third.columns], third.rows), third.values[:, None] * answers[third.columns])
    units = np.flatnonzero(seen.max(axis=2).sum(axis=0) + third.bias > -MARGIN)
    asked = np.unique(third.columns[np.isin(third.rows, units)])
    relus = np.unique(second.columns[np.isin(second.rows, asked)])
    digits = np.unique(fourth.rows[np.isin(fourth.columns, units)])
    kept = (np.array(CROSS), relus, asked, units, digits, np.arange(1))
    pairs = zip(maps, kept[1:], kept[:-1], strict=True)
    return _part(own, [own_map.between(rows, columns) for own_map, rows, columns in pairs], 1)


def _part(own: Filter, maps: list[Matrix], channels: int) -> Filter:
    """The filter with other maps, all written out, that read the cross alone; it tells of no rules."""
    layers = tuple(Dense(own_map, layer.activation) for own_map, layer in zip(maps, own.layers, strict=True))
    return Filter(layers, channels, own.padding, np.zeros(0, np.int64), CROSS)


def memorise_many(
    networks: Sequence[Rcnn], X: NDArray[Any], y: NDArray[Any], progress: Progress | None = None
) -> list[NDArray[Any]]:
    """The memory of each network after Algorithm 1 on the same samples: SGD is run in every one of them, as
    by `memorise` with the engine `fast`. Networks may differ in machine, encoding and frame. `progress` is
    told the networks done so far."""
    for network in {(n.rows, n.columns): n for n in networks}.values():
        check_samples(network, X, y)
    Z, labels = with_dummy(X, y)

    def work(network: Rcnn) -> NDArray[Any]:
        *_, last = _quick_steps(network, Z, labels)
        return last.memory

    memories = []
    for memory in on_threads(work, networks):
        memories.append(memory)
        if progress is not None:
            progress(len(memories))
    return memories


def on_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
    """The results in order, from all cores; compiled code lets other threads run."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        yield from pool.map(work, tasks)
    finally:
        pool.shutdown(cancel_futures=True)
