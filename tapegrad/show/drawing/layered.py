"""Arranging a network in layers: few crossings, long edges round the nodes between, neighbours in line.

The method of Sugiyama, Tagawa and Toda (1981) for layers that are given. Edges that span several layers get a
stand-in in each; layers are ordered by the mean place of their neighbours, sweep after sweep, and the order
with the fewest crossings is kept; then every node is drawn towards the mean of its neighbours as far as the
order and the sizes allow, a least-squares problem that pooling solves (isotonic regression).
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

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
