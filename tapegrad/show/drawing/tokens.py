"""Positions of a transformer in the order in which they are written, like words of a text, and arcs that show
where attention looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegrad.show.drawing.scene import (
    HERE,
    Arrangement,
    Drawing,
    Edge,
    Node,
    Picture,
    Place,
    cut,
    text_width,
)

MOST_TOKENS = 120
"""A longer text is shown in a window of lines that moves on."""
MOST_RECORDS = 13
"""Lines, where each is a record."""
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
    record: int = 1
    """So many tokens belong together, and stand in a line of their own where that is wide enough."""

    def finish(self, collected: list[Moment]) -> tuple[dict[str, Any], list[Any]]:
        """The lines that fit, and for each moment what stands in them."""
        texts = [cut(text, LONGEST) for text in max(collected, key=lambda moment: len(moment.texts)).texts]
        texts += [""] * (-len(texts) % self.record)
        widths = self._widths(texts)
        most = MOST_RECORDS * self.record if widths else MOST_TOKENS
        slots = min(len(texts), most)
        if widths:
            texts = texts[:slots]
        elif len(texts) > slots:  # then texts move from slot to slot
            texts = ["m" * max(map(len, texts))] * slots
        nodes = [Node("", "", "box") for _ in range(slots)]
        nodes += [Node(cut(text, LONGEST), f"Input: {text}.", "cell") for text in self.inputs]
        count = max(len(moment.texts) for moment in collected)
        drawing = Drawing(
            self.title,
            nodes,
            (),
            [self._arranged(texts, width, widths) for width in WIDTHS],
            (("here", self.new),),
            "" if count <= slots else f"{slots} of {count:,} positions are shown at a time.",
            self.colours,
        )
        return drawing.finish([self._picture(moment, slots) for moment in collected])

    def _widths(self, texts: Sequence[str]) -> list[float]:
        """Of the columns in which the tokens of records stand; none where they do not fit."""
        columns = [texts[place :: self.record] for place in range(self.record)]
        widths = [max(_wide(text) for text in column) for column in columns if column]
        fits = sum(widths) + 5 * len(widths) + 2 * PAD <= min(WIDTHS)
        return widths if self.record > 1 and fits else []

    def _arranged(self, texts: Sequence[str], width: float, widths: Sequence[float]) -> Arrangement:
        places = lines(texts, width, WIDEST_GAP)
        rows = len({y for _, y, *_ in places})
        if widths:
            width = min(WIDTHS)
            places = _columns(len(texts), widths, (width - sum(widths) - 5 * len(widths)) / 2)
        elif rows > 4:
            places = lines(texts, width, max(LEAST_GAP, WIDEST_GAP - 4 * (rows - 4)))
        bottom = places[-1][1] + HIGH / 2 if places else 0.0
        own = lines([cut(text, LONGEST) for text in self.inputs], width, LEAST_GAP)
        inputs = [(x, bottom + 6 + y, w, h) for x, y, w, h in own]
        used = [*places, *inputs] or [(0.0, 0.0, 0.0, 0.0)]
        return Arrangement(width, max(y for _, y, *_ in used) + HIGH / 2 + PAD, FONT, used)

    def _picture(self, moment: Moment, slots: int) -> Picture:
        first = max(0, len(moment.texts) + -len(moment.texts) % self.record - slots)
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


def _wide(text: str) -> float:
    return max(24.0, text_width(text, FONT) + 10)


def _columns(count: int, widths: Sequence[float], left: float) -> list[Place]:
    """Places of tokens row by row, in columns of these widths."""
    places: list[Place] = []
    for place in range(count):
        row, column = divmod(place, len(widths))
        x = left + sum(widths[:column]) + 5 * column + widths[column] / 2
        places.append((x, PAD + LEAST_GAP + HIGH / 2 + row * (HIGH + LEAST_GAP), widths[column], HIGH))
    return places


def lines(texts: Sequence[str], width: float, between: float) -> list[Place]:
    """Places of tokens one after the other, line by line, like words."""
    places: list[Place] = []
    x, y = PAD, PAD + between + HIGH / 2
    for text in texts:
        wide = _wide(text)
        if x + wide > width - PAD and x > PAD:
            x, y = PAD, y + HIGH + between
        places.append((x + wide / 2, y, wide, HIGH))
        x += wide + 5
    return places


# Positions of a transformer that reads a sequence once: a row for each layer with heads, tokens below,
# outputs on top, and lines from the positions that look to those that they look at.


ROW_FONT, LEAST_FONT = 13.0, 8.0
"""What is read easily, and what just can be."""
COLOURS = 6
MOST_LINES = 160
SIZES = ((740.0, 440.0), (366.0, 420.0))
LONGEST_OUTPUT = 6
BEFORE, BEFORE_SHORT = "start", "⊢"
"""What stands in the column of the token before the first."""


class RowsOfPositions:
    """Nodes are numbered row by row, from the tokens up; column 0 is the token before the first."""

    def __init__(self, words: Sequence[str], layer_of_head: Sequence[int], heads: Sequence[str]) -> None:
        self.columns = len(words) + 1
        layers = sorted(set(layer_of_head))
        self.row_of_head = [layers.index(layer) for layer in layer_of_head]
        self.rows = len(layers) + 2
        self.longest = max(1, int(self._wide(min(SIZES)[0]) / text_width("m", LEAST_FONT)))
        """Letters that a box has room for."""
        nodes = [
            Node(cut(text, self.longest), f"Token {place}: {text}.", "box")
            for place, text in enumerate(words, 1)
        ]
        first = BEFORE if len(BEFORE) <= self.longest else BEFORE_SHORT
        nodes.insert(0, Node(first, f"Token 0: {BEFORE}.", "box"))
        for layer in layers:
            nodes += [Node("", f"Position {place} in layer {layer}.", "dot") for place in range(self.columns)]
        nodes.append(Node("", "", "text"))
        nodes += [Node("", f"Output at position {place}.", "box") for place in range(1, self.columns)]
        named = heads if len(heads) <= COLOURS else [*heads[: COLOURS - 1], "other heads"]
        self.drawing = Drawing(
            "Positions, layer by layer, and where they look",
            nodes,
            [Edge(words="What a position knows is handed on.")] * ((self.rows - 1) * (self.columns - 1)),
            [self._arranged(*size) for size in SIZES],
            (("here", "outputs"),),
            colours=[cut(name, 90) for name in named],
        )

    def picture(self, caption: str, looks: Sequence[np.ndarray], outputs: Sequence[str]) -> Picture:
        """Looks: for each head the weights, a row for each position after the first token."""
        arcs = []
        for head, weights in enumerate(looks):
            row = self.row_of_head[head]
            for at, seen in np.argwhere(weights > 1e-3).tolist():
                here, there = (row + 1) * self.columns + at + 1, row * self.columns + seen
                arcs.append((here, there, float(weights[at, seen]), min(head, COLOURS - 1)))
        arcs = sorted(arcs, key=lambda arc: -arc[2])[:MOST_LINES]
        top = (self.rows - 1) * self.columns
        nodes: list[Any] = [
            (top + 1 + i, 0.0, HERE, cut(word, min(LONGEST_OUTPUT, self.longest)))
            for i, word in enumerate(outputs)
        ]
        return Picture(caption, nodes, (), arcs)

    def _wide(self, width: float) -> float:
        return min(60.0, 0.9 * (width - 20) / self.columns)

    def _arranged(self, width: float, height: float) -> Arrangement:
        step = (width - 20) / self.columns
        places: list[Place] = []
        for row in range(self.rows):
            y = height - 24 - (height - 48) * row / (self.rows - 1)
            high, wide = (
                (26.0, self._wide(width)) if row in (0, self.rows - 1) else (9.0, min(9.0, 0.9 * step))
            )
            places += [(10 + step * (column + 0.5), y, wide, high) for column in range(self.columns)]
        ways = []
        for row in range(self.rows - 1):
            for column in range(1, self.columns):
                x, below, _, low = places[row * self.columns + column]
                _, above, _, high = places[(row + 1) * self.columns + column]
                ways.append([x, below - low / 2, x, below, x, above, x, above + high / 2])
        return Arrangement(width, height, ROW_FONT, places, ways, [(0.0, 0.0)] * len(ways))
