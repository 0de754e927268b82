"""What the fast engines of networks of heads share: what a head compares, and lists in arrays."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.analysis import EXACT, largest_score
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine

ZERO, ONE = -1, -2
"""Constants, in the place of a coordinate."""
Row = tuple[list[int], list[float], float]
"""Columns and values of a row, and its bias."""


class Lists(NamedTuple):
    """Lists one after the other: items of list i from `starts[i]` to `starts[i + 1]`."""

    starts: NDArray[np.integer]
    items: NDArray[np.integer]

    @classmethod
    def of(cls, parts: Iterable[Sequence[object]], columns: int = 1) -> "Lists":
        """Lists of numbers, or of rows of so many."""
        parts = list(parts)
        items = np.array([item for part in parts for item in part], np.int64)
        starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
        return cls(starts, items.reshape((-1, columns) if columns > 1 else -1))


class Scores(NamedTuple):
    """What a head compares, and the digit that it adds."""

    pairs: list[tuple[int, int]]
    """Coordinates, or constants, here and there."""
    digit: list[int]
    """The coordinates of its bits, the lowest first."""


def read_scores(
    query: Affine,
    key: Affine,
    null: NDArray[np.floating],
    largest: int = EXACT,
    other: Callable[[Row, float], int] | None = None,
) -> Scores:
    """The rows of a head, and the key of the place that wins where none fits: see `analysis` for the scores.
    The last row is that of the null key. Coordinates in it keep a place from being found, since each takes
    off as much as a bit that differs; a digit has the row before. What a row is that has another form than a
    sign, `other` says."""
    last = len(key) - 1
    require(last >= 1 and len(query) == last + 1 == len(null))
    count = last - int(key.bias[last - 1] == 0)
    places = [*key.row(count)] if count < last else []
    scale = float(1 << len(places))
    require(count >= 1 and not (query.rows >= count).any() and bool((query.bias[count:] == 1).all()))
    require(not key.bias[count:].any() and not null[:-1].any())
    require([weight for _, weight in places] == [float(1 << bit) for bit in range(len(places))])
    barred = [*key.row(last)]
    require(all(weight == -2 * scale for _, weight in barred))
    require(null[-1] == scale * (count - 1))
    require(largest_score(count + 2 * len(barred), len(places)) <= largest)
    asks, answers = _signs(query, count, 1.0, other), _signs(key, count, scale, other)
    pairs = [*zip(asks, answers, strict=True), *((ZERO, column) for column, _ in barred)]
    return Scores(pairs, [column for column, _ in places])


def _signs(side: Affine, count: int, scale: float, other: Callable[[Row, float], int] | None) -> list[int]:
    """For each of the first rows the coordinate c of a row `scale (2 h[c] - 1)`, or a constant."""
    among = side.rows < count
    rows, bias = side.rows[among], side.bias[:count]
    read = np.bincount(rows, minlength=count)
    alike = np.bincount(rows, side.values[among] == 2 * scale, count)
    signs = (read == 1) & (alike == 1) & (bias == -scale) | (read == 0) & (np.abs(bias) == scale)
    found = np.where(bias > 0, ONE, ZERO)
    found[rows] = side.columns[among]
    for row in np.flatnonzero(~signs).tolist():
        if other is None:
            refuse()
        entries = [*side.row(row)]
        found[row] = other(([at for at, _ in entries], [own for _, own in entries], float(bias[row])), scale)
    return found.tolist()


def require(holds: bool) -> None:
    """Refuses arrays that were changed, where `fast` might differ from `reference`."""
    if not holds:
        refuse()


def refuse() -> NoReturn:
    """Refuses arrays that were changed."""
    raise Refused(
        "the layers are not gates and look-ups as compiled",
        advice="Weights were changed; run the reference engine.",
    )
