"""The trained network on test points: the forward pass rolls out the machine and adds up to its answer."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.precision import in_double
from tapegrad.targets.rcnn.cells import HEAD
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import Rcnn, check_engine
from tapegrad.targets.rcnn.outcomes import NotHalted, Outcome, Outcomes, configuration, failure, judged
from tapegrad.targets.rcnn.points import Progress, distinct_points, on_all_cores
from tapegrad.targets.rcnn.training import check_features

__all__ = ["NotHalted", "Predictions", "configuration", "predict", "roll_out"]


class Predictions(NamedTuple):
    """Labels, and how many layers each took until nothing changed (all of them in `reference`)."""

    labels: NDArray[np.int64]
    layers: NDArray[np.int64]


def predict(
    network: Rcnn,
    memory: NDArray[Any],
    X: NDArray[Any],
    *,
    engine: str = "fast",
    roller: Roller | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """The labels of the test points. `reference` computes every cell in every layer, all points at once;
    `fast` only cells whose patch has changed, and each patch once for all points, on all cores, and tells
    `progress` how many of the different points are done."""
    check_features(network, X)
    check_engine(engine)
    memory = network.checked_memory(memory)
    if len(X) == 0:
        return Predictions(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    points, which = distinct_points(X)
    Z = points.astype(memory.dtype)
    if engine == "reference":
        found, grids = _reference(network, memory, Z)
        _require_answers(found, which, lambda i, at: failure(network, found.outcomes[i], grids[i], at))
        return Predictions(found.labels[which], found.layers[which])
    roller = roller or Roller(network.filter, network.encoding)
    found = on_all_cores(network, roller, memory, Z, progress)

    def failed(i: int, point: int) -> Refused:
        (numbers,) = network.start_numbers(memory, Z[[i]])
        run = roller.run(numbers, network.layers)
        return failure(network, found.outcomes[i], network.encoding.encode(run.numbers), point, run.head)

    _require_answers(found, which, failed)
    return Predictions(found.labels[which], found.layers[which])


def _require_answers(found: Outcomes, which: NDArray[np.int64], error: Callable[[int, int], Refused]) -> None:
    """Raises the error of the first test point without an answer (its number among the different ones, and
    among all)."""
    failed = np.flatnonzero(found.outcomes[which] != Outcome.ANSWERED)
    if len(failed):
        raise error(int(which[failed[0]]), int(failed[0]))


@in_double
def _readout(network: Rcnn, grids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    outputs, running = _compiled_readout(network, jnp.asarray(grids))
    return np.asarray(outputs), np.asarray(running)


@eqx.filter_jit
def _compiled_readout(network: Rcnn, grids: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(network.answer)(grids), jax.vmap(network.filter.rule_applies)(grids)


@in_double
def _reference(network: Rcnn, memory: NDArray[Any], Z: NDArray[Any]) -> tuple[Outcomes, NDArray[Any]]:
    grids = np.asarray(_last_grids(network, jnp.asarray(memory), jnp.asarray(Z)))
    sums, running = _readout(network, grids)
    cells, numbers = network.encoding.cells, np.array([network.encoding.decode(grid) for grid in grids])
    lost = cells.facts[numbers, 2].max(axis=(1, 2)) < HEAD
    stray = cells.stray[network.main(numbers)].any(axis=(1, 2))
    return judged(np.where(stray, np.nan, sums), running, lost, np.full(len(Z), network.layers)), grids


@eqx.filter_jit
def _last_grids(network: Rcnn, memory: jax.Array, Z: jax.Array) -> jax.Array:
    grids = jax.vmap(network.framed, (None, 0))(memory, Z)
    layer = jax.vmap(network.filter)
    return jax.lax.fori_loop(0, network.layers, lambda _, grids: layer(grids), grids)


def roll_out(network: Rcnn, memory: NDArray[Any], x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The grid before the first layer and after each, by the engine `reference`."""
    check_features(network, np.asarray(x)[None])
    memory = network.checked_memory(memory)
    z = np.append(x, 1.0).astype(memory.dtype)
    grid = _framed(network, memory, z)
    yield grid
    for _ in range(network.layers):
        grid = _one_layer(network, grid)
        yield grid


@in_double
def _framed(network: Rcnn, memory: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(network.framed(jnp.asarray(memory), jnp.asarray(z)))


@in_double
def _one_layer(network: Rcnn, grid: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(_compiled_layer(network, jnp.asarray(grid)))


@eqx.filter_jit
def _compiled_layer(network: Rcnn, grid: jax.Array) -> jax.Array:
    return network.filter(grid)
