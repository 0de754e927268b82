"""The target `emulator` in PyTorch: every edge of the graph a trained weight, hard tanh at every vertex."""

import numpy as np
import torch
from torch import Tensor, nn

from tapegrad.errors import Refused
from tapegrad.targets.emulator.carry import EmulatorCarry
from tapegrad.targets.emulator.net import EmulatorNet
from tapegrad.targets.emulator.practical_net import PracticalNet


class EmulatorModule(nn.Module):
    """`module(row)` is the output for one input row (`input_rows` of `tapegrad.targets.emulator.carry`).
    `torch.optim.SGD([module.weights], lr=module.rate)` on `(module(row) - label)**2`, one sample at a time
    and labels -1 and 1, emulates the learner: its memory is the sign of the weights at `cells`."""

    cells: Tensor

    def __init__(self, net: EmulatorNet) -> None:
        super().__init__()
        if not isinstance(net, PracticalNet):
            raise Refused(
                f"the memory {net.memory!r} has no form in PyTorch, whose numbers are too coarse for it",
                advice="Compile with memory=practical.",
            )
        self.weights = nn.Parameter(torch.tensor(net.weights))
        self.register_buffer("cells", torch.tensor(net.cells))
        self.rate = net.constants.rate
        self.vertices, self.inputs = net.graph.vertices, net.graph.inputs
        level = net.graph.levels()
        ends = np.repeat(np.arange(self.inputs, self.vertices), np.diff(net.graph.offsets))
        self.levels: list[tuple[Tensor, Tensor, Tensor]] = []
        for depth in range(1, int(level.max(initial=0)) + 1):
            edges = np.flatnonzero(level[ends] == depth)
            self.levels.append(
                (torch.tensor(edges), torch.tensor(net.graph.sources[edges]), torch.tensor(ends[edges]))
            )

    @torch.no_grad()
    def start(self, carry: EmulatorCarry) -> "EmulatorModule":
        """Takes over the weights of a carry of the net."""
        self.weights.copy_(torch.tensor(np.asarray(carry.weights)))
        return self

    def values(self, row: Tensor) -> Tensor:
        """The value of every vertex, level by level."""
        row = row.to(self.weights)
        values = torch.cat([row, row.new_zeros(self.vertices - len(row))])
        for edges, sources, ends in self.levels:
            totals = torch.zeros_like(values).index_add(0, ends, self.weights[edges] * values[sources])
            # Vertices of this level get their value; all others are 0 here, and hard tanh keeps 0.
            values = values + nn.functional.hardtanh(totals, -2.0, 2.0)
        return values

    def forward(self, row: Tensor) -> Tensor:
        return self.values(row)[-1]
