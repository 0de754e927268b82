"""The graph of a saved net: `network.json`, and the arrays that it names.

A net is given inputs and, where it takes steps, the state that it handed on at the step before. Each node
makes one value by one operation, from values before it; outputs and the next state are values. What
operations compute is said in the specification of the folder. Here a graph is read: whatever does not fit, is
not there or is not used is refused, so that who walks through the nodes has seen all that the net computes
with.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import number, text, texts, whole
from tapegrad_check.folder import NETWORK, OF_NETWORK, Arrays, Folder, require

Size = int | str
"""Of an axis; one that is known only when the net runs has a name."""
Setting = int | float | tuple[int, ...]

WIDEST = 1 << 20
"""Columns that a node may make of a number: places of a record, digits."""
MOST_AXES = 4
DEEPEST = 4
"""Bodies within bodies."""
TYPES = {"float32", "float64", "int64", "uint8"}
"""Of values from outside; a test of the format may add to them."""


class Kind(NamedTuple):
    """What a node of an operation has: how many values it reads, its arrays with the kind of their numbers (f
    for floating point, i for whole ones, * for either), and its settings."""

    reads: int
    arrays: Mapping[str, str] = {}
    settings: tuple[str, ...] = ()


OPERATIONS: Mapping[str, Kind] = {
    "affine": Kind(1, {"rows": "i", "columns": "i", "values": "f", "bias": "f"}),
    "layers": Kind(
        1,
        {"bounds": "i", "starts": "i", "columns": "i", "values": "f", "biases": "f"}
        | {"to": "i", "relu": "i", "out": "i"},
        ("slots",),
    ),
    "relu": Kind(1),
    "clip": Kind(1, {}, ("low", "high")),
    "sqrt": Kind(1),
    "detach": Kind(1),
    "add": Kind(2),
    "multiply": Kind(2),
    "divide": Kind(2),
    "greater": Kind(2),
    "total": Kind(1, {}, ("axes",)),
    "constant": Kind(0, {"value": "*"}),
    "take": Kind(1, {"index": "i"}),
    "put": Kind(2, {"to": "i"}),
    "join": Kind(2, {}, ("axis",)),
    "product": Kind(2, {}, ("turned",)),
    "later": Kind(1),
    "hardmax": Kind(1),
    "softmax": Kind(1, {}, ("temperature",)),
    "embed": Kind(1, {"table": "f"}),
    "places": Kind(2),
    "digits": Kind(1, {}, ("count",)),
    "quotient": Kind(1, {}, ("by",)),
    "remainder": Kind(1, {}, ("by",)),
    "onehot": Kind(1, {}, ("count",)),
    "ladder": Kind(1, {}, ("count",)),
    "patches": Kind(1, {}, ("cells", "padding")),
    "transpose": Kind(1, {}, ("order",)),
    "reshape": Kind(1, {}, ("axes", "sizes")),
    "repeat": Kind(1, {}, ("count",)),
    "units": Kind(2, {"starts": "i", "columns": "i"}),
}
WITH_BODY = "repeat", "units"


@dataclass(frozen=True)
class Port:
    """A value from outside: sizes, type, and the names of its columns, if it has any."""

    sizes: tuple[Size, ...]
    dtype: str
    columns: tuple[str, ...]
    about: str


@dataclass(frozen=True)
class State:
    """What is handed on: at the first step the array `first`, later the value `next`."""

    port: Port
    first: NDArray[Any]
    next: str


class Update(NamedTuple):
    """How an input changes at a step of training: against its gradient or to the best vertex, at a rate, and
    so far as a line search says or all the way."""

    kind: str
    rate: float
    line_search: bool


class Training(NamedTuple):
    """The rule of training: the output that is the loss, what changes, and the loss at which it ends."""

    loss: str
    updates: Mapping[str, Update]
    stop: float | None


@dataclass(frozen=True)
class Node:
    """An operation; its name is that of its value."""

    name: str
    operation: str
    reads: tuple[str, ...]
    arrays: Mapping[str, NDArray[Any]]
    """The array that plays each part."""
    settings: Mapping[str, Setting]
    about: str
    body: "Graph | None"

    def setting(self, name: str) -> int:
        """A setting that is a whole number."""
        value = self.settings[name]
        require(type(value) is int, f"the setting {name} of {self.name!r} is no whole number")
        return int(value) if not isinstance(value, tuple) else 0

    def refused(self, holds: Any, otherwise: str) -> None:
        """`CheckError` unless it holds."""
        require(holds, f"the node {self.name!r} ({self.operation}) {otherwise}")


@dataclass(frozen=True)
class Graph:
    """A net: everything that it computes with."""

    name: str
    inputs: Mapping[str, Port]
    state: Mapping[str, State]
    nodes: tuple[Node, ...]
    outputs: Mapping[str, str]
    columns: Mapping[str, tuple[str, ...]]
    """For some values the names of their columns."""
    shapes: Mapping[str, "Shape"]
    training: Training | None = None

    def names_of(self, value: str) -> tuple[str, ...]:
        """The names of the columns of a value, none if they have no names."""
        return self.columns.get(value, ())


class Shape(NamedTuple):
    """Sizes and type of a value; axes in front of these are batches."""

    sizes: tuple[Size, ...]
    dtype: str

    @property
    def width(self) -> Size:
        """Columns, none of a number by itself."""
        return self.sizes[-1] if self.sizes else 0


def graph_of(data: Mapping[str, Any], arrays: Arrays) -> Graph:
    """The graph, all of whose arrays are these: each has a use, and every use its array."""
    used: set[str] = set()
    graph = _Reader(arrays, used, "", 0).graph(data)
    require(
        used == set(arrays), f"no node of {NETWORK} has the array {min(set(arrays) - used, default='')!r}"
    )
    return graph


def graph_in(folder: Folder) -> Graph | None:
    """The graph of a folder that has one."""
    if folder.network is not None and "graph" not in folder.known:
        folder.known["graph"] = graph_of(folder.network, folder.part(OF_NETWORK))
    return folder.known.get("graph")


@dataclass(frozen=True)
class _Reader:
    arrays: Arrays
    used: set[str]
    prefix: str
    depth: int

    def graph(self, data: Any) -> Graph:
        whole_graph = "name", "inputs", "state", "nodes", "outputs"
        own = _entries(data, "the network", whole_graph, ("columns", "training"))
        inputs = {name: _port(entry) for name, entry in _entries(own["inputs"], "inputs").items()}
        state = {name: self._state(entry) for name, entry in _entries(own["state"], "state").items()}
        require(isinstance(own["nodes"], list), "the nodes are not a list")
        shapes = {name: Shape(port.sizes, port.dtype) for name, port in inputs.items()}
        for name, handed_on in state.items():
            require(name not in shapes, f"two values of the network are called {name!r}")
            shapes[name] = Shape(handed_on.port.sizes, handed_on.port.dtype)
        nodes = []
        for entry in own["nodes"]:
            node = self._node(entry)
            node.refused(node.name not in shapes, "has a name that is taken")
            node.refused(all(name in shapes for name in node.reads), "reads what is not before it")
            shapes[node.name] = _SHAPES[node.operation](node, *(shapes[name] for name in node.reads))
            nodes.append(node)
        outputs = {
            name: text(value, "an output") for name, value in _entries(own["outputs"], "outputs").items()
        }
        for value in (*outputs.values(), *(handed_on.next for handed_on in state.values())):
            require(value in shapes, f"the network has no value {value!r}")
        for name, handed_on in state.items():
            found, port = shapes[handed_on.next], handed_on.port
            alike = found.dtype == port.dtype and len(found.sizes) == len(port.sizes)
            fits = all(
                a == b or isinstance(b, str) for a, b in zip(found.sizes[-1:], port.sizes[-1:], strict=False)
            )
            require(alike and fits, f"the state {name!r} is handed on as something else")
        columns = {
            name: texts(value, f"the columns of {name!r}")
            for name, value in _entries(own.get("columns", {}), "columns").items()
        }
        named = {
            name: port.columns
            for name, port in (*inputs.items(), *((n, s.port) for n, s in state.items()))
            if port.columns
        }
        for name, names in named.items():
            require(
                columns.setdefault(name, names) == names, f"the columns of {name!r} have two lists of names"
            )
        for name, names in columns.items():
            named_all = name in shapes and shapes[name].sizes[-1:] == (len(names),)
            require(named_all, f"{name!r} has other columns than names")
        rule = _training(own["training"]) if "training" in own else None
        if rule is not None:
            require(rule.loss in outputs, f"the loss {rule.loss!r} is no output of the network")
            require(rule.updates.keys() <= inputs.keys(), "something is trained that is no input")
        return Graph(
            text(own["name"], "its name"), inputs, state, tuple(nodes), outputs, columns, shapes, rule
        )

    def _array(self, name: Any, what: str) -> NDArray[Any]:
        full = self.prefix + text(name, what)
        require(full in self.arrays, f"the array {full!r}, {what}, is missing")
        self.used.add(full)
        return self.arrays[full]

    def _state(self, data: Any) -> State:
        own = _entries(data, "a state", ("shape", "dtype", "first", "next"), ("columns", "about"))
        port = _port({key: own[key] for key in own.keys() - {"first", "next"}})
        first = self._array(own["first"], "with which a state begins")
        fits = first.dtype.name == port.dtype and first.ndim == len(port.sizes)
        sizes = zip(port.sizes, first.shape, strict=True) if fits else ()
        require(
            fits and all(isinstance(a, str) or a == b for a, b in sizes), "a state begins as something else"
        )
        return State(port, first, text(own["next"], "the next state"))

    def _node(self, data: Any) -> Node:
        own = _entries(
            data, "a node", ("name", "operation"), ("reads", "arrays", "settings", "about", "body")
        )
        name, operation = text(own["name"], "a name"), text(own["operation"], "an operation")
        require(operation in OPERATIONS, f"the node {name!r} has an unknown operation {operation!r}")
        kind = OPERATIONS[operation]
        reads = own.get("reads", [])
        require(
            isinstance(reads, list) and len(reads) == kind.reads,
            f"the node {name!r} does not read {kind.reads} values",
        )
        arrays = _entries(own.get("arrays", {}), f"the arrays of {name!r}", tuple(kind.arrays))
        found = {part: self._array(value, f"{part} of {name!r}") for part, value in arrays.items()}
        for part, array in found.items():
            kinds = {"f": "f", "i": "iu", "*": "fiu"}[kind.arrays[part]]
            require(array.dtype.kind in kinds, f"{part} of {name!r} are numbers of the wrong kind")
        settings = {
            part: _setting(value, f"the setting {part} of {name!r}")
            for part, value in _entries(
                own.get("settings", {}), f"the settings of {name!r}", kind.settings
            ).items()
        }
        require(("body" in own) == (operation in WITH_BODY), f"the node {name!r} has a body, or lacks one")
        body = None
        if "body" in own:
            require(self.depth < DEEPEST, "bodies within bodies within bodies")
            body = _Reader(self.arrays, self.used, f"{self.prefix}{name}/", self.depth + 1).graph(own["body"])
        reads = tuple(text(value, f"what {name!r} reads") for value in reads)
        return Node(name, operation, reads, found, settings, text(own.get("about", ""), "a reason"), body)


def _entries(
    data: Any, what: str, needed: tuple[str, ...] | None = None, allowed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A JSON object with these keys, or with any."""
    require(isinstance(data, dict), f"{what} in {NETWORK} is no object")
    if needed is not None:
        strange = (set(needed) - data.keys()) | (data.keys() - set(needed) - set(allowed))
        require(
            not strange, f"{what} in {NETWORK}: the entry {min(strange, default='')!r} is missing or unknown"
        )
    return data


def _port(data: Any) -> Port:
    own = _entries(data, "a port", ("shape", "dtype"), ("columns", "about"))
    sizes, dtype = own["shape"], text(own["dtype"], "a type")
    require(isinstance(sizes, list) and len(sizes) <= MOST_AXES, "a value has no list of axes, or too many")
    for size in sizes:
        require(
            isinstance(size, str) or (type(size) is int and 0 <= size < 1 << 31), "a size is out of range"
        )
    require(dtype in TYPES, f"values of the type {dtype!r} are unknown")
    columns = texts(own.get("columns", []), "names of columns")
    require(not columns or sizes[-1:] == [len(columns)], "there are more columns than names, or fewer")
    return Port(tuple(sizes), dtype, columns, text(own.get("about", ""), "a reason"))


def _training(data: Any) -> Training:
    own = _entries(data, "the training", ("loss", "updates", "stop"))
    updates = {}
    for name, entry in _entries(own["updates"], "the updates").items():
        update = _entries(entry, "an update", ("kind", "rate", "line_search"))
        require(isinstance(update["line_search"], bool), "there is a line search or there is none")
        kind, rate = text(update["kind"], "a kind of update"), number(update["rate"], "a rate")
        updates[name] = Update(kind, rate, update["line_search"])
    stop = None if own["stop"] is None else number(own["stop"], "the loss at which training ends")
    return Training(text(own["loss"], "the loss"), updates, stop)


def _setting(value: Any, what: str) -> Setting:
    if isinstance(value, list):
        return tuple(whole(one, what, 0, 1 << 20) for one in value)
    if type(value) is int:
        return whole(value, what, -(1 << 40), 1 << 40)
    if isinstance(value, bool):
        return int(value)
    return number(value, what)


# The shape of what a node makes


def _affine(node: Node, x: Shape) -> Shape:
    rows, columns, values, bias = (node.arrays[part] for part in ("rows", "columns", "values", "bias"))
    node.refused(
        all(part.ndim == 1 for part in (rows, columns, values, bias)), "has an array of several axes"
    )
    node.refused(len(rows) == len(columns) == len(values), "has entries without a place or a value")
    node.refused(_below(rows, len(bias)) and _below(columns, x.width), "has entries outside its map")
    node.refused((np.diff(rows.astype(np.int64)) >= 0).all(), "does not have its entries row by row")
    node.refused(
        {values.dtype.name, bias.dtype.name} == {x.dtype}, "has weights of another type than it reads"
    )
    return Shape((*x.sizes[:-1], len(bias)), x.dtype)


def _layers(node: Node, x: Shape) -> Shape:
    parts = node.arrays
    node.refused(all(array.ndim == 1 for array in parts.values()), "has an array of several axes")
    slots, rows, width = node.setting("slots"), len(parts["biases"]), x.width
    node.refused(isinstance(width, int) and width <= slots, "has fewer slots than it reads columns")
    known = width if isinstance(width, int) else 0
    node.refused(slots <= 2 * (known + rows) + 2, "has many more slots than it ever fills")
    node.refused(
        _rises(parts["bounds"], rows)
        and len(parts["starts"]) == rows + 1
        and _rises(parts["starts"], len(parts["columns"])),
        "has layers or rows that do not follow one another",
    )
    lengths = len(parts["values"]) == len(parts["columns"]) and len(parts["to"]) == len(parts["relu"]) == rows
    node.refused(lengths, "has entries without a weight, or rows without a slot")
    node.refused(
        all(_below(parts[part], slots) for part in ("columns", "to", "out")), "names a slot it lacks"
    )
    node.refused(_below(parts["relu"], 2), "does not say with 0 or 1 whether a row has a ReLU")
    types = {parts["values"].dtype.name, parts["biases"].dtype.name}
    node.refused(types == {x.dtype}, "has weights of another type than it reads")
    layer = np.repeat(np.arange(len(parts["bounds"]) - 1), np.diff(parts["bounds"].astype(np.int64)))
    counts = np.diff(parts["starts"].astype(np.int64))
    written = layer * np.int64(slots) + parts["to"]
    order = np.argsort(written, kind="stable")  # of most networks they are in order
    ordered = written[order]
    node.refused((ordered[1:] != ordered[:-1]).all(), "writes a slot twice in one layer")
    read = np.repeat(layer, counts) * np.int64(slots) + parts["columns"]
    if rows and len(read):
        place = np.minimum(np.searchsorted(ordered, read), rows - 1)
        others = (ordered[place] == read) & (order[place] != np.repeat(np.arange(rows), counts))
        node.refused(not others.any(), "writes a slot in the layer that reads it")
    return Shape((*x.sizes[:-1], len(parts["out"])), x.dtype)


def _same(node: Node, x: Shape) -> Shape:
    return x


def _floats(node: Node, x: Shape) -> Shape:
    node.refused(x.dtype.startswith("float"), "reads whole numbers")
    return x


def _each(node: Node, x: Shape, y: Shape) -> Shape:
    node.refused(x.dtype == y.dtype, "reads values of two types")
    return Shape(_broadcast(node, x.sizes, y.sizes), x.dtype)


def _total(node: Node, x: Shape) -> Shape:
    axes = node.setting("axes")
    node.refused(1 <= axes <= len(x.sizes), "sums over axes that there are not")
    return Shape(x.sizes[: len(x.sizes) - axes], x.dtype)


def _constant(node: Node) -> Shape:
    value = node.arrays["value"]
    node.refused(value.dtype.name in TYPES, "is of an unknown type")
    return Shape(value.shape, value.dtype.name)


def _take(node: Node, x: Shape) -> Shape:
    index = node.arrays["index"]
    node.refused(x.sizes and _below(index, x.width), "takes columns that there are not")
    return Shape((*x.sizes[:-1], *index.shape), x.dtype)


def _put(node: Node, x: Shape, y: Shape) -> Shape:
    to = node.arrays["to"]
    node.refused(to.ndim == 1 and len(to) == y.width and _below(to, x.width), "puts columns where none are")
    node.refused(x.dtype == y.dtype, "reads values of two types")
    return Shape((*_broadcast(node, x.sizes[:-1], y.sizes[:-1]), x.width), x.dtype)


def _join(node: Node, x: Shape, y: Shape) -> Shape:
    axis = node.setting("axis")
    own = max(2, -axis)
    node.refused(axis in (-1, -2, -3) and min(len(x.sizes), len(y.sizes)) >= own, "joins along no axis")
    node.refused(x.dtype == y.dtype, "reads values of two types")
    others = [place for place in range(-own, 0) if place != axis]
    node.refused(all(x.sizes[place] == y.sizes[place] for place in others), "joins what does not fit")
    ends = list(x.sizes[-own:])
    a, b = x.sizes[axis], y.sizes[axis]
    ends[axis] = a + b if isinstance(a, int) and isinstance(b, int) else f"{a} + {b}"[:80]
    return Shape((*_broadcast(node, x.sizes[:-own], y.sizes[:-own]), *ends), x.dtype)


def _product(node: Node, x: Shape, y: Shape) -> Shape:
    are_matrices = bool(x.sizes) and len(y.sizes) >= 2  # the first may be a row
    node.refused(are_matrices and x.dtype == y.dtype, "multiplies what are no matrices")
    inner, outer = (y.sizes[place] for place in ((-1, -2) if node.setting("turned") else (-2, -1)))
    node.refused(x.width == inner, "multiplies matrices that do not fit")
    return Shape((*_broadcast(node, x.sizes[:-2], y.sizes[:-2]), *x.sizes[-2:-1], outer), x.dtype)


def _embed(node: Node, n: Shape) -> Shape:
    table = node.arrays["table"]
    node.refused(table.ndim == 2 and n.dtype.startswith("int"), "has a table that is no matrix")
    return Shape((*n.sizes, table.shape[1]), table.dtype.name)


def _places(node: Node, n: Shape, past: Shape) -> Shape:
    node.refused(n.dtype == "int64" and len(past.sizes) >= 2, "counts what are no tokens, or no rows")
    return Shape(n.sizes[-1:], n.dtype)


def _counted(node: Node, n: Shape) -> Shape:
    count = node.setting("count")
    node.refused(
        n.dtype.startswith("int") and 0 <= count <= WIDEST, "makes too many columns, or of no number"
    )
    return Shape((*n.sizes, count), "float32")


def _divided(node: Node, n: Shape) -> Shape:
    node.refused(n.dtype.startswith("int") and node.setting("by") >= 1, "divides by less than 1")
    return n


def _patches(node: Node, x: Shape) -> Shape:
    cells = node.settings["cells"]
    fits = isinstance(cells, tuple) and set(cells) <= set(range(9)) and len(x.sizes) == 3
    node.refused(fits and isinstance(x.width, int), "reads no grid, or cells beside the patch")
    count = len(cells) if isinstance(cells, tuple) else 0
    return Shape((*x.sizes[:-1], int(x.width) * count), x.dtype)


def _transpose(node: Node, x: Shape) -> Shape:
    order = node.settings["order"]
    fits = isinstance(order, tuple) and sorted(order) == list(range(len(x.sizes)))
    node.refused(fits, "has an order of other axes")
    return Shape(tuple(x.sizes[axis] for axis in order), x.dtype) if isinstance(order, tuple) else x


def _reshape(node: Node, x: Shape) -> Shape:
    axes, sizes = node.setting("axes"), node.settings["sizes"]
    node.refused(isinstance(sizes, tuple) and 0 <= axes <= len(x.sizes), "has no sizes, or other axes")
    new = sizes if isinstance(sizes, tuple) else ()
    kept, old = x.sizes[: len(x.sizes) - axes], x.sizes[len(x.sizes) - axes :]
    fits = all(isinstance(size, int) for size in old) and math.prod(map(int, old)) == math.prod(new)
    node.refused(fits and len(kept) + len(new) <= MOST_AXES, "has other sizes in all, or too many")
    return Shape((*kept, *new), x.dtype)


def _has_one_state(body: Graph | None) -> bool:
    return body is not None and not body.inputs and len(body.state) == 1


def _repeat(node: Node, x: Shape) -> Shape:
    fits = _has_one_state(node.body) and node.setting("count") >= 0
    node.refused(fits, "repeats no network of one state")
    return x


def _units(node: Node, x: Shape, weights: Shape) -> Shape:
    starts, columns = node.arrays["starts"], node.arrays["columns"]
    fits = starts.ndim == columns.ndim == 1 and weights == Shape(columns.shape, x.dtype)
    node.refused(fits and x.sizes and isinstance(x.width, int), "has entries without a weight")
    node.refused(_rises(starts, len(columns)), "has units that do not follow one another")
    count, width = len(starts) - 1, int(x.width)
    behind = width + np.repeat(np.arange(count), np.diff(starts.astype(np.int64)))
    places = columns.astype(np.int64)
    node.refused(((places >= 0) & (places < behind)).all(), "has a unit that reads what comes after it")
    node.refused(_has_one_state(node.body), "has no activation of one state")
    return Shape((*x.sizes[:-1], width + count), x.dtype)


_SHAPES = {
    "affine": _affine,
    "layers": _layers,
    **dict.fromkeys(("relu", "clip", "sqrt", "hardmax", "softmax", "later"), _floats),
    "detach": _same,
    **dict.fromkeys(("add", "multiply", "divide", "greater"), _each),
    "total": _total,
    "constant": _constant,
    "take": _take,
    "put": _put,
    "join": _join,
    "product": _product,
    "embed": _embed,
    "places": _places,
    **dict.fromkeys(("digits", "onehot", "ladder"), _counted),
    **dict.fromkeys(("quotient", "remainder"), _divided),
    "patches": _patches,
    "transpose": _transpose,
    "reshape": _reshape,
    "repeat": _repeat,
    "units": _units,
}


def _below(numbers: NDArray[Any], limit: Size) -> bool:
    """Whether all are whole numbers from 0 on, below the limit where that is known."""
    if numbers.dtype.kind not in "iu":
        return False
    most = limit if isinstance(limit, int) else np.iinfo(np.int64).max
    return not numbers.size or (int(numbers.min()) >= 0 and int(numbers.max()) < most)


def _rises(ends: NDArray[Any], last: int) -> bool:
    """Whether these are ends of things that follow one another, from 0 to the last."""
    rising = len(ends) >= 1 and int(ends[0]) == 0 and int(ends[-1]) == last
    return rising and bool((np.diff(ends.astype(np.int64)) >= 0).all())


def _broadcast(node: Node, x: tuple[Size, ...], y: tuple[Size, ...]) -> tuple[Size, ...]:
    length = max(len(x), len(y))
    pairs: Iterator[tuple[Size, Size]] = zip(
        (1,) * (length - len(x)) + x, (1,) * (length - len(y)) + y, strict=True
    )
    found: list[Size] = []
    for a, b in pairs:
        node.refused(a == b or 1 in (a, b), "reads values whose shapes do not fit")
        found.append(b if a == 1 else a)
    return tuple(found)
