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

KINDS = {
    "float64": dtypes.float64,
    "float32": dtypes.float32,
    "float16": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "int8": dtypes.int8,
}


class TinyOperations(ArrayOperations):
    """Tensors of tinygrad."""

    def constant(self, array: NDArray[Any]) -> Tensor:
        own = Tensor(np.ascontiguousarray(array))
        return own.cast(KINDS[self.format]).realize() if array.dtype == np.float64 else own.realize()

    def product(self, x: Tensor, y: Tensor) -> Tensor:
        return x.matmul(y, dtype=dtypes.int32) if x.dtype == dtypes.int8 else x @ y

    def relu(self, x: Tensor) -> Tensor:
        return x.relu()

    def gathered(self, x: Tensor, inputs: Tensor) -> Tensor:
        found = x[:, inputs]
        return found.cast(dtypes.int32) if x.dtype == dtypes.int8 else found

    def convolved(self, x: Tensor, kernel: Tensor, around: int) -> Tensor:
        kind = dtypes.int32 if x.dtype == dtypes.int8 else None
        return x.conv2d(kernel, padding=around, dtype=kind)

    def below(self, first: Tensor, x: Tensor) -> Tensor:
        return first.cat(x, dim=0)

    def to_bytes(self, x: Tensor) -> Tensor:
        return x.cast(dtypes.int8)

    def best(self, x: Tensor) -> Tensor:
        return (x == x.max(-1, keepdim=True)).cast(x.dtype)


def _asked(level: str) -> None:
    from tinygrad.helpers import NOOPT

    NOOPT.value = int(level == "unoptimised")


def _numpy(own: Tensor) -> NDArray[Any]:
    return own.cast(dtypes.float64).numpy()


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    _asked(level)
    operations = TinyOperations(name)
    operations.ready(graph)

    def program(inputs: Any) -> dict[str, NDArray[Any]]:
        given = {
            key: Tensor(np.ascontiguousarray(own, np.float64)).cast(KINDS[name])
            for key, own in inputs.items()
        }
        found = wanted_values(graph, operations, given, wanted)
        return dict(zip(wanted, map(_numpy, found), strict=True))

    return program


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By tinygrad's own differentiation."""
    _asked(level)
    kind = KINDS[training.format]
    levels = [(Tensor(own.sources), Tensor(own.into).cast(kind)) for own in training.levels]

    def step(weights: list[Any], row: NDArray[Any], label: float) -> tuple[list[Any], list[Any]]:
        given = Tensor(row).cast(kind)
        values = values_of(levels, weights, given, lambda v, w: v.cat(w))
        slopes = ((values[-1][0] - label) ** 2).gradient(*weights)
        after = [own - training.rate * slope for own, slope in zip(weights, slopes, strict=True)]
        return [own.realize() for own in values], [own.realize() for own in after]

    if training.format not in KINDS:
        raise Unsupported(f"tinygrad has no {training.format}")
    return trained(training, step, [Tensor(own).cast(kind).realize() for own in training.weights], _numpy)
