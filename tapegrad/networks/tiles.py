"""The rows of a node `layers` in tiles of one shape, for backends that run a loop over equal pieces."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from tapegrad.networks.network import Network, Node

HEIGHT = 32
"""Rows that are computed together."""


class Tiles(NamedTuple):
    """Places in the arrays of the node. Padding names what is behind the last entry, row or slot."""

    entries: Int[np.ndarray, "tiles height fan_in"]
    reads: Int[np.ndarray, "tiles height fan_in"]
    rows: Int[np.ndarray, "tiles height"]
    to: Int[np.ndarray, "tiles height"]


def tiles_of(network: Network, node: Node, height: int = HEIGHT) -> Tiles:
    """Rows of a layer in tiles of this height; the last tile of each is filled up."""
    bounds, starts, columns, to = (
        network.array(node, part) for part in ("bounds", "starts", "columns", "to")
    )
    slots, counts, sizes = node.whole("slots"), np.diff(starts), np.diff(bounds)
    first = np.concatenate([[0], np.cumsum(-(-sizes // height))])
    fan_in, total = max(1, int(counts.max(initial=0))), int(first[-1])
    layer = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(to)) - bounds[layer]
    tile, row = first[layer] + within // height, within % height
    made = Tiles(
        np.full((total, height, fan_in), len(columns), np.int64),
        np.full((total, height, fan_in), slots, np.int64),
        np.full((total, height), len(to), np.int64),
        np.full((total, height), slots, np.int64),
    )
    made.rows[tile, row] = np.arange(len(to))
    made.to[tile, row] = to
    of = np.repeat(np.arange(len(to)), counts)
    which = np.arange(len(of)) - starts[of]
    made.entries[tile[of], row[of], which] = np.arange(len(of))
    made.reads[tile[of], row[of], which] = columns
    return made
