"""Many networks at once: the samples memorised by SGD in each, and the same test points run on all of them.

For searches over filters (Corollary 2 of Goel et al.), where most networks give no answer: on a test point
where one does not, `predict_many` says what happened in place of a label.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.precision import in_double
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.memorising import memorising_part
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.outcomes import Outcomes
from tapegrad.targets.rcnn.points import Progress, distinct_points, on_all_cores, outcomes_on
from tapegrad.targets.rcnn.quick_training import checked_step, require_same
from tapegrad.targets.rcnn.training import check_features, check_samples, with_dummy

BATCH = 32
"""Networks that are trained together."""


def memorise_many(
    networks: Sequence[Rcnn], X: NDArray[Any], y: NDArray[Any], progress: Progress | None = None
) -> list[NDArray[Any]]:
    """The memory of each network after Algorithm 1 on the same samples: SGD is run in every one of them, by
    automatic differentiation, as by `memorise` with the engine `fast`. Networks may differ in machine,
    encoding and frame. `progress` is told the networks done so far."""
    for network in {(n.rows, n.columns): n for n in networks}.values():
        check_samples(network, X, y)
    Z, labels = with_dummy(X, y)
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    parts = [memorising_part(network) for network in networks]
    for i, part in enumerate(parts):
        leaves, structure = jax.tree.flatten(part)
        groups[structure, tuple(leaf.shape for leaf in leaves)].append(i)
    batches = [group[i : i + BATCH] for group in groups.values() for i in range(0, len(group), BATCH)]
    memories: list[Any] = [None] * len(networks)

    def work(batch: list[int]) -> tuple[list[int], NDArray[Any]]:
        return batch, _trained([parts[i] for i in batch], Z, labels)

    for count, (batch, found) in enumerate(_on_threads(work, batches)):
        for i, memory in zip(batch, found, strict=True):
            memories[i] = memory
        if progress is not None:
            progress(sum(map(len, batches[: count + 1])))
    return memories


@in_double
def _trained(parts: Sequence[Rcnn], Z: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """The memories of parts of one shape. A batch is filled up, so that it is compiled once."""
    filled = [*parts, *([parts[0]] * (BATCH - len(parts)))]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *filled)
    dtype = parts[0].filter.dtype
    memories, same = _all_steps(stacked, jnp.asarray(Z, dtype), jnp.asarray(labels, dtype))
    require_same(bool(same.all()))
    return np.asarray(memories)[: len(parts)]


@jax.jit
def _all_steps(stacked: Rcnn, Z: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    def one(part: Rcnn) -> tuple[jax.Array, jax.Array]:
        def step(memory: jax.Array, sample: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            memory, _, same = checked_step(part, memory, *sample)
            return memory, same

        memory, same = jax.lax.scan(step, jnp.asarray(part.empty_memory()), (Z, labels))
        return memory, same.all()

    return jax.vmap(one)(stacked)


def predict_many(
    networks: Sequence[Rcnn],
    memories: Sequence[NDArray[Any]],
    X: NDArray[Any],
    progress: Progress | None = None,
) -> Outcomes:
    """How every network ends on every test point, by the engine `fast` on all cores: arrays with a row for
    each network and a column for each point. `progress` is told the networks done so far."""
    if len(networks) != len(memories):
        raise InputError(f"{len(networks)} networks and {len(memories)} memories do not belong together")
    for network in {n.columns: n for n in networks}.values():
        check_features(network, X)
    memories = [n.checked_memory(memory) for n, memory in zip(networks, memories, strict=True)]
    Z, which = distinct_points(X)

    def work(pair: tuple[Rcnn, NDArray[Any]]) -> Outcomes:
        network, memory = pair
        run = outcomes_on if len(networks) >= (os.cpu_count() or 1) else on_all_cores
        return run(network, Roller(network.filter, network.encoding), memory, Z.astype(memory.dtype))

    shape = len(networks), len(X)
    found = Outcomes(*(np.zeros(shape, dtype=np.int64) for _ in Outcomes._fields))
    for i, outcomes in enumerate(_on_threads(work, list(zip(networks, memories, strict=True)))):
        for rows, row in zip(found, outcomes, strict=True):
            rows[i] = row[which]
        if progress is not None:
            progress(i + 1)
    return found


def _on_threads(work: Any, tasks: Sequence[Any]) -> Iterable[Any]:
    """The results in order, from all cores; compiled code lets other threads run."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        yield from pool.map(work, tasks)
    finally:
        pool.shutdown(cancel_futures=True)
