"""What every layer of a network must give, in whole numbers; and how many bits a format needs for it.

A value is a whole number over a power of two, `n / 2^k`, one k for an array. Weights are such numbers too, so
a layer is a sum of products of whole numbers, taken here in 64-bit integers, after making sure that they
suffice. Nothing is rounded, and no floating-point unit is involved.

**Theorem.** Let S be the sum of the magnitudes of all terms of a sum (bias included), all of which are
multiples of g. If `S / g <= 2^p`, the sum is exact in every format with p bits of precision whose range holds
S and g: each partial sum, in whatever order and grouping, and with fused multiply-adds or without, is a
multiple of g of magnitude at most S, and so a number of that format.

So a format with `bits` or more of a network's largest layer owes the exact result, whatever the runtime does
with order, blocks and fusion. Anything else is a fault, not "numerics".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph, Layer, patches, walk
from tapegrad.errors import Refused

SAFE = 1 << 62


@dataclass(frozen=True)
class Dyadic:
    """`whole / 2^places`."""

    whole: NDArray[np.int64]
    places: int

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Dyadic":
        """Floats are such numbers; refused if they need more than 62 bits together."""
        given = np.asarray(array, np.float64)
        mantissa, exponent = np.frexp(given)
        whole = (mantissa * 2.0**53).astype(np.int64)
        lowest = np.where(whole == 0, 1, whole) & -np.where(whole == 0, 1, whole)
        places = np.where(whole == 0, 0, 53 - exponent - np.log2(lowest.astype(np.float64)).astype(np.int64))
        k = max(0, int(places.max(initial=0)))
        if float(np.abs(given).max(initial=0)) * 2.0**k >= SAFE:
            raise Refused("the numbers of a layer are too far apart for whole numbers of 64 bits")
        return cls((given * 2.0**k).astype(np.int64), k)

    def at(self, places: int) -> NDArray[np.int64]:
        """The whole numbers over a larger power of two."""
        if float(np.abs(self.whole).max(initial=0)) * 2.0 ** (places - self.places) >= SAFE:
            raise Refused("a layer's values are too large for whole numbers of 64 bits")
        return self.whole << (places - self.places)

    def floats(self) -> NDArray[np.float64]:
        """As doubles; refused if one does not fit."""
        found = np.ldexp(self.whole.astype(np.float64), -self.places)
        if (np.abs(self.whole) > 1 << 53).any():
            raise Refused("a value needs more bits than a double has")
        return found

    def lowest(self) -> "Dyadic":
        """The same with the smallest power of two."""
        spare = 0
        while spare < self.places and not (self.whole & ((1 << (spare + 1)) - 1)).any():
            spare += 1
        return Dyadic(self.whole >> spare, self.places - spare)


@dataclass(frozen=True)
class Demand:
    """What a layer asks of a format."""

    bits: int
    """The p of the theorem."""
    largest: float
    """The largest S."""
    places: int
    """g is 2^-places."""


class Exact:
    """The operations in whole numbers; `demands` grows with every layer."""

    def __init__(self) -> None:
        self.demands: dict[str, Demand] = {}

    def _sum(self, layer: Layer, terms: NDArray[np.int64], sizes: NDArray[np.float64], places: int) -> Dyadic:
        """Notes what the sums ask for; `sizes` are the S, in units of 2^-places."""
        most = float(sizes.max(initial=0))
        if most >= SAFE:
            raise Refused(f"the sums of layer {layer.name!r} do not fit into 64 bits")
        bits = max(1, int(np.ceil(np.log2(max(1.0, most)))))
        self.demands[layer.name] = Demand(bits, most * 2.0**-places, places)
        return Dyadic(np.maximum(terms, 0) if layer.relu else terms, places).lowest()

    def _affine(
        self, layer: Layer, x: Dyadic, products: Any, weight: NDArray[Any], across: tuple[int, ...] = ()
    ) -> Dyadic:
        """`products(x, w)` is the sum of products without the bias."""
        w, b = Dyadic.of(weight), Dyadic.of(layer.arrays["bias"])
        places = max(x.places + w.places, b.places)
        left = Dyadic(x.whole, x.places).at(places - w.places)
        bias = b.at(places).reshape(-1, *across)
        sizes = products(np.abs(left).astype(np.float64), np.abs(w.whole).astype(np.float64)) + np.abs(bias)
        if float(sizes.max(initial=0)) >= SAFE:
            raise Refused(f"the sums of layer {layer.name!r} do not fit into 64 bits")
        return self._sum(layer, products(left, w.whole) + bias, sizes, places)

    def dense(self, layer: Layer, x: Dyadic) -> Dyadic:
        """By the entries that are not 0: compiled matrices have few."""
        columns, rows = np.nonzero(layer.weight.T)
        begins = np.flatnonzero(np.diff(columns, prepend=-1))

        def products(a: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
            found = np.zeros((len(a), w.shape[1]), a.dtype)
            if len(begins):
                found[:, columns[begins]] = np.add.reduceat(a[:, rows] * w[rows, columns], begins, axis=1)
            return found

        return self._affine(layer, x, products, layer.weight)

    def sparse(self, layer: Layer, x: Dyadic) -> Dyadic:
        inputs = layer.arrays["inputs"]
        return self._affine(layer, x, lambda a, w: (a[:, inputs] * w).sum(-1), layer.weight)

    def convolution(self, layer: Layer, x: Dyadic) -> Dyadic:
        kernel = layer.weight
        flat, size = kernel.reshape(len(kernel), -1).T, kernel.shape[-1]

        def products(a: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
            return (patches(a, size) @ w).transpose(0, 3, 1, 2)

        return self._affine(layer, x, products, flat, (1, 1))

    def join(self, layer: Layer, x: Dyadic) -> Dyadic:
        first = Dyadic.of(layer.arrays["first"])
        places = max(first.places, x.places)
        rows = np.concatenate([first.at(places), x.at(places)])
        return self._sum(layer, rows, np.abs(rows).astype(np.float64), places)

    def scores(self, layer: Layer, x: Dyadic, y: Dyadic) -> Dyadic:
        mask = Dyadic.of(layer.arrays["mask"])
        places = max(x.places + y.places, mask.places)
        left, right, added = x.at(places - y.places), y.whole.T, mask.at(places)
        sizes = np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64) + np.abs(added)
        return self._sum(layer, left @ right + added, sizes, places)

    def choose(self, layer: Layer, x: Dyadic) -> Dyadic:
        best = x.whole == x.whole.max(axis=-1, keepdims=True)
        count = best.sum(axis=-1, keepdims=True)
        if (count & (count - 1)).any():
            raise Refused(f"in layer {layer.name!r} three or another odd number of scores are equal")
        places = int(count.max()).bit_length() - 1
        return self._sum(layer, best * ((1 << places) // count), np.ones(1), places)

    def mix(self, layer: Layer, x: Dyadic, y: Dyadic, z: Dyadic) -> Dyadic:
        places = max(x.places + y.places, z.places)
        left, right, added = x.at(places - y.places), y.whole, z.at(places)
        sizes = np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64) + np.abs(added)
        return self._sum(layer, left @ right + added, sizes, places)


@dataclass(frozen=True)
class Expected:
    """The exact values of all layers on some inputs, and what each layer asks of a format."""

    values: dict[str, NDArray[np.float64]]
    demands: dict[str, Demand]

    @property
    def bits(self) -> int:
        """What the most demanding layer needs."""
        return max(own.bits for own in self.demands.values())


def evaluated(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> Expected:
    """The exact values of all layers."""
    exact = Exact()
    given = {name: Dyadic.of(array) for name, array in inputs.items()}
    values = {layer.name: own.floats() for layer, own in walk(graph, exact, given)}
    return Expected(values, exact.demands)
