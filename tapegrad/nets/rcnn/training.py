"""Algorithm 1 of Goel et al.: plain SGD on the memory layer, one pass, and the dummy sample at the end."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.nets.rcnn.memorising import contents_while_memorising, memorising_part
from tapegrad.nets.rcnn.network import Rcnn
from tapegrad.precision import in_double

RATE = 1 / 54
SETTLED = 1e-9
"""How much a gradient may change in a layer that counts as passing it on: rounding, nothing more."""


class SgdStep(NamedTuple):
    """What one step of SGD did."""

    memory: NDArray[np.float64]
    output: float
    """The network's output before the step: 0 while it memorises."""
    layers: int
    """Layers that were differentiated."""


def loss(memory: jax.Array, network: Rcnn, z: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The squared loss, and the output beside it."""
    output = network(memory, z)
    return (y - output) ** 2 / 2, output


@in_double
def sgd_step(network: Rcnn, memory: NDArray[np.float64], x: NDArray[np.float64], y: float) -> SgdStep:
    """One step: automatic differentiation of the loss through every layer, nothing skipped."""
    z = np.append(x, 1.0).astype(memory.dtype)
    gradient, output = _gradient(jnp.asarray(memory), network, jnp.asarray(z), jnp.asarray(y, memory.dtype))
    after = memory - memory.dtype.type(RATE) * np.asarray(gradient)
    return SgdStep(after, float(output), network.layers)


@eqx.filter_jit
def _gradient(memory: jax.Array, network: Rcnn, z: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    (_, output), gradient = jax.value_and_grad(loss, has_aux=True)(memory, network, z, y)
    return gradient, output


def memorise(
    network: Rcnn, X: NDArray[np.float64], y: NDArray[np.float64], *, engine: str = "reference"
) -> Iterator[SgdStep]:
    """Algorithm 1: one step for each sample, then one for the dummy sample (1, ..., 1; 1).

    The engine `fast` differentiates only the layers before the grid comes to rest, and only the units that
    can be active while memorising. It checks that all cells have contents of that phase, and that the
    layer after the last one changes neither the grid nor the gradient, so what is left out is 0.
    """
    check_samples(network, X, y)
    memory = network.empty_memory()
    if engine == "fast":
        network = _shortest(network)
    for x, label in [*zip(X, y, strict=True), (np.ones(X.shape[1]), 1.0)]:
        if engine == "fast":
            _require_rest(network, memory, x)
        step = sgd_step(network, memory, np.asarray(x, dtype=np.float64), float(label))
        memory = step.memory
        yield step


def _shortest(network: Rcnn) -> Rcnn:
    """The message needs a layer for each row; then the grid is at rest, and one more layer sorts out which
    parts of a gradient pass for ever."""
    part = memorising_part(network.filter, network.encoding)
    return replace(network, filter=part, layers=min(network.layers, network.rows + 2))


@in_double
def _require_rest(network: Rcnn, memory: NDArray[np.float64], x: NDArray[np.float64]) -> None:
    z = np.append(x, 1.0).astype(memory.dtype)
    grids, rests = _at_rest(network, jnp.asarray(memory), jnp.asarray(z))
    met = np.unique([network.encoding.decode(np.asarray(grid)) for grid in grids])
    if not bool(rests) or not np.isin(met, contents_while_memorising(network.encoding.cells)).all():
        raise InputError(
            "the grid is still changing after the message has passed, so layers cannot be left out",
            advice="Take engine='reference'.",
        )


@eqx.filter_jit
def _at_rest(network: Rcnn, memory: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The grid of every layer, and whether the last one is a fixed point, of the gradient too."""

    def layer(grid: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        return network.filter(grid), grid

    grid, grids = jax.lax.scan(layer, network.framed(memory, z), length=network.layers - 1)
    after, back = jax.vjp(network.filter, grid)
    (once,) = back(jax.grad(network.answer)(grid))
    (twice,) = back(once)
    moved = jnp.abs(network.main(twice - once)).max()
    return grids, (jnp.abs(after - grid).max() <= SETTLED) & (moved <= SETTLED * jnp.abs(once).max())


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
    if X.shape[1] != network.columns - 1:
        raise InputError(f"{X.shape[1]} features, and the network has {network.columns - 1}")
    good = np.isin(X, (-1, 1))
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise InputError(
            f"features must be -1 or +1, not {X[row, column].item()!r}",
            where=f"sample {row + 1}, feature {column + 1}",
            advice="For features of 0 and 1 say so (zero_one=True).",
        )
