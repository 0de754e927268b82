"""A plane of cells with a head on it, and what the filter of a convolution sees of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tapegrad.show.drawing.scene import (
    FIELD,
    HERE,
    NEXT,
    Arrangement,
    Drawing,
    Node,
    Picture,
    Place,
    cut,
    text_width,
)

SIZES = ((700.0, 470.0), (360.0, 430.0))
LARGEST = 64.0
MOST = 60
"""Rows and columns that are shown at once; of a larger plane there is a window, which follows the head."""
STATE_FONT = 15.0
LONGEST_STATE = 24
LEGEND = (
    ("here", "the head, with its state above"),
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
    """The panel: arranged once it is known how far the run reaches. Nodes are the cells, row by row, and then
    a place above each column for the state of the head."""

    title: str
    states: Sequence[str]

    def finish(self, collected: list[PlaneMoment]) -> tuple[dict[str, Any], list[Any]]:
        """The rectangle that the run uses, one cell more on each side, and each moment of it."""
        rows, columns = window(spot for m in collected for spot in [*m.cells, *([m.head] if m.head else [])])
        shown = rows[:MOST], columns[:MOST]
        moves = shown != (rows, columns)
        spots = [(r, c) for r in shown[0] for c in shown[1]]
        nodes = [Node("", "" if moves else f"The cell in row {r}, column {c}.", "cell") for r, c in spots]
        nodes += [Node("", "", "text") for _ in shown[1]]
        pictures = []
        number = {spot: i for i, spot in enumerate(spots)}
        for moment, after in zip(collected, [*collected[1:], None], strict=True):
            if moves and moment.head is not None:
                following = tuple(map(_following, shown, (rows, columns), moment.head))
                if following != shown:
                    shown = following
                    spots = [(r, c) for r in shown[0] for c in shown[1]]
                    number = {spot: i for i, spot in enumerate(spots)}
            above = {c: len(spots) + i for i, c in enumerate(shown[1])}
            pictures.append(_picture(moment, after, number, above))
        longest = min(LONGEST_STATE, max(map(len, self.states)))
        arrangements = [arranged(len(shown[0]), len(shown[1]), longest, *size) for size in SIZES]
        count = f"{len(shown[0])} of {len(rows):,} rows and {len(shown[1])} of {len(columns):,} columns"
        note = f"{count} of the grid are shown, those around the head." if moves else ""
        return Drawing(self.title, nodes, (), arrangements, LEGEND, note).finish(pictures)


def _following(shown: range, whole: range, head: int) -> range:
    """The part that is shown, moved if the head is at its edge: then the head is in the middle of it."""
    if shown.start < head < shown.stop - 1 or len(shown) == len(whole):
        return shown
    first = min(max(head - len(shown) // 2, whole.start), whole.stop - len(shown))
    return range(first, first + len(shown))


def window(used: Iterable[Spot]) -> tuple[range, range]:
    """Rows and columns in use, and one more on each side."""
    spots = list(used) or [(0, 0)]
    ends = [(min(s[i] for s in spots), max(s[i] for s in spots)) for i in (0, 1)]
    rows, columns = (range(low - 1, high + 2) for low, high in ends)
    return rows, columns


def _picture(
    moment: PlaneMoment, after: PlaneMoment | None, number: Mapping[Spot, int], above: Mapping[int, int]
) -> Picture:
    nodes: dict[Spot, list[Any]] = {}
    for spot, (value, text) in moment.cells.items():
        nodes[spot] = [value, 0, text]
    label = []
    if moment.head is not None:
        r, c = moment.head
        for down, right in NEIGHBOURS:
            nodes.setdefault((r + down, c + right), [0.0, 0, ""])[1] = FIELD
        nodes.setdefault(moment.head, [0.0, 0, ""])[1] = HERE
        if c in above:
            label.append((above[c], 0.0, HERE, cut(moment.state, LONGEST_STATE)))
    shown = [(number[spot], *own) for spot, own in nodes.items() if spot in number]
    if after is not None and after.step == moment.step + 1:
        changed = [s for s in {*moment.cells, *after.cells} if moment.cells.get(s) != after.cells.get(s)]
        moved = [s for s in (moment.head, after.head) if s is not None and moment.head != after.head]
        for spot in sorted({*changed, *moved}):
            if spot in number:
                value, _, text = nodes.get(spot, [0.0, 0, ""])
                shown.append((number[spot], value, NEXT, text))
    return Picture(moment.caption, shown + label)


def arranged(rows: int, columns: int, longest: int, width: float, height: float) -> Arrangement:
    """Cells as large as there is room for, the states' names, of so many letters, over the columns, all of
    them inside. (The page has this as well, `planeArranged`, for inputs that are typed there.)"""
    head = 2 * STATE_FONT
    size = min(LARGEST, width / columns, (height - head) / rows)
    left, top = (width - size * columns) / 2, (height - head - size * rows) / 2 + head
    places: list[Place] = [
        (left + size * (c + 0.5), top + size * (r + 0.5), 0.92 * size, 0.92 * size)
        for r in range(rows)
        for c in range(columns)
    ]
    font = max(STATE_FONT, 0.32 * size)
    wide = text_width("m" * longest, font)
    for c in range(columns):
        x = min(max(left + size * (c + 0.5), wide / 2), width - wide / 2)
        places.append((x, top - STATE_FONT, wide, STATE_FONT + 2))
    return Arrangement(width, height, font, places)
