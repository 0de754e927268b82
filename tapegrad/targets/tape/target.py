"""The target `tape`: what it takes, how it is made ready, and what it costs."""

from collections.abc import Sequence
from typing import cast

from tapegrad.errors import Refused
from tapegrad.lowering.tables import binary_tracks, stay_free, triple_states
from tapegrad.machines.library.ready import busy_beaver
from tapegrad.machines.model import STAY, TuringMachine
from tapegrad.source import Rewriting
from tapegrad.targets.descent.layers import deepest, widest
from tapegrad.targets.tape.graph import has_two_cycle, sizes
from tapegrad.targets.tape.net import TapeNet, build
from tapegrad.targets.tape.room import cells_for
from tapegrad.targets.tape.size import layers, paper_width
from tapegrad.targets.target import Estimate, Example, Option, Target

DEFAULT_CELLS = 1024
MOST_CELLS = 1 << 22


def build_checked(machine: TuringMachine, *, cells: int) -> TapeNet:
    """The net, on tapes of a sensible length."""
    return build(machine, _sensible(cells))


def passes(machine: TuringMachine, *, cells: int) -> Sequence[Rewriting]:
    """Binary tracks, no stay moves, no two-cycles: each only where the machine needs it."""
    steps: list[Rewriting] = []
    for needed, rewrite in (
        (_has_many_symbols, binary_tracks),
        (_has_stay_moves, stay_free),
        (has_two_cycle, triple_states),
    ):
        if needed(machine):
            steps.append(rewrite(machine))
            machine = cast(TuringMachine, steps[-1].after)
    return steps


def estimate(machine: TuringMachine, *, cells: int) -> Estimate:
    """Sizes of the net of a machine that `passes` has made ready."""
    vertices, edges = sizes(machine)
    counted = layers(vertices, edges, machine.tapes, _sensible(cells), label_numbers=2)
    stored = 3 * machine.tapes * vertices + vertices + 3 * edges
    trained = paper_width(vertices, machine.tapes, cells) + 2
    return Estimate(
        width=widest(counted),
        depth=deepest(counted),
        parameters=stored,
        bytes=3 * machine.tapes * vertices + 8 * vertices + 16 * edges,
        steps=None,
        precision="float64",
        notes=(
            f"{vertices:,} vertices, {edges:,} edges, {trained:,} weights under training",
            "one gradient step for each step of the machine, and one more for the labels",
        ),
    )


def examples() -> Sequence[Example]:
    """The busy beavers with three and four states: 21 and 107 steps of the machine."""
    return [Example(busy_beaver(size), (), {"cells": 64}) for size in ("3x2", "4x2")]


def _has_many_symbols(machine: TuringMachine) -> bool:
    return len(machine.alphabet) > 2


def _has_stay_moves(machine: TuringMachine) -> bool:
    return any(STAY in rule.moves for rule in machine.rules.values())


def _sensible(cells: int) -> int:
    if not isinstance(cells, int) or not 2 <= cells <= MOST_CELLS:
        raise Refused(
            f"a tape of {cells!r} cells cannot be built", advice=f"Give a number from 2 to {MOST_CELLS:,}."
        )
    return cells


TARGET = Target(
    name="tape",
    summary="gradient descent, step by step; state on a simplex, tapes and heads as weights",
    paper="Welper, section 4.4 and Corollary 2.3",
    takes=TuringMachine,
    net=TapeNet,
    build=build_checked,
    estimate=estimate,
    examples=examples,
    options={
        "cells": Option(
            DEFAULT_CELLS, "length of each tape; cell 0 is in the middle. `run` and `show` choose it"
        )
    },
    passes=passes,
    fitted=cells_for,
)
