"""How the cost of a step grows with the size of a net, for every target and engine.

Each line is one engine of one target: microseconds a step (best of three, processor time, after a run that
compiles) against the number that makes that net large. `python -m bench.growth` draws the figure.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import tapegrad as tg
from tapegrad.circuits import library as circuits
from tapegrad.learners import parity
from tapegrad.machines import library as machines

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "growth.svg"


class Case(NamedTuple):
    """A target, what makes it large, and nets of growing size with an input for each."""

    target: str
    axis: str
    nets: Callable[[], Iterator[tuple[int, tg.Compiled, tuple[Any, ...]]]]
    steps: int
    """Of the reference engine; faster ones take a hundred times as many, or all that there are."""


def _relu() -> Iterator[tuple[int, tg.Compiled, tuple[Any, ...]]]:
    for bits in (8, 24, 64):
        circuit = circuits.ready(f"multiplier{bits}")
        yield circuit.size, tg.compile(circuit, "relu"), (np.zeros((1024, 2 * bits), np.uint8),)


def _transformer() -> Iterator[tuple[int, tg.Compiled, tuple[Any, ...]]]:
    for exponent in (6, 9, 12):
        yield (
            1 << exponent,
            tg.compile(machines.ready("busy-beaver-5x2"), "transformer", steps=1 << exponent),
            (),
        )


def _simplex() -> Iterator[tuple[int, tg.Compiled, tuple[Any, ...]]]:
    for longest in (2, 8, 32):
        net = tg.compile(machines.ready("copying"), "simplex", inputs=[["a" * longest]])
        yield net.net.parameters, net, ("a" * longest,)


def _tape() -> Iterator[tuple[int, tg.Compiled, tuple[Any, ...]]]:
    for cells in (1024, 8192, 65536):
        yield cells, tg.compile(machines.ready("busy-beaver-5x2"), "tape", cells=cells), ()


def _emulator() -> Iterator[tuple[int, tg.Compiled, tuple[Any, ...]]]:
    for bits in (8, 24, 72):
        x = np.random.default_rng(0).integers(0, 2, (200, bits))
        net = tg.compile(parity(bits), "emulator")
        yield net.net.parameters, net, (x, x.sum(1) % 2)


def _rcnn() -> Iterator[tuple[int, tg.Compiled, tuple[Any, ...]]]:
    for margin in (8, 24, 72):
        yield (2 * margin + 4) ** 2, tg.compile(machines.ready("increment"), "rcnn", margin=margin), ("1011",)


CASES = (
    Case("relu", "gates (1,024 patterns)", _relu, 1000),
    Case("transformer", "T", _transformer, 48),
    Case("simplex", "numbers in the net", _simplex, 64),
    Case("tape", "cells of the tape", _tape, 64),
    Case("emulator", "numbers in the net", _emulator, 16),
    Case("rcnn", "cells of the grid", _rcnn, 6),
)


def microseconds(net: tg.Compiled, inputs: tuple[Any, ...], engine: str, steps: int) -> float:
    """Of one step, the best of three runs after one that compiles."""
    best = float("inf")
    for run in range(4):
        carry = net.start(*inputs)
        began = time.process_time()
        taken = net.net.steps_taken(net.net.advance(carry, steps, engine))
        if run:
            best = min(best, (time.process_time() - began) / max(taken, 1))
    return 1e6 * best


def rows() -> list[dict[str, Any]]:
    """Every target, engine and size."""
    found = []
    for case in CASES:
        for size, net, inputs in case.nets():
            for engine in net.net.engines:
                found.append(
                    {
                        "what": f"{case.target}, {engine}, {size:,} {case.axis}",
                        "value": microseconds(
                            net, inputs, engine, case.steps * (1 if engine == "reference" else 100)
                        ),
                        "unit": "us a step",
                        "target": case.target,
                        "engine": engine,
                        "size": size,
                    }
                )
    return found


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """One panel for each target."""
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    for axes, case in zip(figure.subplots(2, 3).flat, CASES, strict=True):
        for engine in dict.fromkeys(row["engine"] for row in found if row["target"] == case.target):
            line = [row for row in found if (row["target"], row["engine"]) == (case.target, engine)]
            axes.loglog([row["size"] for row in line], [row["value"] for row in line], "o-", label=engine)
        axes.set(title=case.target, xlabel=case.axis, ylabel="microseconds a step")
        axes.legend()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    measured = rows()
    draw(measured, PICTURE)
    for row in measured:
        print(row)
