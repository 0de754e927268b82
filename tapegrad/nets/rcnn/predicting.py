"""The trained network on test points: the forward pass rolls out the machine and adds up to its answer."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.machines.grid import GridConfiguration
from tapegrad.nets.rcnn.cells import HEAD
from tapegrad.nets.rcnn.fast import Rolled, Roller
from tapegrad.nets.rcnn.network import Rcnn
from tapegrad.nets.rcnn.training import check_features
from tapegrad.precision import in_double

CLOSE = 1e-3
"""How far an output may be from a whole number: rounding stays far below."""


class NotHalted(Refused):
    """The layers were not enough. `partial` is what the grid holds, with (0, 0) the top left main cell."""

    def __init__(self, what: str, partial: GridConfiguration | None, **more: str) -> None:
        super().__init__(what, **more)
        self.partial = partial


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
) -> Predictions:
    """The labels of the test points. `reference` computes every cell in every layer, all points at once;
    `fast` only cells whose patch has changed, and each patch once for all points."""
    check_features(network, X)
    if engine not in ("reference", "fast"):
        raise InputError(f"there is no engine {engine!r}", advice="Engines are reference and fast.")
    if len(X) == 0:
        return Predictions(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    Z = np.column_stack([X, np.ones(len(X))]).astype(memory.dtype)
    if engine == "reference":
        return _reference(network, memory, Z)
    roller = roller or Roller(network.filter, network.encoding)
    runs = [roller.run(network.start_numbers(memory, z), network.layers) for z in Z]
    for point, run in enumerate(runs):
        _require_on_grid(network, run, point)
    grids = np.stack([network.encoding.encode(run.numbers) for run in runs])
    return Predictions(_signs(network, grids), np.array([run.layers for run in runs]))


def _require_on_grid(network: Rcnn, run: Rolled, point: int) -> None:
    if run.lost:
        top, left = network.frame.top, network.frame.left
        raise Refused(
            "the head left the grid",
            where=f"test point {point + 1}, after cell {(run.head[0] - top, run.head[1] - left)}",
            advice="Give the network a larger frame.",
        )


def _signs(network: Rcnn, grids: NDArray[Any]) -> NDArray[np.int64]:
    """The answers on the last grids, one for each test point."""
    outputs, running = _readout(network, grids)
    ends = zip(outputs, running, grids, strict=True)
    return np.array([_sign(network, float(o), bool(r), grid, i) for i, (o, r, grid) in enumerate(ends)])


@in_double
def _readout(network: Rcnn, grids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    outputs, running = _compiled_readout(network, jnp.asarray(grids))
    return np.asarray(outputs), np.asarray(running)


@eqx.filter_jit
def _compiled_readout(network: Rcnn, grids: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(network.answer)(grids), jax.vmap(network.filter.rule_applies)(grids)


@in_double
def _reference(network: Rcnn, memory: NDArray[Any], Z: NDArray[Any]) -> Predictions:
    grids = np.asarray(_last_grids(network, jnp.asarray(memory), jnp.asarray(Z)))
    return Predictions(_signs(network, grids), np.full(len(Z), network.layers))


@eqx.filter_jit
def _last_grids(network: Rcnn, memory: jax.Array, Z: jax.Array) -> jax.Array:
    grids = jax.vmap(network.framed, (None, 0))(memory, Z)
    layer = jax.vmap(network.filter)
    return jax.lax.fori_loop(0, network.layers, lambda _, grids: layer(grids), grids)


def _sign(network: Rcnn, output: float, running: bool, grid: NDArray[Any], point: int) -> int:
    where = f"test point {point + 1}"
    if running:
        raise NotHalted(
            f"the machine has not halted within {network.layers:,} layers",
            configuration(network, grid),
            where=where,
            advice="Take more layers; `partial` of this error holds the grid as it is.",
        )
    if abs(abs(output) - 1) > CLOSE:
        raise Refused(
            f"the main grid adds up to {output:.6g}, not to -1 or +1",
            where=where,
            advice="The machine must leave its answer in the top left cell and blanks elsewhere.",
        )
    return 1 if output > 0 else -1


def configuration(network: Rcnn, grid: NDArray[Any]) -> GridConfiguration | None:
    """What a layer's grid holds, with (0, 0) the top left cell of the main grid; None without a head."""
    facts = network.encoding.cells.facts[network.encoding.decode(grid)]
    heads = np.argwhere(facts[:, :, 2] >= HEAD)
    if len(heads) != 1:
        return None
    top, left = network.frame.top, network.frame.left
    marks = {
        (int(r) - top, int(c) - left): network.symbols[facts[r, c, 1]]
        for r, c in np.argwhere(facts[:, :, 1] > 0)
    }
    (r, c) = heads[0]
    state = network.states[facts[r, c, 2] - HEAD]
    return GridConfiguration(state, marks, (int(r) - top, int(c) - left))


def roll_out(network: Rcnn, memory: NDArray[Any], x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The grid before the first layer and after each, by the engine `reference`."""
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
