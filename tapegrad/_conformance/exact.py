"""What every value of a network must be, in whole numbers; and how many bits a format needs for it.

A value is a whole number over a power of two, `n / 2^k`, one k for an array. Weights are such numbers too, so
a value is a sum of products of whole numbers, taken here in 64-bit integers, after making sure that they
suffice. Nothing is rounded, and no floating-point unit is involved.

**Theorem.** Let S be the sum of the magnitudes of all terms of a sum (bias included), all of which are
multiples of g. If `S / g <= 2^p`, the sum is exact in every format with p bits of precision whose range holds
S and g: each partial sum, in whatever order and grouping, and with fused multiply-adds or without, is a
multiple of g of magnitude at most S, and so a number of that format.

So a format with `bits` or more of a network's largest sum owes the exact result, whatever the runtime does
with order, blocks and fusion. Anything else is a fault, not "numerics".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.writing import MOVES
from tapegrad.errors import Refused
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import OPERATIONS, Backend, Network, Node

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
    """What a sum asks of a format."""

    bits: int
    """The p of the theorem."""
    largest: float
    """The largest S."""
    places: int
    """g is 2^-places."""


class Exact(Backend[Dyadic]):
    """The operations in whole numbers; `demands` grows with every sum."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.demands: dict[str, Demand] = {}
        self._moved = NumPy(network)

    def __getattr__(self, name: str) -> Any:
        if name in ("take", "transpose"):  # NumPy moves whole numbers as well
            return lambda node, x: Dyadic(getattr(self._moved, name)(node, x.whole), x.places)
        if name in OPERATIONS:
            raise Refused(f"{name} has no form in whole numbers")
        raise AttributeError(name)

    def constant_of(self, array: NDArray[Any]) -> Dyadic:
        return Dyadic.of(array)

    def _sum(self, node: Node, terms: Callable[..., NDArray[Any]], places: int, *parts: Any) -> Dyadic:
        """`terms` of whole numbers, and of their magnitudes: the S, in units of 2^-places, are what the sums
        ask for."""
        sizes = terms(*(np.abs(part).astype(np.float64) for part in parts))
        most = float(sizes.max(initial=0))
        if most >= SAFE:
            raise Refused(f"the sums of layer {node.name!r} do not fit into 64 bits")
        bits = max(1, int(np.ceil(np.log2(max(1.0, most)))))
        self.demands[node.name] = Demand(bits, most * 2.0**-places, places)
        return Dyadic(terms(*parts), places).lowest()

    def affine(self, node: Node, x: Dyadic) -> Dyadic:
        """By the entries: compiled maps have few."""
        rows, columns = (self.network.array(node, part) for part in ("rows", "columns"))
        w, b = self.part(node, "values"), self.part(node, "bias")
        places = max(x.places + w.places, b.places)
        begins = np.flatnonzero(np.diff(rows, prepend=-1))

        def terms(x: NDArray[Any], w: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
            found = np.zeros((*x.shape[:-1], len(b)), x.dtype)
            if len(begins):
                found[..., rows[begins]] = np.add.reduceat(x[..., columns] * w, begins, axis=-1)
            return found + b

        return self._sum(node, terms, places, x.at(places - w.places), w.whole, b.at(places))

    def product(self, node: Node, x: Dyadic, y: Dyadic) -> Dyadic:
        other = np.swapaxes(y.whole, -1, -2) if node.settings["turned"] else y.whole
        return self._sum(node, np.matmul, x.places + y.places, x.whole, other)

    def multiply(self, node: Node, x: Dyadic, y: Dyadic) -> Dyadic:
        return self._sum(node, np.multiply, x.places + y.places, x.whole, y.whole)

    def add(self, node: Node, x: Dyadic, y: Dyadic) -> Dyadic:
        places, moved = max(x.places, y.places), getattr(self._moved, node.operation)
        return self._sum(node, partial(moved, node), places, x.at(places), y.at(places))

    put = add

    def relu(self, node: Node, x: Dyadic) -> Dyadic:
        return Dyadic(np.maximum(x.whole, 0), x.places)

    def patches(self, node: Node, x: Dyadic) -> Dyadic:
        if node.number("padding"):
            raise Refused("cells outside that are not 0 have no form in whole numbers")
        return Dyadic(self._moved.patches(node, x.whole), x.places)

    def join(self, node: Node, x: Dyadic, y: Dyadic) -> Dyadic:
        places = max(x.places, y.places)
        return Dyadic(self._moved.join(node, x.at(places), y.at(places)), places)

    def hardmax(self, node: Node, x: Dyadic) -> Dyadic:
        best = x.whole == x.whole.max(axis=-1, keepdims=True)
        count = best.sum(axis=-1, keepdims=True)
        if (count & (count - 1)).any():
            raise Refused(f"in layer {node.name!r} three or another odd number of scores are equal")
        places = int(count.max()).bit_length() - 1
        return self._sum(node, np.multiply, places, best.astype(np.int64), (1 << places) // count)


@dataclass(frozen=True)
class Expected:
    """The exact values of all nodes that compute on some inputs, and what each sum asks of a format."""

    values: dict[str, NDArray[np.float64]]
    demands: dict[str, Demand]

    @property
    def bits(self) -> int:
        """What the most demanding sum needs."""
        return max(own.bits for own in self.demands.values())


def evaluated(network: Network, inputs: Mapping[str, NDArray[Any]]) -> Expected:
    """The exact values of a network."""
    exact = Exact(network)
    given = {name: Dyadic.of(array) for name, array in inputs.items()}
    outputs = set(network.outputs.values())
    values = {
        node.name: own.floats()
        for node, own in exact.values(given)
        if node.operation not in MOVES or node.name in outputs
    }
    return Expected(values, exact.demands)
