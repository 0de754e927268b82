"""Networks node by node: a builder, and values that can be added, multiplied and compared like arrays."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.checking import check
from tapegrad.networks.form import Affine, Dense, Matrix
from tapegrad.networks.network import LAYERS, MAP, Network, Node, Port, Setting, Size, State, Training


class Layer(NamedTuple):
    """A layer of a node `layers`: its map, which reads slots, the slots its rows go to, and whether a ReLU
    comes between."""

    map: Affine
    to: NDArray[np.integer]
    relu: bool


Operand: TypeAlias = "Value | ArrayLike"
"""What can be combined with a value."""


class Value:
    """A value of a network in the making."""

    __array_ufunc__ = None  # NumPy leaves `array + value` to the value

    def __init__(self, builder: "Builder", name: str, sizes: tuple[Size, ...] = ()) -> None:
        self.builder, self.name, self._sizes = builder, name, sizes

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of an input, all of whose sizes are known."""
        assert all(isinstance(size, int) for size in self._sizes)
        return tuple(map(int, self._sizes))

    def __add__(self, other: "Operand") -> "Value":
        return self.builder.node("add", self, self.builder.value(other))

    def __radd__(self, other: "Operand") -> "Value":
        return self.builder.node("add", self.builder.value(other), self)

    def __mul__(self, other: "Operand") -> "Value":
        return self.builder.node("multiply", self, self.builder.value(other))

    def __rmul__(self, other: "Operand") -> "Value":
        return self.builder.node("multiply", self.builder.value(other), self)

    def __neg__(self) -> "Value":
        return self * -1.0

    def __sub__(self, other: "Operand") -> "Value":
        return self + (-other if isinstance(other, Value | int | float) else -np.asarray(other))

    def __rsub__(self, other: "Operand") -> "Value":
        return -self + other

    def __truediv__(self, other: "Operand") -> "Value":
        return self.builder.node("divide", self, self.builder.value(other))

    def __gt__(self, other: "Operand") -> "Value":
        return self.builder.node("greater", self, self.builder.value(other))

    def __lt__(self, other: "Operand") -> "Value":
        return self.builder.node("greater", self.builder.value(other), self)

    def total(self, axes: int = 1) -> "Value":
        """The sum over the last axes."""
        return self.builder.node("total", self, axes=axes)

    def relu(self) -> "Value":
        """max(x, 0)."""
        return self.builder.node("relu", self)

    def sqrt(self) -> "Value":
        """The square root."""
        return self.builder.node("sqrt", self)

    def detach(self, name: str = "", about: str = "") -> "Value":
        """Itself, without a derivative."""
        made = self.builder.node("detach", self, name=name, about=about)
        return Value(self.builder, made.name, self._sizes)

    def reshape(self, axes: int, *sizes: int) -> "Value":
        """The last so many axes as axes of other sizes."""
        return self.builder.node("reshape", self, axes=axes, sizes=sizes)

    def transpose(self) -> "Value":
        """Of a matrix."""
        return self.builder.node("transpose", self, order=(1, 0))

    def __matmul__(self, other: "Operand") -> "Value":
        return self.builder.node("product", self, self.builder.value(other), turned=False)


class Builder:
    """Grows a network. Names of nodes may be given; else they are numbered. Where they are `shared`, numbers
    are called by their digits, and each is there once."""

    def __init__(self, name: str, dtype: Any = np.float32, *, shared: bool = False) -> None:
        self.name, self.dtype, self.shared = name, np.dtype(dtype), shared
        self._inputs: dict[str, Port] = {}
        self._state: dict[str, tuple[Port, str]] = {}
        self._next: dict[str, str] = {}
        self._nodes: list[Node] = []
        self._names: set[str] = set()
        self._outputs: dict[str, str] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self._numbers: dict[float, Value] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    # What comes from outside, and what goes there

    def input(
        self,
        name: str,
        *shape: Size,
        dtype: Any = None,
        columns: Iterable[str] = (),
        about: str = "",
    ) -> Value:
        """An input."""
        kind, names = np.dtype(dtype or self.dtype).name, tuple(columns)
        self._inputs[name] = Port(shape, kind, names, about)
        return self.columns(Value(self, self._named(name).name, shape), names)

    def state(
        self, name: str, first: NDArray[Any], *shape: Size, columns: Iterable[str] = (), about: str = ""
    ) -> Value:
        """A value that is handed on from step to step; what it becomes is said by `hand_on`."""
        stored, names = self.array(first, f"first_{name}"), tuple(columns)
        self._state[name] = Port(shape or first.shape, first.dtype.name, names, about), stored
        return self.columns(self._named(name), names)

    def hand_on(self, name: str, value: Value) -> None:
        """What a state is at the next step."""
        self._next[name] = value.name

    def output(self, name: str, value: Value) -> None:
        """A value that is a result."""
        self._outputs[name] = value.name

    def columns(self, value: Value, names: Iterable[str]) -> Value:
        """The same value; its columns have these names."""
        if kept := tuple(names):
            self._columns[value.name] = kept
        return value

    def network(self, training: Training | None = None) -> Network:
        """All that outputs and state need, checked."""
        if missing := self._state.keys() - self._next.keys():
            raise BrokenNet(f"the state {min(missing)!r} is not handed on")
        state = {name: State(port, first, self._next[name]) for name, (port, first) in self._state.items()}
        wanted, nodes = {*self._outputs.values(), *self._next.values()}, list[Node]()
        for node in reversed(self._nodes):
            if node.name in wanted:
                wanted.update(node.reads)
                nodes.append(node)
        used = {name for node in nodes for name in node.arrays.values()} | {
            own.first for own in state.values()
        }
        made = Network(
            self.name,
            self._inputs,
            state,
            tuple(reversed(nodes)),
            self._outputs,
            {name: array for name, array in self._arrays.items() if name in used},
            self._columns,
            training,
        )
        check(made)
        return made

    # Nodes

    def node(
        self,
        operation: str,
        *reads: Value,
        arrays: Mapping[str, NDArray[Any]] | None = None,
        name: str = "",
        about: str = "",
        body: Network | None = None,
        **settings: Setting,
    ) -> Value:
        """A node; its arrays are stored under its name."""
        name = self._free(name or f"{operation}_{len(self._nodes)}")
        parts = {part: self.array(own, f"{name}.{part}") for part, own in (arrays or {}).items()}
        self._nodes.append(Node(name, operation, tuple(r.name for r in reads), parts, settings, about, body))
        return self._named(name)

    def array(self, array: NDArray[Any], name: str) -> str:
        """Stores an array."""
        name = self._free(name)
        self._arrays[name] = np.asarray(array)
        return name

    def value(self, own: Operand) -> Value:
        """A number or an array as a constant, in the network's precision; a value as it is."""
        if isinstance(own, Value):
            return own
        if not self.shared or not isinstance(own, int | float) or isinstance(own, np.generic):  # data
            return self.constant(np.asarray(own, self.dtype))
        if own not in self._numbers:
            self._numbers[own] = self.constant(np.asarray(own, self.dtype), repr(float(own)))
        return self._numbers[own]

    def constant(self, array: NDArray[Any], name: str = "", about: str = "") -> Value:
        """An array as it is."""
        return self.node("constant", arrays={"value": array}, name=name, about=about)

    def affine(self, x: Value, own: Affine | Matrix, name: str = "", about: str = "") -> Value:
        """A x + b."""
        entries = own.entries()
        parts = (np.asarray(part) for part in (entries.rows, entries.columns, entries.values, entries.bias))
        return self.node("affine", x, arrays=dict(zip(MAP, parts, strict=True)), name=name, about=about)

    def dense(self, x: Value, layers: Sequence[Dense], name: str = "", about: str = "") -> Value:
        """Layers one after the other, each a map and its activation."""
        written = [part for layer in layers for part in layer.expanded()]
        for number, layer in enumerate(written):
            own = f"{name}.{number}" if name else ""
            x = self.affine(x, layer.map, own, about)
            if layer.activation == "relu":
                x = self.node("relu", x, name=f"{own}.relu" if own else "")
        return x

    def layers(
        self,
        x: Value,
        layers: Sequence[Layer],
        slots: int,
        out: NDArray[np.integer],
        name: str = "",
        about: str = "",
    ) -> Value:
        """Sparse layers on a row of slots, as one node."""
        maps = [own.map for own in layers]
        counts = [np.bincount(own.rows, minlength=len(own)) for own in maps]
        relu = [np.full(len(own.map), own.relu) for own in layers]
        parts = (
            np.cumsum([0, *map(len, maps)]),
            np.concatenate([[0], np.cumsum(_joined(counts, np.int64))]),
            _joined([own.columns for own in maps], np.int32),
            _joined([own.values for own in maps], self.dtype),
            _joined([own.bias for own in maps], self.dtype),
            _joined([own.to for own in layers], np.int32),
            _joined(relu, np.uint8),
            np.asarray(out, np.int32),
        )
        arrays: dict[str, NDArray[Any]] = dict(zip(LAYERS, parts, strict=True))
        return self.node("layers", x, arrays=arrays, name=name, about=about, slots=slots)

    def attend(
        self,
        query: Value,
        keys: Value,
        values: Value,
        temperature: float | None,
        *,
        causal: bool = False,
        name: str = "",
        about: str = "",
    ) -> Value:
        """The mean of the values with the greatest scores, or of all by softmax."""
        prefix = f"{name}." if name else ""
        scores = self.node("product", query, keys, turned=True, name=f"{prefix}scores" if name else "")
        if causal:
            scores = self.node("later", scores)
        if temperature is None:
            shares = self.node("hardmax", scores, name=f"{prefix}shares" if name else "")
        else:
            shares = self.node(
                "softmax", scores, temperature=temperature, name=f"{prefix}shares" if name else ""
            )
        return self.node(
            "product", shares, values, turned=False, name=f"{prefix}mean" if name else "", about=about
        )

    def take(self, x: Value, index: ArrayLike, name: str = "") -> Value:
        """Columns."""
        return self.node("take", x, arrays={"index": np.asarray(index, np.int64)}, name=name)

    def put(self, x: Value, y: Value, to: ArrayLike, name: str = "", about: str = "") -> Value:
        """x with y added at columns, which keep their names."""
        made = self.node("put", x, y, arrays={"to": np.asarray(to, np.int64)}, name=name, about=about)
        return self.columns(made, self._columns.get(x.name, ()))

    def join(self, first: Value, *rest: Value, axis: int) -> Value:
        """One after the other."""
        for own in rest:
            first = self.node("join", first, own, axis=axis)
        return first

    def step(self, network: Network, given: Mapping[str, Value]) -> dict[str, Value]:
        """The outputs of another network's first step: its nodes, on these inputs."""
        values = dict(given)
        for name, own in network.state.items():
            values[name] = self.constant(network.arrays[own.first], f"step.first_{name}")
        for node in network.nodes:
            arrays = {part: network.arrays[name] for part, name in node.arrays.items()}
            reads = [values[name] for name in node.reads]
            values[node.name] = self.node(
                node.operation,
                *reads,
                arrays=arrays,
                name=f"step.{node.name}",
                about=node.about,
                body=node.body,
                **node.settings,
            )
        return {name: values[value] for name, value in network.outputs.items()}

    def _named(self, name: str) -> Value:
        self._names.add(name)
        return Value(self, name)

    def _free(self, name: str) -> str:
        if name in self._names or name in self._arrays:
            raise BrokenNet(f"two values of the network are called {name!r}")
        return name


def network_of(function: Callable[..., Value], *shapes: tuple[int, ...], dtype: Any = np.float64) -> Network:
    """A function of values of these shapes as a network: of inputs x0, x1, ... the output y. In the place of
    a value without any numbers the function gets None."""
    build = Builder("function", dtype, shared=True)
    given = [build.input(f"x{i}", *own) if math.prod(own) else None for i, own in enumerate(shapes)]
    build.output("y", function(*given))
    return build.network()


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)
