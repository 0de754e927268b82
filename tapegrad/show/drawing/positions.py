"""Positions of a transformer that reads a sequence once: a row for each layer with heads, tokens below,
outputs on top, and lines from the positions that look to those that they look at."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.show.drawing.scene import HERE, Arrangement, Drawing, Edge, Node, Picture, Place, cut

FONT = 13.0
COLOURS = 6
MOST_ARCS = 160
SIZES = ((740.0, 440.0), (366.0, 420.0))
LONGEST = 6
FIRST = "start"
"""What stands in the column of the token before the first."""


class RowsOfPositions:
    """Nodes are numbered row by row, from the tokens up; column 0 is the token before the first."""

    def __init__(self, words: Sequence[str], layer_of_head: Sequence[int], heads: Sequence[str]) -> None:
        self.columns = len(words) + 1
        layers = sorted(set(layer_of_head))
        self.row_of_head = [layers.index(layer) for layer in layer_of_head]
        self.rows = len(layers) + 2
        nodes = [Node(text, f"Token {place}: {text}.", "box") for place, text in enumerate([FIRST, *words])]
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
        arcs = sorted(arcs, key=lambda arc: -arc[2])[:MOST_ARCS]
        top = (self.rows - 1) * self.columns
        nodes: list[Any] = [(top + 1 + i, 0.0, HERE, cut(word, LONGEST)) for i, word in enumerate(outputs)]
        return Picture(caption, nodes, (), arcs)

    def _arranged(self, width: float, height: float) -> Arrangement:
        step = (width - 20) / self.columns
        places: list[Place] = []
        for row in range(self.rows):
            y = height - 24 - (height - 48) * row / (self.rows - 1)
            high, wide = (26.0, min(60.0, 0.9 * step)) if row in (0, self.rows - 1) else (9.0, 9.0)
            places += [(10 + step * (column + 0.5), y, wide, high) for column in range(self.columns)]
        ways = []
        for row in range(self.rows - 1):
            for column in range(1, self.columns):
                x, below, _, low = places[row * self.columns + column]
                _, above, _, high = places[(row + 1) * self.columns + column]
                ways.append([x, below - low / 2, x, below, x, above, x, above + high / 2])
        return Arrangement(width, height, FONT, places, ways, [(0.0, 0.0)] * len(ways))
