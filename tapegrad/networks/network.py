"""One form for every network: a graph of few operations, with named values, state and arrays.

A network is given its *inputs* and, where it takes steps, its *state*: what it handed on at the step before.
Each *node* makes one value from others by one operation. Some values are *outputs*; some become the state of
the next step. Weights are *arrays*; which array plays which part in a node is said by the node.

    affine(x | rows, columns, values, bias)      A x + b, by the entries of A; entries of one place add up
    layers(x | bounds, starts, columns, values, biases, to, relu, out; slots)
                                                 many sparse layers on a row of slots: see below
    relu(x)                                      max(x, 0)
    clip(x; low, high)                           min(max(x, low), high)
    sqrt(x), detach(x)                           detach(x) is x, and its derivative is 0
    add(x, y), multiply(x, y), divide(x, y)      element by element; shapes are broadcast
    greater(x, y)                                1 where x > y, else 0
    total(x; axes)                               the sum over the last so many axes
    constant(| value)                            an array as a value
    take(x | index)                              x[..., index]
    put(x, y | to)                               x with y added at the columns `to`; repeated ones add up
    join(x, y; axis)                             one after the other, by the last, last but one, ... axis
    product(x, y; turned)                        x y, or x y^T where `turned`: products of rows
    later(x)                                     scores of rows that are the last of the places:
                                                 -infinity at places that come after the row
    hardmax(x), softmax(x; temperature)          shares: equal ones of the greatest, or exp(temperature x)
    embed(n | table)                             the row n of a table
    places(n, past)                              0, 1, ... for the numbers of a row, plus the rows of past
    digits(n; count)                             binary digits, lowest first; numbers below 0 count as 0
    quotient(n; by), remainder(n; by)            of whole numbers, rounded down
    onehot(n; count), ladder(n; count)           1 at column n; 1 at all columns below n
    patches(x; cells, padding)                   of a grid (rows, columns, channels) the 3x3 patch of each
                                                 cell, channel by channel: those of its cells that are named
    transpose(x; order)                          axes in another order
    reshape(x; axes, sizes)                      the numbers of the last so many axes, row by row, in axes of
                                                 other sizes
    repeat(x; count)                             so many steps of the node's body, a network of one state
    units(x, w | starts, columns)                x, and behind it units, one after the other: see below

Values are arrays whose last axis has the columns and whose last but one has the rows (patterns, positions);
further axes in front are batches, and everything works for each member of a batch alone.

`layers` is how a large sparse network is one node. A row of `slots` begins with x and zeros. Layer i has the
rows from `bounds[i]` to `bounds[i + 1]`; row r is the sum of its entries, from `starts[r]` to
`starts[r + 1]`, times slots, plus bias, and its ReLU where `relu[r]` is 1; all rows of a layer are computed
before any is written, row r to slot `to[r]`. The value is the slots `out` at the end.

`units` is a sparse network whose weights are a value, since they are under training: those of `layers` are
arrays, which stay. Unit k stands at column len(x) + k, behind all that it reads: the sum of w_e times column
`columns[e]` over its entries e, from `starts[k]` to `starts[k + 1]`, through the node's body, a network of
one state that works element by element, its activation. The value has the columns of x, then all units.

A network that is trained has a loss among its outputs. How a step of training changes its inputs is no
operation: it stands beside the graph (`Training`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.form import Affine

Value = TypeVar("Value")
Setting = int | float | bool | tuple[int, ...]
Size = int | str
"""Of an axis; one that is known only when the network runs has a name."""


class Operation(NamedTuple):
    """How many values an operation reads, which arrays it has and which settings."""

    reads: int
    arrays: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


MAP: tuple[str, ...] = ("rows", "columns", "values", "bias")
WEIGHTS = ("values", "bias", "biases", "table")
"""Parts of nodes that a network learns where it is trained whole: all else is its shape."""
LAYERS: tuple[str, ...] = ("bounds", "starts", "columns", "values", "biases", "to", "relu", "out")
OPERATIONS: Mapping[str, Operation] = {
    "affine": Operation(1, MAP),
    "layers": Operation(1, LAYERS, ("slots",)),
    "relu": Operation(1),
    "clip": Operation(1, (), ("low", "high")),
    "sqrt": Operation(1),
    "detach": Operation(1),
    "add": Operation(2),
    "multiply": Operation(2),
    "divide": Operation(2),
    "greater": Operation(2),
    "total": Operation(1, (), ("axes",)),
    "constant": Operation(0, ("value",)),
    "take": Operation(1, ("index",)),
    "put": Operation(2, ("to",)),
    "join": Operation(2, (), ("axis",)),
    "product": Operation(2, (), ("turned",)),
    "later": Operation(1),
    "hardmax": Operation(1),
    "softmax": Operation(1, (), ("temperature",)),
    "embed": Operation(1, ("table",)),
    "places": Operation(2),
    "digits": Operation(1, (), ("count",)),
    "quotient": Operation(1, (), ("by",)),
    "remainder": Operation(1, (), ("by",)),
    "onehot": Operation(1, (), ("count",)),
    "ladder": Operation(1, (), ("count",)),
    "patches": Operation(1, (), ("cells", "padding")),
    "transpose": Operation(1, (), ("order",)),
    "reshape": Operation(1, (), ("axes", "sizes")),
    "repeat": Operation(1, (), ("count",)),
    "units": Operation(2, ("starts", "columns")),
}
WITH_BODY = ("repeat", "units")
"""Operations whose nodes have a body."""


class Port(NamedTuple):
    """What a value from outside looks like: its sizes, its type, and the names of its columns if they have
    any."""

    shape: tuple[Size, ...]
    dtype: str
    columns: tuple[str, ...] = ()
    about: str = ""


class State(NamedTuple):
    """A value that is handed on: at the first step the array `first`, later what `next` was."""

    port: Port
    first: str
    next: str


class Update(NamedTuple):
    """How an input changes at a step of training: by `gradient` it moves against its gradient, at a rate; by
    `vertex`, a point of a simplex, it moves to the vertex of steepest descent, or stays where no vertex is
    strictly better, and so far as a line search says, if there is one."""

    kind: str
    rate: float = 1.0
    line_search: bool = False

    def __str__(self) -> str:
        if self.kind == "gradient":
            return f"against its gradient, at the rate {self.rate:g}"
        return f"to its best vertex{', as far as a line search says' if self.line_search else ''}"


KINDS = ("gradient", "vertex")


class Training(NamedTuple):
    """The rule of training: how every input that is trained changes at a step, by the gradient of a loss."""

    loss: str
    """The output."""
    updates: Mapping[str, Update]
    stop: float | None = None
    """Training ends when the loss is at most this; asked after every step."""


@dataclass(frozen=True)
class Node:
    """One operation: its name is that of its value."""

    name: str
    operation: str
    reads: tuple[str, ...] = ()
    arrays: Mapping[str, str] = field(default_factory=dict)
    """For each part the name of the array that plays it."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    about: str = ""
    """What it is for."""
    body: "Network | None" = None

    def whole(self, name: str) -> int:
        """A setting that is a whole number."""
        value = self.settings[name]
        if type(value) is not int:
            raise broken(self, f"has {value!r} for {name}, which is a whole number")
        return value

    def number(self, name: str) -> float:
        """A setting that is a number."""
        value = self.settings[name]
        if isinstance(value, tuple) or value != value:
            raise broken(self, f"has {value!r} for {name}, which is a number")
        return value

    def list(self, name: str) -> tuple[int, ...]:
        """A setting that is a list of whole numbers."""
        value = self.settings[name]
        if not isinstance(value, tuple):
            raise broken(self, f"has {value!r} for {name}, which is a list")
        return value


@dataclass(frozen=True)
class Network:
    """A network as data."""

    name: str
    inputs: Mapping[str, Port]
    state: Mapping[str, State]
    nodes: tuple[Node, ...]
    outputs: Mapping[str, str]
    """For each output the value that it is."""
    arrays: Mapping[str, NDArray[Any]]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For some values the names of their columns."""
    training: Training | None = None
    """Of a network that is trained the rule."""

    @cached_property
    def results(self) -> frozenset[str]:
        """The values that are outputs or become state."""
        return frozenset([*self.outputs.values(), *(own.next for own in self.state.values())])

    @cached_property
    def last_reads(self) -> list[list[str]]:
        """For each node the values that nobody reads after it."""
        kept = set(self.results)
        ends: list[list[str]] = [[] for _ in self.nodes]
        for number in reversed(range(len(self.nodes))):
            node = self.nodes[number]
            for value in (*node.reads, node.name):
                if value not in kept:
                    kept.add(value)
                    ends[number].append(value)
        return ends

    def array(self, node: Node, part: str) -> NDArray[Any]:
        """The array that plays a part in a node."""
        return self.arrays[node.arrays[part]]

    def constant(self, name: str) -> NDArray[Any]:
        """The array of the constant of this name."""
        return self._named(name, constant="value")

    def index(self, name: str) -> NDArray[Any]:
        """The columns that the node of this name takes, or adds to."""
        return self._named(name, take="index", put="to")

    def _named(self, name: str, **parts: str) -> NDArray[Any]:
        for node in self.nodes:
            if node.name == name and node.operation in parts:
                return self.array(node, parts[node.operation])
        raise BrokenNet(f"the network has no {' or '.join(parts)} of the name {name!r}")

    def map(self, node: Node, width: int) -> Affine:
        """The map of an affine node, which reads so many columns."""
        rows, columns, values, bias = (self.array(node, part) for part in MAP)
        return Affine(rows, columns, values, bias, width)

    def floors(self, node: Node) -> NDArray[np.floating]:
        """What no row of a node of layers falls below: 0 where there is a ReLU, else -infinity."""
        rectified, dtype = self.array(node, "relu"), self.array(node, "biases").dtype
        return np.where(rectified == 1, 0, -np.inf).astype(dtype)

    def weights(self) -> set[str]:
        """The names of the arrays that are weights."""
        own = {name for node in self.nodes for part, name in node.arrays.items() if part in WEIGHTS}
        return own.union(*(node.body.weights() for node in self.nodes if node.body is not None))

    def first_state(self) -> dict[str, NDArray[Any]]:
        """The state before the first step."""
        return {name: np.asarray(self.arrays[own.first]) for name, own in self.state.items()}

    def __deepcopy__(self, memo: object) -> "Network":
        """Itself: nothing in it changes."""
        return self

    def __str__(self) -> str:
        from tapegrad.networks.listing import listing

        return listing(self)


class Backend(Generic[Value]):
    """A way to evaluate networks: a method for each operation, which gets the node and the values that it
    reads. Other arrays may be given in place of the network's own: weights under training."""

    def __init__(self, network: Network, arrays: Mapping[str, Value] | None = None) -> None:
        self.network = network
        self._given = arrays or {}
        self._made: dict[str, Value] = {}

    def constant_of(self, array: NDArray[Any]) -> Value:
        """An array of the network in the backend's own form."""
        raise NotImplementedError

    def part(self, node: Node, part: str) -> Value:
        """The array that plays a part in a node; the network's own are made ready once."""
        name = node.arrays[part]
        if name in self._given:
            return self._given[name]
        if name not in self._made:
            self._made[name] = self.constant_of(self.network.arrays[name])
        return self._made[name]

    def constant(self, node: Node) -> Value:
        return self.part(node, "value")

    def values(self, given: Mapping[str, Value]) -> Iterator[tuple[Node, Value]]:
        """Every node with its value, in order; a value is forgotten after its last reader."""
        known = dict(given)
        for node, ended in zip(self.network.nodes, self.network.last_reads, strict=True):
            value = getattr(self, node.operation)(node, *(known[name] for name in node.reads))
            known[node.name] = value
            yield node, value
            for name in ended:
                del known[name]

    def run(self, given: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
        """The outputs, and the next state, for inputs and state by name."""
        wanted = self.network.results
        found = {name: value for name, value in given.items() if name in wanted}
        for node, value in self.values(given):
            if node.name in wanted:
                found[node.name] = value
        outputs = {name: found[value] for name, value in self.network.outputs.items()}
        return outputs, {name: found[own.next] for name, own in self.network.state.items()}


def broken(node: Node, what: str) -> BrokenNet:
    """A node that is not as it must be."""
    return BrokenNet(f"the node {node.name!r} ({node.operation}) {what}")
