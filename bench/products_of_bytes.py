"""Whether JAX multiplies matrices of bytes rightly on this device: plain JAX, nothing of tapegrad.

The conformance kit found, on an accelerator, a unit that gave 2 for 1 in bytes. Here the product is taken by
itself, in nine shapes, alone and with what follows it in a layer, compiled and not, with weights as constants
and as arguments: 144 cases, each beside NumPy's product of 64-bit integers. Each of `SETTINGS` of XLA runs in
a process of its own.

    python -m bench.products_of_bytes
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

SETTINGS = {
    "as it comes": "",
    "without Triton": "--xla_gpu_enable_triton_gemm=false",
    "without cuBLAS": "--xla_disable_hlo_passes=cublas-gemm-rewriter",
}
SHAPES = (
    (64, 16, 22),
    (64, 22, 16),
    (64, 16, 16),
    (64, 32, 32),
    (64, 23, 23),
    (64, 15, 16),
    (2, 4, 4),
    (16, 8, 8),
    (128, 64, 64),
)


def product(x: Array, weight: Array) -> Array:
    """Bytes times bytes, added up in 32 bits."""
    return jnp.matmul(x, weight, preferred_element_type=jnp.int32)


LAYERS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "x w": lambda x, weight, bias: product(x, weight),
    "x w + b": lambda x, weight, bias: product(x, weight) + bias,
    "relu(x w + b)": lambda x, weight, bias: jnp.maximum(product(x, weight) + bias, 0),
    "relu(x w + b) in bytes": lambda x, weight, bias: jnp.maximum(product(x, weight) + bias, 0).astype(
        jnp.int8
    ),
}


def cases() -> list[dict]:
    """Every case, with the number of wrong entries and the first of them."""
    random, found = np.random.default_rng(0), []
    for shape, (name, layer), compiled, constant in itertools.product(
        SHAPES, LAYERS.items(), (True, False), (True, False)
    ):
        rows, inner, columns = shape
        x = random.integers(0, 2, (rows, inner)).astype(np.int8)
        weight = random.integers(-1, 2, (inner, columns)).astype(np.int8)
        bias = random.integers(-2, 3, columns).astype(np.int32)
        right = x.astype(np.int64) @ weight.astype(np.int64)
        right = right + bias if "b" in name else right
        right = np.maximum(right, 0) if "relu" in name else right
        arrays = jnp.asarray(weight), jnp.asarray(bias)
        if constant:
            fixed = lambda x, layer=layer, arrays=arrays: layer(x, *arrays)  # noqa: E731
            got = (jax.jit(fixed) if compiled else fixed)(jnp.asarray(x))
        else:
            got = (jax.jit(layer) if compiled else layer)(jnp.asarray(x), *arrays)
        wrong = np.argwhere(np.asarray(got) != right)
        first = tuple(map(int, wrong[0])) if len(wrong) else None
        found.append(
            {
                "shape": shape,
                "layer": name,
                "compiled": compiled,
                "constant": constant,
                "wrong": len(wrong),
                "first": first and f"{np.asarray(got)[first]} for {right[first]} at {first}",
            }
        )
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(cases()))
        sys.exit()
    for name, flags in SETTINGS.items():
        done = subprocess.run(
            [sys.executable, "-m", "bench.products_of_bytes", "here"],
            env={**os.environ, "XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            timeout=600,
        )
        if done.returncode:
            print(f"{name}: JAX does not run so here: {done.stderr.strip().splitlines()[-1]}")
            continue
        rows = json.loads(done.stdout.splitlines()[-1])
        wrong = [row for row in rows if row["wrong"]]
        print(f"{name} ({jax.__version__}, {jax.default_backend()}): {len(wrong)} of {len(rows)} cases wrong")
        for row in wrong:
            print("   ", row)
