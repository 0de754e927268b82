"""How a trained network ends on a test point: with an answer, or with one of three failures."""

from enum import IntEnum
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.machines.grid import Cell, GridConfiguration
from tapegrad.targets.rcnn.cells import HEAD
from tapegrad.targets.rcnn.encoding import CLOSE
from tapegrad.targets.rcnn.network import Rcnn


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
    total = float(network.answer(jnp.asarray(grid)))
    return Refused(
        f"the main grid does not hold one sign and blanks; it adds up to {total:.6g}",
        where=where,
        advice="The machine must halt on its answer in the top left cell, with blanks elsewhere.",
    )


def configuration(network: Rcnn, grid: NDArray[Any]) -> GridConfiguration | None:
    """What a layer's grid holds, with (0, 0) the top left cell of the main grid; None without a head."""
    facts = network.encoding.cells.facts[network.encoding.decode(grid)]
    heads = np.argwhere(facts[:, :, 2] >= HEAD)
    if len(heads) != 1:
        return None
    marks = {
        _from_main(network, (r, c)): network.symbols[facts[r, c, 1]]
        for r, c in np.argwhere(facts[:, :, 1] > 0)
    }
    r, c = heads[0]
    return GridConfiguration(network.states[facts[r, c, 2] - HEAD], marks, _from_main(network, (r, c)))


def _from_main(network: Rcnn, cell: Cell) -> Cell:
    return int(cell[0]) - network.frame.top, int(cell[1]) - network.frame.left
