"""ReLU networks of multipliers: seconds to compile in both forms, and patterns a second of the paper's form,
beside the circuit evaluator.

The circuits grow tenfold from one to the next. `python -m bench.relu reference` leaves out what needs a
processor (the fast engine and the rival), as on a machine with an accelerator.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad._compile import compile
from tapegrad.circuits import UInt, trace
from tapegrad.circuits.model import Circuit
from tapegrad.targets.relu import ReluNet

WIDTHS = (10, 31, 100)
"""Bits of the factors: about 270, 2,700 and 29,000 gates."""
LEAST_SECONDS = 0.5


def multiplier(bits: int) -> Circuit:
    return trace(lambda a, b: a * b, UInt(bits), UInt(bits)).circuit


def patterns_a_second(run: Callable[[np.ndarray], Any], batch: Callable[[int], np.ndarray]) -> float:
    """The best of three, with batches that grow until one takes long enough to be timed."""
    patterns = 256
    while True:
        given = batch(patterns)
        run(given)
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            run(given)
            times.append(time.perf_counter() - begin)
        if min(times) > LEAST_SECONDS or patterns >= 1 << 22:
            return patterns / min(times)
        patterns *= 4


def random_bits(inputs: int) -> Callable[[int], np.ndarray]:
    return lambda patterns: np.random.default_rng(0).integers(0, 2, (patterns, inputs)).astype(bool)


def random_words(inputs: int) -> Callable[[int], np.ndarray]:
    """Patterns as the evaluator likes them best: 64 to a word."""
    return lambda patterns: np.random.default_rng(0).integers(0, 2**64, (inputs, patterns // 64), np.uint64)


def rows(engines: Sequence[str] = ReluNet.engines) -> list[dict[str, Any]]:
    """Every multiplier: compilation, then each engine beside the bit-parallel evaluator of the circuit."""
    found = []
    for bits in WIDTHS:
        circuit = multiplier(bits)
        name = f"relu, {bits} x {bits} multiplier, {circuit.size:,} gates"
        for form in ("practical", "paper"):
            begin = time.process_time()
            net = compile(circuit, "relu", form=form).net
            seconds = time.process_time() - begin
            found.append(
                {"what": f"{name}: compile, {form} form, processor time", "value": seconds, "unit": "s"}
            )
        assert isinstance(net, ReluNet)
        gates, inputs = len(net.gates.kinds), len(circuit.inputs)
        size = sum(array.nbytes for array in net.all_arrays().values())
        found.append({"what": f"{name}: gates in layers", "value": gates, "unit": "gates"})
        found.append({"what": f"{name}: memory a gate in layers", "value": size / gates, "unit": "bytes"})
        rival = 0.0
        if "fast" in engines:
            from tapegrad.circuits.evaluator import Evaluator

            rival = patterns_a_second(Evaluator(circuit).packed, random_words(inputs))
        for engine in engines:
            own = patterns_a_second(lambda b, n=net, e=engine: n.outputs(b, e), random_bits(inputs))
            row = {"what": f"{name}: {engine}", "value": own, "unit": "patterns/s"}
            if rival:
                row |= {"rival": f"bit-parallel evaluator, {rival:,.0f} patterns/s", "ratio": own / rival}
            found.append(row)
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1:] or ReluNet.engines):
        print(row)
