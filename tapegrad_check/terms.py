"""What the values of a graph are, as terms: an operation on other terms. Equal terms have one number.

A checker that knows what a net must compute writes it down once more, in its own words, and asks whether the
net's outputs are these terms. So every node is accounted for, with its settings, its arrays bit for bit, its
reason and its name; only the order of nodes, and the numbers in the names of those that have no name of their
own, are free.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import require
from tapegrad_check.graph import Graph, Node, Port, Training


class Key(NamedTuple):
    """What makes a term what it is."""

    operation: str
    name: str
    """Of an input, or of a node that has a name of its own."""
    reads: tuple[int, ...] = ()
    arrays: tuple[tuple[Any, ...], ...] = ()
    """For each part its name, and type, shape and content of the array."""
    settings: tuple[tuple[str, Any], ...] = ()
    about: str = ""
    body: "int | None" = None


@dataclass(frozen=True, eq=False)
class Term:
    """A term, which combines with others and with numbers as arrays do. A difference is a sum with the
    negative, and the negative of a term its product with -1."""

    terms: "Terms"
    number: int

    def __add__(self, other: Any) -> "Term":
        return self.terms.node("add", self, other)

    def __radd__(self, other: Any) -> "Term":
        return self.terms.node("add", other, self)

    def __mul__(self, other: Any) -> "Term":
        return self.terms.node("multiply", self, other)

    def __rmul__(self, other: Any) -> "Term":
        return self.terms.node("multiply", other, self)

    def __truediv__(self, other: Any) -> "Term":
        return self.terms.node("divide", self, other)

    def __neg__(self) -> "Term":
        return self * -1.0

    def __sub__(self, other: Any) -> "Term":
        return self + (-other)

    def __rsub__(self, other: Any) -> "Term":
        return -self + other

    def __gt__(self, other: Any) -> "Term":
        return self.terms.node("greater", self, other)

    def __lt__(self, other: Any) -> "Term":
        return self.terms.node("greater", other, self)

    def mapped(self, other: Any) -> "Term":
        """The product with a matrix."""
        return self.terms.node("product", self, other, turned=0)

    __array_ufunc__ = None
    """NumPy leaves `array + term` to the term."""

    def along(self, other: Any) -> "Term":
        """Products of rows with rows."""
        return self.terms.node("product", self, other, turned=1)

    def total(self, axes: int = 1) -> "Term":
        return self.terms.node("total", self, axes=axes)

    def relu(self) -> "Term":
        return self.terms.node("relu", self)

    def sqrt(self) -> "Term":
        return self.terms.node("sqrt", self)

    def detach(self, name: str = "", about: str = "") -> "Term":
        return self.terms.node("detach", self, name=name, about=about)

    def clip(self, low: float, high: float) -> "Term":
        return self.terms.node("clip", self, low=low, high=high)

    def reshape(self, axes: int, *sizes: int) -> "Term":
        return self.terms.node("reshape", self, axes=axes, sizes=sizes)

    def turned(self) -> "Term":
        """A matrix with its axes exchanged."""
        return self.terms.node("transpose", self, order=(1, 0))

    def take(self, index: Any, name: str = "") -> "Term":
        return self.terms.node("take", self, arrays={"index": np.asarray(index, np.int64)}, name=name)

    def put(self, other: Any, to: Any, about: str = "", name: str = "") -> "Term":
        arrays = {"to": np.asarray(to, np.int64)}
        return self.terms.node("put", self, other, arrays=arrays, name=name, about=about)

    def join(self, other: Any, axis: int) -> "Term":
        return self.terms.node("join", self, other, axis=axis)


@dataclass
class Terms:
    """All terms that have come up, of a graph and of what it should be."""

    dtype: str = "float64"
    _numbers: dict[Key, int] = field(default_factory=dict)
    _keys: list[Key] = field(default_factory=list)

    def node(
        self,
        operation: str,
        *reads: Any,
        arrays: Mapping[str, NDArray[Any]] | None = None,
        name: str = "",
        about: str = "",
        body: int | None = None,
        **settings: Any,
    ) -> Term:
        """An operation on terms, and on numbers and arrays, which are constants."""
        given = tuple(own.number if isinstance(own, Term) else self.constant(own).number for own in reads)
        own = self._number(Key(operation, name, given, _parts(arrays or {}), _sorted(settings), about, body))
        return Term(self, own)

    def constant(self, value: Any, name: str = "", about: str = "") -> Term:
        """A number or an array, in the precision of the net."""
        array = np.asarray(value, self.dtype)
        return self.node("constant", arrays={"value": array}, name=name, about=about)

    def input(self, name: str) -> Term:
        """A value from outside."""
        return Term(self, self._number(Key("input", name)))

    def _number(self, key: Key) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return self._numbers[key]

    def _of(self, graph: Graph) -> dict[str, int]:
        """The number of every value of a graph."""
        found = {name: self.input(name).number for name in (*graph.inputs, *graph.state)}
        for node in graph.nodes:
            reads = tuple(found[name] for name in node.reads)
            body = None if node.body is None else self.body(node.body)
            settings = _sorted(node.settings)
            key = Key(node.operation, _own_name(node), reads, _parts(node.arrays), settings, node.about, body)
            found[node.name] = self._number(key)
        return found

    def body(self, graph: Graph) -> int:
        """The number of a body: what its one state becomes. It has nothing else."""
        ((name, state),) = graph.state.items()
        plain = not graph.inputs and not graph.outputs and not graph.columns and graph.training is None
        require(plain, "a body has something else than its state")
        values = self._of(graph)
        _require_used(graph, {state.next})
        port = state.port
        return self._number(
            Key(
                "body",
                graph.name,
                (self.input(name).number, values[state.next]),
                _parts({"first": state.first}),
                (("columns", port.columns), ("dtype", port.dtype), ("sizes", port.sizes)),
                port.about,
            )
        )

    def activation(self, name: str, state: str, becomes: Term) -> int:
        """The number of a body that should be: of numbers by themselves, in the precision of the net."""
        settings = ("columns", ()), ("dtype", self.dtype), ("sizes", ())
        parts = _parts({"first": np.zeros((), self.dtype)})
        return self._number(Key("body", name, (self.input(state).number, becomes.number), parts, settings))

    def require(
        self,
        graph: Graph,
        name: str,
        inputs: Mapping[str, Port],
        outputs: Mapping[str, Term],
        training: Training,
    ) -> None:
        """Refuses a graph that is not this one."""
        require(graph.name == name, "the network has another name")
        require(dict(graph.inputs) == dict(inputs), "the network is given something else than a loss is")
        require(not graph.state and not graph.columns, "a loss hands something on, or has named columns")
        require(graph.outputs.keys() == outputs.keys(), "the network has other outputs than a loss")
        values = self._of(graph)
        for output, wanted in outputs.items():
            found = values[graph.outputs[output]]
            if found != wanted.number:
                names = {number: name for name, number in values.items()}
                require(
                    False,
                    f"the output {output!r} is another: {self._difference(found, wanted.number, names)}",
                )
        _require_used(graph, set(graph.outputs.values()))
        require(graph.training == training, "the rule of training is another")

    def _difference(self, found: int, wanted: int, names: Mapping[int, str]) -> str:
        """Where two terms part, from the output up."""
        while True:
            ours, theirs = self._keys[found], self._keys[wanted]
            if ours._replace(reads=()) != theirs._replace(reads=()) or len(ours.reads) != len(theirs.reads):
                wanted_node = f"{theirs.operation} {theirs.name}".strip()
                return f"the node {names.get(found, '')!r} is not the {wanted_node} that belongs there"
            found, wanted = next((a, b) for a, b in zip(ours.reads, theirs.reads, strict=True) if a != b)


def _require_used(graph: Graph, ends: set[str]) -> None:
    """Every node leads to one of these values."""
    needed = set(ends)
    for node in reversed(graph.nodes):
        require(node.name in needed, f"nothing is made of the node {node.name!r}")
        needed.update(node.reads)


def _own_name(node: Node) -> str:
    """The name of a node, unless it merely says what operation it is, or which number."""
    if re.fullmatch(rf"{node.operation}_[0-9]+", node.name):
        return ""
    value = node.arrays.get("value")
    is_number = value is not None and value.shape == () and node.name == repr(float(value))
    return "" if is_number else node.name


def _sorted(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(settings.items()))


def _parts(arrays: Mapping[str, NDArray[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple((part, *_content(array)) for part, array in sorted(arrays.items()))


def _content(array: NDArray[Any]) -> tuple[str, tuple[int, ...], bytes]:
    """Type, shape and bits, or of many bits their sum. Of a number by itself -0 is 0."""
    bits = np.ascontiguousarray(array + 0 if array.shape == () else array).tobytes()
    return array.dtype.name, array.shape, bits if len(bits) <= 64 else hashlib.sha256(bits).digest()
