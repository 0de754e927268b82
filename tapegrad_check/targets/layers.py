"""The network of a `relu` net: bits, layers of units, and the signs of the last layer as bits again.

In the node `layers` rows read slots, which are used again and again. Here every row reads *places* instead:
those of the inputs, then one for each row, layer by layer, so that what a place holds never changes. All
parts of the graph are accounted for: there is nothing else in it.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import FORMATS
from tapegrad_check.folder import require
from tapegrad_check.graph import Graph

TYPES = {
    "bounds": "int64",
    "starts": "int64",
    "columns": "int32",
    "to": "int32",
    "relu": "uint8",
    "out": "int32",
}
SHAPE = ("layers", "constant", "multiply", "constant", "add")


class Wired(NamedTuple):
    """Rows are sums of entries and a bias; all layers but the last have a ReLU, and the rows of the last are
    the outputs, -1 and +1."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dtype: str
    bounds: NDArray[np.int64]
    """Where each layer begins, and where the last ends."""
    starts: NDArray[np.int64]
    """Where the entries of each row begin, and where the last end."""
    places: NDArray[np.int32]
    values: NDArray[Any]
    biases: NDArray[Any]

    @property
    def units(self) -> int:
        """Rows of all layers but the last."""
        return int(self.bounds[-2])

    @property
    def begins(self) -> NDArray[np.int64]:
        """For each layer where the one before it begins."""
        return np.append(0, len(self.inputs) + self.bounds)[:-2]

    def reads_before(self) -> bool:
        """Whether no row reads an earlier layer than the one before it."""
        layers = zip(self.begins.tolist(), pairwise(self.starts[self.bounds].tolist()), strict=True)
        return all((self.places[first:last] >= begin).all() for begin, (first, last) in layers)


def wired(graph: Graph) -> Wired:
    """The rows of the network, and what each of them reads."""
    require(graph.name == "relu" and not graph.state, "the network takes steps, or is that of another target")
    ends = graph.inputs.keys() == {"bits"} and graph.outputs.keys() == {"outputs"}
    require(ends, "the network is not one from bits to outputs")
    port, nodes = graph.inputs["bits"], graph.nodes
    require(port.dtype in FORMATS, "the precision is unknown")
    fits = port.sizes == ("patterns", len(port.columns)) and port.about == "0 or 1"
    require(fits, "the inputs are not rows of bits with names")
    require(tuple(node.operation for node in nodes) == SHAPE, "the network is not one of layers alone")
    require(not any(node.about for node in nodes), "a node says what it is for")
    units, half, halves, other, bits = nodes
    reads = ("bits",), (), (units.name, half.name), (), (halves.name, other.name)
    require(tuple(node.reads for node in nodes) == reads, "the outputs are not those of the layers")
    for node in (half, other):
        value = node.arrays["value"]
        require(value.shape == () and value.dtype == port.dtype and value == 0.5, "bits are not (x + 1) / 2")
    outputs = graph.names_of(bits.name)
    named = graph.outputs["outputs"] == bits.name and graph.columns.keys() <= {"bits", bits.name}
    require(
        named and len(outputs) == len(units.arrays["out"]), "an output has no name, or what is none has one"
    )
    for part, kind in TYPES.items():
        require(units.arrays[part].dtype == kind, f"{part} of the layers are not of type {kind}")
    bounds, starts, values, biases = (units.arrays[part] for part in ("bounds", "starts", "values", "biases"))
    columns, to = units.arrays["columns"], units.arrays["to"]
    require(len(bounds) > 1, "there is no layer")
    rectified, last = units.arrays["relu"], int(bounds[-2])
    require(rectified[:last].all() and not rectified[last:].any(), "a unit has no ReLU, or an output has one")
    require(np.array_equal(units.arrays["out"], to[last:]), "the outputs are not the rows of the last layer")
    slots = 1 + max(len(port.columns) - 1, int(to.max(initial=-1)))
    require(units.setting("slots") == slots, "there are more slots than are ever written to")
    require((values != 0).all(), "an entry is 0")
    made = Wired(port.columns, outputs, port.dtype, bounds, starts, columns, values, biases)
    return made._replace(places=_places(made, columns, to, slots))


def _places(made: Wired, columns: NDArray[np.int32], to: NDArray[np.int32], slots: int) -> NDArray[np.int32]:
    """For each entry what the slot that it reads holds before its layer."""
    inputs = len(made.inputs)
    holder, places = np.full(slots, -1, np.int32), np.zeros(len(columns), np.int32)
    holder[:inputs] = np.arange(inputs)
    for begin, end in pairwise(made.bounds.tolist()):
        entries = slice(made.starts[begin], made.starts[end])
        places[entries] = holder[columns[entries]]
        holder[to[begin:end]] = np.arange(inputs + begin, inputs + end)
    require((places >= 0).all(), "a unit reads what is in no earlier layer")
    return places
