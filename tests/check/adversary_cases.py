"""Genuine nets of every target for the adversary, small ones, each beside others that it takes parts from.

Among the sources are some in which different things are the same: outputs that are inputs, constants, or one
another. Nets of these have places with the same meaning and other numbers.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad._compile import compile
from tapegrad._saved import save
from tapegrad._sources import read
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.interop.disguise import disguise
from tapegrad.interop.disguised import save_disguised
from tapegrad.interop.huggingface import files
from tapegrad.learners import conjunction, on_grid, parity
from tapegrad.learners.model import CircuitLearner
from tapegrad.rasp.library import READY
from tapegrad.sklearn import EmulatedClassifier, RCNNClassifier
from tapegrad.source import Source
from tapegrad.targets.extended import FixedPoint, extend, linear
from tapegrad.targets.extended import save as save_extended
from tests.check.forging import Saved
from tests.check.small_sources import (
    BB2,
    COUNT,
    COUNTER,
    COUNTING,
    ECHO,
    MEANS,
    OTHER,
    OTHER_PROCESSOR,
    PROCESSOR,
    SHIFTER,
    SORT,
    two_tapes,
)
from tests.targets.extended.algorithms import copy_bits


def _wired(make: CircuitBuilder, wires: Mapping[str, Any], outputs: Mapping[str, str]) -> Circuit:
    """Outputs that are inputs, negated or not, or constants."""
    for name, what in outputs.items():
        wire = make.constant(bool(int(what))) if what in "01" else wires[what.removeprefix("not ")]
        make.output(name, make.not_(wire) if what.startswith("not ") else wire)
    return make.circuit("wires")


def _circuit_of_wires(*outputs: str) -> Circuit:
    make = CircuitBuilder(simplify=False)
    wires = {name: make.input(name) for name in ("x0", "x1")}
    return _wired(make, wires, {f"y{number}": what for number, what in enumerate(outputs)})


def _learner_of_wires(*outputs: str) -> CircuitLearner:
    """Of one cell and two bits: its answer, whether it has finished, and what it will remember."""
    make = CircuitBuilder(simplify=False)
    wires = {name: make.input(name) for name in ("memory", "x0", "x1", "random", "guess")}
    named: dict[str, str] = dict(zip(("answer", "finished", "next memory"), outputs, strict=True))
    return CircuitLearner(_wired(make, wires, named), 2)


GUESSES, ONES = _learner_of_wires("guess", "0", "not memory"), _learner_of_wires("1", "1", "not memory")
"""Learners: one never answers, one always says 1."""


def _compiled(source: Any, target: str, options: Mapping[str, Any], folder: Path) -> None:
    made: Source = read(source) if isinstance(source, str) else source
    save(compile(made, target, **options), folder)


def _trained(label: float, folder: Path) -> None:
    x, y = np.array([[1.0], [0.5]]), np.array([[label], [0.5]])
    form = FixedPoint(3, 1)
    net = extend(linear(1), copy_bits(6, blank="0", stay=True), x.shape, y.shape, data_format=form, cells=32)
    training = net.on(x, y)
    save_extended(training, training.train(), folder)


def _disguised(name: str, options: Mapping[str, Any], folder: Path) -> None:
    program = replace(READY[name].build(), length=3)
    save_disguised(disguise(tg.compile(program, "decoder"), **options), folder)


def _stock(name: str, family: str, folder: Path) -> None:
    """A checkpoint; beside it, under the name of the folder with `.net`, the net that it is of."""
    net = compile(read(name), "decoder", tokens=60)
    save(net, folder.with_suffix(".net"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file, content in files(net, family).items():
        (folder / file).write_bytes(content)


def _classifier(made: Any, label: int, folder: Path) -> None:
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    made.fit(bits, bits[:, label]).save(folder)


@dataclass(frozen=True)
class Case:
    """A kind of folder: what it is to the judge, and genuine ones, the first of which is forged."""

    kind: str
    writers: tuple[Callable[[Path], None], ...]

    def make(self, folder: Path) -> list[Saved]:
        """The genuine nets, in folders with numbers for names."""
        for number, write in enumerate(self.writers):
            write(folder / str(number))
        return [Saved.of(folder / str(number)) for number in range(len(self.writers))]


def _of(kind: str, write: Callable[..., None], *several: tuple[Any, ...]) -> Case:
    """A case, by what is written in each folder."""
    return Case(kind, tuple(lambda folder, own=own: write(*own, folder) for own in several))


def _nets(target: str, pairs: Mapping[str, tuple[Any, Any, dict[str, Any]]]) -> dict[str, Case]:
    """Compiled nets: two sources each, and options."""
    return {
        name: _of("compiled", _compiled, (one, target, options), (other, target, options))
        for name, (one, other, options) in pairs.items()
    }


WIRES = _circuit_of_wires("x0", "x1", "1", "x0", "not x1", "0")
ONE_CELL = {"steps": 8, "input": 1, "output": 2}
ROOM = {"steps": 30, "input": 1, "output": 2}
SOFT = {"attention": "softmax"}
TARGETS: dict[str, dict[str, Case]] = {
    "relu": _nets("relu", {
        "relu": ("adder2", "multiplier2", {}),
        "relu of a machine": (BB2, OTHER, {"steps": 2, "cells": 4}),
        "relu, deeper": ("parity4", "majority5", {"depth": 30, "width": 40, "correction": "none"}),
        "relu of a clock": (COUNTER, SHIFTER, {"cycles": 2}),
        "relu of wires": (WIRES, "multiplier2", {"form": "paper", "correction": "quarters"}),
        "relu of a RASP program": (SORT, COUNT, {"count": 2}),
    }),
    "relu, compact": _nets("relu", {
        "relu, compact": ("adder2", "multiplier2", {"form": "practical"}),
        "relu, compact, of a machine": (BB2, OTHER, {"form": "practical", "steps": 2, "cells": 4}),
        "relu, without skips": ("parity4", "majority5", {"form": "practical", "skips": False}),
        "relu, compact, of wires": (WIRES, "multiplier2", {"form": "practical"}),
    }),
    "transformer": _nets("transformer", {
        "transformer": (BB2, OTHER, {"form": "paper", "steps": 16}),
        "transformer, softmax": (BB2, OTHER, {"steps": 16, "correction": "thirds", **SOFT}),
    }),
    "heads and gates": _nets("transformer", {
        "transformer of a clock": (COUNTER, SHIFTER, {"steps": 12}),
        "transformer of a clock, softmax": (COUNTER, SHIFTER, {"steps": 12, **SOFT}),
        "transformer of two tapes": (two_tapes("1"), two_tapes("0"), {"steps": 30}),
        "transformer in memory": (BB2, OTHER, {"steps": 16, **SOFT}),
        "transformer of a circuit": ("adder2", "multiplier2", {}),
        "transformer of a program": (ECHO, COUNTING, ROOM),
    }),
    "decoder": _nets("decoder", {
        "decoder": (BB2, OTHER, {"tokens": 100}),
        "decoder, two rounds": ("increment", "palindrome", {"tokens": 50_000}),
        "decoder of two tapes": (two_tapes("1"), two_tapes("0"), {"tokens": 300}),
    }),
    "decoder of programs": _nets("decoder", {"decoder of a program": (ECHO, COUNTING, {"tokens": 400})}),
    "RASP": _nets("decoder", {
        "decoder of a RASP program": (SORT, COUNT, {}),
        "decoder of means": (MEANS, COUNT, {}),
        "decoder of a circuit": ("adder2", "multiplier2", {}),
    }),
    "emulator": _nets("emulator", {
        "emulator": (parity(2), conjunction(2, 3), {}),
        "emulator of a machine": (BB2, OTHER, {"steps": 8, "cells": 5}),
        "emulator of a clock": (COUNTER, SHIFTER, {}),
        "emulator of a circuit": ("adder2", "multiplier2", {}),
        "emulator of a program": (ECHO, COUNTING, ONE_CELL),
        "emulator of a guess": (GUESSES, _learner_of_wires("x0", "1", "x1"), {}),
        "emulator of a constant": (ONES, _learner_of_wires("0", "1", "x0"), {}),
        "emulator for a few samples": (GUESSES, ONES, {"steps": 3}),
        "emulator, single precision": (GUESSES, ONES, {"precision": "float32", "steps": 20}),
        "emulator, with noise": (parity(1), conjunction(1, 2), {"noise": 1e-12, "steps": 64}),
    }),
    "exact memory": _nets("emulator", {
        "exact memory": (parity(1), conjunction(1, 2), {"form": "paper"}),
        "exact memory of a guess": (GUESSES, ONES, {"form": "paper"}),
        "exact memory of a constant": (ONES, GUESSES, {"form": "paper"}),
    }),
    "noise-tolerant memory": _nets("emulator", {
        "noise-tolerant memory": (parity(1), conjunction(1, 2), {"form": "noise-tolerant", "samples": 2}),
        "noise-tolerant memory of a constant": (ONES, GUESSES, {"form": "noise-tolerant", "samples": 2}),
    }),
    "simplex": _nets("simplex", {
        "simplex": (BB2, OTHER, {"inputs": [[]]}),
        "simplex, line search": ("increment", "palindrome", {"longest": 2, "line_search": True}),
        "simplex of a circuit": ("adder2", "multiplier2", {}),
    }),
    "tape": _nets("tape", {
        "tape": (BB2, OTHER, {"cells": 16}),
        "tape, with passes": ("increment", BB2, {"cells": 16}),
        "tape of two tapes": (two_tapes("1"), two_tapes("0"), {"cells": 16}),
        "tape of a circuit": ("parity4", "majority5", {"cells": 32}),
        "tape of a learner": (parity(1), conjunction(1, 2), {"cells": 512}),
    }),
    "extended": {"extended": _of("extended", _trained, (-1.0,), (1.0,))},
    "rcnn": _nets("rcnn", {
        "rcnn": (BB2, OTHER, {"margin": 4}),
        "rcnn, ternary": (BB2, OTHER, {"margin": 4, "form": "paper"}),
        "rcnn of a circuit": ("parity4", "majority5", {"margin": 8}),
    }),
    "disguised": {
        name: _of("disguised", _disguised, (program, options), ("rasp-sort", {"basis": "quads"}))
        for name, program, options in (
            ("disguised", "rasp-histogram", {"basis": "quads", "decoys": 1}),
            ("disguised by a rotation", "rasp-histogram", {"basis": "rotation"}),
            ("disguised means", "rasp-fraction", {"basis": "hadamard"}),
        )
    },
    "stock": {
        f"stock {family}": _of("stock", _stock, ("increment", family), ("palindrome", family))
        for family in ("gpt2", "llama", "gpt-neox")
    },
    "classifiers": {
        name: _of("classifier", _classifier, (made, 0), (made, 1))
        for name, made in (
            ("classifier", EmulatedClassifier(parity)),
            ("classifier on a grid", RCNNClassifier(on_grid.parity())),
        )
    },
    "large": _nets("decoder", {
        "decoder of a processor": (PROCESSOR, OTHER_PROCESSOR, {"tokens": 8_000}),
        "decoder of a clock": (COUNTER, SHIFTER, {}),
    }) | _nets("emulator", {
        "emulator of a processor": (PROCESSOR, OTHER_PROCESSOR, ONE_CELL),
    }) | _nets("transformer", {
        "transformer of a processor": (PROCESSOR, OTHER_PROCESSOR, ROOM),
    }) | _nets("relu", {
        "relu of a program": (COUNTING, ECHO, {"instructions": 2, "input": 1, "output": 1}),
    }) | _nets("rcnn", {
        "rcnn of a drawing": ("adder8", "multiplier4", {}),
    }) | _nets("tape", {
        "tape of a clock": (COUNTER, SHIFTER, {"cells": 600}),
        "tape of a program": (COUNTING, "subleq-echo", {"cells": 400}),
        "tape of a program with input": ("subleq-echo", COUNTING, {"cells": 800}),
    }) | _nets("simplex", {
        "simplex of a program": ("subleq-echo", COUNTING, {"inputs": [("",)]}),
    }),
}  # fmt: skip
"""Cases by target. The large ones have thousands of names and rules: a check of theirs may take seconds."""
CASES = {name: case for cases in TARGETS.values() for name, case in cases.items()}
