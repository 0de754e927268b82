"""The target `tape`: what it takes, how it is made ready, and what it costs."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tapegrad.errors import Refused
from tapegrad.lowering.tables import binary_tracks, stay_free, triple_states
from tapegrad.machines.library import busy_beaver
from tapegrad.machines.model import STAY, Configuration, TuringMachine
from tapegrad.machines.room import look_ahead
from tapegrad.source import Rewriting
from tapegrad.targets.descent.layers import grown, network_arrays, network_layers
from tapegrad.targets.descent.loss import LABELS, LONE_LABELS, Weights
from tapegrad.targets.tape.build import has_two_cycle, sizes
from tapegrad.targets.tape.loss import TapeLoss
from tapegrad.targets.tape.net import TapeNet, build, sensible
from tapegrad.targets.target import Estimate, Example, Option, Target

# Tape: how much a run needs, learnt from the machine itself before the net is built

MOST_UNASKED = 1 << 16
"""More cells are not chosen without a word: each step of the reference engine costs as much as there are."""
FEW_STEPS = 1_000
"""That are advised for a run that would take too many cells."""


def cells_for(machine: TuringMachine, start: Configuration, steps: int) -> dict[str, Any]:
    """As many cells as the machine touches in its first `steps` steps from here, cell 0 in the middle."""
    ahead = look_ahead(machine, start, steps)
    if ahead is None:
        return {}
    if ahead.window > MOST_UNASKED:
        ended = "" if ahead.halts else ", in which it does not halt"
        raise Refused(
            f"the machine {machine.name!r} needs a tape of {ahead.window:,} cells for {ahead.steps:,} steps"
            f"{ended}",
            where=f"it goes from cell {ahead.cells.start:,} to cell {ahead.cells.stop - 1:,}",
            advice=f"Ask for fewer steps, as in --steps {FEW_STEPS}, or for these cells, "
            f"--set cells={ahead.window}.",
        )
    return {"cells": ahead.window}


# Size: counted from the network, beside the paper's bound


def network_size(machine: TuringMachine, cells: int) -> list[int]:
    """Units in each layer. Corollary 2.3 counts the weights, 2^d |Q| + 2 d tau + O(nm). The widest layer is
    larger: every vertex has the ReLU of its corner, every edge the three of `directed`, and from each vertex
    lead 2^d edges."""
    return grown(lambda *own: network_layers(*_of_sizes(machine.tapes, *own)), *sizes(machine), cells)


def _of_sizes(tapes: int, vertices: int, edges: int, cells: int) -> tuple[TapeLoss, Weights[tuple[int, ...]]]:
    """A loss, and the shapes of its weights."""
    of_vertices, ends = np.zeros((vertices, tapes)), np.zeros(edges, np.int64)
    maps = dict.fromkeys(("down", "written", "right", "left", "still"), of_vertices)
    weights = {"vertex_weight": of_vertices[:, 0], "edge_weight": np.zeros(edges)}
    loss = TapeLoss(**maps, **weights, edge_from=ends, edge_to=ends, b=1.0, c=1.0, cells=cells, rows=cells)
    tape = cells, tapes
    return loss, Weights((vertices,), tape, tape, LONE_LABELS.shape)


def paper_width(vertices: int, tapes: int, cells: int) -> int:
    """Corollary 2.3 without its O(nm); `vertices` is 2^d |Q|, tripling included."""
    return vertices + 2 * tapes * cells


DEFAULT_CELLS = 1024


def build_checked(machine: TuringMachine, *, cells: int) -> TapeNet:
    """The net, on tapes of a sensible length."""
    return build(machine, sensible(cells))


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
    counted = network_size(machine, sensible(cells))
    numbers, size = grown(
        lambda *own: network_arrays(*_of_sizes(machine.tapes, *own)), vertices, edges, cells
    )
    trained = paper_width(vertices, machine.tapes, cells) + LABELS
    return Estimate(
        width=max(counted),
        depth=len(counted),
        trainable=trained,
        fixed=(5 * machine.tapes + 1) * vertices + edges + 2 + LABELS,
        parameters=numbers,
        bytes=size + 8 * trained,
        steps=None,
        precision="float64",
        notes=(
            f"{vertices:,} vertices, {edges:,} edges",
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
