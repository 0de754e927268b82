"""`to_torch`: a compiled net as a `torch.nn.Module` (extra `torch`).

Whatever has a network of forward steps is the module of that network
(`tapegrad.networks.backends.pytorch`). For the targets that compute by training (`simplex`, `tape`,
`emulator`), PyTorch differentiates on its own, so the losses are written once more with its functions; their
derivations stand in `tapegrad.targets.descent.loss` and in the `loss.py` of
each target. The names are the same there.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn, relu

from tapegrad._compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.exporting import net_of
from tapegrad.interop.layers import Words, dense_layers, flipped, layer_network, rows_of, takes_numbers
from tapegrad.networks.backends.pytorch import NetworkModule
from tapegrad.networks.form import Matrix
from tapegrad.targets.descent.loss import NoPrimary, SquaredError
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.emulator.net import EmulatorCarry, EmulatorNet, PracticalNet
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.relu import LayeredNet
from tapegrad.targets.simplex.loss import SimplexLoss
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.build import GAMMA
from tapegrad.targets.tape.loss import TapeLoss
from tapegrad.targets.tape.net import TapeNet

LARGEST_DENSE = 1 << 28
"""Most entries of the matrices of a network that is written as PyTorch's own layers."""


def corner(x_v: Tensor, mu: float) -> Tensor:
    """Lemma A.1."""
    return relu(1 - (1 - x_v) / mu)


def edge(x_v: Tensor, x_w: Tensor) -> Tensor:
    """Lemma A.2."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_v, 1 / 2) - corner(x_w, 1 / 2)


def directed(x_v: Tensor, x_w: Tensor) -> Tensor:
    """(34), with Lemma A.3 for its last term."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_w, 1 / 2) - relu(2 * x_v - 2 * x_w - 1)


def cutoff(t: Tensor, start: float, end: float) -> Tensor:
    """1 up to `start`, 0 from `end` on."""
    return relu(1 - relu((t - start) / (end - start)))


def label_switch(u: Tensor, z: Tensor, epsilon: float) -> Tensor:
    """s_init of section 5.2."""
    reading = cutoff((z**2).sum(), epsilon / 3, 2 * epsilon / 3)
    return (1 - reading) * u + reading * z


def halt_switch(f: Tensor, u: Tensor, low: float, high: float) -> Tensor:
    """s_net of section 5.3, (27) and (28)."""
    delta = (high - low) / 2
    halted = cutoff((u**2).sum(), 2 * low + delta, 2 * high - delta)
    return halted * f + (1 - halted) * u


def orthogonal(z: Tensor, epsilon: float) -> Tensor:
    """f_perp of appendix C: a unit vector orthogonal to the labels."""
    flat = z.reshape(-1)
    v, w = torch.eye(2, flat.numel(), dtype=flat.dtype)
    length = (flat @ flat).clamp_min(epsilon / 3)
    axis = torch.where(2 * (flat @ v) ** 2 > length, w, v)
    projected = axis - (flat @ axis) / length * flat
    return (projected / (projected @ projected).clamp_min(1 / 4).sqrt()).reshape(z.shape)


class ConditionalGradient(torch.optim.Optimizer):
    """The optimiser for parameters on a simplex, which plain SGD would leave (Welper's (3); Frank and Wolfe).
    A unit step: each parameter, a point of a simplex, moves to the vertex of steepest descent, and stays
    where no vertex is strictly better. This is not SGD; `torch.optim.SGD` trains everything else."""

    def __init__(self, params: Iterable[Tensor]) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for point in group["params"]:
                slope = point.grad
                if slope is None:
                    continue
                best = slope.argmin()
                if slope[best] < slope @ point:
                    point.zero_()
                    point[best] = 1.0


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
    """Every array of the loss as a buffer of the same name; an unpadded loss counts no cells."""
    for name, array in vars(loss).items():
        if array is None:
            continue
        kind = torch.int64 if name in ("edge_from", "edge_to") else torch.float64
        module.register_buffer(name, torch.tensor(np.asarray(array), dtype=kind))


class EmulatorModule(nn.Module):
    """The target `emulator`: every edge of the graph a trained weight, hard tanh at every vertex.
    `module(row)` is the output for one input row (`input_rows` of `tapegrad.targets.emulator.net`).
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
        ends = net.graph.ends
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


def to_torch(compiled: Compiled | Net | Rcnn, *, trainable: bool = False) -> Any:
    """The net as an `nn.Module`, from its arrays alone. Nets with a network of forward steps are that network
    (`NetworkModule`), frozen unless it is to be `trainable`; training targets (`tape`, `simplex`, `emulator`,
    a grid learner's network) take the net's steps under PyTorch's automatic differentiation and its
    optimisers. `counts` are the net's."""
    match net := compiled if isinstance(compiled, Rcnn) else net_of(compiled):
        case TapeNet() | SimplexNet():
            module: nn.Module = DescentModule(net)
        case EmulatorNet():
            module = EmulatorModule(net)
        case Rcnn():
            return RcnnModule(net)
        case _:
            module = NetworkModule(net.network, trainable=trainable)
    module.counts = net.counts  # type: ignore[assignment]
    return module


def plain_layers(net: Net) -> nn.Sequential | None:
    """The same network of PyTorch's own layers alone, if it is a chain of ReLU layers or a filter of
    channels: it loads without this package."""
    if isinstance(net, LayeredNet):
        layers = dense_layers(net)
        if sum(len(layer.map) * layer.map.width for layer in layers) > LARGEST_DENSE:
            raise Refused("the matrices of this net are too large to be written out", advice="Use to=onnx.")
        parts = [part for layer in layers for part in (linear(layer.map.dense()), nn.ReLU())]
        return nn.Sequential(*parts[:-1])
    if not isinstance(net, RcnnNet):
        return None
    filter = net.filter
    if filter.padding != 0 or len(filter.cells) < 9:
        return None
    parts = []
    for layer in filter.layers:
        own = layer.map.dense()
        size, channels = (1, own.width) if parts else (3, filter.channels)
        made = nn.Conv2d(channels, len(own), size, padding=size // 2, bias=bool(np.asarray(own.bias).any()))
        made.weight = nn.Parameter(torch.tensor(np.asarray(own.weight)).reshape(made.weight.shape))
        if made.bias is not None:
            made.bias = nn.Parameter(torch.tensor(np.asarray(own.bias)))
        parts += [made, *([nn.ReLU()] if layer.activation == "relu" else [])]
    return nn.Sequential(*parts)


def linear(own: Matrix) -> nn.Linear:
    """A `nn.Linear` with these weights."""
    made = nn.Linear(own.width, len(own), device="meta")
    made.weight, made.bias = (nn.Parameter(torch.tensor(np.asarray(part))) for part in (own.weight, own.bias))
    return made


class RcnnModule(nn.Module):
    """Definition 5 of Goel et al. `memory` is the one trained parameter: `torch.optim.SGD([memory],
    lr=RATE)` on the loss `(y - module(z))**2 / 2` memorises, a sample at a step; `z = [x, 1]`."""

    def __init__(self, network: Rcnn) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.tensor(network.empty_memory()))
        self.network = NetworkModule(network.network)

    def forward(self, z: Tensor) -> Tensor:
        output, _ = self.network(self.memory, z, z.new_zeros(()))
        return output


class TorchLayer(nn.Module):
    """A net as a layer of a model: see `tapegrad.interop.layers`, which says what its gradient is."""

    def __init__(self, compiled: Compiled, *, gradient: str = "flips", trainable: bool = False) -> None:
        super().__init__()
        network = layer_network(compiled, gradient)
        self.inputs = network.inputs["bits"].columns
        self.words = Words.of(self.inputs)
        self.results = Words.of(network.columns[network.outputs["outputs"]])
        self.net, self.gradient = NetworkModule(network, trainable=trainable), gradient

    def bits(self, hard: Tensor) -> Tensor:
        """The net's outputs, 0 and 1, for rows of bits."""
        found = self.net(hard)
        return (found.detach() > 0.5).to(found.dtype) + (found - found.detach())

    def slopes(self, hard: Tensor) -> Tensor:
        """For rows of bits how much each output changes with each input."""
        with torch.no_grad():
            ones, zeros = (self.bits(own) for own in flipped(torch, hard))
        return (ones - zeros).reshape(*hard.shape, ones.shape[-1])

    def forward(self, x: Tensor) -> Tensor:
        if takes_numbers(x, x.is_floating_point(), self.words, self.results, 63):
            found = self(self.words.bits(torch, x.long()).to(next(self.net.parameters()).dtype))
            return self.results.numbers(torch, found.long())
        rows = rows_of(x, self.inputs)
        hard = (rows.detach() > 0.5).to(next(self.net.parameters()).dtype)
        found = self.bits(hard)
        if self.gradient == "flips":
            found = found + Flips.apply(rows.to(found.dtype), hard, found.detach(), self.slopes)
        return found.reshape(*x.shape[:-1], -1).to(x.dtype)


class Flips(torch.autograd.Function):
    """0, with the gradient of the multilinear extension: what it costs is spent in the backward pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        rows: Tensor, hard: Tensor, found: Tensor, slopes: Callable[[Tensor], Tensor]
    ) -> Tensor:
        return torch.zeros_like(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, hard, _, ctx.slopes = inputs
        ctx.save_for_backward(hard)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (hard,) = ctx.saved_tensors
        return torch.einsum("bo,bio->bi", grad, ctx.slopes(hard)), None, None, None
