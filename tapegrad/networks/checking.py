"""Whether a network is whole: what nodes read is there, and shapes and types fit. Backends rely on it."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.network import (
    KINDS,
    OPERATIONS,
    WITH_BODY,
    Backend,
    Network,
    Node,
    Size,
    Training,
    broken,
)

FLOATS = ("float32", "float64")


class Shape(NamedTuple):
    """Sizes and type of a value. Axes in front of those named here are batches."""

    sizes: tuple[Size, ...]
    dtype: str

    @property
    def width(self) -> Size:
        """Columns."""
        return self.sizes[-1]


class Shapes(Backend[Shape]):
    """The backend that finds the shape of every value instead of the value."""

    def constant_of(self, array: NDArray[Any]) -> Shape:
        return Shape(array.shape, array.dtype.name)

    def affine(self, node: Node, x: Shape) -> Shape:
        rows, columns, values, bias = (
            self.network.array(node, p) for p in ("rows", "columns", "values", "bias")
        )
        if not len(rows) == len(columns) == len(values) or rows.ndim != 1 or bias.ndim != 1:
            raise broken(node, "has entries without a place or a value")
        if not _below(rows, len(bias)) or not _below(columns, x.width):
            raise broken(node, f"has entries outside its {len(bias)} x {x.width} places")
        if (np.diff(rows) < 0).any():
            raise broken(node, "has its entries in another order than row by row")
        if {values.dtype.name, bias.dtype.name} != {x.dtype}:
            raise broken(node, f"has weights of another type than {x.dtype}, which it reads")
        return Shape((*x.sizes[:-1], len(bias)), x.dtype)

    def layers(self, node: Node, x: Shape) -> Shape:
        slots = node.whole("slots")
        bounds, starts, columns, values, biases, to, relu, out = (
            self.network.array(node, part) for part in OPERATIONS["layers"].arrays
        )
        rows = len(biases)
        if not isinstance(x.width, int) or not 0 <= x.width <= slots:
            raise broken(node, "has fewer slots than it reads columns")
        if slots > 2 * (x.width + rows) + 2:
            raise broken(node, "has many more slots than it ever fills")
        if not _rises(bounds, rows) or len(starts) != rows + 1 or not _rises(starts, len(columns)):
            raise broken(node, "has layers or rows that do not follow one another")
        if len(values) != len(columns) or len(to) != rows or len(relu) != rows:
            raise broken(node, "has entries without a weight, or rows without a slot")
        if not _below(columns, slots) or not _below(to, slots) or not _below(out, slots):
            raise broken(node, f"names a slot beyond its {slots}")
        if relu.dtype != np.uint8 or relu.max(initial=0) > 1:
            raise broken(node, "does not say with 0 or 1 whether a row has a ReLU")
        if {values.dtype.name, biases.dtype.name} != {x.dtype}:
            raise broken(node, f"has weights of another type than {x.dtype}, which it reads")
        layer = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        written = layer * slots + to
        read = np.repeat(layer, np.diff(starts)) * slots + columns
        order = np.argsort(written, kind="stable")  # of most networks they are in order
        if (np.diff(written[order]) == 0).any():
            raise broken(node, "writes a slot twice in one layer")
        if _changed(read, written[order], np.repeat(np.arange(rows), np.diff(starts)), order):
            raise broken(node, "writes a slot in the layer that reads it")
        return Shape((*x.sizes[:-1], len(out)), x.dtype)

    def relu(self, node: Node, x: Shape) -> Shape:
        return x

    clip = sqrt = detach = hardmax = softmax = later = relu

    def add(self, node: Node, x: Shape, y: Shape) -> Shape:
        if x.dtype != y.dtype:
            raise broken(node, f"reads values of types {x.dtype} and {y.dtype}")
        return Shape(_broadcast(node, x.sizes, y.sizes), x.dtype)

    multiply = divide = greater = add

    def total(self, node: Node, x: Shape) -> Shape:
        axes = node.whole("axes")
        if not 1 <= axes <= len(x.sizes):
            raise broken(node, f"sums over {axes} axes of {len(x.sizes)}")
        return Shape(x.sizes[: len(x.sizes) - axes], x.dtype)

    def take(self, node: Node, x: Shape) -> Shape:
        index = self.network.array(node, "index")
        if not _below(index, x.width):
            raise broken(node, f"takes columns beyond the {x.width}")
        return Shape((*x.sizes[:-1], *index.shape), x.dtype)

    def put(self, node: Node, x: Shape, y: Shape) -> Shape:
        to = self.network.array(node, "to")
        if to.ndim != 1 or len(to) != y.width or not _below(to, x.width):
            raise broken(node, f"puts {y.width} columns to {to.shape} places among {x.width}")
        return Shape((*_broadcast(node, x.sizes[:-1], y.sizes[:-1]), x.width), x.dtype)

    def join(self, node: Node, x: Shape, y: Shape) -> Shape:
        axis, axes = node.whole("axis"), {-1, -2, -3}
        if axis not in axes or x.dtype != y.dtype or min(len(x.sizes), len(y.sizes)) < max(2, -axis):
            raise broken(node, "joins what has no such axis, or is of different types")
        own = max(2, -axis)
        others = [-place for place in range(own, 0, -1) if -place != axis]
        if any(x.sizes[place] != y.sizes[place] for place in others):
            raise broken(node, f"joins values of shapes {x.sizes} and {y.sizes}")
        ends = list(x.sizes[-own:])
        ends[axis] = _sum(x.sizes[axis], y.sizes[axis])
        return Shape((*_broadcast(node, x.sizes[:-own], y.sizes[:-own]), *ends), x.dtype)

    def product(self, node: Node, x: Shape, y: Shape) -> Shape:
        inner, outer = (y.sizes[-1], y.sizes[-2]) if node.settings["turned"] else y.sizes[-2:]
        if x.sizes[-1] != inner or x.dtype != y.dtype:
            raise broken(node, f"multiplies matrices of shapes {x.sizes} and {y.sizes}")
        batch = _broadcast(node, x.sizes[:-2], y.sizes[:-2])
        return Shape((*batch, *x.sizes[-2:-1], outer), x.dtype)

    def embed(self, node: Node, n: Shape) -> Shape:
        table = self.network.array(node, "table")
        if table.ndim != 2:
            raise broken(node, "has a table that is no matrix")
        return Shape((*n.sizes, table.shape[1]), table.dtype.name)

    def places(self, node: Node, n: Shape, past: Shape) -> Shape:
        if n.dtype != "int64" or len(past.sizes) < 2:
            raise broken(node, "counts what are no tokens, or no rows")
        return Shape(n.sizes[-1:], n.dtype)

    def digits(self, node: Node, n: Shape) -> Shape:
        if not n.dtype.startswith("int"):
            raise broken(node, f"counts with numbers of type {n.dtype}")
        return Shape((*n.sizes, node.whole("count")), "float32")

    onehot = ladder = digits

    def quotient(self, node: Node, n: Shape) -> Shape:
        if not n.dtype.startswith("int") or node.whole("by") < 1:
            raise broken(node, "divides by less than 1, or what is no whole number")
        return n

    remainder = quotient

    def patches(self, node: Node, x: Shape) -> Shape:
        cells = node.list("cells")
        if not set(cells) <= set(range(9)) or len(x.sizes) != 3:
            raise broken(node, "names cells that are not in a patch of 3 x 3")
        if not isinstance(x.width, int):
            raise broken(node, "reads a grid of unknown channels")
        return Shape((*x.sizes[:-1], x.width * len(cells)), x.dtype)

    def transpose(self, node: Node, x: Shape) -> Shape:
        order = node.list("order")
        if sorted(order) != list(range(len(x.sizes))):
            raise broken(node, f"has an order {order} for {len(x.sizes)} axes")
        return Shape(tuple(x.sizes[axis] for axis in order), x.dtype)

    def repeat(self, node: Node, x: Shape) -> Shape:
        body = node.body
        if body is None or body.inputs or len(body.state) != 1 or node.whole("count") < 0:
            raise broken(node, "repeats no network of one state")
        check(body)
        return x

    def reshape(self, node: Node, x: Shape) -> Shape:
        axes, sizes = node.whole("axes"), node.list("sizes")
        if not 0 <= axes <= len(x.sizes) or min(sizes, default=0) < 0:
            raise broken(node, f"turns {axes} axes of {len(x.sizes)} into {sizes}")
        kept = len(x.sizes) - axes
        given = [size for size in x.sizes[kept:] if isinstance(size, int)]
        if len(given) < axes or math.prod(given) != math.prod(sizes):
            raise broken(node, f"turns axes of sizes {x.sizes[kept:]} into {sizes}")
        return Shape((*x.sizes[:kept], *sizes), x.dtype)

    def units(self, node: Node, x: Shape, w: Shape) -> Shape:
        starts, columns = self.network.array(node, "starts"), self.network.array(node, "columns")
        if (
            not isinstance(x.width, int)
            or w.sizes != columns.shape
            or columns.ndim != 1
            or w.dtype != x.dtype
        ):
            raise broken(node, "has entries without a weight, or weights of another type than x")
        if not _rises(starts, len(columns)):
            raise broken(node, "has units that do not follow one another")
        count = len(starts) - 1
        own = np.repeat(np.arange(count), np.diff(starts))
        if columns.dtype.kind not in "iu" or ((columns < 0) | (columns >= x.width + own)).any():
            raise broken(node, "has a unit that reads what comes after it")
        body = node.body
        if body is None or body.inputs or len(body.state) != 1:
            raise broken(node, "has no activation of one state")
        check(body)
        return Shape((*x.sizes[:-1], x.width + count), x.dtype)


def check(network: Network) -> dict[str, Shape]:
    """The shape of every value; a network that is not whole is refused."""
    for node in network.nodes:
        known = OPERATIONS.get(node.operation)
        if known is None:
            raise broken(node, "is no operation that there is")
        if len(node.reads) != known.reads or node.settings.keys() != {*known.settings}:
            raise broken(node, "has other values or settings than the operation")
        if node.arrays.keys() != {*known.arrays} or not network.arrays.keys() >= {*node.arrays.values()}:
            raise broken(node, "has other arrays than the operation, or some that are missing")
        if (node.body is not None) != (node.operation in WITH_BODY):
            raise broken(node, "has a body, or has none where it needs one")
    found = {name: Shape(port.shape, port.dtype) for name, port in network.inputs.items()}
    for name, own in network.state.items():
        first = network.arrays.get(own.first)
        if first is None or first.dtype.name != own.port.dtype or first.ndim != len(own.port.shape):
            raise BrokenNet(f"the state {name!r} begins with another value than it says")
        found[name] = Shape(own.port.shape, own.port.dtype)
    known_values = set(found)
    for node in network.nodes:
        if not known_values.issuperset(node.reads) or node.name in known_values:
            raise broken(node, "reads what comes after it, or has a name that is taken")
        known_values.add(node.name)
    if missing := network.results - known_values:
        raise BrokenNet(f"the network has no value {min(missing)!r}, which it is to give")
    found |= {node.name: shape for node, shape in Shapes(network).values(found)}
    for name, own in network.state.items():
        shape = found[own.next]
        if shape.dtype != own.port.dtype or len(shape.sizes) != len(own.port.shape):
            raise BrokenNet(f"the state {name!r} is handed on as something else")
    if network.training is not None:
        _check_training(network, network.training, found)
    return found


def _check_training(network: Network, rule: Training, found: Mapping[str, Shape]) -> None:
    """Whether the rule trains inputs, in ways that there are, by a loss that is one number."""
    if rule.loss not in network.outputs or found[network.outputs[rule.loss]].sizes:
        raise BrokenNet(f"the loss {rule.loss!r} is no output of the network, or no single number")
    for name, update in rule.updates.items():
        if name not in network.inputs or update.kind not in KINDS or not math.isfinite(update.rate):
            raise BrokenNet(f"the rule of training for {name!r} is none that there is")
    if rule.stop is not None and rule.stop != rule.stop:
        raise BrokenNet("training has a bound that is no number")


def _below(numbers: NDArray[Any], limit: Size) -> bool:
    """Whether all are whole numbers from 0 on, below the limit where that is known."""
    if numbers.dtype.kind not in "iu":
        return False
    most = limit if isinstance(limit, int) else np.iinfo(np.int64).max
    return not numbers.size or (int(numbers.min()) >= 0 and int(numbers.max()) < most)


def _rises(ends: NDArray[Any], last: int) -> bool:
    """Whether these are ends of things that follow one another, from 0 to the last."""
    kind = ends.dtype.kind in "iu" and ends.ndim == 1 and len(ends) >= 1
    return (
        kind
        and int(ends[0]) == 0
        and int(ends[-1]) == last
        and not (np.diff(ends.astype(np.int64)) < 0).any()
    )


def _changed(read: NDArray[Any], written: NDArray[Any], reader: NDArray[Any], row: NDArray[Any]) -> bool:
    """Whether a place that is read is written by another row of the same layer; a row may read its own. What
    is written is in order, each by its row."""
    if not len(written) or not len(read):
        return False
    at = np.minimum(np.searchsorted(written, read), len(written) - 1)
    return bool(((written[at] == read) & (row[at] != reader)).any())


def _broadcast(node: Node, x: tuple[Size, ...], y: tuple[Size, ...]) -> tuple[Size, ...]:
    length = max(len(x), len(y))
    pairs = zip((1,) * (length - len(x)) + x, (1,) * (length - len(y)) + y, strict=True)
    found: list[Size] = []
    for a, b in pairs:
        if a != b and 1 not in (a, b):
            raise broken(node, f"reads values of shapes {x} and {y}")
        found.append(b if a == 1 else a)
    return tuple(found)


def _sum(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) and isinstance(b, int) else f"{a} + {b}"
