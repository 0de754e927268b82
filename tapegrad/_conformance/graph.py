"""Networks as every runtime can be given them: named layers of a few kinds, each a tensor operation.

A layer reads inputs of the network or layers before it. `dense`, `sparse` and `convolution` compute
`A x + b`, then perhaps a ReLU; the other four are the parts of hard attention:

    dense        x W + b                       rows of x are patterns
    sparse       unit u: the sum of weight[u, k] * x[inputs[u, k]], + bias[u]
    convolution  on images (patterns, channels, rows, columns), zeros outside, an odd kernel
    join         the rows `first`, then those of x
    scores       the products of every row of x with every row of y, plus `mask`
    choose       in each row 1 at the greatest entry (1/n at each of n that are equal), else 0
    mix          x Y + z: the rows of Y in the proportions x, added to z

So a layer's value is one array, which can be compared, entry by entry, with what it should be.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import FormatError

Value = TypeVar("Value")
Arrays = dict[str, NDArray[Any]]

KINDS = {
    "dense": (1, ("weight", "bias")),
    "sparse": (1, ("inputs", "weight", "bias")),
    "convolution": (1, ("kernel", "bias")),
    "join": (1, ("first",)),
    "scores": (2, ("mask",)),
    "choose": (1, ()),
    "mix": (3, ()),
}
"""For each kind of layer how many values it reads, and which arrays it has."""
AFFINE = ("dense", "sparse", "convolution")


@dataclass(frozen=True)
class Layer:
    """One layer."""

    name: str
    kind: str
    reads: tuple[str, ...]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    relu: bool = False
    units: str = ""
    """What a unit is, in words, where there is something to say."""

    @property
    def weight(self) -> NDArray[Any]:
        """The weights of an affine layer, whatever their form."""
        return self.arrays["kernel" if self.kind == "convolution" else "weight"]


@dataclass(frozen=True)
class Graph:
    """A network: the shapes of its inputs without their first axis, and its layers; the last gives the
    output."""

    name: str
    about: str
    inputs: Mapping[str, tuple[int, ...]]
    layers: tuple[Layer, ...]

    @property
    def output(self) -> str:
        """The name of the last layer."""
        return self.layers[-1].name

    @property
    def names(self) -> list[str]:
        """The names of all layers."""
        return [layer.name for layer in self.layers]

    def arrays(self) -> Arrays:
        """All arrays, under LAYER.NAME."""
        return {f"{own.name}.{name}": array for own in self.layers for name, array in own.arrays.items()}

    def to_json(self) -> dict[str, Any]:
        """All but the arrays."""
        layers = [
            {"name": own.name, "kind": own.kind, "reads": own.reads, "relu": own.relu, "units": own.units}
            for own in self.layers
        ]
        return {"name": self.name, "about": self.about, "inputs": dict(self.inputs), "layers": layers}

    @classmethod
    def from_json(cls, found: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Graph":
        """The network again; what does not fit together is refused."""
        known, layers = set(found["inputs"]), []
        for own in found["layers"]:
            reads, name = tuple(own["reads"]), str(own["name"])
            count, wanted = KINDS.get(own["kind"], (0, ()))
            if len(reads) != count or not set(reads) <= known or name in known:
                raise FormatError(f"layer {name!r} of {found['name']!r} reads what is not there")
            parts = {each: arrays[f"{name}.{each}"] for each in wanted}
            layers.append(Layer(name, own["kind"], reads, parts, bool(own["relu"]), str(own["units"])))
            known.add(name)
        if not layers:
            raise FormatError(f"{found['name']!r} has no layers")
        inputs = {name: tuple(map(int, shape)) for name, shape in found["inputs"].items()}
        return cls(str(found["name"]), str(found["about"]), inputs, tuple(layers))


class Operations(Protocol, Generic[Value]):
    """How a runtime computes each kind of layer; a value may be an array, or the name of one."""

    def dense(self, layer: Layer, x: Value) -> Value: ...
    def sparse(self, layer: Layer, x: Value) -> Value: ...
    def convolution(self, layer: Layer, x: Value) -> Value: ...
    def join(self, layer: Layer, x: Value) -> Value: ...
    def scores(self, layer: Layer, x: Value, y: Value) -> Value: ...
    def choose(self, layer: Layer, x: Value) -> Value: ...
    def mix(self, layer: Layer, x: Value, y: Value, z: Value) -> Value: ...


def walk(
    graph: Graph, operations: Operations[Value], inputs: Mapping[str, Value]
) -> Iterator[tuple[Layer, Value]]:
    """Every layer with its value, in order."""
    values = dict(inputs)
    for layer in graph.layers:
        own = getattr(operations, layer.kind)(layer, *(values[name] for name in layer.reads))
        values[layer.name] = own
        yield layer, own


def shapes(graph: Graph, rows: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shape of every layer, where the inputs have so many rows."""
    found = {name: (rows[name], *shape) for name, shape in graph.inputs.items()}
    for own in graph.layers:
        x = found[own.reads[0]]
        match own.kind:
            case "dense":
                shape = (x[0], own.weight.shape[1])
            case "sparse":
                shape = (x[0], len(own.weight))
            case "convolution":
                shape = (x[0], len(own.weight), *x[2:])
            case "join":
                shape = (len(own.arrays["first"]) + x[0], x[1])
            case "scores" | "mix":
                y = found[own.reads[1]]
                shape = (x[0], y[0] if own.kind == "scores" else y[1])
            case _:
                shape = x
        found[own.name] = shape
    return found


def with_arrays(layer: Layer, **arrays: NDArray[Any]) -> Layer:
    """The layer with other arrays in place of some of its own."""
    return Layer(layer.name, layer.kind, layer.reads, {**layer.arrays, **arrays}, layer.relu, layer.units)


def patches(x: NDArray[Any], size: int) -> NDArray[Any]:
    """Of images, the square of this size around every place, zeros outside, as (patterns, rows, columns,
    channels * size * size)."""
    around = size // 2
    padded = np.pad(x, ((0, 0), (0, 0), (around, around), (around, around)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(*x.shape[:1], *x.shape[2:], -1)
