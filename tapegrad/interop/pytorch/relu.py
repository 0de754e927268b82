"""The target `relu` in PyTorch: an `nn.Sequential` of sparse affine layers and ReLUs."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from tapegrad.targets.relu.net import ReluNet


class TwoInputs(nn.Module):
    """`W x + b` where every row of W has at most two entries: row u reads `x[inputs[u]]`. What a `nn.Linear`
    does with a matrix of zeros, in the space of the entries; `dense()` writes that one out."""

    inputs: Tensor

    def __init__(self, inputs: Tensor, weight: Tensor, bias: Tensor, width: int) -> None:
        super().__init__()
        self.register_buffer("inputs", inputs)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        if self.width == 0:  # rows of constants name place 0, which an empty layer does not have
            x = nn.functional.pad(x, (0, 1))
        return (x[:, self.inputs] * self.weight).sum(-1) + self.bias

    def dense(self) -> nn.Linear:
        """The same layer as PyTorch writes it."""
        rows = len(self.bias)
        linear = nn.Linear(self.width, rows, dtype=self.bias.dtype, device="meta").to_empty(device="cpu")
        with torch.no_grad():
            linear.weight.zero_()
            linear.bias.copy_(self.bias)
            if self.width:
                number = torch.arange(rows)[:, None].expand(rows, 2)
                # Added, not set: both inputs of a row may be the same.
                linear.weight.index_put_((number, self.inputs), self.weight, accumulate=True)
        return linear

    def extra_repr(self) -> str:
        return f"{self.width} -> {len(self.bias)}"


class ReluModule(nn.Sequential):
    """Takes bits (patterns, inputs) in the net's precision, gives values near -1 and +1 (patterns,
    outputs). The names are in `input_names` and `output_names`."""

    def __init__(self, net: ReluNet) -> None:
        super().__init__()
        self.input_names, self.output_names = net.input_names, net.output_names
        inputs = torch.tensor(np.asarray(net.inputs), dtype=torch.int64)
        weights, biases = torch.tensor(np.asarray(net.weights)), torch.tensor(np.asarray(net.biases))
        width, bounds = len(net.input_names), net.bounds.tolist()
        for first, last in pairwise(bounds):
            own = slice(first, last)
            self.append(TwoInputs(inputs[own], weights[own], biases[own], width))
            self.append(nn.ReLU())
            width = last - first
        del self[-1]  # the last layer is linear

    def dense(self) -> nn.Sequential:
        """The same network made of `nn.Linear` and `nn.ReLU` alone, for nets that are not too wide."""
        return nn.Sequential(*(part.dense() if isinstance(part, TwoInputs) else nn.ReLU() for part in self))
