"""`to_torch`: a compiled net as an `nn.Module`, and the modules of the forward targets."""

from typing import Any

import torch
from torch import Tensor, nn

from tapegrad._compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.exporting import net_of
from tapegrad.interop.pytorch.training import DescentModule, EmulatorModule
from tapegrad.networks.backends.pytorch import DecoderModule, StackModule, convolution
from tapegrad.targets.emulator.net import EmulatorNet
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.encoding import SYMBOLS, TRACE, WORK
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.rcnn.network import ANSWER_SLOPE, HEAD_KINKS, Rcnn
from tapegrad.targets.relu.net import ReluNet
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.transformer.net import TransformerNet


def to_torch(compiled: Compiled | Net | Rcnn) -> Any:
    """The net as an `nn.Module`, from its arrays alone. Forward targets (`relu`, `transformer`, the filter of
    `rcnn`) give the net's outputs; training targets (`tape`, `simplex`, `emulator`, a grid learner's network)
    take the net's steps under PyTorch's automatic differentiation and its optimisers."""
    net = compiled if isinstance(compiled, Rcnn) else net_of(compiled)
    match net:
        case ReluNet():
            return ReluModule(net)
        case TransformerNet():
            return TransformerModule(net)
        case TapeNet() | SimplexNet():
            return DescentModule(net)
        case EmulatorNet():
            return EmulatorModule(net)
        case RcnnNet():
            return convolution(net.filter.convolution)
        case Rcnn():
            return RcnnModule(net)
    raise Refused(f"target {net.target!r} has no form in PyTorch")


class ReluModule(StackModule):
    """Takes bits (patterns, inputs) in the net's precision, gives values near -1 and +1 (patterns,
    outputs). The names are in `input_names` and `output_names`."""

    def __init__(self, net: ReluNet) -> None:
        super().__init__(net.stack)
        self.input_names, self.output_names = net.input_names, net.output_names


class TransformerModule(DecoderModule):
    """`module(tokens, steps)` gives the decoder's outputs o_0, ..., as rows, up to the halt: row i encodes
    the machine after its step i. `tokens` are the encoder's outputs: `torch.tensor(start.tokens)` where
    `start = net.start(...)`."""

    def __init__(self, net: TransformerNet) -> None:
        super().__init__(net.decoder, net.layout.steps)
        self.theta_cls = nn.Parameter(torch.tensor(net.theta_cls))
        self.coordinates = net.layout.names


class RcnnModule(nn.Module):
    """Definition 5 of Goel et al. `memory` is the one trained parameter: `torch.optim.SGD([memory],
    lr=RATE)` on the loss `(y - module(z))**2 / 2` memorises, a sample at a step."""

    def __init__(self, network: Rcnn) -> None:
        super().__init__()
        self.filter = convolution(network.filter.convolution).requires_grad_(False)
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
        return sum((slope * torch.relu(cells[0] - kink) for kink, slope in HEAD_KINKS), torch.zeros(())) - 1


def _third(data: Tensor) -> Tensor:
    """1 at +1/3, 0 at 0 and -1/3, flat at all three."""
    return torch.relu(12 * data - 2) - torch.relu(12 * data - 3)
