"""Writes small nets of every target, by whichever version of tapegrad runs it: python make_nets.py FOLDER"""

import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np

import tapegrad as tg
from tapegrad.circuits import library as circuits
from tapegrad.machines import library as machines
from tapegrad.machines.model import Rule, TuringMachine

folder = Path(sys.argv[1])
BB2 = "1RB1LB_1LA1RZ"


def copying(count: int) -> TuringMachine:
    """Copies bits, two steps each, one of which moves no head: the machine needs passes."""
    rules = {}
    for data, result in product("01", repeat=2):
        rules["start", (data, result)] = Rule((data, result), (1, 1), "copy 0")
        for bit in range(count):
            rules[f"copy {bit}", (data, result)] = Rule((data, data), (0, 0), f"go {bit}")
            rules[f"go {bit}", (data, result)] = Rule((data, result), (1, 1), f"copy {bit + 1}")
    return TuringMachine(rules, "start", blank="0", alphabet=("0", "1"), name="copy bits")


NETS = {
    "relu": (circuits.ready("adder2"), "relu", {}),
    "relu-of-machine": (tg.read(BB2), "relu", {"steps": 2, "cells": 4}),
    "relu-paper": (circuits.ready("adder2"), "relu", {"form": "paper"}),
    "transformer": (tg.read("1RZ1RZ"), "transformer", {"steps": 1}),
    "transformer-paper": (tg.read("1RZ1RZ"), "transformer", {"form": "paper", "steps": 1}),
    "transformer-of-clock": (tg.read("counter8"), "transformer", {"steps": 4}),
    "decoder": (machines.ready("increment"), "decoder", {"tokens": 500}),
    "simplex": (machines.ready("increment"), "simplex", {"inputs": [["11"], ["0"]]}),
    "tape": (machines.ready("increment"), "tape", {"cells": 16}),
    "tape-of-circuit": (circuits.ready("parity4"), "tape", {"cells": 64}),
    "emulator": (tg.read(BB2), "emulator", {"steps": 8, "cells": 5}),
    "emulator-exact": (tg.read("learn-parity1"), "emulator", {"form": "paper"}),
    "emulator-tolerant": (tg.read("learn-parity1"), "emulator", {"form": "noise-tolerant", "samples": 2}),
    "rcnn": (tg.read(BB2), "rcnn", {"margin": 4}),
}

for name, (source, target, options) in NETS.items():
    tg.save(tg.compile(source, target, **options), folder / name)
place = "tapegrad.targets.extended" if find_spec("tapegrad.targets") else "tapegrad.nets.extended"
extended = import_module(place)
x, y = np.array([[1.0], [0.5]]), np.array([[-1.0], [0.5]])
form = extended.FixedPoint(3, 1)
net = extended.extend(extended.linear(1), copying(6), x.shape, y.shape, data_format=form, cells=32).on(x, y)
extended.save(net, net.train(), folder / "extended")
