"""The memory components of the paper, read off the arrays of a compiled network, edge by edge.

Nothing is looked up by place or by weight: from every edge to the output the path is followed back, by the
edges that are there, to the vertex that it begins at. What differs from the picture is no component.
"""

from contextlib import suppress
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tapegrad.targets.emulator.graph import Graph
from tapegrad.targets.emulator.numbers import Exact, Number

PRECISION = 250
"""Digits: the exponents of the exact memory are as large as 364."""


def parents(graph: Graph, vertex: int) -> dict[int, int]:
    """Where the edges to a vertex come from, and which they are."""
    begin, end = graph.offsets[vertex - graph.inputs : vertex - graph.inputs + 2].tolist()
    return {int(graph.sources[edge]): edge for edge in range(begin, end)}


def sole_parent(graph: Graph, vertex: int) -> tuple[int, int]:
    """The one vertex that leads to this one, and the edge."""
    found = parents(graph, vertex) if vertex >= graph.inputs else {}
    if len(found) != 1:
        raise LookupError(f"{len(found)} edges lead to vertex {vertex}, not one")
    return next(iter(found.items()))


class Path(NamedTuple):
    """One path to the output: its vertices v_0, v_1, ..., and its edges, in order; the vertex v_k at which it
    is closed, and the controls that lead there, with their edges."""

    vertices: tuple[int, ...]
    edges: tuple[int, ...]
    controls: dict[int, int]


def path_to(graph: Graph, vertex: int, edge: int, length: int, closed: int) -> Path:
    """The path of this length whose last edge leads from `vertex` to the output, closed at its vertex number
    `closed`, where exactly one of the edges goes on backwards along vertices with a single edge."""
    vertices, edges, controls = [vertex], [edge], {}
    while len(edges) < length:
        now = vertices[-1]
        if length - len(edges) == closed:
            others = parents(graph, now)
            behind = [source for source in others if _begins(graph, source, closed - 1)]
            if len(behind) != 1:
                raise LookupError(f"{len(behind)} paths lead to vertex {now}, not one")
            source, own = behind[0], others.pop(behind[0])
            controls = others
        else:
            source, own = sole_parent(graph, now)
        vertices.append(source)
        edges.append(own)
    return Path(tuple(reversed(vertices)), tuple(reversed(edges)), controls)


def _begins(graph: Graph, vertex: int, length: int) -> bool:
    """Whether so many edges lead here one after the other, each the only one to its vertex."""
    try:
        for _ in range(length):
            vertex, _ = sole_parent(graph, vertex)
    except LookupError:
        return False
    return True


def paths(graph: Graph, length: int, closed: int) -> list[Path]:
    """All such paths, one for each edge to the output that has one."""
    found = []
    for vertex, edge in parents(graph, graph.vertices - 1).items():
        with suppress(LookupError):
            found.append(path_to(graph, vertex, edge, length, closed))
    return found


def children(graph: Graph, vertex: int) -> dict[int, int]:
    """Where the edges from a vertex lead, and which they are."""
    edges = np.flatnonzero(graph.sources == vertex)
    return {int(graph.ends[edge]): int(edge) for edge in edges}


def digits(number: Number) -> Decimal:
    """An exact number r 2^a p^b m0^c, to PRECISION digits."""
    with localcontext(prec=PRECISION):
        if not isinstance(number, Exact):
            return Decimal(Fraction(number).numerator) / Fraction(number).denominator
        field, log = number.field, Decimal(0)
        bases = (Decimal(2), Decimal(field.p.numerator) / field.p.denominator, Decimal(field.m0))
        for base, exponent in zip(bases, number.exponents, strict=True):
            log += base.ln() * exponent.numerator / exponent.denominator
        return log.exp() * number.r.numerator / number.r.denominator
