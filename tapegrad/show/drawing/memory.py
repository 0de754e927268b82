"""A network that learns: the sample, the memory as cells, the fixed network behind them, answer and loss; and
the gradient, which flows from the loss back to the cells that it flips."""

import math
from collections.abc import Sequence
from typing import Any

from tapegrad.show.drawing.scene import (
    NEXT,
    Arrangement,
    Drawing,
    Edge,
    Node,
    Picture,
    Place,
    cut,
    text_width,
)

FONT = 12.0
MOST_INPUTS = 64
MOST_WORDS, WIDEST_WORD, LONGEST = 26, 40, 16
LEGEND = (
    ("minus", "a cell that holds 1 (a negative weight); an input or label of 1"),
    ("pale", "a cell that holds 0 (a positive weight)"),
    ("next", "flips in the next step"),
)
COLOURS = ("the gradient of the loss, where it is large enough to flip a cell",)


class MemoryDrawing:
    """Nodes: inputs, cells, then the fixed network, the answer, the label and the loss, and the names of the
    memory's words. Cells of one word stand in a row, with its name before it, if the words are few."""

    def __init__(self, inputs: int, cells: Sequence[str], weights: int, names: Sequence[str]) -> None:
        self.inputs, self.cells = min(inputs, MOST_INPUTS), len(cells)
        self.words = _words(names[: self.cells])
        self.first_cell = self.inputs
        self.network = self.inputs + self.cells
        self.answer, self.label, self.loss = (self.network + i for i in (1, 2, 3))
        rest = (
            Node(
                "fixed network",
                f"{weights:,} weights in all; those that are not cells keep their values.",
                "box",
            ),
            Node("answer ·", "What the network has put out for the sample before.", "box"),
            Node("label ·", "What the sample says the answer should be.", "box"),
            Node("loss", "The squared difference between the network's output and the label.", "box"),
        )
        nodes = [
            *(Node("", f"Bit {i} of the sample that comes next.", "cell") for i in range(self.inputs)),
            *(Node("", words, "pale") for words in cells),
            *rest,
            *(Node(cut(word, LONGEST), "", "text") for word, _ in self.words),
        ]
        edges = [Edge(arrow=True) for _ in range(5)]
        arrangements = [self._wide(), self._tall()]
        title = "The memory, and the gradient that writes to it"
        self.drawing = Drawing(title, nodes, edges, arrangements, LEGEND, colours=COLOURS)

    def picture(
        self,
        caption: str,
        bits: Sequence[int],
        label: int | None,
        values: Sequence[float],
        flips: Sequence[int],
        fields: dict[str, str],
    ) -> Picture:
        """A sample, the values of the cells in units of their size, and which of them flip."""
        nodes: list[Any] = [(i, -0.9 * bit, 0, str(int(bit))) for i, bit in enumerate(bits[: self.inputs])]
        turned = set(flips)
        for cell, value in enumerate(values):
            if value < 0 or cell in turned:  # the others are pale as they are
                nodes.append(
                    (self.first_cell + cell, min(0.0, max(-1.0, value)), NEXT if cell in turned else 0)
                )
        nodes.append((self.answer, 0.0, 0, f"answer {fields['output']}"))
        if label is not None:
            nodes.append((self.label, 0.0, 0, f"label {label:+d}"))
        arcs = [(self.loss, self.first_cell + cell, 1.0, 0) for cell in flips]
        return Picture(caption, nodes, (), arcs)

    def _memory(self, columns: int, largest: float, room: float) -> tuple[list[Place], list[Place]]:
        """The cells, and the names of words where these stand in rows."""
        if not self.words:
            columns = max(1, min(self.cells, columns))
            return _grid(self.cells, columns, min(largest, room / columns)), []
        before = max(text_width(cut(word, LONGEST), FONT) for word, _ in self.words) + 8
        size = min(largest, (room - before) / max(len(own) for _, own in self.words))
        high = max(size, FONT + 2)
        places: list[Place] = [(0.0, 0.0, 0.0, 0.0)] * self.cells
        names: list[Place] = []
        for row, (word, own) in enumerate(self.words):
            w = text_width(cut(word, LONGEST), FONT)
            names.append((before - 8 - w / 2, high * (row + 0.5), w, FONT))
            for column, cell in enumerate(own):
                places[cell] = (before + size * (column + 0.5), high * (row + 0.5), 0.9 * size, 0.9 * size)
        return places, names

    def _wide(self) -> Arrangement:
        inputs = _grid(self.inputs, 1 if self.inputs <= 18 else 3, 22.0)
        cells, names = self._memory(math.ceil(math.sqrt(1.15 * self.cells)), 30.0, 400.0)
        wide, high = _extent(inputs), max(_extent(cells, 1), _extent(inputs, 1), 330.0)
        left = 30 + wide + 50
        middle = 30 + high / 2
        right = left + _extent(cells) + 130
        places = [
            *_moved(inputs, 20, middle - _extent(inputs, 1) / 2),
            *_moved(cells, left, middle - _extent(cells, 1) / 2),
            (right, middle - 110, 124.0, 34.0),
            (right, middle - 10, 124.0, 28.0),
            (right + 140, middle - 10, 96.0, 28.0),
            (right + 70, middle + 90, 76.0, 30.0),
            *_moved(names, left, middle - _extent(cells, 1) / 2),
        ]
        return self._arranged(right + 200, high + 60, places, True)

    def _tall(self) -> Arrangement:
        width = 366.0
        inputs = _grid(self.inputs, min(max(1, self.inputs), 15), 22.0)
        cells, names = self._memory(math.ceil(math.sqrt(1.5 * self.cells)), 28.0, 330.0)
        top = 16 + _extent(inputs, 1) + 26
        bottom = top + _extent(cells, 1)
        places = [
            *_moved(inputs, (width - _extent(inputs)) / 2, 12),
            *_moved(cells, (width - _extent(cells)) / 2, top),
            (70.0, bottom + 64, 116.0, 30.0),
            (210.0, bottom + 64, 116.0, 26.0),
            (210.0, bottom + 116, 92.0, 26.0),
            (320.0, bottom + 88, 64.0, 28.0),
            *_moved(names, (width - _extent(cells)) / 2, top),
        ]
        return self._arranged(width, bottom + 140, places, False)

    def _arranged(self, width: float, height: float, places: list[Place], side: bool) -> Arrangement:
        """With the ways from sample and memory to network, answer and, with the label, loss."""
        net, answer, label, loss = places[self.network : self.network + 4]
        first = _box(places[: self.inputs]) if self.inputs else None
        memory = _box([*places[self.first_cell : self.network], *places[self.network + 4 :]])
        if side:
            across = (memory[1] + memory[3]) / 2
            enter = _right(memory[2] + 4, across, net[0] - net[2] / 2 - 3, net[1])
            sample = _right(first[2] + 3, across, memory[0] - 5, across) if first else enter
            down, over, blame = _down(net, answer), _down(answer, loss), _down(label, loss)
        else:
            enter = _down((net[0], memory[3] + 3, 0.0, 0.0), net)
            middle = (memory[0] + memory[2]) / 2
            sample = (
                _down((middle, first[3] + 2, 0.0, 0.0), (middle, memory[1], 0.0, 2.0)) if first else enter
            )
            down = _right(net[0] + net[2] / 2, net[1], answer[0] - answer[2] / 2 - 3, answer[1])
            over = _right(answer[0] + answer[2] / 2, answer[1], loss[0] - loss[2] / 2 - 3, loss[1] - 5)
            blame = _right(label[0] + label[2] / 2, label[1], loss[0] - loss[2] / 2 - 3, loss[1] + 5)
        paths = [sample, enter, down, over, blame]
        return Arrangement(width, height, FONT, places, paths, [(0.0, 0.0)] * len(paths))


def _words(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """The words of a memory and the cells of each, from names such as `x[5][3]`; none where these are too
    many or too long for a row each."""
    words: dict[str, list[int]] = {}
    for cell, name in enumerate(names):
        words.setdefault(name.rpartition("[")[0] or name, []).append(cell)
    fit = 0 < len(words) <= MOST_WORDS and max(map(len, words.values())) <= WIDEST_WORD
    return list(words.items()) if fit else []


def _grid(count: int, columns: int, size: float) -> list[Place]:
    return [
        (size * (i % columns + 0.5), size * (i // columns + 0.5), 0.9 * size, 0.9 * size)
        for i in range(count)
    ]


def _extent(places: Sequence[Place], axis: int = 0) -> float:
    return max((place[axis] + place[axis + 2] / 2 for place in places), default=0.0)


def _moved(places: Sequence[Place], x: float, y: float) -> list[Place]:
    return [(px + x, py + y, w, h) for px, py, w, h in places]


def _box(places: Sequence[Place]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what these cover."""
    return (
        min(x - w / 2 for x, _, w, _ in places),
        min(y - h / 2 for _, y, _, h in places),
        max(x + w / 2 for x, _, w, _ in places),
        max(y + h / 2 for _, y, _, h in places),
    )


def _down(a: Place, b: Place) -> list[float]:
    top, bottom = a[1] + a[3] / 2, b[1] - b[3] / 2 - 3
    return [a[0], top, a[0], (top + bottom) / 2, b[0], (top + bottom) / 2, b[0], bottom]


def _right(x0: float, y0: float, x1: float, y1: float) -> list[float]:
    middle = (x0 + x1) / 2
    return [x0, y0, middle, y0, middle, y1, x1, y1]
