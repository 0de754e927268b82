"""Compact ReLU networks beside the paper's form and beside PyTorch's sparse matrices.

`python -m bench.compact FILE...` measures circuits in files (AIGER, BLIF, .bench, Bristol Fashion); without
files a multiplier and SHA-256. All times are processor time, so that what else a machine does does not
count; patterns a second are for one thread. The rival has the same gates, without skip connections, as one
sparse matrix (CSR) and one ReLU for each layer, in PyTorch.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba
import numpy as np
import torch

from examples import sha256
from tapegrad._compile import compile, estimate
from tapegrad._saved import check, save
from tapegrad.circuits import Array, UInt, trace
from tapegrad.circuits.formats import read
from tapegrad.circuits.model import Circuit
from tapegrad.interop.exporting import to_torch
from tapegrad.networks.form import Stack
from tapegrad.targets.relu import CompactNet, ReluNet

LEAST_SECONDS = 0.5
PATTERNS = 1024
LARGEST_RIVAL = 10_000_000
"""Numbers of the rival, beyond which it is left out."""


def own_circuits() -> dict[str, Circuit]:
    compression = trace(sha256.compress, Array(UInt(32), 8), Array(UInt(32), 16))
    return {
        "31 x 31 multiplier": trace(lambda a, b: a * b, UInt(31), UInt(31)).circuit,
        "SHA-256, traced": compression.circuit,
    }


def patterns_a_second(run: Callable[[np.ndarray], Any], batch: np.ndarray) -> float:
    """Of processor time, over as many runs as it takes to be measured."""
    run(batch)
    begin, runs = time.process_time(), 0
    while time.process_time() - begin < LEAST_SECONDS:
        run(batch)
        runs += 1
    return runs * len(batch) / (time.process_time() - begin)


def rival(stack: Stack) -> Callable[[np.ndarray], Any]:
    """The layers of a stack as sparse matrices."""
    matrices = []
    for layer in range(stack.layers):
        own = stack.layer(layer)
        starts = np.searchsorted(own.rows, np.arange(len(own) + 1))
        columns, values = (torch.tensor(np.asarray(part)) for part in (own.columns, own.values))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = torch.sparse_csr_tensor(torch.tensor(starts), columns, values, (len(own), own.width))
        matrices.append((matrix, torch.tensor(np.asarray(own.bias))[:, None]))

    def run(bits: np.ndarray) -> np.ndarray:
        values = torch.tensor(bits.T.astype(np.float32))
        for matrix, bias in matrices[:-1]:
            values = torch.relu(matrix @ values + bias)
        matrix, bias = matrices[-1]
        return (matrix @ values + bias).T.numpy()

    return run


def measured(name: str, circuit: Circuit) -> list[dict[str, Any]]:
    """Sizes, times and speeds of one circuit."""
    papers = estimate(circuit, "relu", form="paper")
    begin = time.process_time()
    compiled = compile(circuit, "relu", form="compact")
    built = time.process_time()
    with TemporaryDirectory() as folder:
        save(compiled, Path(folder, "net"))
        saved = time.process_time()
        verdict = check(Path(folder, "net")).verdict
        checked = time.process_time()
    net = compiled.net
    assert isinstance(net, CompactNet)
    without = estimate(circuit, "relu", form="compact", skips=False).parameters
    title = f"{name}, {circuit.size:,} gates"

    def row(what: str, value: float, unit: str, beside: str = "", ratio: float = 1.0) -> dict[str, Any]:
        found: dict[str, Any] = {"what": f"{title}: {what}", "value": value, "unit": unit}
        return found | ({"rival": beside, "ratio": ratio} if beside else {})

    found = [
        row(
            "size", net.parameters, "numbers", f"the paper's form, {papers.parameters:,}",
            net.parameters / papers.parameters,
        ),
        row("size without skip connections", without, "numbers"),
        row("depth", net.depth, "layers", f"the paper's form, {papers.depth:,}", net.depth / papers.depth),
        row("compile", built - begin, "s"),
        row(f"check ({verdict})", checked - saved, "s"),
    ]  # fmt: skip
    bits = np.random.default_rng(0).integers(0, 2, (PATTERNS, len(circuit.inputs))).astype(bool)
    speed = patterns_a_second(lambda batch: net.outputs(batch, "fast"), bits)
    found.append(row("reference", patterns_a_second(net.outputs, bits[:64]), "patterns/s"))
    if without <= LARGEST_RIVAL:
        beside = rival(net.stack())
        assert np.array_equal(beside(bits), net.outputs(bits, "fast"))
        theirs = patterns_a_second(beside, bits)
        words = f"the same gates in PyTorch (CSR), {theirs:,.0f} patterns/s"
        found.append(row("fast", speed, "patterns/s", words, speed / theirs))
    else:
        found.append(row("fast", speed, "patterns/s"))
    return found


def in_pytorch(name: str, circuit: Circuit) -> list[dict[str, Any]]:
    """The modules that `to_torch` gives, in turn with the same weights as bare sparse matrices, and with the
    module as it is differentiable (and once was always)."""
    found = []
    bits = np.random.default_rng(0).integers(0, 2, (PATTERNS, len(circuit.inputs))).astype(bool)
    rows = torch.tensor(bits, dtype=torch.float32)
    for form in ("paper", "compact"):
        net = compile(circuit, "relu", form=form).net
        assert isinstance(net, ReluNet | CompactNet)
        module = to_torch(net)
        stack = net.stack if isinstance(net, ReluNet) else net.stack()
        if len(stack.biases) * 5 > LARGEST_RIVAL:
            continue
        bare, slow = rival(stack), to_torch(net)
        slow.differentiable = True
        with torch.no_grad():
            assert np.array_equal(module(rows).numpy() > 0, bare(bits) > 0)
            speed = patterns_a_second(lambda _, own=module: own(rows), bits)
            gathered = patterns_a_second(lambda _, own=slow: own(rows), bits)
        theirs = patterns_a_second(bare, bits)
        title = f"{name}, {form} form: PyTorch module"
        words = f"its weights in CSR, {theirs:,.0f} patterns/s; differentiable {gathered:,.0f}"
        what = {"what": title, "value": speed, "unit": "patterns/s", "rival": words}
        found.append(what | {"ratio": speed / theirs})
    return found


def one_by_one(files: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The rows of every circuit, as they are measured."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    given = {Path(file).name: read(Path(file).read_bytes()) for file in files}
    for name, circuit in (given or own_circuits()).items():
        yield from measured(name, circuit)
        yield from in_pytorch(name, circuit)


def rows() -> list[dict[str, Any]]:
    """Those of the circuits that need no files."""
    return list(one_by_one())


if __name__ == "__main__":
    for one in one_by_one(sys.argv[1:]):
        print(one, flush=True)
