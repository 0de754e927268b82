"""A ring with a dot for each configuration, in the order of a run, and the diagram of the machine inside."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.show.drawing.neighbourhood import COLOURS, Neighbourhood, Room
from tapegrad.show.drawing.scene import (
    HERE,
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
from tapegrad.show.drawing.states import MOST_BOXES, StateDiagram, state_diagram

SIZES = ((760.0, 540.0), (370.0, 440.0))
MOST_DOTS = 400
FONT, LEAST_FONT = 11.0, 7.5
LONGEST_STATE = 10
MOST_LABELS = 24
"""Labels that stand on a ring, besides that of the current dot, without covering each other."""
LEGEND = (
    ("here", "the weight that is 1, and the state it means"),
    ("plus", "visited before"),
    ("next", "where the gradient is steepest"),
    ("taken", "the rule that this step carries out"),
)

INSIDE = Room(before=1, after=3, beyond=0, strip=0)
"""Of a machine with many states there is room for so much inside the ring."""

Meant = tuple[Configuration | None, Rule | None]


class RingOfConfigurations:
    """Nodes are the dots, their labels and then those of the diagram. Labels stand at every so many dots, so
    that none covers another."""

    def __init__(
        self,
        machine: TuringMachine,
        successor: NDArray[np.integer],
        first: int,
        name: Callable[[int], str],
        explain: Callable[[str], str],
    ) -> None:
        self.order = _in_order(successor, first)
        self.place = {vertex: place for place, vertex in enumerate(self.order)}
        rooms = [_inside(width, height) for width, height in SIZES]
        self.diagram = _diagram(machine, rooms)
        self.inner = self.diagram or Neighbourhood(machine, INSIDE, [width for width, _ in rooms])
        count = len(self.order)
        names = [_short(name(vertex)) for vertex in self.order]
        dots = [Node(names[i], explain(f"s/{vertex}"), "dot") for i, vertex in enumerate(self.order)]
        labels = [Node("", "", "text") for _ in self.order]
        self.names = names
        arrangements = [self._arranged(number, *size) for number, size in enumerate(SIZES)]
        self.labelled = max(
            -(-count // MOST_LABELS), *(_apart(way.places[count : 2 * count]) for way in arrangements)
        )
        """Every so many dots have a label."""
        part = f"{count:,} of {len(successor):,}" if count < len(successor) else f"{count:,}"
        self.drawing = Drawing(
            "The configurations, each a weight",
            [*dots, *labels, *self.inner.nodes],
            [*(Edge() for _ in range(count - 1)), *(self.diagram.edges if self.diagram else ())],
            arrangements,
            LEGEND if self.diagram else LEGEND[:-1],
            f"{part} configurations, in the order in which the machine meets them.",
            () if self.diagram else COLOURS,
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
            # As far out along the normal of the ring as it takes for the label to lie outside.
            w, h = text_width(name, FONT), FONT + 2
            nx, ny = math.cos(angle) * down, math.sin(angle) * across
            nx, ny = nx / math.hypot(nx, ny), ny / math.hypot(nx, ny)
            out = abs(nx) * w / 2 + abs(ny) * h / 2 + size / 2 + 4
            at = min(max(x + nx * out, w / 2), width - w / 2), min(max(y + ny * out, h / 2), height - h / 2)
            labels.append((*at, w, h))
        lines = [[*a[:2], *a[:2], *b[:2], *b[:2]] for a, b in pairwise(spots)]
        inner = self.inner.arrangements[number]
        room_across, room_down = _inside(width, height)
        scale = min(room_across / inner.width, room_down / inner.height)
        left, top = (width - scale * inner.width) / 2, (height - scale * inner.height) / 2
        moved = [(left + scale * x, top + scale * y, scale * w, scale * h) for x, y, w, h in inner.places]
        paths = [[(top if i % 2 else left) + scale * p for i, p in enumerate(path)] for path in inner.paths]
        at = [(left + scale * x, top + scale * y) for x, y in inner.labels]
        return Arrangement(
            width, height, FONT, [*dots, *labels, *moved], [*lines, *paths], [(0.0, 0.0)] * len(lines) + at
        )

    def lit(self, caption: str, vertex: int, towards: int | None, meant: Meant) -> Picture:
        """A moment: where s stands, where it goes, and the state and rule that the vertex means."""
        count, here = len(self.order), self.place.get(vertex, 0)
        nodes: list[tuple[int, float, int] | tuple[int, float, int, str]] = []
        nodes += [(i, 0.6, 0) for i in range(here)]
        nodes.append((here, 1.0, HERE))
        if towards is not None and towards in self.place and towards != vertex:
            nodes.append((self.place[towards], 0.0, NEXT))
        shown = {
            i
            for i in range(0, max(1, count - self.labelled + 1), self.labelled)
            if min(abs(i - here), count - abs(i - here)) >= self.labelled
        }
        nodes += [(count + i, 0.0, HERE if i == here else 0, self.names[i]) for i in sorted({*shown, here})]
        first, (state, rule) = 2 * count, meant
        if isinstance(self.inner, Neighbourhood):
            inner, arcs = self.inner.lit(state and state.state, rule)
            for i, value, mark, *text in inner:
                nodes.append((first + i, value, mark, text[0]) if text else (first + i, value, mark))
            return Picture(
                caption, nodes, (), [(first + a, first + b, w, colour) for a, b, w, colour in arcs]
            )
        if state is None:
            return Picture(caption, nodes)
        own, edges = self.inner.lit(state.state, rule)
        nodes += [(first + i, value, mark) for i, value, mark in own]
        return Picture(caption, nodes, [(count - 1 + i, value, mark) for i, value, mark in edges])


def _in_order(successor: NDArray[np.integer], first: int) -> list[int]:
    """The vertices that a run from the first one meets, and then the others, at most so many."""
    order = [first]
    while len(order) < MOST_DOTS and (after := int(successor[order[-1]])) != order[-1]:
        order.append(after)
    seen = set(order)
    rest = [v for v in range(len(successor)) if v not in seen] if len(successor) <= MOST_DOTS else []
    return [*order, *rest]


def _diagram(machine: TuringMachine, rooms: Sequence[tuple[float, float]]) -> StateDiagram | None:
    """All states, if they can be read in the room that there is inside the ring."""
    if len(machine.states) > MOST_BOXES:
        return None
    diagram = state_diagram(machine, {}, rooms)
    for (width, height), way in zip(rooms, diagram.arrangements, strict=True):
        scale = min(width / way.width, height / way.height)
        texts = zip(diagram.nodes, way.places, strict=True)
        if any(text_width(node.text, LEAST_FONT) > scale * wide for node, (_, _, wide, _) in texts):
            return None
    return diagram


def _apart(labels: Sequence[Place]) -> int:
    """The least distance along the ring at which no label covers another."""
    count = len(labels)
    covering = [
        min(a - b, count - a + b)
        for a, (x, y, w, h) in enumerate(labels)
        for b, (u, v, p, q) in enumerate(labels[:a])
        if abs(x - u) < (w + p) / 2 + 2 and abs(y - v) < (h + q) / 2
    ]
    return 1 + max(covering, default=0)


def _inside(width: float, height: float) -> tuple[float, float]:
    """Room for the diagram inside the ring."""
    return 0.62 * width - 70, 0.72 * height - 40


def _short(name: str) -> str:
    """`A, head at -3` as `A −3`; a long state is cut."""
    state, _, heads = name.rpartition(", head at ")
    return f"{cut(state, LONGEST_STATE)} {heads}".replace("-", "\N{MINUS SIGN}")
