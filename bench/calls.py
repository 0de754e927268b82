"""Batches through a call, `net(a, b)`, beside the bare engine on the same bits: what typing, checking and
naming of values costs.

Rows are medians of runs taken in turns, so that the ratio holds on a machine that is not quiet.
"""

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

from tapegrad._compile import compile
from tapegrad.circuits import Circuit, Traced, UInt, trace
from tapegrad.circuits.library import ready
from tapegrad.targets.relu.layered import LayeredNet

PATTERNS = {1_024: 101, 100_000: 9}
"""How often each is run."""


def mixed(a: UInt(32), b: UInt(32)) -> UInt(32):  # pyright: ignore[reportInvalidTypeForm]
    return (a ^ (b << 3)) + (b & 0xFF00FF)


def first_one(x: UInt(32)) -> UInt(32):  # pyright: ignore[reportInvalidTypeForm]
    """The lowest bit that is set: a priority encoder whose answer is one bit of many."""
    return x & (~x + 1)


def sources() -> Iterator[tuple[str, Circuit | Traced, list[int]]]:
    """Each with the width of every word that it is given; none where it is given a row of bits."""
    yield "a multiplier of 8 bits, words", ready("multiplier8"), [8, 8]
    yield "a multiplier of 8 bits, bits", ready("multiplier8"), []
    yield "an interrupt controller, bits", ready("interrupts27"), []
    yield "a function of UInt(32), words", trace(mixed), [32, 32]
    yield "a priority encoder of UInt(32), words", trace(first_one), [32]


def rows() -> list[dict[str, Any]]:
    """Both forms of `relu`."""
    found = []
    for form in ("practical", "paper"):
        for what, source, widths in sources():
            found += [
                _beside_the_engine(f"relu, {form}, {what}", source, widths, form, count) for count in PATTERNS
            ]
    return found


def _beside_the_engine(
    what: str, source: Circuit | Traced, widths: list[int], form: str, count: int
) -> dict[str, Any]:
    call = compile(source, "relu", form=form)
    net, random = call.net, np.random.default_rng(0)
    assert isinstance(net, LayeredNet)
    words = [random.integers(0, 1 << width, count) for width in widths]
    columns = [own >> place & 1 for own, width in zip(words, widths, strict=True) for place in range(width)]
    bits = np.array(columns, bool).T if words else random.integers(0, 2, (count, len(net.input_names)))
    bits = np.ascontiguousarray(bits, bool)
    given: list[Any] = words or [bits]
    ours, theirs = in_turns((lambda: call(*given), lambda: net.outputs(bits, "fast")), PATTERNS[count])
    return {
        "what": f"{what}, {count:,} patterns",
        "value": count / ours,
        "unit": "patterns/s",
        "rival": "the bare engine",
        "rival_value": count / theirs,
        "ratio": theirs / ours,
    }


def in_turns(runs: tuple[Callable[[], object], ...], times: int) -> list[float]:
    """The median of each, in seconds, after a first run that nobody times."""
    taken: list[list[float]] = [[] for _ in runs]
    for turn in range(times + 1):
        for run, seconds in zip(runs, taken, strict=True):
            began = time.perf_counter()
            run()
            if turn:
                seconds.append(time.perf_counter() - began)
    return [median(seconds) for seconds in taken]


if __name__ == "__main__":
    for row in rows():
        print(row)
