"""Genuine nets of every target for the adversary, small ones, each beside others that it takes parts from.

Among the sources are some in which different things are the same: outputs that are inputs, constants, or one
another. Nets of these have places with the same meaning and other numbers.
"""

import re
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
from tapegrad.interop.disguise import disguise
from tapegrad.interop.disguised import save_disguised
from tapegrad.interop.huggingface import files
from tapegrad.learners import conjunction, on_grid, parity
from tapegrad.learners.model import CircuitLearner
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.rasp.library import READY
from tapegrad.sklearn import EmulatedClassifier, RCNNClassifier
from tapegrad.source import Source
from tapegrad.targets.extended import FixedPoint, extend, linear
from tapegrad.targets.extended import save as save_extended
from tests.check.forging import Saved
from tests.targets.extended.algorithms import copy_bits

BB2, OTHER = "1RB1LB_1LA1RZ", "1RB1LB_1LA0RZ"
COUNTER = """\
.model counter
.inputs up
.outputs odd full
.latch n0 odd 1
.latch n1 high 2
.names up odd n0
10 1
01 1
.names up odd high n1
0-1 1
-01 1
110 1
.names odd high up full
111 1
.end
"""
SHIFTER = COUNTER.replace("0-1 1\n-01 1\n110 1\n", "-1- 1\n").replace("odd 1", "odd 0")
"""Circuits with two latches, one of which is left open: they count, or shift."""


def two_tapes(write: str) -> TuringMachine:
    """Writes on one tape while the head of the other stays: needs one tape for some targets, no stay for
    others."""
    rules = {
        ("a", ("0", "0")): Rule((write, "1"), (1, 0), "b"),
        ("b", ("0", "1")): Rule(("0", "0"), (0, -1), "a"),
    }
    return TuringMachine(rules, "a", blank="0", alphabet=("0", "1"), accept=frozenset({"c"}))


COUNTING, ECHO = "subleq 8 9\n7 6 3  6 6 -1  5 1 2", "subleq 8 8\n-1 6 3  6 -1 0  0 0"
"""Programs: one counts down, one copies its input. Instructions have three words each."""
PROCESSOR, OTHER_PROCESSOR = (
    f".equ __ram, {ram}\nli a0, 6\nmul a0, a0, a0\nli a7, 93\necall" for ram in (32, 48)
)

SORT = """rasp sort
vocabulary a b
length 3
before = select(tokens, tokens, <) or select(tokens, tokens, ==) and select(indices, indices, <)
output = aggregate(select(width(before), indices, ==), tokens)
"""
MEANS = """rasp means
vocabulary ( )
length 3
causal
balance = mean(select(indices, indices, <=), (tokens == "(") - (tokens == ")"), 0)
negative = balance < 0
output = map(negative, balance == 0, {(false, false): 1, (false, true): 2, (true, false): 3, (true, true): 4})
"""
COUNT = """rasp count
vocabulary a b
length 3
output = width(select(tokens, tokens, ==)) + indices
"""


def _wires(*outputs: str) -> CircuitLearner:
    """A learner of one cell and two bits whose answer, end and next memory are inputs, negated or not, or
    constants."""
    make = CircuitBuilder(simplify=False)
    wires = {name: make.input(name) for name in ("memory", "x0", "x1", "random", "guess")}
    for name, what in zip(("answer", "finished", "next memory"), outputs, strict=True):
        wire = make.constant(int(what)) if what in "01" else wires[what.removeprefix("not ")]
        make.output(name, make.not_(wire) if what.startswith("not ") else wire)
    return CircuitLearner(make.circuit("wires"), 2)


COMPILED: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "relu": ("adder2", "multiplier2", "relu", {}),
    "relu of a machine": (BB2, OTHER, "relu", {"steps": 2, "cells": 4}),
    "relu, compact": ("adder2", "multiplier2", "relu", {"form": "compact"}),
    "relu, compact, of a machine": (BB2, OTHER, "relu", {"form": "compact", "steps": 2, "cells": 4}),
    "relu, without skips": ("parity4", "majority5", "relu", {"form": "compact", "skips": False}),
    "relu, deeper": ("parity4", "majority5", "relu", {"depth": 30, "width": 40, "correction": "none"}),
    "transformer": (BB2, OTHER, "transformer", {"steps": 16}),
    "relu of a clock": (COUNTER, SHIFTER, "relu", {"cycles": 2}),
    "emulator of a clock": (COUNTER, SHIFTER, "emulator", {}),
    "transformer of a clock": (COUNTER, SHIFTER, "transformer", {"steps": 12}),
    "tape of a clock": (COUNTER, SHIFTER, "tape", {"cells": 600}),
    "transformer, softmax": (
        BB2, OTHER, "transformer", {"steps": 16, "attention": "softmax", "correction": "thirds"},
    ),
    "transformer of two tapes": (two_tapes("1"), two_tapes("0"), "transformer", {"steps": 30}),
    "decoder": (BB2, OTHER, "decoder", {"tokens": 100}),
    "decoder, two rounds": ("increment", "palindrome", "decoder", {"tokens": 50_000}),
    "decoder of two tapes": (two_tapes("1"), two_tapes("0"), "decoder", {"tokens": 300}),
    "decoder of a program": (COUNTING, ECHO, "decoder", {"tokens": 400}),
    "decoder of a processor": (PROCESSOR, OTHER_PROCESSOR, "decoder", {"tokens": 8_000}),
    "decoder of a RASP program": (SORT, COUNT, "decoder", {}),
    "decoder of means": (MEANS, COUNT, "decoder", {}),
    "simplex": (BB2, OTHER, "simplex", {"inputs": [[]]}),
    "simplex, line search": ("increment", "palindrome", "simplex", {"longest": 2, "line_search": True}),
    "tape": (BB2, OTHER, "tape", {"cells": 16}),
    "tape, with passes": ("increment", BB2, "tape", {"cells": 16}),
    "tape of two tapes": (two_tapes("1"), two_tapes("0"), "tape", {"cells": 16}),
    "tape of a circuit": ("parity4", "majority5", "tape", {"cells": 32}),
    "tape of a learner": (parity(1), conjunction(1, 2), "tape", {"cells": 512}),
    "emulator": (parity(2), conjunction(2, 3), "emulator", {}),
    "emulator of a machine": (BB2, OTHER, "emulator", {"steps": 8, "cells": 5}),
    "exact memory": (parity(1), conjunction(1, 2), "emulator", {"memory": "exact"}),
    "noise-tolerant memory": (
        parity(1), conjunction(1, 2), "emulator", {"memory": "noise-tolerant", "samples": 2},
    ),
    "emulator of a program": (COUNTING, ECHO, "emulator", {"steps": 8, "input": 1, "output": 2}),
    "emulator of a processor": (
        PROCESSOR, OTHER_PROCESSOR, "emulator", {"steps": 8, "input": 1, "output": 2},
    ),
    "transformer of a program": (COUNTING, ECHO, "transformer", {"steps": 30, "input": 1, "output": 2}),
    "transformer of a processor": (
        PROCESSOR, OTHER_PROCESSOR, "transformer", {"steps": 30, "input": 1, "output": 2},
    ),
    "tape of a program": (COUNTING, "subleq-echo", "tape", {"cells": 400}),
    "tape of a program with input": ("subleq-echo", COUNTING, "tape", {"cells": 800}),
    "simplex of a program": ("subleq-echo", COUNTING, "simplex", {"inputs": [("",)]}),
    "relu of a program": (COUNTING, ECHO, "relu", {"instructions": 2, "input": 1, "output": 1}),
    "rcnn": (BB2, OTHER, "rcnn", {"margin": 4}),
    "rcnn, ternary": (BB2, OTHER, "rcnn", {"margin": 4, "encoding": "ternary"}),
    "rcnn of a circuit": ("parity4", "majority5", "rcnn", {"margin": 8}),
    "rcnn of a drawing": ("adder8", "multiplier4", "rcnn", {}),
    "decoder of a circuit": ("adder2", "multiplier2", "decoder", {}),
    "decoder of a clock": (COUNTER, SHIFTER, "decoder", {}),
    "transformer of a circuit": ("adder2", "multiplier2", "transformer", {}),
    "emulator of a circuit": ("adder2", "multiplier2", "emulator", {}),
    "simplex of a circuit": ("adder2", "multiplier2", "simplex", {}),
    "relu of a RASP program": (SORT, COUNT, "relu", {"count": 2}),
}  # fmt: skip
"""Two sources of one target, and its options."""


WITH_WIRES: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "emulator of a guess": (_wires("guess", "0", "not memory"), _wires("x0", "1", "x1"), "emulator", {}),
    "emulator for a few samples": (
        _wires("guess", "0", "not memory"), _wires("x0", "1", "x1"), "emulator", {"steps": 3},
    ),
    "emulator of an input": (_wires("x0", "1", "not memory"), _wires("guess", "0", "x0"), "emulator", {}),
    "emulator of a constant": (_wires("1", "1", "not memory"), _wires("0", "1", "x0"), "emulator", {}),
    "exact memory of a guess": (
        _wires("guess", "0", "not memory"), _wires("x0", "1", "x1"), "emulator", {"memory": "exact"},
    ),
    "exact memory of a constant": (
        _wires("1", "1", "not memory"), _wires("0", "1", "x0"), "emulator", {"memory": "exact"},
    ),
    "noise-tolerant memory of a constant": (
        _wires("1", "1", "not memory"), _wires("0", "1", "x0"), "emulator",
        {"memory": "noise-tolerant", "samples": 2},
    ),
    "emulator, single precision": (parity(2), conjunction(2, 3), "emulator", {"precision": "float32", "steps": 20}),
    "emulator, with noise": (parity(1), conjunction(1, 2), "emulator", {"noise": 1e-12, "steps": 64}),
    "transformer of a clock, softmax": (COUNTER, SHIFTER, "transformer", {"steps": 12, "attention": "softmax"}),
}  # fmt: skip
"""Sources whose parts are wires, and other options."""
COMPILED |= WITH_WIRES


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


def _bound(write: Callable[..., None], *arguments: Any) -> Callable[[Path], None]:
    return lambda folder: write(*arguments, folder)


DISGUISES: dict[str, tuple[str, dict[str, Any]]] = {
    "disguised": ("rasp-histogram", {"basis": "quads", "decoys": 1}),
    "disguised by a rotation": ("rasp-histogram", {"basis": "rotation"}),
    "disguised means": ("rasp-fraction", {"basis": "hadamard"}),
}
CASES: dict[str, Case] = {
    **{
        name: Case("compiled", tuple(_bound(_compiled, one, target, options) for one in pair))
        for name, (*pair, target, options) in COMPILED.items()
    },
    "extended": Case("extended", (_bound(_trained, -1.0), _bound(_trained, 1.0))),
    **{
        name: Case(
            "disguised", (_bound(_disguised, program, options), _bound(_disguised, "rasp-sort", {"basis": "quads"}))
        )
        for name, (program, options) in DISGUISES.items()
    },
    **{
        f"stock {family}": Case(
            "stock", (_bound(_stock, "increment", family), _bound(_stock, "palindrome", family))
        )
        for family in ("gpt2", "llama", "gpt-neox")
    },
    "classifier": Case(
        "classifier", tuple(_bound(_classifier, EmulatedClassifier(parity), label) for label in (0, 1))
    ),
    "classifier on a grid": Case(
        "classifier", tuple(_bound(_classifier, RCNNClassifier(on_grid.parity()), label) for label in (0, 1))
    ),
}
"""By name."""


def target_of(name: str) -> str:
    """What the adversary's `--target` calls it: the first word, without what comes after a comma."""
    return re.split(r"[ ,]", name)[0]
