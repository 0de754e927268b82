"""Positions of a transformer in the order in which they are written, like words of a text, and arcs that show
where attention looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapegrad.show.drawing.scene import HERE, Arrangement, Drawing, Node, Picture, Place, cut, text_width

MOST_TOKENS = 120
"""A longer text is shown in a window of lines that moves on."""
LONGEST = 16
FONT = 12.0
WIDTHS = (760.0, 366.0)
HIGH, PAD = 22.0, 10.0
WIDEST_GAP, LEAST_GAP = 44.0, 12.0
"""Room between two lines, for arcs: the more lines, the less."""
MOST_ARCS = 40


@dataclass(frozen=True)
class Moment:
    """A text so far, which part of it is new, and looks: from a place to a place of the text, or of the input
    where that is negative (-1 the first), with weight and colour."""

    caption: str
    texts: Sequence[str]
    new: range
    looks: Sequence[tuple[int, int, float, int]]


@dataclass(frozen=True)
class Text:
    """The panel: arranged once it is known how long the text becomes."""

    title: str
    colours: Sequence[str]
    """What the looks of each colour are."""
    inputs: Sequence[str] = ()
    """Tokens of the input, which stand in a line of their own."""
    new: str = "the newest position"

    def finish(self, collected: list[Moment]) -> tuple[dict[str, Any], list[Any]]:
        """The lines that fit, and for each moment what stands in them."""
        texts = [cut(text, LONGEST) for text in max(collected, key=lambda moment: len(moment.texts)).texts]
        slots = min(len(texts), MOST_TOKENS)
        if len(texts) > slots:  # then texts move from slot to slot
            texts = ["m" * max(map(len, texts))] * slots
        nodes = [Node("", "", "box") for _ in range(slots)]
        nodes += [Node(cut(text, LONGEST), f"Input: {text}.", "cell") for text in self.inputs]
        count = max(len(moment.texts) for moment in collected)
        drawing = Drawing(
            self.title,
            nodes,
            (),
            [self._arranged(texts, width) for width in WIDTHS],
            (("here", self.new),),
            "" if count <= slots else f"{slots} of {count:,} positions are shown at a time.",
            self.colours,
        )
        return drawing.finish([self._picture(moment, slots) for moment in collected])

    def _arranged(self, texts: Sequence[str], width: float) -> Arrangement:
        places = _lines(texts, width, WIDEST_GAP)
        lines = len({y for _, y, *_ in places})
        if lines > 4:
            places = _lines(texts, width, max(LEAST_GAP, WIDEST_GAP - 4 * (lines - 4)))
        bottom = places[-1][1] + HIGH / 2 if places else 0.0
        own = _lines([cut(text, LONGEST) for text in self.inputs], width, LEAST_GAP)
        inputs = [(x, bottom + 6 + y, w, h) for x, y, w, h in own]
        used = [*places, *inputs] or [(0.0, 0.0, 0.0, 0.0)]
        return Arrangement(width, max(y for _, y, *_ in used) + HIGH / 2 + PAD, FONT, used)

    def _picture(self, moment: Moment, slots: int) -> Picture:
        first = max(0, len(moment.texts) - slots)
        nodes: list[Any] = []
        for place, text in enumerate(moment.texts[first:], first):
            nodes.append((place - first, 0.0, HERE if place in moment.new else 0, cut(text, LONGEST)))
        strongest = sorted(moment.looks, key=lambda look: -look[2])[:MOST_ARCS]
        arcs = []
        for a, b, weight, colour in strongest:
            there = slots - b - 1 if b < 0 else b - first
            if a - first >= 0 and there >= 0:
                arcs.append((a - first, there, weight, colour))
        arcs.sort(key=lambda arc: -arc[3])  # the first colour is the one that matters, and lies on top
        return Picture(moment.caption, nodes, (), arcs)


def _lines(texts: Sequence[str], width: float, between: float) -> list[Place]:
    """Places of tokens one after the other, line by line, like words."""
    places: list[Place] = []
    x, y = PAD, PAD + between + HIGH / 2
    for text in texts:
        wide = max(24.0, text_width(text, FONT) + 10)
        if x + wide > width - PAD and x > PAD:
            x, y = PAD, y + HIGH + between
        places.append((x + wide / 2, y, wide, HIGH))
        x += wide + 5
    return places
