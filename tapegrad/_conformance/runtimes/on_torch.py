"""PyTorch, operation by operation or compiled, on an accelerator if it has one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tapegrad._conformance.graph import Graph
from tapegrad._conformance.runtimes.base import (
    ArrayOperations,
    Program,
    Unsupported,
    trained,
    values_of,
    wanted_values,
)
from tapegrad._conformance.training import Training

KINDS = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int8": torch.int8,
}


def device() -> str:
    """Where it runs."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class TorchOperations(ArrayOperations):
    """Tensors."""

    def constant(self, array: NDArray[Any]) -> Tensor:
        own = torch.from_numpy(np.ascontiguousarray(array)).to(device())
        return own.to(KINDS[self.format]) if own.dtype == torch.float64 else own

    def product(self, x: Tensor, y: Tensor) -> Tensor:
        if x.dtype != torch.int8:
            return x @ y
        # Integer kernels want sizes that are multiples of 8, and more than 16 rows: zeros add nothing.
        more = [-n % 8 for n in (x.shape[1], y.shape[1])]
        rows = max(32 - x.shape[0], 0)
        left = nn.functional.pad(x, (0, more[0], 0, rows)).contiguous()
        right = nn.functional.pad(y, (0, more[1], 0, more[0])).contiguous()
        return torch._int_mm(left, right)[: x.shape[0], : y.shape[1]]

    def relu(self, x: Tensor) -> Tensor:
        return torch.relu(x)

    def gathered(self, x: Tensor, inputs: Tensor) -> Tensor:
        found = x[:, inputs]
        return found.to(torch.int32) if x.dtype == torch.int8 else found

    def sums(self, x: Tensor) -> Tensor:
        return x.sum(-1, dtype=x.dtype)

    def convolved(self, x: Tensor, kernel: Tensor, around: int) -> Tensor:
        if x.dtype == torch.int8:
            raise Unsupported("PyTorch has no convolution of bytes outside its quantised modules")
        return nn.functional.conv2d(x, kernel, padding=around)

    def below(self, first: Tensor, x: Tensor) -> Tensor:
        return torch.cat([first, x])

    def to_bytes(self, x: Tensor) -> Tensor:
        return x.to(torch.int8)

    def best(self, x: Tensor) -> Tensor:
        return (x == x.amax(-1, keepdim=True)).to(x.dtype)


def _asked(level: str) -> None:
    """Sets what a level asks of products of float32 matrices; "default" leaves everything as it comes."""
    if level.endswith("tf32") and device() == "cpu":
        raise Unsupported("TF32 is a format of accelerators, and PyTorch has none here")
    if level != "default":
        torch.backends.cuda.matmul.allow_tf32 = level.endswith("tf32")
        torch.backends.cudnn.allow_tf32 = level.endswith("tf32")


def _given(array: NDArray[Any], name: str) -> Tensor:
    exact = np.asarray(array, np.float64)
    return torch.from_numpy(exact).to(device()).to(KINDS[name])


def _numpy(own: Tensor) -> NDArray[Any]:
    """A copy: tensors are changed in place when they are trained."""
    return own.detach().cpu().to(torch.float64, copy=True).numpy()


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    _asked(level)
    operations = TorchOperations(name)
    operations.ready(graph)

    def run(given: Mapping[str, Tensor]) -> list[Tensor]:
        return wanted_values(graph, operations, given, wanted)

    compiled = torch.compile(run) if level.startswith("compile") else run

    @torch.no_grad()
    def program(inputs: Any) -> dict[str, NDArray[Any]]:
        found = compiled({key: _given(own, name) for key, own in inputs.items()})
        return dict(zip(wanted, map(_numpy, found), strict=True))

    return program


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By autograd and `torch.optim.SGD`."""
    _asked(level)
    kind = KINDS[training.format]
    levels = [
        (torch.from_numpy(own.sources).to(device()), torch.from_numpy(own.into).to(device(), kind))
        for own in training.levels
    ]

    def forward(weights: list[Tensor], row: Tensor) -> list[Tensor]:
        return values_of(levels, weights, row, lambda v, w: torch.cat([v, w]))

    compiled = torch.compile(forward) if level.startswith("compile") else forward

    def step(weights: list[Any], row: NDArray[Any], label: float) -> tuple[list[Any], list[Any]]:
        own = [nn.Parameter(weight) for weight in weights]
        values = compiled(own, _given(row, training.format))  # type: ignore[arg-type]
        ((values[-1][0] - label) ** 2).backward()
        torch.optim.SGD(own, lr=training.rate).step()
        return values, [weight.detach() for weight in own]

    weights = [torch.from_numpy(own).to(device(), kind, copy=True) for own in training.weights]
    return trained(training, step, weights, _numpy)
