"""A network that computes layer by layer: units and the edges between, or, of a large one, its layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tapegrad.show.drawing.layered import arranged
from tapegrad.show.drawing.scene import Arrangement, Edge, Node, Place, text_width

MOST_NODES, MOST_EDGES = 420, 1400
"""Of larger networks only the layers are drawn."""
UNIT, FONT, TALL_FONT = 20.0, 11.0, 12.0
GAP = 7.0
PAD = 12.0
MOST_LAYERS = 400


@dataclass(frozen=True)
class Units:
    """Nodes with the layer of each, and edges from an earlier layer to a later one, with their weights."""

    nodes: list[Node]
    layer_of: list[int]
    ends: list[tuple[int, int]]
    weights: list[float]

    @property
    def drawable(self) -> bool:
        """Whether it is small enough for all of it to be drawn."""
        return len(self.nodes) <= MOST_NODES and len(self.ends) <= MOST_EDGES

    def edges(self) -> list[Edge]:
        """As they are drawn: the weight in words."""
        return [Edge(words=f"A weight of {weight:g}.") for weight in self.weights]

    def arrangements(self) -> list[Arrangement]:
        """From left to right for a wide window, from top to bottom for a narrow one."""
        return [_arranged(self, FONT, False), _arranged(self, TALL_FONT, True)]


def _arranged(units: Units, font: float, downwards: bool) -> Arrangement:
    boxes = [_size(node, font) for node in units.nodes]
    across = [w if downwards else h for w, h in boxes]
    layers = max(units.layer_of, default=0)
    depth = max((h if downwards else w for w, h in boxes), default=UNIT)
    # The drawing should have the shape of the window: a narrow one gets wider gaps, a short one longer steps.
    ratio, least = (1.2, 26.0) if downwards else (1.5, max(26.0, 0.75 * depth + 6))
    laid = arranged(units.layer_of, across, units.ends, GAP)
    if laid.extent < layers * least / ratio:
        fullest = max(map(units.layer_of.count, set(units.layer_of)), default=1)
        missing = layers * least / ratio - laid.extent
        laid = arranged(units.layer_of, across, units.ends, min(GAP + missing / fullest, 4 * GAP))
    step = min(max(laid.extent * ratio / max(1, layers), least), 84.0)
    start = PAD + depth / 2
    along = [start + step * layer for layer in range(layers + 1)]
    length, breadth = along[-1] + depth / 2 + PAD, laid.extent + 2 * PAD
    places: list[Place] = []
    for place, layer, (w, h) in zip(laid.across, units.layer_of, boxes, strict=True):
        x, y = (PAD + place, along[layer]) if downwards else (along[layer], PAD + place)
        places.append((x, y, w, h))
    paths = []
    for (a, b), route in zip(units.ends, laid.routes, strict=True):
        points = [(along[units.layer_of[a] + i], PAD + place) for i, place in enumerate(route)]
        from_, to = (boxes[a][1], boxes[b][1]) if downwards else (boxes[a][0], boxes[b][0])
        points[0] = (points[0][0] + from_ / 2, points[0][1])
        points[-1] = (points[-1][0] - to / 2, points[-1][1])
        paths.append(_curve(points, downwards))
    width, height = (breadth, length) if downwards else (length, breadth)
    return Arrangement(width, height, font, places, paths, [(0.0, 0.0)] * len(paths))


def _size(node: Node, font: float) -> tuple[float, float]:
    if node.shape == "dot":
        return 6.0, 6.0
    if node.shape == "gate":
        return UNIT, UNIT
    return max(UNIT, text_width(node.text, font) + 8), UNIT


def _curve(points: Sequence[tuple[float, float]], downwards: bool) -> list[float]:
    """Through all points, leaving and arriving along the direction of the layers."""
    path = [*points[0]]
    for (a, p), (b, q) in pairwise(points):
        middle = (a + b) / 2
        path += [middle, p, middle, q, b, q]
    if downwards:
        path = [path[i + 1] if i % 2 == 0 else path[i - 1] for i in range(len(path))]
    return path


def skyline(sizes: Sequence[int], words: Sequence[str]) -> tuple[list[Node], list[Arrangement]]:
    """A large network by its layers: a column for each, as high as it has units."""
    nodes = [Node("", said, "cell") for said in words[:MOST_LAYERS]]
    found = []
    for width, height in ((760.0, 420.0), (360.0, 420.0)):
        step = (width - 2 * PAD) / len(nodes)
        tallest = max(sizes)
        places = []
        for number, size in enumerate(sizes[: len(nodes)]):
            high = max(3.0, (height - 2 * PAD) * size / tallest)
            places.append((PAD + step * (number + 0.5), height - PAD - high / 2, max(1.0, 0.8 * step), high))
        found.append(Arrangement(width, height, FONT, places))
    return nodes, found
