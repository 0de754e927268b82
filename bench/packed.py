"""The ReLU network of a multiplier, patterns a second on the device that is here: in floating point, by JAX
and by PyTorch, and on words of 32 patterns.

`python -m bench.packed [--json] [BITS ...]`: multipliers of factors of so many bits (10, 31 and 100, the last
of 29,208 gates). Every engine works from the arrays of the compiled net, and is compared with Python's own
products before it is timed. The first two compute the network as it stands, every unit
`relu(weights . values + bias)` in float32; `words` computes the function of bits that it read off those
weights (`tapegrad.interop.packed`).
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.relu import multiplier
from tapegrad._compile import compile
from tapegrad.interop.packed import WORD, PackedNet
from tapegrad.networks.backends.jax import Jax
from tapegrad.targets.relu import CompactNet

WIDTHS = (10, 31, 100)
COMPARED = 256
"""Patterns that are compared."""
TIMES = 5
MEMORY = {"cpu": 1 << 25}
LARGE_MEMORY = 1 << 32
"""Bytes of values that floating-point engines keep at a time."""


def rows(widths: tuple[int, ...] = WIDTHS) -> list[dict[str, Any]]:
    """Every multiplier on every engine: patterns a second, by the clock and by the processor's time."""
    return [row for bits in widths for row in _multiplier(bits)]


def _multiplier(bits: int) -> Iterator[dict[str, Any]]:
    circuit = multiplier(bits)
    net = compile(circuit, "relu").net
    assert isinstance(net, CompactNet)
    name = f"{bits} x {bits} multiplier, {circuit.size:,} gates, {len(net.holds):,} units"
    budget = MEMORY.get(jax.default_backend(), LARGE_MEMORY)
    patterns = max(64, budget // (4 * net.node.whole("slots")) // 64 * 64)
    batch = np.random.default_rng(0).integers(0, 2, (patterns, 2 * bits)).astype(bool)

    network = Jax(net.network)
    run = jax.jit(lambda given: network.run({"bits": given})[0]["outputs"])
    given = batch.astype(np.float32)
    _compare(2 * np.asarray(run(given[:COMPARED])) - 1, batch, bits)
    done = timed(lambda: run(given).block_until_ready(), patterns)
    yield {"what": name, "engine": "JAX, from bits to bits", **done}
    if find_spec("torch") is not None:
        yield {"what": name, **_torch(net, batch, bits)}

    began = time.process_time()
    packed = PackedNet(net)
    prepared = time.process_time() - began
    _compare(packed.outputs(batch[:COMPARED]), batch, bits)
    words = packed.words_at_once
    given = jax.random.bits(jax.random.key(0), (2 * bits, words), jnp.uint32)
    done = timed(lambda: packed.words(given).block_until_ready(), WORD * words)
    yield {"what": name, "engine": "JAX, words", **done, "prepare": prepared}


def _torch(net: CompactNet, batch: np.ndarray, bits: int) -> dict[str, Any]:
    import torch

    from tapegrad.interop.pytorch import to_torch

    where = "cuda" if torch.cuda.is_available() else "cpu"
    module = to_torch(net).to(where)
    given = torch.from_numpy(batch.astype(np.float32)).to(where)

    def run() -> None:
        with torch.no_grad():
            module(given)
        if where == "cuda":
            torch.cuda.synchronize()

    with torch.no_grad():
        _compare(module(given[:COMPARED]).cpu().numpy(), batch, bits)
    return {"engine": "PyTorch, sparse matrices", **timed(run, len(batch)), "device": where}


def timed(run: Callable[[], Any], patterns: int) -> dict[str, Any]:
    """The best of some runs, after one that is not counted."""
    run()
    best, spent = float("inf"), float("inf")
    for _ in range(TIMES):
        began, used = time.perf_counter(), time.process_time()
        run()
        best, spent = min(best, time.perf_counter() - began), min(spent, time.process_time() - used)
    rates = {"patterns_per_second": patterns / best, "per_cpu_second": patterns / max(spent, 1e-9)}
    return {**rates, "at_once": patterns, "device": jax.default_backend()}


def _compare(outputs: np.ndarray, batch: np.ndarray, bits: int) -> None:
    """With Python's own products."""
    for row, signs in zip(batch, outputs, strict=False):
        a, b = (sum(int(bit) << i for i, bit in enumerate(half)) for half in (row[:bits], row[bits:]))
        product = sum(int(sign > 0) << i for i, sign in enumerate(signs))
        if product != a * b % (1 << len(signs)) or not (np.abs(signs) == 1).all():
            raise SystemExit(f"{a} * {b} is not {product}")


if __name__ == "__main__":
    asked = sys.argv[1:]
    found = rows(tuple(int(own) for own in asked if own != "--json") or WIDTHS)
    if "--json" in asked:
        print(json.dumps(found, indent=1))
    for own in [] if "--json" in asked else found:
        rates = f"{own['patterns_per_second']:,.0f} patterns/s, {own['per_cpu_second']:,.0f} a CPU second"
        print(f"{own['what']}: {own['engine']} on {own['device']}: {rates}")
