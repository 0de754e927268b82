"""`to_torch`: a compiled net as a `torch.nn.Module` (extra `torch`).

It is the module of the net's network (`tapegrad.networks.backends.pytorch`). Of the targets that compute by
training (`simplex`, `tape`, `emulator`) that network is the loss: PyTorch differentiates it on its own, and
its optimisers move the weights by the rule that stands beside the network.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tapegrad._compile import Compiled
from tapegrad.errors import InputError, Refused
from tapegrad.interop.exporting import net_of
from tapegrad.interop.layers import Words, dense_layers, first_state, flipped, rows_of, takes_numbers
from tapegrad.networks.backends.pytorch import NetworkModule, Torch
from tapegrad.networks.form import Matrix
from tapegrad.networks.network import Network
from tapegrad.targets.descent.net import Descent, DescentNet
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tapegrad.targets.emulator.paper_nets import NoisyNet
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.relu import LayeredNet

LARGEST_DENSE = 1 << 28
"""Most entries of the matrices of a network that is written as PyTorch's own layers."""


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


class TrainedModule(nn.Module):
    """A network that is trained: what the rule of training changes are parameters, under the names that they
    have in the net's carries. `module(*data)` is the output, `module.loss(*data)` the loss: of `tape` and
    `simplex` without data (these are the labels y, which are kept), of `emulator` for a row (`input_rows` of
    `tapegrad.targets.emulator.net`) and a label, -1 or 1, of a grid learner's network for z = [x, 1] and a
    label. Begin with `start(net.start(...))`, but for the last, whose memory begins empty; then a step of all
    `optimisers()` is a step of the net. Training ends when the loss is at most `stop`."""

    def __init__(self, net: DescentNet | PracticalNet | NoisyNet | Rcnn) -> None:
        super().__init__()
        network, self.known = net.network, isinstance(net, DescentNet)
        if isinstance(net, DescentNet):
            data = net.error.data()
        elif isinstance(net, Rcnn):
            data = {}
        else:
            data = {"weights": np.array(net.weights, network.inputs["weights"].dtype)}
        assert network.training is not None
        self.rule, self.network = network.training, NetworkModule(network)
        if any(update.line_search for update in self.rule.updates.values()):
            raise Refused(
                "the optimiser in PyTorch takes unit steps and has no line search",
                advice="Compile with line_search=false: the trajectory is the same (Proposition 4.2).",
            )
        self.stop, self.data = (
            self.rule.stop,
            [name for name in network.inputs if name not in self.rule.updates],
        )
        for name, port in network.inputs.items():
            first = torch.tensor(data.get(name, np.zeros(tuple(map(int, port.shape)), port.dtype)))
            if name in self.rule.updates:
                self.register_parameter(name, nn.Parameter(first))
            else:
                self.register_buffer(name, first)

    @torch.no_grad()
    def start(self, carry: Descent | EmulatorCarry) -> "TrainedModule":
        """Takes over the weights of a carry of the net."""
        for name in self.rule.updates:
            weights = carry.weights if isinstance(carry, EmulatorCarry) else getattr(carry.weights, name)
            getattr(self, name).copy_(torch.tensor(np.asarray(weights)))
        return self

    def outputs(self, *data: Tensor) -> dict[str, Tensor]:
        """All outputs of the network by name."""
        values = {name: getattr(self, name) for name in self.network.network.inputs}
        for name, own in zip(self.data, data, strict=False):
            values[name] = torch.as_tensor(own).to(values[name])
        return dict(zip(self.network.network.outputs, self.network(*values.values()), strict=True))

    def forward(self, *data: Tensor) -> Tensor:
        return self.outputs(*data)["output"]

    def loss(self, *data: Tensor) -> Tensor:
        """What is trained."""
        if len(data) != (0 if self.known else len(self.data)):
            raise InputError(f"the loss is one of {' and '.join(self.data)}, and of all weights")
        return self.outputs(*data)[self.rule.loss]

    def optimisers(self) -> tuple[torch.optim.Optimizer, ...]:
        """The rule: conditional gradient for points of a simplex, plain SGD for the rest."""
        kinds = self.rule.updates.items()
        points = [getattr(self, name) for name, update in kinds if update.kind == "vertex"]
        free = [
            {"params": [getattr(self, name)], "lr": update.rate}
            for name, update in kinds
            if update.kind == "gradient"
        ]
        return (*([ConditionalGradient(points)] if points else []), torch.optim.SGD(free))


def to_torch(compiled: Compiled | Net | Rcnn, *, trainable: bool = False) -> Any:
    """The net as an `nn.Module`, from its arrays alone: its network (`NetworkModule`), frozen unless it is to
    be `trainable`. Training targets (`tape`, `simplex`, `emulator`, a grid learner's network) take the net's
    steps under PyTorch's automatic differentiation and its optimisers. `counts` are the net's."""
    match net := compiled if isinstance(compiled, Rcnn) else net_of(compiled):
        case NoisyNet(arithmetic="decimal"):
            raise Refused(
                "PyTorch has no decimals, in which this net computes",
                advice="Compile with arithmetic=double, or form=practical.",
            )
        case DescentNet() | PracticalNet() | NoisyNet():
            module: nn.Module = TrainedModule(net)
        case Rcnn():
            return TrainedModule(net)
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


class TorchLayer(nn.Module):
    """A net as a layer of a model: see `tapegrad.interop.layers`, which says what its gradient is."""

    def __init__(self, network: Network, *, gradient: str, trainable: bool) -> None:
        super().__init__()
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


class TorchStep(nn.Module):
    """A net that takes steps, or that is trained, as a module with explicit state: `outputs, state =
    module(state)`. The state is a dictionary of the network's inputs and of what it hands on, `outputs` is
    one of its outputs; `print(module.net.network)` names them. Both are on the device of the module."""

    def __init__(self, compiled: Compiled, *, trainable: bool) -> None:
        super().__init__()
        self.net, self.compiled = NetworkModule(compiled.net.network, trainable=trainable), compiled

    def start(self, *inputs: Any) -> dict[str, Tensor]:
        """The state before the first step, for an input as `tg.run` takes it."""
        own = next(chain(self.parameters(), self.buffers()), None)
        device = None if own is None else own.device
        state = first_state(self.compiled, *inputs)
        return {name: torch.tensor(np.asarray(array), device=device) for name, array in state.items()}

    def forward(self, state: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        outputs, after = Torch(self.net).run(state)
        return outputs, {**state, **after}
