"""Networks as ONNX models: every operation as a few nodes of the standard operators.

A step is a model: state goes in and out. Layers of a node `layers` are nodes one after the other, or, where
there are many, one loop (Scan) over equal tiles, so that a large network is a small graph.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tapegrad.errors import Refused
from tapegrad.networks.backends.numpy import corners
from tapegrad.networks.checking import Shape, check
from tapegrad.networks.network import LAYERS, Backend, Network, Node
from tapegrad.networks.onnx_writer import LARGEST, GraphWriter
from tapegrad.networks.tiles import levels_of, tiles_of

MOST_LAYERS = 64
"""Layers that are written one by one."""
MOST_READ, SMALL = 16, 1 << 14
"""Columns that a row gathers at most, and entries of a matrix that is written out in any case."""


def model_of(network: Network, notes: Mapping[str, str]) -> onnx.ModelProto:
    """The network as a checked model. Inputs are the network's inputs and its state; outputs are its outputs
    and, for each state, `next_NAME`. What the state is at first is in the metadata, with the `notes`."""
    write, shapes = GraphWriter(), check(network)
    ports = {name: Shape(port.shape, port.dtype) for name, port in network.inputs.items()}
    ports |= {name: shapes[name] for name in network.state}
    given = {name: write.input(name, own.dtype, own.sizes) for name, own in ports.items()}
    outputs, state = Onnx(network, write).run(given)
    for name, value in outputs.items():
        shape = shapes[network.outputs[name]]
        write.output(f"{name}_now" if name in ports else name, value, shape.dtype, shape.sizes)
    for name, value in state.items():
        shape = shapes[network.state[name].next]
        write.output(f"next_{name}", value, shape.dtype, shape.sizes)
    first = {f"first_{name}": json.dumps(own.tolist()) for name, own in network.first_state().items()}
    return write.model(network.name or "network", {**notes, **first})


class Onnx(Backend[str]):
    """Values are names of values of a graph."""

    def __init__(self, network: Network, write: GraphWriter) -> None:
        super().__init__(network)
        self.write, self.shapes = write, check(network)

    def constant_of(self, array: NDArray[Any]) -> str:
        return self.write.constant(np.asarray(array))

    def number(self, node: Node, name: str, like: str) -> str:
        """A setting as a number of the type of a value."""
        return self.write.constant(np.array(node.settings[name], self.shapes[like].dtype))

    def affine(self, node: Node, x: str) -> str:
        rows, columns, values, bias = (
            self.network.array(node, part) for part in ("rows", "columns", "values", "bias")
        )
        width = self.shapes[node.reads[0]].width
        assert isinstance(width, int)
        counts = np.bincount(rows, minlength=len(bias))
        fan_in = int(counts.max(initial=0))
        if fan_in > MOST_READ or len(bias) * width <= SMALL:
            if len(bias) * width * bias.itemsize > LARGEST:
                raise Refused(
                    f"a map of {len(bias):,} x {width:,} entries is too large for a file",
                    advice="For target rcnn, compile with form=practical.",
                )
            weight = np.zeros((width, len(bias)), values.dtype)
            np.add.at(weight, (columns, rows), values)
            sums = self.write.add("MatMul", x, self.write.constant(weight, f"{node.name}.weight"))
            return self.write.add("Add", sums, self.part(node, "bias"))
        reads, weight = np.zeros((len(bias), fan_in), np.int64), np.zeros((len(bias), fan_in), values.dtype)
        which = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        reads[rows, which], weight[rows, which] = columns, values
        terms = self.write.add("Gather", x, self.write.constant(reads, f"{node.name}.reads"), axis=-1)
        terms = self.write.add("Mul", terms, self.write.constant(weight, f"{node.name}.weight"))
        sums = self.write.add("ReduceSum", terms, self.write.whole(-1), keepdims=0)
        return self.write.add("Add", sums, self.part(node, "bias"))

    def layers(self, node: Node, x: str) -> str:
        """In columns: slots are rows, patterns columns."""
        (*batch, width) = self.shapes[node.reads[0]].sizes
        assert isinstance(width, int)
        rows = x if len(batch) == 1 else self.write.add("Reshape", x, self.write.whole(-1, width))
        columns = self.write.add("Transpose", rows, perm=[1, 0])
        few = len(self.network.array(node, "bounds")) - 1 <= MOST_LAYERS
        found = self._one_by_one(node, columns, width) if few else self._in_tiles(node, columns, width)
        made = self.write.add("Transpose", found, perm=[1, 0])
        if len(batch) == 1:
            return made
        sizes = [self.write.add("Slice", self.write.add("Shape", x), *map(self.write.whole, (0, len(batch))))]
        sizes.append(self.write.whole(len(self.network.array(node, "out"))))
        return self.write.add("Reshape", made, self.write.add("Concat", *sizes, axis=0))

    def _one_by_one(self, node: Node, columns: str, width: int) -> str:
        """Each layer gathers from the values of the layers that it reads."""
        bounds, starts, reads, values, biases, to, relu, out = (
            self.network.array(node, part) for part in LAYERS
        )
        slots, counts = node.whole("slots"), np.diff(starts)
        # A row of zeros stands behind the inputs, for slots that nothing was written to.
        ends = self.write.whole(0, 0, 1, 0)
        made = [self.write.add("Pad", columns, ends)]
        tensor, row = np.zeros(slots, np.int64), np.full(slots, width, np.int64)
        row[:width] = np.arange(width)
        heights = [width + 1]
        for number, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            fan_in = max(1, int(counts[first:last].max(initial=0)))
            which = np.arange(fan_in)
            used = which < counts[first:last, None]
            entry = np.where(used, starts[first:last, None] + which, 0)
            read = np.where(used, np.append(reads, 0)[entry], 0)
            weight = np.where(used, np.append(values, 0).astype(values.dtype)[entry], 0)
            name = f"{node.name}.{number}"
            terms = self._gathered(made, heights, tensor[read], row[read], used, name)
            terms = self.write.add("Mul", terms, self.write.constant(weight[..., None], f"{name}.weight"))
            sums = self.write.add("ReduceSum", terms, self.write.whole(1), keepdims=0)
            sums = self.write.add("Add", sums, self.write.constant(biases[first:last, None], f"{name}.bias"))
            if relu[first:last].all():
                sums = self.write.add("Relu", sums)
            elif relu[first:last].any():
                floors = self.network.floors(node)[first:last, None]
                sums = self.write.add("Max", sums, self.write.constant(floors))
            made.append(sums)
            heights.append(last - first)
            tensor[to[first:last]], row[to[first:last]] = len(made) - 1, np.arange(last - first)
        return self._gathered(
            made, heights, tensor[out], row[out], np.ones(len(out), bool), f"{node.name}.out"
        )

    def _gathered(
        self,
        made: Sequence[str],
        heights: Sequence[int],
        tensor: NDArray[np.integer],
        row: NDArray[np.integer],
        used: NDArray[np.bool_],
        name: str,
    ) -> str:
        """Rows of several values, which are put one below the other first."""
        sources = np.unique(tensor[used]).tolist() or [0]
        begins = np.zeros(len(made), np.int64)
        begins[sources] = np.cumsum([0, *(heights[own] for own in sources[:-1])])
        places = np.where(used, begins[tensor] + row, 0)
        whole = made[sources[0]]
        if len(sources) > 1:
            whole = self.write.add("Concat", *(made[own] for own in sources), axis=0)
        return self.write.add("Gather", whole, self.write.constant(places, f"{name}.places"), axis=0)

    def _in_tiles(self, node: Node, columns: str, width: int) -> str:
        tiles, slots = tiles_of(self.network, node), node.whole("slots")
        values, biases, floors = (
            np.append(own, 0).astype(self.shapes[node.name].dtype)
            for own in (
                *(self.network.array(node, part) for part in ("values", "biases")),
                self.network.floors(node),
            )
        )
        scanned = {
            "reads": tiles.reads,
            "weights": values[tiles.entries][..., None],
            "biases": biases[tiles.rows][..., None],
            "floors": floors[tiles.rows][..., None],
            "to": tiles.to[..., None],
        }
        inner = GraphWriter(prefix=f"{node.name}/")
        before = inner.input(f"{node.name}/slots", values.dtype, [slots + 1, "patterns"])
        own = {
            part: inner.input(f"{node.name}/{part}", array.dtype, array.shape[1:])
            for part, array in scanned.items()
        }
        terms = inner.add("Mul", inner.add("Gather", before, own["reads"], axis=0), own["weights"])
        sums = inner.add("Add", inner.add("ReduceSum", terms, inner.whole(1), keepdims=0), own["biases"])
        after = inner.add("ScatterND", before, own["to"], inner.add("Max", sums, own["floors"]))
        inner.output(f"{node.name}/after", after, values.dtype, [slots + 1, "patterns"])
        body = inner.graph(f"{node.name}/tile")
        padded = self.write.add("Pad", columns, self.write.whole(0, 0, slots + 1 - width, 0))
        arrays = [self.write.constant(array, f"{node.name}.{part}") for part, array in scanned.items()]
        last = self.write.add("Scan", padded, *arrays, body=body, num_scan_inputs=len(scanned))
        places = self.network.array(node, "out").astype(np.int64)
        return self.write.add("Gather", last, self.write.constant(places), axis=0)

    def relu(self, node: Node, x: str) -> str:
        return self.write.add("Relu", x)

    def clip(self, node: Node, x: str) -> str:
        return self.write.add("Clip", x, *(self.number(node, end, node.reads[0]) for end in ("low", "high")))

    def sqrt(self, node: Node, x: str) -> str:
        return self.write.add("Sqrt", x)

    def detach(self, node: Node, x: str) -> str:
        return x

    def add(self, node: Node, x: str, y: str) -> str:
        return self.write.add("Add", x, y)

    def multiply(self, node: Node, x: str, y: str) -> str:
        return self.write.add("Mul", x, y)

    def divide(self, node: Node, x: str, y: str) -> str:
        return self.write.add("Div", x, y)

    def greater(self, node: Node, x: str, y: str) -> str:
        return self._cast(self.write.add("Greater", x, y), self.shapes[node.name].dtype)

    def total(self, node: Node, x: str) -> str:
        axes = range(-node.whole("axes"), 0)
        return self.write.add("ReduceSum", x, self.write.whole(*axes), keepdims=0)

    def take(self, node: Node, x: str) -> str:
        return self.write.add("Gather", x, self.part(node, "index"), axis=-1)

    def put(self, node: Node, x: str, y: str) -> str:
        to = self.network.array(node, "to")
        width = self.shapes[node.reads[0]].width
        assert isinstance(width, int)
        if len(np.unique(to)) < len(to):
            matrix = np.zeros((len(to), width), self.shapes[node.name].dtype)
            matrix[np.arange(len(to)), to] = 1
            return self.write.add("Add", x, self.write.add("MatMul", y, self.write.constant(matrix)))
        rank = len(self.shapes[node.reads[1]].sizes)
        behind = self.write.add("Pad", y, self.write.whole(*[0] * (2 * rank - 1), 1))
        places = np.full(width, len(to), np.int64)
        places[to] = np.arange(len(to))
        return self.write.add(
            "Add", x, self.write.add("Gather", behind, self.write.constant(places), axis=-1)
        )

    def join(self, node: Node, x: str, y: str) -> str:
        ranks = [len(self.shapes[name].sizes) for name in node.reads]
        if ranks[0] != ranks[1]:
            x, y = (self._expanded(own, other) for own, other in ((x, y), (y, x)))
        return self.write.add("Concat", x, y, axis=node.whole("axis"))

    def _expanded(self, x: str, y: str) -> str:
        """x for each member of y's batch."""
        batch = self.write.add("Slice", self.write.add("Shape", y), *map(self.write.whole, (0, -2)))
        own = self.write.add("Slice", self.write.add("Shape", x), *map(self.write.whole, (-2, 1 << 60)))
        return self.write.add("Expand", x, self.write.add("Concat", batch, own, axis=0))

    def product(self, node: Node, x: str, y: str) -> str:
        if node.settings["turned"]:
            rank = len(self.shapes[node.reads[1]].sizes)
            y = self.write.add("Transpose", y, perm=[*range(rank - 2), rank - 1, rank - 2])
        return self.write.add("MatMul", x, y)

    def later(self, node: Node, x: str) -> str:
        dtype = np.dtype(self.shapes[node.name].dtype)
        shape, one = self.write.add("Shape", x), self.write.whole(1)
        rows, places = (self.write.add("Gather", shape, self.write.whole(axis), axis=0) for axis in (-2, -1))
        distance = self.write.add("Add", self.write.add("Sub", places, rows), one)
        distance = self.write.add("Squeeze", distance)
        ones = self.write.add("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([1], dtype)))
        later = self._cast(self.write.add("Trilu", ones, distance, upper=1), "bool")
        return self.write.add("Where", later, self.write.constant(np.array(-np.inf, dtype)), x)

    def hardmax(self, node: Node, x: str) -> str:
        axis = self.write.whole(-1)
        best = self.write.add("Equal", x, self.write.add("ReduceMax", x, axes=[-1]))
        ones = self._cast(best, self.shapes[node.name].dtype)
        return self.write.add("Div", ones, self.write.add("ReduceSum", ones, axis))

    def softmax(self, node: Node, x: str) -> str:
        sharp = self.write.add("Mul", x, self.number(node, "temperature", node.name))
        return self.write.add("Softmax", sharp, axis=-1)

    def embed(self, node: Node, n: str) -> str:
        return self.write.add("Gather", self.part(node, "table"), n, axis=0)

    def places(self, node: Node, n: str, past: str) -> str:
        first, count = (
            self.write.add("Squeeze", self.write.add("Gather", self.write.add("Shape", own), axis, axis=0))
            for own, axis in ((past, self.write.whole(-2)), (n, self.write.whole(-1)))
        )
        end, one = self.write.add("Add", first, count), self.write.constant(np.array(1, np.int64))
        return self.write.add("Range", first, end, one)

    def digits(self, node: Node, n: str) -> str:
        powers = 1 << np.arange(node.whole("count"))
        positive = self.write.add("Max", n, self.write.constant(np.array(0, np.int64)))
        column = self.write.add("Unsqueeze", positive, self.write.whole(-1))
        shifted = self.write.add("Div", column, self.write.constant(powers.astype(np.int64)))
        bits = self.write.add("Mod", shifted, self.write.constant(np.array(2, np.int64)))
        return self._cast(bits, "float32")

    def quotient(self, node: Node, n: str) -> str:
        """What the remainder leaves is divided, so that numbers below 0 are rounded down as well."""
        by = self.number(node, "by", node.name)
        rest = self.write.add("Sub", n, self.write.add("Mod", n, by))
        return self.write.add("Div", rest, by)

    def remainder(self, node: Node, n: str) -> str:
        return self.write.add("Mod", n, self.number(node, "by", node.name))

    def onehot(self, node: Node, n: str) -> str:
        return self._compared(node, "Equal", n)

    def ladder(self, node: Node, n: str) -> str:
        return self._compared(node, "Greater", n)

    def _compared(self, node: Node, operator: str, n: str) -> str:
        every = self.write.constant(np.arange(node.whole("count"), dtype=np.int64))
        column = self.write.add("Unsqueeze", n, self.write.whole(-1))
        return self._cast(self.write.add(operator, column, every), "float32")

    def patches(self, node: Node, x: str) -> str:
        padding = self.number(node, "padding", node.name)
        padded = self.write.add("Pad", x, self.write.whole(1, 1, 0, 1, 1, 0), padding)
        axes, shifts = self.write.whole(0, 1), []
        for row, column in corners(node):
            # The window ends 2 - row and 2 - column short of the padded grid; 0 short is "to the end".
            ends = [n - 2 if n < 2 else np.iinfo(np.int64).max for n in (row, column)]
            window = self.write.add(
                "Slice", padded, self.write.whole(row, column), self.write.whole(*ends), axes
            )
            shifts.append(self.write.add("Unsqueeze", window, self.write.whole(-1)))
        joined = self.write.add("Concat", *shifts, axis=-1)
        width = self.shapes[node.name].width
        assert isinstance(width, int)
        return self.write.add("Reshape", joined, self.write.whole(0, 0, width))

    def transpose(self, node: Node, x: str) -> str:
        return self.write.add("Transpose", x, perm=node.list("order"))

    def reshape(self, node: Node, x: str) -> str:
        kept, sizes = len(self.shapes[node.reads[0]].sizes) - node.whole("axes"), node.list("sizes")
        return self.write.add("Reshape", x, self.write.whole(*[0] * kept, *sizes))

    def units(self, node: Node, x: str, w: str) -> str:
        """Level by level, behind one another: a unit reads columns of the levels before it."""
        body, shape, given = node.body, self.shapes[node.name], self.shapes[node.reads[0]].width
        assert body is not None
        assert isinstance(given, int)
        if len(shape.sizes) > 1:
            raise Refused("units whose weights are trained have no batches in ONNX")
        (name,) = body.state
        columns = self.network.array(node, "columns")
        levels = levels_of(self.network.array(node, "starts"), columns, given)
        place = np.arange(given + len(levels.columns))
        place[levels.columns] = given + np.arange(len(levels.columns))
        made = x
        pairs = zip(pairwise(levels.units_to), pairwise(levels.entries_to), strict=True)
        for (first, last), (begin, end) in pairs:
            entries = levels.entries[begin:end]
            reads, own = (self.write.constant(a.astype(np.int64)) for a in (place[columns[entries]], entries))
            terms = self.write.add(
                "Mul", *(self.write.add("Gather", *pair) for pair in ((w, own), (made, reads)))
            )
            zeros = self.write.constant(np.zeros(last - first, shape.dtype))
            ends = self.write.constant(levels.ends[begin:end].astype(np.int64))
            sums = self.write.add("ScatterElements", zeros, ends, terms, reduction="add")
            made = self.write.add("Concat", made, Onnx(body, self.write).run({name: sums})[1][name], axis=0)
        return self.write.add("Gather", made, self.write.constant(place))

    def repeat(self, node: Node, x: str) -> str:
        body = node.body
        assert body is not None
        (name,) = body.state
        inner, shape = GraphWriter(prefix=f"{node.name}/"), self.shapes[node.name]
        inner.input(f"{node.name}/number", np.int64, [])
        going = inner.input(f"{node.name}/going", np.bool_, [])
        given = inner.input(f"{node.name}/given", shape.dtype, shape.sizes)
        after = Onnx(body, inner).run({name: given})[1][name]
        inner.output(f"{node.name}/still", going, np.bool_, [])
        inner.output(f"{node.name}/after", after, shape.dtype, shape.sizes)
        count = self.write.constant(np.array(node.whole("count"), np.int64))
        true = self.write.constant(np.array(True))
        return self.write.add("Loop", count, true, x, body=inner.graph(f"{node.name}/body"))

    def _cast(self, x: str, dtype: str) -> str:
        return self.write.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
