"""One position of a transformer at work: its layers in the middle, earlier positions above, tokens of the
input below, and arrows from the heads to what they look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapegrad.show.drawing.layers import PAD, Units, skyline
from tapegrad.show.drawing.scene import Arrangement, Drawing, Edge, Node, Picture, Place, cut
from tapegrad.show.drawing.tokens import FONT, HIGH, LEAST_GAP, LONGEST, WIDTHS, lines

ARROWS = 26.0
"""Room for arrows between the layers and what stands above and below."""

Lit = tuple[int, float, int] | tuple[int, float, int, str]


@dataclass(frozen=True)
class Inside:
    """The layers: their nodes, the edges between, and two arrangements. Nodes come first in the drawing."""

    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    arrangements: Sequence[Arrangement] = ()


def inside_of(units: Units) -> Inside:
    """Every unit, and lines to it from what it reads."""
    return Inside(units.nodes, [Edge() for _ in units.ends], units.arrangements())


def inside_of_columns(sizes: Sequence[int], words: Sequence[str]) -> Inside:
    """A column for each layer, or for several in a row."""
    nodes, arrangements = skyline(sizes, words)
    return Inside(nodes, (), arrangements)


@dataclass(frozen=True)
class PositionMoment:
    """What stands above and below, each with a mark; what is lit inside; and looks: from a node inside to a
    place above (from 0 on) or below (-1 the first), with weight and colour."""

    caption: str
    above: Sequence[tuple[str, int]]
    below: Sequence[tuple[str, int]]
    nodes: Sequence[Lit] = ()
    edges: Sequence[tuple[int, float, int]] = ()
    looks: Sequence[tuple[int, int, float, int]] = ()


@dataclass(frozen=True)
class Position:
    """The panel: arranged once it is known how much stands above and below, and how long those texts are."""

    title: str
    inside: Inside
    legend: Sequence[tuple[str, str]]
    colours: Sequence[str]
    above_words: str
    below_words: str
    note: str = ""

    def finish(self, collected: list[PositionMoment]) -> tuple[dict[str, Any], list[Any]]:
        """As many places above and below as any moment needs, as wide as their longest text."""
        above = _slots([moment.above for moment in collected])
        below = _slots([moment.below for moment in collected])
        first = len(self.inside.nodes)
        nodes = [
            *self.inside.nodes,
            *(Node("", self.above_words, "box") for _ in above),
            *(Node("", self.below_words, "cell") for _ in below),
        ]
        drawing = Drawing(
            self.title,
            nodes,
            self.inside.edges,
            [self._arranged(number, above, below) for number in range(len(WIDTHS))],
            self.legend,
            self.note,
            self.colours,
        )
        return drawing.finish([_picture(moment, first, first + len(above)) for moment in collected])

    def _arranged(self, number: int, above: Sequence[str], below: Sequence[str]) -> Arrangement:
        inner = self.inside.arrangements[number] if self.inside.arrangements else None
        width = max(WIDTHS[number], 0.0 if inner is None else inner.width)
        upper = lines(above, width, LEAST_GAP)
        y = _bottom(upper)
        places: list[Place] = []
        paths: list[list[float]] = []
        if inner is not None:
            left, top = (width - inner.width) / 2, y + (ARROWS if upper else 0.0)
            places = [(left + px, top + py, w, h) for px, py, w, h in inner.places]
            paths = [[p + (top if i % 2 else left) for i, p in enumerate(path)] for path in inner.paths]
            y = top + inner.height + (ARROWS - PAD if below else 0.0)
        lower = [(px, y + py - PAD, w, h) for px, py, w, h in lines(below, width, LEAST_GAP)]
        height = max(y, _bottom(lower)) + PAD
        return Arrangement(width, height, FONT, [*places, *upper, *lower], paths, [(0.0, 0.0)] * len(paths))


def _slots(rows: Sequence[Sequence[tuple[str, int]]]) -> list[str]:
    """For each place a text as long as the longest that ever stands there."""
    count = max(map(len, rows), default=0)
    longest = max((min(LONGEST, len(text)) for row in rows for text, _ in row), default=0)
    return ["m" * longest] * count


def _bottom(places: Sequence[Place]) -> float:
    return places[-1][1] + HIGH / 2 if places else 0.0


def _picture(moment: PositionMoment, above: int, below: int) -> Picture:
    nodes: list[Lit] = [*moment.nodes]
    for first, row in ((above, moment.above), (below, moment.below)):
        nodes += [(first + i, 0.0, mark, cut(text, LONGEST)) for i, (text, mark) in enumerate(row)]
    arcs = [
        (node, below - place - 1 if place < 0 else above + place, weight, colour)
        for node, place, weight, colour in moment.looks
    ]
    return Picture(moment.caption, nodes, moment.edges, arcs)
