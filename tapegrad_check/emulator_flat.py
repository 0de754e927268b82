"""Flatness of vertices that compute, for the networks with the paper's own activation (Lemma 1)."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet

FLAT_FROM = 1.5
"""The activation is 2 or -2 beyond 3/2."""


def require(holds: Any, otherwise: str) -> None:
    """`BrokenNet` unless it holds."""
    if not holds:
        raise BrokenNet(otherwise, advice="Compile and save the net again.")


def check_graph(arrays: dict[str, NDArray[Any]], given: int) -> None:
    """Edges are all there, and come from earlier vertices."""
    offsets, sources = arrays["offsets"], arrays["sources"]
    require(offsets[0] == 0 and offsets[-1] == len(sources) == len(arrays["kinds"]), "edges are missing")
    require((np.diff(offsets) >= 0).all(), "edges are out of order")
    own = np.repeat(np.arange(given, given + len(offsets) - 1), np.diff(offsets))
    require(((sources >= 0) & (sources < own)).all(), "an edge does not come from an earlier vertex")


def edges_of(arrays: dict[str, NDArray[Any]], given: int, vertices: NDArray[Any], count: int) -> NDArray[Any]:
    """The edges of vertices that all have `count` of them, one row for each vertex."""
    begin, end = arrays["offsets"][vertices - given], arrays["offsets"][vertices - given + 1]
    require((end - begin == count).all(), "a vertex has another number of edges than its part needs")
    return begin[:, None] + np.arange(count)


def flat_margin(
    arrays: dict[str, NDArray[Any]], given: int, weights: NDArray[np.float64], vertices: NDArray[Any]
) -> float:
    """How far from the part of the activation that is not flat these vertices stay, with the constant at 1,
    inputs at -1 or 1 and all other vertices at -2 or 2."""
    counts = np.diff(arrays["offsets"])[vertices - given]
    smallest = np.inf
    for count in np.unique(counts).tolist():
        edges = edges_of(arrays, given, vertices[counts == count], count)
        sources = arrays["sources"][edges]
        size = np.where(sources >= given, 2.0, 1.0)
        for signs in product((-1.0, 1.0), repeat=count):
            value = np.where(sources == 0, 1.0, np.array(signs)) * size
            smallest = min(smallest, float(np.abs((weights[edges] * value).sum(axis=1)).min()))
    return smallest - FLAT_FROM
