"""PyTorch, operation by operation or compiled, on an accelerator if it has one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tapegrad._conformance.formats import INT8, Form
from tapegrad._conformance.runtimes.base import ArrayRuntime, Program, Unsupported, program_of, trained
from tapegrad._conformance.training import Training
from tapegrad.networks.backends.pytorch import NetworkModule, Torch
from tapegrad.networks.network import Backend, Node


def device() -> str:
    """Where it runs."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class TorchRuntime(ArrayRuntime, Torch):
    """Tensors."""

    def __init__(self, form: Form, weights: Mapping[str, Tensor] | None = None) -> None:
        module = NetworkModule(form.network).to(device())
        super().__init__(module)
        self.form, self.network, self._given = form, form.cast, weights or {}
        if form.format != INT8:
            module.to(getattr(torch, form.format))

    def part(self, node: Node, part: str) -> Tensor:
        return Backend.part(self, node, part)

    def constant_of(self, array: NDArray[Any]) -> Tensor:
        """PyTorch does not read what NumPy has for bfloat16."""
        if array.dtype.kind in "iu":
            return torch.tensor(array, dtype=torch.int64 if array.itemsize > 4 else None, device=device())
        exact = torch.tensor(array.astype(np.float64), device=device())
        return exact.to(getattr(torch, self.form.format))

    def product_of(self, x: Tensor, y: Tensor) -> Tensor:
        if x.dtype != torch.int8:
            return x @ y
        # Integer kernels want sizes that are multiples of 8, and more than 16 rows: zeros add nothing.
        more = [-n % 8 for n in (x.shape[1], y.shape[1])]
        rows = max(32 - x.shape[0], 0)
        left = nn.functional.pad(x, (0, more[0], 0, rows)).contiguous()
        right = nn.functional.pad(y, (0, more[1], 0, more[0])).contiguous()
        return torch._int_mm(left, right)[: x.shape[0], : y.shape[1]]

    def sums(self, x: Tensor) -> Tensor:
        return x.sum(-1, dtype=x.dtype)

    def convolved(self, x: Tensor, kernel: Tensor) -> Tensor:
        if x.dtype == torch.int8:
            raise Unsupported("PyTorch has no convolution of bytes outside its quantised modules")
        return nn.functional.conv2d(x.permute(2, 0, 1), kernel, padding=1).permute(1, 2, 0)

    def as_type(self, x: Tensor, name: str) -> Tensor:
        return x.to(getattr(torch, name))


def _asked(level: str) -> None:
    """Sets what a level asks of products of float32 matrices; "default" leaves everything as it comes."""
    if level.endswith("tf32") and device() == "cpu":
        raise Unsupported("TF32 is a format of accelerators, and PyTorch has none here")
    if level != "default":
        torch.backends.cuda.matmul.allow_tf32 = level.endswith("tf32")
        torch.backends.cudnn.allow_tf32 = level.endswith("tf32")


def _numpy(own: Tensor) -> NDArray[Any]:
    """A copy: tensors are changed in place when they are trained."""
    return own.detach().cpu().to(torch.float64, copy=True).numpy()


def _compiled(level: str, own: TorchRuntime) -> Any:
    if not level.startswith("compile"):
        return lambda run: run
    # What is compiled reads arrays that have been made.
    zeros = {name: np.zeros([int(n) for n in port.shape]) for name, port in own.network.inputs.items()}
    own.wanted({name: own.constant_of(array) for name, array in own.form.inputs(zeros).items()}, [])
    return torch.compile


def prepare(form: Form, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    _asked(level)
    own = TorchRuntime(form)
    return torch.no_grad()(program_of(own, wanted, own.constant_of, _numpy, _compiled(level, own)))


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By autograd and `torch.optim.SGD`."""
    _asked(level)
    own = TorchRuntime(training.form)
    own._given = {name: own.constant_of(array) for name, array in training.weights.items()}

    def forward(weights: dict[str, Tensor], row: Tensor) -> list[Tensor]:
        own._given = weights
        return own.wanted({"row": row}, training.levels)

    compiled = _compiled(level, own)(forward)

    def step(weights: dict[str, Tensor], row: Tensor, label: Tensor) -> Any:
        ready = {name: nn.Parameter(weight) for name, weight in weights.items()}
        values = compiled(ready, row)
        ((values[-1][0, 0] - label) ** 2).backward()
        torch.optim.SGD(ready.values(), lr=training.rate).step()
        return values, {name: weight.detach() for name, weight in ready.items()}

    return trained(training, step, own.constant_of, _numpy)
