"""Compact ReLU networks beside the paper's form and beside PyTorch's sparse matrices.

`python -m bench.compact FILE...` measures circuits in files (AIGER, BLIF, .bench, Bristol Fashion); without
files a multiplier and SHA-256. All times are processor time, so that what else a machine does does not
count; patterns a second are for one thread. There are two rivals in PyTorch, both with one sparse matrix
(CSR) and one ReLU for each layer. One has the same gates, without skip connections. The other is made of
tables of four inputs, as few levels of them as ABC finds (`if -K 4`; measured where `berkeley-abc` or `abc`
is installed): a table is a sum of products of its inputs, a product of bits is one ReLU unit, and the sums
are multiplied into the next matrix.
"""

import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
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
from tapegrad.circuits.formats import blif, read
from tapegrad.circuits.model import Circuit
from tapegrad.interop.exporting import to_torch
from tapegrad.networks.wiring import Wiring
from tapegrad.targets.relu import CompactNet, LayeredNet

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


def rival(chain: Wiring) -> Callable[[np.ndarray], Any]:
    """The layers of a chain as sparse matrices."""
    matrices = []
    for layer in range(chain.layers):
        own = chain.layer(layer)
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


def tables_by_abc(circuit: Circuit) -> list[tuple[str, list[str], int]]:
    """The circuit in tables of up to four inputs: name, what it reads, and the table (bit p is the value for
    bit i of p as input i), in an order in which what they read comes first. Outputs are o0, o1, ..."""
    program = shutil.which("berkeley-abc") or shutil.which("abc")
    if program is None:
        return []
    plain = replace(
        circuit,
        inputs=tuple(f"i{k}" for k in range(len(circuit.inputs))),
        outputs=tuple(f"o{k}" for k in range(len(circuit.outputs))),
    )
    with TemporaryDirectory() as folder:
        before, after = Path(folder, "before.blif"), Path(folder, "after.blif")
        before.write_text(blif.write(plain))
        script = f"read_blif {before}; strash; if -K 4; write_blif {after}"
        subprocess.run([program, "-c", script], capture_output=True, check=True)
        text = after.read_text().replace("\\\n", " ")
    found = {}
    for part in text.split(".names")[1:]:
        head, *rows = part.split(".end")[0].strip().split("\n")
        *reads, name = head.split()
        inside, value = 0, "1"
        for row in rows:
            cube, value = row.split() if reads else ("", row.strip())
            for p in range(1 << len(reads)):
                inside |= all(want in ("-", str(p >> i & 1)) for i, want in enumerate(cube)) << p
        table = inside if value == "1" else inside ^ (1 << (1 << len(reads))) - 1
        found[name] = name, reads, table
    order = TopologicalSorter({name: reads for name, reads, _ in found.values()}).static_order()
    return [found[name] for name in order if name in found]


def polynomial(inputs: int, table: int) -> dict[tuple[int, ...], int]:
    """The factors of every product of inputs, with its coefficient: f(S) less those of all smaller sets."""
    found = [table >> p & 1 for p in range(1 << inputs)]
    for i in range(inputs):
        for p in range(1 << inputs):
            if p >> i & 1:
                found[p] -= found[p ^ 1 << i]
    return {tuple(i for i in range(inputs) if p >> i & 1): c for p, c in enumerate(found) if c}


def in_tables(circuit: Circuit) -> tuple[Callable[[np.ndarray], Any], int, int] | None:
    """The rival of tables: how to run it, its numbers and its layers."""
    tables = tables_by_abc(circuit)
    if not tables:
        return None
    level = {f"i{k}": 0 for k in range(len(circuit.inputs))}
    for name, reads, _ in tables:
        level[name] = 1 + max((level[net] for net in reads), default=0)
    outputs = [f"o{k}" for k in range(len(circuit.outputs))]
    depth = max(level.values())
    last = dict.fromkeys(outputs, depth)
    for name, reads, _ in reversed(tables):
        for net in reads:
            last[net] = max(last.get(net, 0), level[name] - 1)
    # What a net is, as a sum over the units of the layer before: columns, values and a constant.
    sums: dict[str, tuple[dict[int, int], int]] = {f"i{k}": ({k: 1}, 0) for k in range(len(circuit.inputs))}
    width, layers = len(circuit.inputs), []
    for now in range(1, depth + 1):
        units: dict[tuple[str, ...], int] = {}
        after: dict[str, tuple[dict[int, int], int]] = {}
        for name in sums:
            if last.get(name, -1) >= now:
                after[name] = {units.setdefault((name,), len(units)): 1}, 0
        for name, reads, table in tables:
            if level[name] == now:
                products = polynomial(len(reads), table)
                constant = products.pop((), 0)
                terms = {tuple(sorted(reads[i] for i in own)): c for own, c in products.items()}
                after[name] = {units.setdefault(own, len(units)): c for own, c in terms.items()}, constant
        layers.append(_matrix([(own, 1 - len(own)) for own in units], sums, width))
        sums, width = after, len(units)
    layers.append(_matrix([((name,), 0) for name in outputs], sums, width))
    numbers = sum(matrix.values().numel() + len(bias) for matrix, bias in layers)

    def run(bits: np.ndarray) -> np.ndarray:
        values = torch.tensor(bits.T.astype(np.float32))
        for matrix, bias in layers[:-1]:
            values = torch.relu(matrix @ values + bias)
        matrix, bias = layers[-1]
        return 2 * (matrix @ values + bias).T.numpy() - 1

    return run, numbers, depth


def _matrix(units: list, sums: dict[str, tuple[dict[int, int], int]], width: int) -> tuple[Any, Any]:
    """Units that add up nets, over the units of the layer before."""
    starts, columns, values, biases = [0], [], [], []
    for nets, bias in units:
        total: dict[int, int] = {}
        for net in nets:
            for column, value in sums[net][0].items():
                total[column] = total.get(column, 0) + value
            bias += sums[net][1]
        kept = sorted((column, value) for column, value in total.items() if value)
        columns += [column for column, _ in kept]
        values += [float(value) for _, value in kept]
        starts.append(len(columns))
        biases.append(float(bias))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = torch.sparse_csr_tensor(
            torch.tensor(starts),
            torch.tensor(columns, dtype=torch.int64),
            torch.tensor(values),
            (len(units), width),
        )
    return matrix, torch.tensor(biases)[:, None]


def measured(name: str, circuit: Circuit) -> list[dict[str, Any]]:
    """Sizes, times and speeds of one circuit."""
    papers = estimate(circuit, "relu", form="paper")
    begin = time.process_time()
    compiled = compile(circuit, "relu", form="practical")
    built = time.process_time()
    with TemporaryDirectory() as folder:
        save(compiled, Path(folder, "net"))
        saved = time.process_time()
        verdict = check(Path(folder, "net")).verdict
        checked = time.process_time()
    net = compiled.net
    assert isinstance(net, CompactNet)
    without = estimate(circuit, "relu", form="practical", skips=False).parameters
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
        beside = rival(net.chain())
        assert np.array_equal(beside(bits), net.outputs(bits, "fast"))
        theirs = patterns_a_second(beside, bits)
        words = f"the same gates in PyTorch (CSR), {theirs:,.0f} patterns/s"
        found.append(row("fast", speed, "patterns/s", words, speed / theirs))
    else:
        found.append(row("fast", speed, "patterns/s"))
    if without <= LARGEST_RIVAL and (tables := in_tables(circuit)):
        run, numbers, depth = tables
        assert np.array_equal(run(bits) > 0, net.outputs(bits, "fast") > 0)
        theirs = patterns_a_second(run, bits)
        words = (
            f"tables of four in PyTorch (CSR): {theirs:,.0f} patterns/s, {numbers:,} numbers, {depth} layers"
        )
        found.append(row("fast", speed, "patterns/s", words, speed / theirs))
    return found


def in_pytorch(name: str, circuit: Circuit) -> list[dict[str, Any]]:
    """The modules that `to_torch` gives, in turn with the same weights as bare sparse matrices, and with the
    module as it is differentiable (and once was always)."""
    found = []
    bits = np.random.default_rng(0).integers(0, 2, (PATTERNS, len(circuit.inputs))).astype(bool)
    rows = torch.tensor(bits, dtype=torch.float32)
    for form, options in (("paper", {}), ("practical", {"skips": False})):
        if estimate(circuit, "relu", form=form, **options).parameters > LARGEST_RIVAL:
            continue
        net = compile(circuit, "relu", form=form).net
        assert isinstance(net, LayeredNet)
        module = to_torch(net)
        bare, slow = rival(net.chain()), to_torch(net)
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
