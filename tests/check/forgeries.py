"""Saved nets of every target, each forged in every way, and what became of the forgeries.

python -m tests.check.forgeries                  # of each kind of forgery two, at random
python -m tests.check.forgeries --all            # all of them, and every field changed by itself
python -m tests.check.forgeries --all relu tape  # of these nets alone
python -m tests.check.forgeries --one-in 7       # of all of them every seventh, of the large nets too

With several workers, each takes its share of the forgeries of every case.
"""

import argparse
import multiprocessing
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapegrad._compile import Compiled, compile
from tapegrad._saved import load, save
from tapegrad._sources import read
from tapegrad.learners import conjunction, parity
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.source import Source
from tapegrad_check import check
from tapegrad_check.targets.emulator import PROVED
from tests.check.forging import Forgery, Saved, forgeries, mutants, outcome

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

CASES: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
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

LARGE = (
    *("emulator of a processor", "transformer of a processor", "decoder of a processor"),
    *("tape of a program", "tape of a program with input", "simplex of a program"),
)
"""Of these not everything is forged: they have thousands of names and rules, and a check of theirs may take
seconds."""


def steps_of(name: str) -> int:
    """For how long a forgery is run that is believed; a step of a large net takes its time."""
    return 100 if name in LARGE else 2_000


class Nets(NamedTuple):
    """A genuine net, another one of the same target, and the first as it is loaded."""

    genuine: Saved
    other: Saved
    loaded: Compiled


def made(name: str, folder: Path) -> Nets:
    """The nets of a case. Being genuine, they pass the check."""
    *pair, target, options = CASES[name]
    sources: list[Source] = [read(one) if isinstance(one, str) else one for one in pair]
    for place, source in zip(("genuine", "other"), sources, strict=True):
        save(compile(source, target, **options), folder / place)
        assert check(folder / place).verdict.startswith(PROVED)
    return Nets(Saved.of(folder / "genuine"), Saved.of(folder / "other"), load(folder / "genuine"))


def two_of_each_kind(genuine: Saved, other: Saved) -> list[Forgery]:
    """Of every kind of forgery two, at random."""
    kinds: defaultdict[str, list[Forgery]] = defaultdict(list)
    for forgery in forgeries(genuine, other):
        kinds[forgery.kind].append(forgery)
    assert len(kinds) >= 20
    random = np.random.default_rng(0)
    return [kind[i] for kind in kinds.values() for i in random.permutation(len(kind))[:2]]


def all_of_all_kinds(genuine: Saved, other: Saved) -> Iterable[Forgery]:
    """Every kind at a dozen places of each array, and every field changed by itself."""
    for seed in range(3):
        yield from forgeries(genuine, other, seed, places=4)
    yield from mutants(genuine)


def all_withstood(
    forged: Iterable[Forgery], folder: Path, genuine: Compiled, most_steps: int = 2_000
) -> Counter[str]:
    """How many forgeries came to which end; AssertionError at the first that is believed and does harm."""
    return Counter(outcome(forgery, folder, genuine, most_steps) for forgery in forged)


def _part(job: tuple[str, bool, int, int]) -> tuple[str, Counter[str], list[str]]:
    """Of the forgeries of a case every so many, from one of the first on: how many came to which end, and
    those that were believed and did harm."""
    name, whole, first, every = job
    ends: Counter[str] = Counter()
    harmful = []
    with tempfile.TemporaryDirectory() as place:
        nets = made(name, Path(place))
        forged = (all_of_all_kinds if whole else two_of_each_kind)(nets.genuine, nets.other)
        for forgery in islice(forged, first, None, every):
            try:
                ends[outcome(forgery, Path(place, "forged"), nets.loaded, steps_of(name))] += 1
            except AssertionError as error:
                harmful.append(str(error))
    return name, ends, harmful


def _row(name: str, ends: Counter[str], harmful: list[str]) -> str:
    refused, disowned = ends["refused"] + ends["unloadable"], ends["disowned"]
    total = ends.total() + len(harmful)
    harmless = total - refused - disowned - len(harmful)
    return f"| {name} | {total:,} | {refused:,} | {disowned:,} | {harmless:,} | {len(harmful):,} |"


def main() -> int:
    """Prints a table of cases and ends."""
    parser = argparse.ArgumentParser(description="Forges saved nets and counts what became of the forgeries.")
    parser.add_argument("case", nargs="*", help=f"one of: {'; '.join(CASES)} (default: all)")
    parser.add_argument("--all", action="store_true", help="all forgeries, and every field changed by itself")
    parser.add_argument("--one-in", type=int, metavar="N", help="of all of them every N-th, of any net")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    step, whole = options.one_in or 1, options.all or options.one_in is not None
    if step < 1:
        parser.error("--one-in takes a number from 1 on")
    if unknown := set(options.case) - CASES.keys():
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    print("| net | forgeries | refused | not said to compute its source | harmless | believed and harmful |")
    print("|---|---:|---:|---:|---:|---:|")
    names, parts = options.case or list(CASES), options.workers if whole else 1
    jobs = [
        (name, whole and (name not in LARGE or options.one_in is not None), part * step, parts * step)
        for name in names
        for part in range(parts)
    ]
    ends = {name: Counter[str]() for name in names}
    harms: dict[str, list[str]] = {name: [] for name in names}
    waiting = Counter(name for name, *_ in jobs)
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for name, found, harmful in pool.imap_unordered(_part, jobs):
            ends[name] += found
            harms[name] += harmful
            waiting[name] -= 1
            if not waiting[name]:
                print(_row(name, ends[name], harms[name]), flush=True)
    every_harm = [harm for name in names for harm in harms[name]]
    for harm in every_harm:
        print(harm, file=sys.stderr)
    return 1 if every_harm else 0


if __name__ == "__main__":
    raise SystemExit(main())
