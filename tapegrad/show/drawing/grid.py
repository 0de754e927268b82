"""A plane of cells with a head on it, and what the filter of a convolution sees of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tapegrad.show.drawing.scene import FIELD, HERE, NEXT, Arrangement, Drawing, Node, Picture, cut

SIZES = ((700.0, 470.0), (360.0, 430.0))
LARGEST = 46.0
MOST = 60
"""Rows and columns at most; further out, the plane is cut off."""
LEGEND = (
    ("here", "the head; the letters are its state"),
    ("field", "what the filter sees there"),
    ("next", "changes in the next layer"),
    ("plus", "holds a symbol"),
)
NEIGHBOURS = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c]

Spot = tuple[int, int]


@dataclass(frozen=True)
class PlaneMoment:
    """What cells hold (how strongly it is painted, and as what text), where the head is, and its state."""

    caption: str
    cells: Mapping[Spot, tuple[float, str]]
    head: Spot | None
    state: str
    step: int


@dataclass(frozen=True)
class Plane:
    """The panel: arranged once it is known how far the run reaches."""

    title: str

    def finish(self, collected: list[PlaneMoment]) -> tuple[dict[str, Any], list[Any]]:
        """The rectangle that the run uses, one cell more on each side, and each moment of it."""
        spots = [spot for m in collected for spot in [*m.cells, *([m.head] if m.head else [])]] or [(0, 0)]
        rows, columns = (
            range(low - 1, min(high + 2, low - 1 + MOST))
            for low, high in ((min(s[i] for s in spots), max(s[i] for s in spots)) for i in (0, 1))
        )
        number = {(r, c): i for i, (r, c) in enumerate((r, c) for r in rows for c in columns)}
        nodes = [Node("", f"The cell in row {r}, column {c}.", "cell") for r, c in number]
        pictures = []
        for moment, after in zip(collected, [*collected[1:], None], strict=True):
            pictures.append(_picture(moment, after, number))
        arrangements = [_arranged(len(rows), len(columns), *size) for size in SIZES]
        return Drawing(self.title, nodes, (), arrangements, LEGEND).finish(pictures)


def _picture(moment: PlaneMoment, after: PlaneMoment | None, number: Mapping[Spot, int]) -> Picture:
    nodes: dict[Spot, list[Any]] = {}
    for spot, (value, text) in moment.cells.items():
        nodes[spot] = [value, 0, text]
    if moment.head is not None:
        r, c = moment.head
        for down, right in NEIGHBOURS:
            nodes.setdefault((r + down, c + right), [0.0, 0, ""])[1] = FIELD
        nodes.setdefault(moment.head, [0.0, 0, ""])[1:] = [HERE, cut(moment.state, 5)]
    shown = [(number[spot], *own) for spot, own in nodes.items() if spot in number]
    if after is not None and after.step == moment.step + 1:
        changed = [s for s in {*moment.cells, *after.cells} if moment.cells.get(s) != after.cells.get(s)]
        moved = [s for s in (moment.head, after.head) if s is not None and moment.head != after.head]
        for spot in sorted({*changed, *moved}):
            if spot in number:
                shown.append(
                    (number[spot], *nodes.get(spot, [0.0, 0, ""])[:1], NEXT, nodes.get(spot, [0, 0, ""])[2])
                )
    return Picture(moment.caption, shown)


def _arranged(rows: int, columns: int, width: float, height: float) -> Arrangement:
    size = min(LARGEST, width / columns, height / rows)
    left, top = (width - size * columns) / 2, (height - size * rows) / 2
    places = [
        (left + size * (c + 0.5), top + size * (r + 0.5), 0.92 * size, 0.92 * size)
        for r in range(rows)
        for c in range(columns)
    ]
    return Arrangement(width, height, max(6.0, 0.4 * size), places)
