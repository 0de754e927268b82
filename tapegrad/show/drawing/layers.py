"""A network that computes layer by layer: units and the edges between, or, of a large one, its layers."""

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tapegrad.show.drawing.scene import Arrangement, Edge, Node, Place, text_width

MOST_NODES, MOST_EDGES = 420, 1400
"""Of larger networks only the layers are drawn."""
UNIT, FONT, TALL_FONT = 20.0, 11.0, 12.0
GAP = 7.0
PAD = 12.0
NARROW = 420.0
"""A layer that is wider than this in the narrow arrangement is staggered."""
MOST_ROWS = 3
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
    rows = _staggered(units.layer_of, across) if downwards else [1] * (layers + 1)
    depth = max((h if downwards else w for w, h in boxes), default=UNIT)
    # The drawing should have the shape of the window: a narrow one gets wider gaps, a short one longer steps.
    ratio, least = (1.2, 26.0) if downwards else (1.5, max(26.0, 0.75 * depth + 6))
    laid = arranged(units.layer_of, across, units.ends, GAP)
    if laid.extent < layers * least / ratio:
        fullest = max(map(units.layer_of.count, set(units.layer_of)), default=1)
        missing = layers * least / ratio - laid.extent
        laid = arranged(units.layer_of, across, units.ends, min(GAP + missing / fullest, 4 * GAP))
    step = min(max(laid.extent * ratio / max(1, layers), least), 84.0)
    if not downwards:
        step = max(step, _clear_step(units, laid.across, boxes))
    along = [PAD + depth / 2]
    for count in rows[:-1]:
        along.append(along[-1] + step + (count - 1) * (UNIT + GAP))
    own = _own_along(units.layer_of, laid.across, along, rows)
    length = along[-1] + (rows[-1] - 1) * (UNIT + GAP) + depth / 2 + PAD
    # Nodes of a staggered layer are wider than the room they were given.
    wide = [w if downwards else h for w, h in boxes]
    first = min((place - own / 2 for place, own in zip(laid.across, wide, strict=True)), default=0.0)
    end = max((place + own / 2 for place, own in zip(laid.across, wide, strict=True)), default=0.0)
    left = PAD - min(0.0, first)
    breadth = left + max(laid.extent, end) + PAD
    places: list[Place] = []
    for place, at, (w, h) in zip(laid.across, own, boxes, strict=True):
        x, y = (left + place, at) if downwards else (at, left + place)
        places.append((x, y, w, h))
    paths = []
    for (a, b), route in zip(units.ends, laid.routes, strict=True):
        points = [(along[units.layer_of[a] + i], left + place) for i, place in enumerate(route)]
        from_, to = (boxes[a][1], boxes[b][1]) if downwards else (boxes[a][0], boxes[b][0])
        points[0] = (own[a] + from_ / 2, points[0][1])
        points[-1] = (own[b] - to / 2, points[-1][1])
        paths.append(_curve(points, downwards))
    width, height = (breadth, length) if downwards else (length, breadth)
    return Arrangement(width, height, font, places, paths, [(0.0, 0.0)] * len(paths))


def _staggered(layer_of: Sequence[int], across: list[float]) -> list[int]:
    """In how many rows each layer stands. The nodes of a wide one get a share of the room that the widest of
    them takes, for their neighbours stand above and below."""
    nodes: list[list[int]] = [[] for _ in range(max(layer_of, default=0) + 1)]
    for node, layer in enumerate(layer_of):
        nodes[layer].append(node)
    rows = []
    for own in nodes:
        wide = sum(across[node] + GAP for node in own)
        rows.append(min(MOST_ROWS, max(1, math.ceil(wide / NARROW))))
        if rows[-1] > 1:
            share = max(across[node] for node in own) / rows[-1]
            for node in own:
                across[node] = share
    return rows


def _own_along(
    layer_of: Sequence[int], across: Sequence[float], along: Sequence[float], rows: Sequence[int]
) -> list[float]:
    """For each node where it stands along the layers: in a staggered one by turns in each of its rows."""
    own = [along[layer] for layer in layer_of]
    turn = [0] * len(along)
    for node in sorted(range(len(across)), key=across.__getitem__):
        layer = layer_of[node]
        own[node] += turn[layer] % rows[layer] * (UNIT + GAP)
        turn[layer] += 1
    return own


def _clear_step(units: Units, across: Sequence[float], boxes: Sequence[tuple[float, float]]) -> float:
    """From layer to layer so far that no name covers another one beside it."""
    named = [number for number, node in enumerate(units.nodes) if node.text]
    clear = 0.0
    for number, a in enumerate(named):
        for b in named[:number]:
            layers = abs(units.layer_of[a] - units.layer_of[b])
            if layers and abs(across[a] - across[b]) < (boxes[a][1] + boxes[b][1]) / 2:
                clear = max(clear, ((boxes[a][0] + boxes[b][0]) / 2 + 4) / layers)
    return clear


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
            places.append((PAD + step * (number + 0.5), height - PAD - high / 2, 0.8 * step, high))
        found.append(Arrangement(width, height, FONT, places))
    return nodes, found


# Arranging a network in layers: few crossings, long edges round the nodes between, neighbours in line.
#
# The method of Sugiyama, Tagawa and Toda (1981) for layers that are given. Edges that span several layers get
# a stand-in in each; layers are ordered by the mean place of their neighbours, sweep after sweep, and the
# order with the fewest crossings is kept; then every node is drawn towards the mean of its neighbours as far
# as the order and the sizes allow, a least-squares problem that pooling solves (isotonic regression).


SWEEPS = 12
PULLS = 24


@dataclass
class _Graph:
    """Nodes and stand-ins, layer by layer; `size` is their extent across the layers."""

    layers: list[list[int]]
    size: list[float]
    before: list[list[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    chains: list[list[int]] = field(default_factory=list)
    """For each edge the nodes and stand-ins that it leads through, ends included."""


@dataclass(frozen=True)
class Layers:
    """For each node its place across the layers; for each edge the places it leads through, from its first
    layer to its last; and how far everything extends."""

    across: list[float]
    routes: list[list[float]]
    extent: float


def arranged(
    layer_of: Sequence[int], sizes: Sequence[float], edges: Sequence[tuple[int, int]], gap: float
) -> Layers:
    """Places for nodes in given layers; an edge leads from an earlier layer to a later one. `sizes` are the
    extents of the nodes across the layers, `gap` the room between two of them."""
    graph = _with_stand_ins(layer_of, sizes, edges)
    _order(graph)
    places = _pull(graph, gap)
    low = min((p - s / 2 for p, s in zip(places, graph.size, strict=True)), default=0.0)
    high = max((p + s / 2 for p, s in zip(places, graph.size, strict=True)), default=0.0)
    places = [place - low for place in places]
    routes = [[places[node] for node in chain] for chain in graph.chains]
    return Layers(places[: len(layer_of)], routes, high - low)


def _with_stand_ins(
    layer_of: Sequence[int], sizes: Sequence[float], edges: Sequence[tuple[int, int]]
) -> _Graph:
    graph = _Graph([[] for _ in range(max(layer_of, default=0) + 1)], list(sizes))
    for node, layer in enumerate(layer_of):
        graph.layers[layer].append(node)
    slim = min(sizes, default=1.0) / 3
    ends: dict[tuple[int, int], int] = {}
    for a, b in edges:
        chain = [a]
        for layer in range(layer_of[a] + 1, layer_of[b]):
            # Edges that leave the same node share their stand-ins: one wire, with branches.
            if (a, layer) not in ends:
                ends[a, layer] = len(graph.size)
                graph.layers[layer].append(len(graph.size))
                graph.size.append(slim)
            chain.append(ends[a, layer])
        graph.chains.append([*chain, b])
    graph.before = [[] for _ in graph.size]
    graph.after = [[] for _ in graph.size]
    for a, b in {pair for chain in graph.chains for pair in pairwise(chain)}:
        graph.after[a].append(b)
        graph.before[b].append(a)
    for neighbours in (*graph.before, *graph.after):
        neighbours.sort()  # a set has no order of its own
    return graph


def _order(graph: _Graph) -> None:
    """Sweeps to and fro; the best order stays."""
    best, fewest = [list(layer) for layer in graph.layers], _crossings(graph)
    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        layers = graph.layers[1:] if forth else graph.layers[-2::-1]
        neighbours = graph.before if forth else graph.after
        rank = {node: float(place) for layer in graph.layers for place, node in enumerate(layer)}
        for layer in layers:
            mean = {
                node: sum(rank[other] for other in neighbours[node]) / len(neighbours[node])
                if neighbours[node]
                else rank[node]
                for node in layer
            }
            layer.sort(key=lambda node, mean=mean: mean[node])
            rank.update((node, float(place)) for place, node in enumerate(layer))
        crossings = _crossings(graph)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in graph.layers], crossings
    graph.layers = best


def _crossings(graph: _Graph) -> int:
    """Pairs of edges between neighbouring layers that cross: inversions, counted by insertion."""
    found = 0
    rank = {node: place for layer in graph.layers for place, node in enumerate(layer)}
    for layer in graph.layers[:-1]:
        seen: list[int] = []
        for node in layer:
            ends = sorted(rank[other] for other in graph.after[node])
            found += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return found


def _pull(graph: _Graph, gap: float) -> list[float]:
    places = [0.0] * len(graph.size)
    for layer in graph.layers:
        _settle(layer, [float(i) for i in range(len(layer))], graph.size, gap, places)
    for pull in range(PULLS):
        layers = graph.layers if pull % 2 == 0 else reversed(graph.layers)
        for layer in layers:
            wanted = []
            for node in layer:
                others = [places[other] for other in (*graph.before[node], *graph.after[node])]
                wanted.append(sum(others) / len(others) if others else places[node])
            _settle(layer, wanted, graph.size, gap, places)
    return places


def _settle(
    layer: list[int], wanted: list[float], size: list[float], gap: float, places: list[float]
) -> None:
    """The places nearest to the wanted ones, in order and apart: pool adjacent violators."""
    offsets, offset = [], 0.0
    for place, node in enumerate(layer):
        if place:
            offset += (size[layer[place - 1]] + size[node]) / 2 + gap
        offsets.append(offset)
    pools: list[tuple[float, int]] = []
    for aim, shift in zip(wanted, offsets, strict=True):
        total, count = aim - shift, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    settled = [total / count for total, count in pools for _ in range(count)]
    for node, place, shift in zip(layer, settled, offsets, strict=True):
        places[node] = place + shift
