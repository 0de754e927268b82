"""Constants of the emulator, measured: the cost of a step, samples per sample learned, drift, noise.

python -m bench.emulator
"""

import time
from collections.abc import Iterator

import numpy as np

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.circuits import UInt
from tapegrad.learners import FunctionLearner, parity
from tapegrad.targets.emulator.constants import NOISE, Constants, drift, gate_weight
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tapegrad.targets.emulator.paper_nets import NoisyNet


def rows() -> list[dict]:
    """Every measurement."""
    return [*_cost(), *_noise_tolerant_cost(), *_samples(), *_many_flips(), *_drift(), *_noise()]


def main() -> None:
    for row in rows():
        print(f"{row['what']}: {row['value']:.6g} {row['unit']}")


def _cost() -> Iterator[dict]:
    """One step of SGD, forward and backward, at sizes that differ by a factor of 60."""
    for n in (16, 32, 64, 128):
        learner = parity(n)
        net = _practical(learner)
        x = np.random.default_rng(0).integers(0, 2, (60, n))
        carry = net.start(learner.start(x, x.sum(axis=1) % 2))
        net.advance(carry, 1, "fast")
        seconds = min(_seconds(net, carry, len(x)) for _ in range(5)) / len(x)
        yield {
            "what": f"SGD step of parity of {n} bits, {net.graph.edges:,} weights",
            "value": 1e9 * seconds / net.graph.edges,
            "unit": "ns per weight",
        }


def _noise_tolerant_cost() -> Iterator[dict]:
    """One step of the noise-tolerant network, by every engine."""
    n, samples = 8, 16
    learner = parity(n)
    x = np.random.default_rng(0).integers(0, 2, (samples, n))
    for arithmetic, engine in (("double", "reference"), ("double", "fast"), ("decimal", "fast")):
        net = NoisyNet.of(learner, samples, arithmetic, float(NOISE[arithmetic]))
        carry = net.advance(net.start(learner.start(x, x[:, 0], 1, False)), 1, engine)
        began = time.process_time()
        net.advance(carry, 10, engine)
        yield {
            "what": f"SGD step of noise-tolerant parity of {n} bits from {samples} samples, "
            f"{net.graph.edges:,} weights, {arithmetic}, {engine}",
            "value": 1e3 * (time.process_time() - began) / 10,
            "unit": "ms",
        }


def _seconds(net: PracticalNet, carry: EmulatorCarry, steps: int) -> float:
    began = time.perf_counter()
    net.advance(carry, steps, "fast")
    return time.perf_counter() - began


def _samples() -> Iterator[dict]:
    """Theorem 4: samples consumed for each one learned from."""
    n, runs = 32, 100
    learner = parity(n)
    net, random = _practical(learner), np.random.default_rng(1)
    consumed = learned = 0
    for seed in range(runs):
        x = random.integers(0, 2, (4 * n, n))
        first = learner.start(x, x @ random.integers(0, 2, n) % 2, seed)
        carry = net.start(first)
        while not net.has_finished(carry):
            carry = net.advance(carry, 1, "fast")
        consumed += carry.steps
        learned += int((first.samples.guess != first.samples.y)[: carry.steps].sum())
    yield {
        "what": f"samples consumed per sample learned from, parity of {n} bits, {runs} runs",
        "value": consumed / learned,
        "unit": "",
    }
    yield {
        "what": f"samples learned from until done, parity of {n} bits",
        "value": learned / runs,
        "unit": "",
    }


def _many_flips() -> Iterator[dict]:
    """A counter: its lowest bit flips whenever a sample is learned from."""
    steps = 100_000
    learner = _counter(16)
    net = _practical(learner)
    first = learner.start(np.zeros((steps, 1)), np.random.default_rng(0).integers(0, 2, steps))
    carry = net.advance(net.start(first), steps, "fast")
    flips = int((first.samples.guess != first.samples.y).sum())
    right = sum(bit << i for i, bit in enumerate(net.decode(carry).memory)) == flips % (1 << 16)
    yield {
        "what": f"error of a cell after {steps:,} steps and {flips:,} flips of it (memory right: {right})",
        "value": net.deviation(carry),
        "unit": "",
    }


def _drift() -> Iterator[dict]:
    """Larger cells, so that nothing rounds away: how far they drift, beside the bound."""
    for cells, steps, exponent in ((8, 200, -17), (16, 400, -19), (16, 1000, -20)):
        learner = _counter(cells)
        net = PracticalNet.of(learner, Constants(2.0**exponent, gate_weight(cells)), "float64", steps)
        first = learner.start(np.zeros((steps, 1)), np.random.default_rng(1).integers(0, 2, steps))
        carry = net.advance(net.start(first), steps, "fast")
        *_, last = learner.run(first)
        assert net.decode(carry) == last
        bound = drift(2.0**exponent, cells, steps)
        yield {
            "what": f"drift of {cells} cells of 2^{exponent} in {steps} steps, by its bound of {bound:.2g}",
            "value": net.deviation(carry) / bound,
            "unit": "",
        }


def _noise() -> Iterator[dict]:
    """The least power of ten times the bound on the noise that breaks a noise-tolerant network."""
    x = [[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0], [0, 1]]
    inputs = (x, [row[0] for row in x], 1, False)
    for arithmetic, bound in NOISE.items():
        for power in range(12):
            options = {"samples": 5, "arithmetic": arithmetic, "noise": 10.0**power * float(bound)}
            compiled = compile(parity(2), "emulator", form="noise-tolerant", **options)
            if not verify(compiled, [inputs]).agreed:
                yield {
                    "what": f"noise that breaks the noise-tolerant network, {arithmetic}",
                    "value": 10.0**power,
                    "unit": f"times the bound {float(bound):.2g}",
                }
                break


def _practical(learner: FunctionLearner) -> PracticalNet:
    net = compile(learner, "emulator").net
    assert isinstance(net, PracticalNet)
    return net


def _counter(bits: int) -> FunctionLearner:
    return FunctionLearner(
        name="counter",
        x=UInt(1),
        memory=UInt(bits),
        update=lambda memory, x, y, r: memory + 1,
        predict=lambda memory, x: memory[0],
        done=lambda memory: memory[0] & ~memory[0],
    )


if __name__ == "__main__":
    main()
