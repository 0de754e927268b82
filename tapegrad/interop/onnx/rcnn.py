"""The target `rcnn` in ONNX: one application of the filter to a grid of any size."""

import numpy as np
import onnx

from tapegrad.errors import Refused
from tapegrad.interop.onnx.graph import LARGEST, GraphWriter
from tapegrad.targets.rcnn.channels import ChannelFilter
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.rcnn.ternary import TernaryFilter


def rcnn_model(net: RcnnNet) -> onnx.ModelProto:
    """`grid` (channels, rows, columns) to `next_grid`, one step of the machine later."""
    graph, built = GraphWriter(), net.filter
    shape = [built.channels, "rows", "columns"]
    grid = graph.input("grid", built.dtype, shape)
    after = (
        _channels(graph, built, grid) if isinstance(built, ChannelFilter) else _ternary(graph, built, grid)
    )
    graph.output("next_grid", after, built.dtype, shape)
    return graph.model("rcnn", {"encoding": net.encoding.name})


def _channels(graph: GraphWriter, built: ChannelFilter, grid: str) -> str:
    """A 3x3 convolution, a ReLU, a 1x1 convolution."""
    batch = graph.constant(np.array([0], np.int64), "batch")
    kernel, bias = graph.constant(built.kernel, "kernel"), graph.constant(built.bias, "bias")
    sums = graph.add("Conv", graph.add("Unsqueeze", grid, batch), kernel, bias, pads=[1, 1, 1, 1])
    mix = graph.constant(built.mix[:, :, None, None], "mix")
    return graph.add("Squeeze", graph.add("Conv", graph.add("Relu", sums), mix), batch)


def _ternary(graph: GraphWriter, built: TernaryFilter, grid: str) -> str:
    """The nine neighbours of every cell as columns, then the paper's five maps, written out as matrices."""
    entries = sum(len(affine.bias) * affine.width for affine in built.maps)
    if 8 * entries > LARGEST:
        raise Refused(
            f"the maps of this filter have {entries:,} entries as matrices, too many for a file",
            advice="Compile with encoding=channels.",
        )
    around = graph.constant(np.array([0, 1, 1, 0, 1, 1], np.int64))
    padded = graph.add("Pad", grid, around, graph.constant(np.array(built.padding)))
    axes = graph.constant(np.array([1, 2], np.int64))
    neighbours = []
    for row in range(3):
        for column in range(3):
            # The window ends 2 - row and 2 - column short of the padded grid; 0 short is "to the end".
            ends = [n - 2 if n < 2 else np.iinfo(np.int64).max for n in (row, column)]
            begin, end = (graph.constant(np.array(n, np.int64)) for n in ([row, column], ends))
            neighbours.append(graph.add("Slice", padded, begin, end, axes))
    nine = graph.constant(np.array([9, -1], np.int64))
    values = graph.add("Reshape", graph.add("Concat", *neighbours, axis=0), nine)
    for number, affine in enumerate(built.maps, 1):
        matrix = affine.dense()
        weights = graph.constant(matrix[:, :-1], f"V{number}")
        bias = graph.constant(matrix[:, -1:], f"V{number}.bias")
        values = graph.add("Add", graph.add("MatMul", weights, values), bias)
        if number in (1, 3):
            values = graph.add("Relu", values, name=f"relu_after_V{number}")
    return graph.add("Reshape", values, graph.add("Shape", grid))
