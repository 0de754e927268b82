"""Algorithm 1 of Goel et al.: plain SGD on the memory layer, one pass, and the dummy sample at the end."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.precision import in_double
from tapegrad.targets.rcnn.memorising import memorising_part
from tapegrad.targets.rcnn.network import Rcnn, check_engine
from tapegrad.targets.rcnn.quick_training import RATE, checked_step, require_same

__all__ = ["RATE", "SgdStep", "check_features", "check_samples", "memorise", "sgd_step", "with_dummy"]


MOST_KEPT = 1 << 32
"""Bytes of grids that the engine `reference` keeps for a gradient, at most."""


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
    can be active while memorising (`memorising_part`); it checks at every step that nothing is lost.
    """
    check_engine(engine)
    check_samples(network, X, y)
    if engine == "reference":
        _require_room(network)
    memory = network.empty_memory()
    part = memorising_part(network) if engine == "fast" else None
    for z, label in zip(*with_dummy(X, y), strict=True):
        step = (
            sgd_step(network, memory, z[:-1], label) if part is None else _quick_step(part, memory, z, label)
        )
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


@in_double
def _quick_step(part: Rcnn, memory: NDArray[Any], z: NDArray[Any], y: float) -> SgdStep:
    z, label = z.astype(memory.dtype), np.asarray(y, memory.dtype)
    after, output, same = _compiled_step(part, jnp.asarray(memory), jnp.asarray(z), jnp.asarray(label))
    require_same(bool(same))
    return SgdStep(np.asarray(after), float(output), part.layers)


_compiled_step = jax.jit(checked_step)


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
