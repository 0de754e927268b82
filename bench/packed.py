"""ReLU networks on words of 32 patterns: patterns a second, on the device that JAX has here.

`python -m bench.packed [BITS ...]`: multipliers of factors of so many bits (10, 31 and 100, the last of about
29,000 gates), each compared with the reference engine and with Python's own products before it is timed.
"""

import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.relu import multiplier
from tapegrad._compile import compile
from tapegrad.interop.packed import WORD, PackedNet
from tapegrad.targets.relu import ReluNet

WIDTHS = (10, 31, 100)
COMPARED = 256
"""Patterns that are compared."""
TIMES = 5


def rows(widths: tuple[int, ...] = WIDTHS, *, reference: bool = True) -> list[dict[str, Any]]:
    """Every multiplier: how long it takes to read the bits off the weights, and patterns a second."""
    found = []
    for bits in widths:
        circuit = multiplier(bits)
        net = compile(circuit, "relu", form="paper").net
        assert isinstance(net, ReluNet)
        name = f"relu on words, {bits} x {bits} multiplier, {circuit.size:,} gates"
        began = time.process_time()
        packed = PackedNet(net)
        found.append({"what": f"{name}: prepare", "value": time.process_time() - began, "unit": "s"})
        _compare(net, packed, bits, reference=reference)
        words = packed.words_at_once
        given = jax.random.bits(jax.random.key(0), (2 * bits, words), jnp.uint32)
        packed.words(given).block_until_ready()
        best, spent = float("inf"), float("inf")
        for _ in range(TIMES):
            began, used = time.perf_counter(), time.process_time()
            packed.words(given).block_until_ready()
            best = min(best, time.perf_counter() - began)
            spent = min(spent, time.process_time() - used)
        where = jax.default_backend()
        rate = {"what": f"{name}: on {where}", "value": WORD * words / best, "unit": "patterns/s"}
        found.append({**rate, "per_cpu_second": WORD * words / max(spent, 1e-9), "at_once": WORD * words})
    return found


def _compare(net: ReluNet, packed: PackedNet, bits: int, *, reference: bool) -> None:
    """With Python's own products, and with the reference engine."""
    batch = np.random.default_rng(0).integers(0, 2, (COMPARED, 2 * bits)).astype(bool)
    own = packed.outputs(batch)
    for row, signs in zip(batch, own, strict=True):
        a, b = (sum(int(bit) << i for i, bit in enumerate(half)) for half in (row[:bits], row[bits:]))
        product = sum(int(sign > 0) << i for i, sign in enumerate(signs))
        assert product == a * b % (1 << len(signs)), (a, b, product)
    if reference:
        assert np.array_equal(own > 0, net.outputs(batch) > 0)


if __name__ == "__main__":
    for row in rows(tuple(map(int, sys.argv[1:])) or WIDTHS):
        print(row)
