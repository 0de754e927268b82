"""A backend in plain Python: nested lists of exact fractions, and nothing shared with any array library.

It is what somebody writes who reads the list of operations in `tapegrad.networks.network` alone."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from tapegrad.networks.network import Backend, Node


def each(function: Callable[..., Any], *lists: Any) -> Any:
    """A function entry by entry; a list of one stands for as many as needed, a number for a list."""
    if not any(isinstance(own, list) for own in lists):
        return function(*lists)
    depth = max(depth_of(own) for own in lists)
    count = max(len(own) for own in lists if depth_of(own) == depth)
    count = 0 if any(depth_of(own) == depth and len(own) == 0 for own in lists) else count
    parts = [
        [own] * count if depth_of(own) < depth else own * count if len(own) == 1 else own for own in lists
    ]
    return [each(function, *row) for row in zip(*parts, strict=True)]


def depth_of(own: Any) -> int:
    return 1 + max(map(depth_of, own), default=0) if isinstance(own, list) else 0


def rows(function: Callable[[list[Any]], Any], x: Any) -> Any:
    """A function of every last axis."""
    if x == []:
        return []
    if depth_of(x) <= 1:
        return function(x)
    return [rows(function, own) for own in x]


def matrices(function: Callable[..., Any], *lists: Any) -> Any:
    """A function of the last two axes; one without a batch is the same for each of the other's."""
    depth = max(map(depth_of, lists))
    if depth <= 2:
        return function(*lists)
    count = max(len(own) for own in lists if depth_of(own) == depth)
    parts = [own if depth_of(own) == depth else [own] * count for own in lists]
    return [matrices(function, *own) for own in zip(*parts, strict=True)]


class Toy(Backend[Any]):
    def constant_of(self, array: np.ndarray) -> Any:
        if array.ndim == 0:
            return self._number(array.item())
        return [self.constant_of(own) for own in array] if array.ndim > 1 else list(map(self._number, array))

    @staticmethod
    def _number(value: Any) -> Any:
        return value if isinstance(value, int) or math.isinf(value) else Fraction(float(value))

    def affine(self, node: Node, x: Any) -> Any:
        columns, values, bias = (self.part(node, part) for part in ("columns", "values", "bias"))
        places = self.part(node, "rows")

        def applied(row: list[Any]) -> list[Any]:
            found = list(bias)
            for r, c, value in zip(places, columns, values, strict=True):
                found[int(r)] += value * row[int(c)]
            return found

        return rows(applied, x)

    def layers(self, node: Node, x: Any) -> Any:
        names = ("bounds", "starts", "columns", "values", "biases", "to", "relu", "out")
        bounds, starts, columns, values, biases, to, relu, out = (self.part(node, name) for name in names)

        def run(row: list[Any]) -> list[Any]:
            slots = row + [0] * (node.whole("slots") - len(row))
            for first, last in pairwise(bounds):
                new = {}
                for r in range(int(first), int(last)):
                    entries = range(int(starts[r]), int(starts[r + 1]))
                    total = biases[r] + sum(values[e] * slots[int(columns[e])] for e in entries)
                    new[int(to[r])] = max(0, total) if relu[r] else total
                for slot, value in new.items():
                    slots[slot] = value
            return [slots[int(slot)] for slot in out]

        return rows(run, x)

    def relu(self, node: Node, x: Any) -> Any:
        return each(lambda own: max(own, 0), x)

    def clip(self, node: Node, x: Any) -> Any:
        low, high = Fraction(node.number("low")), Fraction(node.number("high"))
        return each(lambda own: min(max(own, low), high), x)

    def sqrt(self, node: Node, x: Any) -> Any:
        return each(lambda own: Fraction(math.sqrt(own)), x)

    def detach(self, node: Node, x: Any) -> Any:
        return x

    def divide(self, node: Node, x: Any, y: Any) -> Any:
        return each(lambda a, b: a / b, x, y)

    def reshape(self, node: Node, x: Any) -> Any:
        shape = shape_of(x)
        kept = shape[: len(shape) - node.whole("axes")]
        array = np.empty(shape, object)
        array[...] = x
        return array.reshape((*kept, *node.list("sizes"))).tolist()

    def units(self, node: Node, x: Any, w: Any) -> Any:
        starts, columns = self.part(node, "starts"), self.part(node, "columns")
        assert node.body is not None
        body, (name,) = Toy(node.body), node.body.state

        def run(row: list[Any]) -> list[Any]:
            row = list(row)
            for first, last in pairwise(starts):
                total = sum(w[e] * row[int(columns[e])] for e in range(int(first), int(last)))
                row.append(body.run({name: total})[1][name])
            return row

        return rows(run, x)

    def repeat(self, node: Node, x: Any) -> Any:
        assert node.body is not None
        for _ in range(node.whole("count")):
            (x,) = Toy(node.body).run({next(iter(node.body.state)): x})[1].values()
        return x

    def add(self, node: Node, x: Any, y: Any) -> Any:
        return each(lambda a, b: a + b, x, y)

    def multiply(self, node: Node, x: Any, y: Any) -> Any:
        return each(lambda a, b: a * b, x, y)

    def greater(self, node: Node, x: Any, y: Any) -> Any:
        return each(lambda a, b: int(a > b), x, y)

    def total(self, node: Node, x: Any) -> Any:
        for _ in range(node.whole("axes")):
            x = rows(lambda own: sum(own), x)
        return x

    def take(self, node: Node, x: Any) -> Any:
        index = self.part(node, "index")
        return rows(lambda row: each(lambda place: row[int(place)], index), x)

    def put(self, node: Node, x: Any, y: Any) -> Any:
        to = self.part(node, "to")

        def added(a: list[Any], b: list[Any]) -> list[Any]:
            found = list(a)
            for place, value in zip(to, b, strict=True):
                found[int(place)] += value
            return found

        def joined(a: Any, b: Any) -> Any:
            height = max(len(a), len(b))
            both = zip(a * (height // len(a)), b * (height // len(b)), strict=True)
            return [added(*pair) for pair in both]

        return matrices(joined, x, y)

    def join(self, node: Node, x: Any, y: Any) -> Any:
        if node.whole("axis") == -3:
            return x + y
        if node.whole("axis") == -2:
            return matrices(lambda a, b: a + b, x, y)
        return matrices(lambda a, b: [left + right for left, right in zip(a, b, strict=True)], x, y)

    def product(self, node: Node, x: Any, y: Any) -> Any:
        def multiplied(a: Any, b: Any) -> Any:
            columns = b if node.settings["turned"] else list(zip(*b, strict=True))
            return [[sum(u * v for u, v in zip(row, own, strict=True)) for own in columns] for row in a]

        return matrices(multiplied, x, y) if depth_of(x) > 1 else multiplied([x], y)[0]

    def later(self, node: Node, x: Any) -> Any:
        def masked(own: Any) -> Any:
            before = len(own[0]) - len(own) if own else 0
            return [
                [value if place <= before + number else -math.inf for place, value in enumerate(row)]
                for number, row in enumerate(own)
            ]

        return matrices(masked, x)

    def hardmax(self, node: Node, x: Any) -> Any:
        return rows(lambda row: [Fraction(int(own == max(row)), row.count(max(row))) for own in row], x)

    def softmax(self, node: Node, x: Any) -> Any:
        def shares(row: list[Any]) -> list[Any]:
            best, sharp = max(row), node.number("temperature")
            made = [math.exp(sharp * float(own - best)) for own in row]
            return [Fraction(own / sum(made)) for own in made]

        return rows(shares, x)

    def embed(self, node: Node, n: Any) -> Any:
        return [self.part(node, "table")[int(own)] for own in n]

    def places(self, node: Node, n: Any, past: Any) -> Any:
        return [len(past) + place for place in range(len(n))]

    def digits(self, node: Node, n: Any) -> Any:
        return [[max(int(own), 0) >> bit & 1 for bit in range(node.whole("count"))] for own in n]

    def quotient(self, node: Node, n: Any) -> Any:
        return each(lambda own: own // node.whole("by"), n)

    def remainder(self, node: Node, n: Any) -> Any:
        return each(lambda own: own % node.whole("by"), n)

    def onehot(self, node: Node, n: Any) -> Any:
        return [[int(own == place) for place in range(node.whole("count"))] for own in n]

    def ladder(self, node: Node, n: Any) -> Any:
        return [[int(place < own) for place in range(node.whole("count"))] for own in n]

    def patches(self, node: Node, x: Any) -> Any:
        outside = [Fraction(node.number("padding"))] * len(x[0][0])

        def cell(row: int, column: int) -> list[Any]:
            inside = 0 <= row < len(x) and 0 <= column < len(x[0])
            return x[row][column] if inside else outside

        def patch(row: int, column: int) -> list[Any]:
            around = [cell(row + own // 3 - 1, column + own % 3 - 1) for own in node.list("cells")]
            return [value for channel in zip(*around, strict=True) for value in channel]

        return [[patch(row, column) for column in range(len(x[0]))] for row in range(len(x))]

    def transpose(self, node: Node, x: Any) -> Any:
        array = np.empty(shape_of(x), object)
        array[...] = x
        return array.transpose(node.list("order")).tolist()


def shape_of(x: Any) -> tuple[int, ...]:
    return (len(x), *shape_of(x[0])) if isinstance(x, list) else ()
