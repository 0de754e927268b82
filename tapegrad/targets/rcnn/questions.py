"""Questions about one cell as bumps on the line of the values that it can have."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.targets.rcnn.bumps import Bump, indicator, passing
from tapegrad.targets.rcnn.cells import Cells, Predicate
from tapegrad.targets.rcnn.digits import cell_values

MOST_TERMS = 32
"""Kinks that the answer to a question has, at most: four for each of eight runs of values."""
ANSWER_MARGIN = 1 / 20
"""A clause adds up at most five answers, and is decided with 1/4 to spare."""


class Questions:
    """The bumps that answer questions. They depend on the contents of a cell alone, not on the machine, and
    are kept: machines with as many symbols and states share them."""

    def __init__(self, cells: Cells) -> None:
        values = cell_values(cells)
        possible = np.flatnonzero(cells.possible)
        order = possible[np.argsort(values[possible])]
        self.cells = cells
        self.ordered: NDArray[np.float64] = values[order]
        self.place = np.full(cells.count, -1)
        self.place[order] = np.arange(len(order))
        self._known: dict[tuple[Predicate, float | None], list[Bump]] = {}
        self._require_precision()

    def bumps(self, predicate: Predicate, slope: float | None) -> list[Bump]:
        """What adds up to the answer; with a slope, the one value of a yes is passed on with it."""
        key = (predicate, slope)
        if key not in self._known:
            places = np.sort(self.place[predicate.contents(self.cells)])
            places = places[places >= 0]
            flat = slope is None
            self._known[key] = (
                indicator(self.ordered, places) if flat else [passing(self.ordered, int(places[0]), slope)]
            )
        return self._known[key]

    def _require_precision(self) -> None:
        """The steepest ramp rises by 1 on a third of the least gap; each term of an answer is rounded, and is
        no larger than slope times range."""
        gap, span = float(np.diff(self.ordered).min()), float(np.ptp(self.ordered))
        rounding = MOST_TERMS * float(np.finfo(np.float64).eps) * span * 3 / gap
        if not rounding < ANSWER_MARGIN:
            raise Refused(
                f"{self.cells.symbols:,} symbols and {self.cells.states:,} states need numbers that differ "
                f"by {gap:.3g}, too little for double precision",
                advice='Take encoding="channels", or use fewer states.',
            )


@lru_cache(maxsize=8)
def questions_about(cells: Cells) -> Questions:
    """The questions about a cell with these contents."""
    return Questions(cells)
