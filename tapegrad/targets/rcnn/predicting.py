"""The trained network on test points: the forward pass rolls out the machine and adds up to its answer."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from queue import SimpleQueue
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.machines.many_heads import HeadsConfiguration
from tapegrad.machines.model import Cell, GridConfiguration
from tapegrad.networks.backends.jax import Jax
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.numpy import chain
from tapegrad.targets.rcnn.encoding import CLOSE, HEAD
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import LAST, Rcnn, check_engine
from tapegrad.targets.rcnn.training import Progress, check_features, on_threads

MOST_AT_ONCE = 256
"""Test points between two reports of progress and two looks at the keyboard."""


class Outcome(IntEnum):
    """What the forward pass on a test point came to."""

    ANSWERED = 0
    NOT_HALTED = 1
    LOST = 2
    """The head left the grid."""
    NO_SIGN = 3
    """The machine halted, and the main grid holds something else than signs and blanks (`Cells.stray`), or
    signs that do not add up to -1 or +1."""


class Outcomes(NamedTuple):
    """One entry for each test point (predict_many: one row for each network)."""

    labels: NDArray[np.int64]
    """-1 or +1; 0 where there is no answer."""
    layers: NDArray[np.int64]
    """Layers until nothing changed or the head was gone; all of them in `reference`."""
    outcomes: NDArray[np.int64]
    """Numbers of `Outcome`."""


def judged(
    sums: NDArray[Any], running: NDArray[np.bool_], lost: NDArray[np.bool_], layers: NDArray[np.int64]
) -> Outcomes:
    """From what the main grid adds up to (NaN where a content is stray), whether a rule still applies, and
    whether the head is gone."""
    signed = np.abs(np.abs(sums) - 1) <= CLOSE
    kinds = [(lost, Outcome.LOST), (running, Outcome.NOT_HALTED), (~signed, Outcome.NO_SIGN)]
    found = np.select([mask for mask, _ in kinds], [int(kind) for _, kind in kinds], Outcome.ANSWERED)
    labels = np.where(found == Outcome.ANSWERED, np.sign(sums), 0).astype(np.int64)
    return Outcomes(labels, layers, found)


class NotHalted(Refused):
    """The layers were not enough. `partial` is what the grid holds, with (0, 0) the top left main cell."""

    def __init__(self, what: str, partial: GridConfiguration | None, **more: str) -> None:
        super().__init__(what, **more)
        self.partial = partial


def failure(network: Rcnn, outcome: int, grid: NDArray[Any], point: int, last: Cell | None = None) -> Refused:
    """The error for an outcome other than an answer; `last` is the cell of the frame where the head was
    seen last."""
    where = f"test point {point + 1}"
    if outcome == Outcome.LOST:
        after = "" if last is None else f", after cell {_from_main(network, last)}"
        return Refused(
            "the head left the grid", where=where + after, advice="Give the network a larger frame."
        )
    if outcome == Outcome.NOT_HALTED:
        return NotHalted(
            f"the machine has not halted within {network.layers:,} layers",
            configuration(network, grid),
            where=where,
            advice="Take more layers; `partial` of this error holds the grid as it is.",
        )
    total = float(network.main(chain(network.layout[3], grid)).sum())
    return Refused(
        f"the main grid does not hold one sign and blanks; it adds up to {total:.6g}",
        where=where,
        advice="The machine must halt on its answer in the top left cell, with blanks elsewhere.",
    )


def configuration(network: Rcnn, grid: NDArray[Any]) -> GridConfiguration | None:
    """What a layer's grid holds, with (0, 0) the top left cell of the main grid; None unless there is one
    head."""
    found = with_heads(network, grid)
    if len(found.heads) != 1:
        return None
    ((cell, state),) = found.heads.items()
    return GridConfiguration(state, found.cells, cell)


def with_heads(network: Rcnn, grid: NDArray[Any]) -> HeadsConfiguration:
    """The same with any number of heads."""
    facts = network.encoding.cells.facts[network.encoding.decode(grid)]
    marks, heads = np.argwhere(facts[:, :, 1] > 0), np.argwhere(facts[:, :, 2] >= HEAD)
    return HeadsConfiguration(
        {_from_main(network, (r, c)): network.symbols[facts[r, c, 1]] for r, c in marks},
        {_from_main(network, (r, c)): network.states[facts[r, c, 2] - HEAD] for r, c in heads},
    )


def _from_main(network: Rcnn, cell: Cell) -> Cell:
    return int(cell[0]) - network.frame.top, int(cell[1]) - network.frame.left


def distinct_points(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different test points, each with a last 1, and which of them each point is: equal points end
    alike, and need be run only once."""
    points, which = np.unique(X, axis=0, return_inverse=True)
    return np.column_stack([points, np.ones(len(points))]), which.reshape(-1)


def outcomes_on(network: Rcnn, roller: Roller, memory: NDArray[Any], Z: NDArray[Any]) -> Outcomes:
    """How the network ends on each test point (rows of `Z`, each with a last 1), on this thread."""
    top, left = network.frame.top, network.frame.left
    main = top, top + network.rows, left, left + network.columns
    answers = chain(network.layout[3], roller.code.table.T).astype(np.float64).ravel()
    answers[network.encoding.cells.stray] = np.nan
    ends = roller.run_points(network.start_numbers(memory, Z), network.layers, main, answers)
    return judged(ends.sums, ends.running, ends.lost, ends.layers)


def on_all_cores(
    network: Rcnn, roller: Roller, memory: NDArray[Any], Z: NDArray[Any], progress: Progress | None = None
) -> Outcomes:
    """The same on all cores, in the order of the points. The first point is run alone; what it teaches of
    patches is known to every thread from the start. `progress` is told the points done so far."""
    workers = os.cpu_count() or 1
    size = max(1, min(MOST_AT_ONCE, len(Z) // (4 * workers)))
    parts = [slice(0, 1), *(slice(i, min(i + size, len(Z))) for i in range(1, len(Z), size))]
    found = [outcomes_on(network, roller, memory, Z[parts[0]])]
    rollers: SimpleQueue[Roller] = SimpleQueue()
    for copy in range(workers):
        rollers.put(roller.copy() if copy else roller)

    def work(part: slice) -> Outcomes:
        mine = rollers.get()
        try:
            return outcomes_on(network, mine, memory, Z[part])
        finally:
            rollers.put(mine)

    pool = ThreadPoolExecutor(workers)
    try:
        for part, outcomes in zip(parts[1:], pool.map(work, parts[1:]), strict=True):
            found.append(outcomes)
            if progress is not None:
                progress(part.stop)
    finally:
        pool.shutdown(cancel_futures=True)
    return Outcomes(*(np.concatenate(column) for column in zip(*found, strict=True)))


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
    for i, outcomes in enumerate(on_threads(work, list(zip(networks, memories, strict=True)))):
        for rows, row in zip(found, outcomes, strict=True):
            rows[i] = row[which]
        if progress is not None:
            progress(i + 1)
    return found


@in_double
def _reference(network: Rcnn, memory: NDArray[Any], Z: NDArray[Any]) -> tuple[Outcomes, NDArray[Any]]:
    def last(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = {node.name: value for node, value in Jax(network.network).values(given | {"z": z})}
        return jnp.moveaxis(found[LAST], -1, 0), found[network.network.outputs["output"]]

    given = {"memory": jnp.asarray(memory), "label": jnp.zeros((), memory.dtype)}
    grids, sums = map(np.asarray, jax.jit(jax.vmap(last))(jnp.asarray(Z)))
    layer = NumPy(network.filter.network())
    running = np.array([layer.run({"grid": grid})[0]["running"].any() for grid in grids])
    cells, numbers = network.encoding.cells, np.array([network.encoding.decode(grid) for grid in grids])
    lost = cells.facts[numbers, 2].max(axis=(1, 2)) < HEAD
    stray = cells.stray[network.main(numbers)].any(axis=(1, 2))
    return judged(np.where(stray, np.nan, sums), running, lost, np.full(len(Z), network.layers)), grids


def roll_out(network: Rcnn, memory: NDArray[Any], x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The grid before the first layer and after each, by the engine `reference`."""
    check_features(network, np.asarray(x)[None])
    memory = network.checked_memory(memory)
    layer = NumPy(network.filter.network())
    grid = network.framed(memory, np.append(x, 1.0).astype(memory.dtype))
    yield grid
    for _ in range(network.layers):
        grid = layer.run({"grid": grid})[1]["grid"]
        yield grid
