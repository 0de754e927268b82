"""tinygrad on the processor: its kernels are compiled by clang, or by the one in the package `ziglang`."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.formats import Form
from tapegrad._conformance.runtimes.base import ArrayRuntime, Program, program_of, trained
from tapegrad._conformance.training import Training
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Node

COMPILER = """#!/bin/sh
# Clang as tinygrad calls it, from standard input to standard output, by the one that zig brings.
made=$(mktemp)
"{python}" -P -m ziglang cc -c -x c -O2 -fPIC -ffreestanding -fno-math-errno -nostdlib -g0 \\
    -fno-sanitize=all -target x86_64-linux-gnu -mcpu=native - -o "$made" && cat "$made"
code=$?
rm -f "$made"
exit $code
"""
_folder = tempfile.TemporaryDirectory(prefix="tapegrad-cc-")  # goes when the process ends
if shutil.which(os.environ.get("CC", "clang")) is None and find_spec("ziglang") is not None:
    _script = Path(_folder.name) / "clang"
    _script.write_text(COMPILER.format(python=sys.executable))
    _script.chmod(_script.stat().st_mode | stat.S_IXUSR)
    os.environ["CC"] = str(_script)
os.environ.setdefault("DEV", "CPU")
os.environ.setdefault("CACHELEVEL", "0")  # what another compiler left in a cache is not what is tested

from tinygrad import Tensor, dtypes  # noqa: E402 - it looks at the environment when it is imported


class TinyRuntime(ArrayRuntime, NumPy):
    """Tensors of tinygrad, which look like arrays of NumPy up to names of methods."""

    def __init__(self, form: Form, weights: Any = None) -> None:
        super().__init__(form.cast, weights)
        self.form = form

    def constant_of(self, array: NDArray[Any]) -> Tensor:
        if array.dtype.kind in "iu":
            return Tensor(np.ascontiguousarray(array)).realize()
        exact = Tensor(np.ascontiguousarray(array, np.float64))
        return exact.cast(getattr(dtypes, self.form.format)).realize()

    def product_of(self, x: Tensor, y: Tensor) -> Tensor:
        return x.matmul(y, dtype=dtypes.int32) if x.dtype == dtypes.int8 else x @ y

    def convolved(self, x: Tensor, kernel: Tensor) -> Tensor:
        kind = dtypes.int32 if x.dtype == dtypes.int8 else None
        grid = x.permute(2, 0, 1).unsqueeze(0).conv2d(kernel, padding=1, dtype=kind)
        return grid.squeeze(0).permute(1, 2, 0)

    def as_type(self, x: Tensor, name: str) -> Tensor:
        return x.cast(getattr(dtypes, name))

    def relu(self, node: Node, x: Tensor) -> Tensor:
        return x.relu()

    def clip(self, node: Node, x: Tensor) -> Tensor:
        return x.clip(node.number("low"), node.number("high"))

    def put(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        to = self.network.array(node, "to")
        spread = np.zeros((len(to), x.shape[-1]))
        spread[np.arange(len(to)), to] = 1
        return x + y @ self.kept(f"{node.name} spread", lambda: spread)

    def join(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        return x.cat(y, dim=node.whole("axis"))

    def transpose(self, node: Node, x: Tensor) -> Tensor:
        return x.permute(node.list("order"))

    def hardmax(self, node: Node, x: Tensor) -> Tensor:
        best = (x == x.max(-1, keepdim=True)).cast(x.dtype)
        return best / best.sum(-1, keepdim=True)


def _asked(level: str) -> None:
    from tinygrad.helpers import NOOPT

    NOOPT.value = int(level == "unoptimised")


def _numpy(own: Tensor) -> NDArray[Any]:
    return own.cast(dtypes.float64).numpy()


def prepare(form: Form, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    _asked(level)
    own = TinyRuntime(form)
    return program_of(own, wanted, own.constant_of, _numpy)


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By tinygrad's own differentiation."""
    _asked(level)
    form = training.form

    def step(weights: dict[str, Tensor], row: Tensor, label: Tensor) -> Any:
        values = TinyRuntime(form, weights).wanted({"row": row}, training.levels)
        slopes = ((values[-1][0, 0] - label) ** 2).gradient(*weights.values())
        after = {
            name: (weight - training.rate * slope).realize()
            for (name, weight), slope in zip(weights.items(), slopes, strict=True)
        }
        return [value.realize() for value in values], after

    return trained(training, step, TinyRuntime(form).constant_of, _numpy)
