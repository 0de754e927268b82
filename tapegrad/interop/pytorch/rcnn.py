"""The target `rcnn` in PyTorch: the filter as convolutions, and the network whose memory SGD trains."""

import torch
from torch import Tensor, nn

from tapegrad.targets.rcnn.channels import SYMBOLS, TRACE, WORK, ChannelFilter
from tapegrad.targets.rcnn.encoding import Filter
from tapegrad.targets.rcnn.network import ANSWER_SLOPE, Rcnn
from tapegrad.targets.rcnn.sparse import Affine
from tapegrad.targets.rcnn.ternary import TernaryFilter


class ChannelModule(nn.Sequential):
    """A 3x3 convolution, a ReLU, a 1x1 convolution: one layer is one step of the machine. Takes and gives
    grids of shape (channels, rows, columns)."""

    def __init__(self, built: ChannelFilter) -> None:
        units, channels = built.kernel.shape[:2]
        first = nn.Conv2d(channels, units, 3, padding=1)
        mix = nn.Conv2d(units, channels, 1, bias=False)
        with torch.no_grad():
            first.weight.copy_(torch.tensor(built.kernel))
            assert first.bias is not None
            first.bias.copy_(torch.tensor(built.bias))
            mix.weight.copy_(torch.tensor(built.mix)[:, :, None, None])
        super().__init__(first, nn.ReLU(), mix)


class SparseAffine(nn.Module):
    """`x -> A x + b` on the columns of x, by the nonzero weights of A."""

    rows: Tensor
    columns: Tensor

    def __init__(self, affine: Affine) -> None:
        super().__init__()
        self.register_buffer("rows", torch.tensor(affine.rows))
        self.register_buffer("columns", torch.tensor(affine.columns))
        self.values = nn.Parameter(torch.tensor(affine.values))
        self.bias = nn.Parameter(torch.tensor(affine.bias))

    def forward(self, x: Tensor) -> Tensor:
        start = self.bias[:, None].expand(-1, x.shape[1])
        return start.index_add(0, self.rows, self.values[:, None] * x[self.columns])


class TernaryModule(nn.Module):
    """The paper's filter: `V5 V4 relu(V3 V2 relu(V1 patch))` on the nine numbers around every cell."""

    def __init__(self, built: TernaryFilter) -> None:
        super().__init__()
        self.V1, self.V2, self.V3, self.V4, self.V5 = (SparseAffine(affine) for affine in built.maps)
        self.padding = built.padding

    def forward(self, grid: Tensor) -> Tensor:
        rows, columns = grid.shape[1:]
        padded = nn.functional.pad(grid[0], (1, 1, 1, 1), value=self.padding)
        shifts = [padded[r : r + rows, c : c + columns] for r in range(3) for c in range(3)]
        asked = self.V2(torch.relu(self.V1(torch.stack(shifts).reshape(9, -1))))
        return self.V5(self.V4(torch.relu(self.V3(asked)))).reshape(grid.shape)


class RcnnModule(nn.Module):
    """Definition 5 of Goel et al. `memory` is the one trained parameter: `torch.optim.SGD([memory],
    lr=RATE)` on the loss `(y - module(z))**2 / 2` memorises, a sample at a step."""

    def __init__(self, network: Rcnn) -> None:
        super().__init__()
        self.filter = filter_module(network.filter).requires_grad_(False)
        self.memory = nn.Parameter(torch.tensor(network.empty_memory()))
        self.network = network

    def forward(self, z: Tensor) -> Tensor:
        """The network's output on `z = [x, 1]`."""
        network, grid = self.network, self._framed(self.memory * z)
        for _ in range(network.layers):
            grid = self.filter(grid)
        top, left = network.frame.top, network.frame.left
        return self._head(grid[:, top : top + network.rows, left : left + network.columns]).sum()

    def _framed(self, data: Tensor) -> Tensor:
        top, bottom, left, right = self.network.frame
        around = (left, right, top, bottom)
        if self.network.encoding.name == "ternary":
            return nn.functional.pad(data, around, value=1.0)[None]
        channels = [torch.zeros_like(data)] * self.network.filter.channels
        channels[TRACE], channels[SYMBOLS], channels[SYMBOLS + 1] = data, _third(data), _third(-data)
        padded = list(nn.functional.pad(torch.stack(channels), around))
        padded[WORK] = nn.functional.pad(torch.zeros_like(data), around, value=1.0)
        return torch.stack(padded)

    def _head(self, cells: Tensor) -> Tensor:
        if self.network.encoding.name == "channels":
            return cells[SYMBOLS] - cells[SYMBOLS + 1] + ANSWER_SLOPE * cells[TRACE]
        kinks = ((-1 / 6, 18.0), (0.0, -36.0), (1 / 9, 36.0), (1 / 6, -18.0))
        return sum((slope * torch.relu(cells[0] - kink) for kink, slope in kinks), torch.zeros(())) - 1


def filter_module(built: Filter) -> nn.Module:
    """One application of the filter, for either encoding."""
    return ChannelModule(built) if isinstance(built, ChannelFilter) else TernaryModule(built)


def _third(data: Tensor) -> Tensor:
    """1 at +1/3, 0 at 0 and -1/3, flat at all three."""
    return torch.relu(12 * data - 2) - torch.relu(12 * data - 3)
