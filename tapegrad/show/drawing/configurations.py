"""A ring with a dot for each configuration, in the order of a run, and the diagram of the machine inside."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.show.drawing.scene import HERE, NEXT, Arrangement, Drawing, Edge, Node, Place, text_width
from tapegrad.show.drawing.states import MOST_BOXES, StateDiagram, state_diagram

SIZES = ((760.0, 540.0), (370.0, 440.0))
MOST_DOTS = 400
FONT = 11.0
MOST_LABELS = 24
"""Labels that stand on a ring, besides that of the current dot, without covering each other."""
LEGEND = (
    ("here", "the weight that is 1, and the state it means"),
    ("plus", "visited before"),
    ("next", "where the gradient is steepest"),
    ("taken", "the rule that this step carries out"),
)

Lit = list[tuple[int, float, int]]


class RingOfConfigurations:
    """Nodes are the dots, their labels and then those of the diagram. Labels stand at every so many dots, so
    that none covers another."""

    def __init__(
        self,
        machine: TuringMachine | None,
        successor: NDArray[np.integer],
        first: int,
        name: Callable[[int], str],
        explain: Callable[[str], str],
    ) -> None:
        self.order = _in_order(successor, first)
        self.place = {vertex: place for place, vertex in enumerate(self.order)}
        self.diagram: StateDiagram | None = None
        if machine is not None and len(machine.states) <= MOST_BOXES:
            self.diagram = state_diagram(machine, {}, [_inside(width, height) for width, height in SIZES])
        count = len(self.order)
        names = [_short(name(vertex)) for vertex in self.order]
        dots = [Node(names[i], explain(f"s/{vertex}"), "dot") for i, vertex in enumerate(self.order)]
        labels = [Node("", "", "text") for _ in self.order]
        self.names = names
        arrangements = [self._arranged(number, *size) for number, size in enumerate(SIZES)]
        self.labelled = max(1, -(-count // MOST_LABELS))
        """Every so many dots have a label."""
        inner = self.diagram.nodes if self.diagram else []
        part = f"{count:,} of {len(successor):,}" if count < len(successor) else f"{count:,}"
        self.drawing = Drawing(
            "The configurations, each a weight",
            [*dots, *labels, *inner],
            [*(Edge() for _ in range(count - 1)), *(self.diagram.edges if self.diagram else ())],
            arrangements,
            LEGEND,
            f"{part} configurations, in the order in which the machine meets them.",
        )

    def _arranged(self, number: int, width: float, height: float) -> Arrangement:
        count = len(self.order)
        longest = max(text_width(name, FONT) for name in self.names)
        across, down = width / 2 - longest - 16, height / 2 - 26.0
        spots = [
            (width / 2 + across * math.cos(angle), height / 2 + down * math.sin(angle), angle)
            for angle in (2 * math.pi * i / max(2, count) - math.pi / 2 for i in range(count))
        ]
        size = 8.0 if count <= 60 else 6.0 if count <= 150 else 4.0
        dots: list[Place] = [(x, y, size, size) for x, y, _ in spots]
        labels: list[Place] = []
        for (x, y, angle), name in zip(spots, self.names, strict=True):
            w = text_width(name, FONT)
            labels.append((x + math.cos(angle) * (w / 2 + 9), y + math.sin(angle) * 13, w, FONT + 2))
        lines = [[*a[:2], *a[:2], *b[:2], *b[:2]] for a, b in pairwise(spots)]
        inner = self.diagram.arrangements[number] if self.diagram else None
        if inner is None:
            return Arrangement(width, height, FONT, [*dots, *labels], lines, [(0.0, 0.0)] * len(lines))
        room_across, room_down = _inside(width, height)
        scale = min(room_across / inner.width, room_down / inner.height)
        left, top = (width - scale * inner.width) / 2, (height - scale * inner.height) / 2
        moved = [(left + scale * x, top + scale * y, scale * w, scale * h) for x, y, w, h in inner.places]
        paths = [[(top if i % 2 else left) + scale * p for i, p in enumerate(path)] for path in inner.paths]
        at = [(left + scale * x, top + scale * y) for x, y in inner.labels]
        return Arrangement(
            width, height, FONT, [*dots, *labels, *moved], [*lines, *paths], [(0.0, 0.0)] * len(lines) + at
        )

    def lit(
        self, vertex: int, towards: int | None, meant: Configuration | None, rule: Rule | None
    ) -> tuple[list[tuple[int, float, int] | tuple[int, float, int, str]], Lit]:
        """Nodes and edges of a moment."""
        count, here = len(self.order), self.place.get(vertex, 0)
        nodes: list[tuple[int, float, int] | tuple[int, float, int, str]] = []
        nodes += [(i, 0.6, 0) for i in range(here)]
        nodes.append((here, 1.0, HERE))
        if towards is not None and towards in self.place and towards != vertex:
            nodes.append((self.place[towards], 0.0, NEXT))
        shown = {
            i
            for i in range(0, count, self.labelled)
            if min(abs(i - here), count - abs(i - here)) >= self.labelled
        }
        nodes += [(count + i, 0.0, HERE if i == here else 0, self.names[i]) for i in sorted({*shown, here})]
        if self.diagram is None or meant is None:
            return nodes, []
        inner, edges = self.diagram.lit(meant.state, rule)
        first = 2 * count
        nodes += [(first + i, value, mark) for i, value, mark in inner]
        return nodes, [(count - 1 + i, value, mark) for i, value, mark in edges]


def _in_order(successor: NDArray[np.integer], first: int) -> list[int]:
    """The vertices that a run from the first one meets, and then the others, at most so many."""
    order = [first]
    while len(order) < MOST_DOTS and (after := int(successor[order[-1]])) != order[-1]:
        order.append(after)
    seen = set(order)
    rest = [v for v in range(len(successor)) if v not in seen] if len(successor) <= MOST_DOTS else []
    return [*order, *rest]


def _inside(width: float, height: float) -> tuple[float, float]:
    """Room for the diagram inside the ring."""
    return 0.62 * width - 70, 0.72 * height - 40


def _short(name: str) -> str:
    """`A, head at -3` as `A −3`."""
    return name.replace(", head at ", " ").replace("-", "\N{MINUS SIGN}")
