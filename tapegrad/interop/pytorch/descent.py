"""The targets `tape` and `simplex` in PyTorch: weights, and the loss whose descent computes."""

import numpy as np
import torch
from torch import Tensor, nn

from tapegrad.errors import Refused
from tapegrad.interop.pytorch.conditional_gradient import ConditionalGradient
from tapegrad.interop.pytorch.simplex_functions import (
    corner,
    directed,
    edge,
    halt_switch,
    label_switch,
    orthogonal,
)
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.descent.network import NoPrimary, SquaredError
from tapegrad.targets.simplex.loss import SimplexLoss
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.constants import GAMMA
from tapegrad.targets.tape.loss import TapeLoss
from tapegrad.targets.tape.net import TapeNet


class SimplexLossModule(nn.Module):
    """The loss (13) on the simplex of configurations."""

    vertex_weight: Tensor
    edge_from: Tensor
    edge_to: Tensor
    edge_weight: Tensor
    outside: Tensor

    def __init__(self, loss: SimplexLoss) -> None:
        super().__init__()
        _keep(self, loss)

    def forward(self, s: Tensor, T: Tensor, H: Tensor) -> Tensor:
        vertices = ((self.vertex_weight - self.outside) * corner(s, 1 / 2)).sum()
        joined = edge(s[self.edge_from], s[self.edge_to])
        return self.outside + vertices + ((self.edge_weight - self.outside) * joined).sum()


class TapeLossModule(nn.Module):
    """The loss (21): dotted arcs of the paper's figure are `detach` here."""

    down: Tensor
    written: Tensor
    right: Tensor
    left: Tensor
    still: Tensor
    vertex_weight: Tensor
    edge_from: Tensor
    edge_to: Tensor
    edge_weight: Tensor
    b: Tensor
    c: Tensor

    def __init__(self, loss: TapeLoss) -> None:
        super().__init__()
        _keep(self, loss)

    def forward(self, s: Tensor, T: Tensor, H: Tensor) -> Tensor:
        moved = self._shifted(s, H).detach()
        under_heads = (T * H.detach()).sum(0)
        read_next = (T * moved).sum(0).detach()
        write = _squared(under_heads - (s @ self.written).detach())
        read = _squared(read_next - s @ self.down)
        move = _squared(moved - H)
        vertices = (self.vertex_weight * corner(s, 1 / 4)).sum()
        edges = (self.edge_weight * directed(s[self.edge_from], s[self.edge_to])).sum()
        return self.c + vertices + edges + GAMMA * (write + 4 * self.b**2 * read + move)

    def _shifted(self, s: Tensor, H: Tensor) -> Tensor:
        nothing = torch.zeros_like(H[:1])
        to_right, to_left = torch.cat([nothing, H[:-1]]), torch.cat([H[1:], nothing])
        return (s @ self.right) * to_right + (s @ self.left) * to_left + (s @ self.still) * H


class DescentModule(nn.Module):
    """The extended network around a machine's loss, with an empty primary network: `module()` is F(x), and
    `module.loss()` is `|F(x) - y|^2 / 2`. Begin with `start(net.start(...))`; then each step of both
    `optimisers()` is, after the first, which reads the labels, one step of the machine."""

    y: Tensor

    def __init__(self, net: TapeNet | SimplexNet) -> None:
        super().__init__()
        error: SquaredError = net.error
        if not isinstance(error.network.primary, NoPrimary):
            raise Refused("only machines without a primary network are exported to PyTorch")
        machine, self.stop = error.network.machine, net.stop
        bounds = error.network.thresholds
        self.epsilon, self.low, self.high = (float(b) for b in (bounds.epsilon, bounds.low, bounds.high))
        self.register_buffer("y", torch.tensor(error.y))
        if isinstance(net, SimplexNet) and net.line_search:
            raise Refused(
                "the optimiser in PyTorch takes unit steps and has no line search",
                advice="Compile with line_search=false: the trajectory is the same (Proposition 4.2).",
            )
        if isinstance(machine, TapeLoss):
            self.machine: nn.Module = TapeLossModule(machine)
        else:
            assert isinstance(machine, SimplexLoss)
            self.machine = SimplexLossModule(machine)
        shape = (net.cells, net.tapes) if isinstance(net, TapeNet) else (0, 0)
        self.s = nn.Parameter(torch.zeros(len(machine.vertex_weight), dtype=torch.float64))
        self.T = nn.Parameter(torch.full(shape, -1.0, dtype=torch.float64))
        self.H = nn.Parameter(torch.zeros(shape, dtype=torch.float64))
        self.z = nn.Parameter(torch.zeros_like(self.y))

    @torch.no_grad()
    def start(self, carry: Descent) -> "DescentModule":
        """Takes over the weights of a carry of the net."""
        for name, array in carry.weights._asdict().items():
            getattr(self, name).copy_(torch.tensor(np.asarray(array)))
        return self

    def forward(self) -> Tensor:
        labels = self.z.detach()
        f_tm = torch.sqrt(2 * self.machine(self.s, self.T, self.H)) * orthogonal(labels, self.epsilon)
        f_theta = torch.zeros_like(labels)
        return label_switch(halt_switch(f_theta, f_tm, self.low, self.high), self.z, self.epsilon)

    def loss(self) -> Tensor:
        """(2): what is trained. Training ends when it is at most `stop`."""
        return ((self() - self.y) ** 2).sum() / 2

    def optimisers(self) -> tuple[ConditionalGradient, torch.optim.SGD]:
        """The paper's rules: conditional gradient for s, plain SGD at rate 1 for tapes, heads and labels."""
        return ConditionalGradient([self.s]), torch.optim.SGD([self.T, self.H, self.z], lr=1.0)

    def weights(self) -> dict[str, np.ndarray]:
        """s, T, H and z as arrays, named as in the net's carries."""
        return {name: getattr(self, name).detach().numpy().copy() for name in ("s", "T", "H", "z")}


def _squared(difference: Tensor) -> Tensor:
    return (difference**2).sum() / 2


def _keep(module: nn.Module, loss: TapeLoss | SimplexLoss) -> None:
    """Every array of the loss as a buffer of the same name."""
    for name, array in vars(loss).items():
        kind = torch.int64 if name in ("edge_from", "edge_to") else torch.float64
        module.register_buffer(name, torch.tensor(np.asarray(array), dtype=kind))
