"""The target `simplex`: what it takes, which inputs it is built for, and what it costs."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from tapegrad.errors import Refused
from tapegrad.machines.library import busy_beaver
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.targets.descent.layers import grown, network_arrays, network_layers
from tapegrad.targets.descent.loss import LABELS, LONE_LABELS, Weights
from tapegrad.targets.simplex.build import (
    MOST_VERTICES,
    Vertices,
    all_configurations,
    reachable,
    starts_up_to,
)
from tapegrad.targets.simplex.loss import SimplexLoss
from tapegrad.targets.simplex.net import SimplexNet, build
from tapegrad.targets.target import Estimate, Example, Option, Target

STEPS = 10_000
"""That are enough for most machines."""


def build_for_inputs(
    machine: TuringMachine, *, inputs: Any, longest: int, steps: int, line_search: bool
) -> SimplexNet:
    """The net whose vertices are the configurations that the machine passes on these inputs."""
    return build(_vertices(machine, inputs, longest, steps), machine.states, machine.alphabet, line_search)


def estimate(machine: TuringMachine, *, inputs: Any, longest: int, steps: int, line_search: bool) -> Estimate:
    """Sizes, from the configurations that a run of the machine meets."""
    vertices = _vertices(machine, inputs, longest, steps)
    count, tapes, cells = vertices.cells.shape
    edges = int((vertices.successor != range(count)).sum())
    counted = network_size(count, edges)
    numbers, size = grown(lambda *sizes: network_arrays(*_of_sizes(*sizes)), count, edges)
    most = all_configurations(machine, cells)
    return Estimate(
        width=max(counted),
        depth=len(counted),
        trainable=count + LABELS,
        fixed=count + edges + 1 + LABELS,
        parameters=count * (1 + tapes + tapes * cells) + numbers,
        bytes=count * (4 + 4 * tapes + 2 * tapes * cells + 8) + 8 * LABELS + size,
        steps=None,
        precision="float64",
        notes=(
            f"{count:,} vertices; the bound of Corollary 2.2 for {cells} cells has {len(str(most))} digits",
            "the loss falls at every step after the first; a line search may replace the unit step",
        ),
    )


def network_size(vertices: int, edges: int) -> list[int]:
    """Units in each layer: each vertex has the ReLU of its corner, each edge the three of `edge`."""
    return grown(lambda *sizes: network_layers(*_of_sizes(*sizes)), vertices, edges)


def _of_sizes(vertices: int, edges: int) -> tuple[SimplexLoss, Weights[tuple[int, ...]]]:
    """A loss, and the shapes of its weights."""
    ends = np.zeros(edges, np.int64)
    loss = SimplexLoss(np.zeros(vertices), ends, ends, np.zeros(edges), 1.0)
    return loss, Weights((vertices,), (0, 0), (0, 0), LONE_LABELS.shape)


def _vertices(machine: TuringMachine, inputs: Any, longest: int, steps: int) -> Vertices:
    for name, value in (("longest", longest), ("steps", steps)):
        if not isinstance(value, int) or value < 0:
            raise Refused(f"the option {name!r} is a number of at least 0, not {value!r}")
    starts = starts_up_to(machine, longest) if inputs is None else [start for (start,) in inputs]
    return reachable(machine, starts, steps, strict=inputs is not None)


def first_states(
    machine: TuringMachine, *, inputs: None, longest: int, steps: int, line_search: bool
) -> list[Configuration]:
    """Every word up to `longest`, on which the machine halts within `steps`."""
    return [
        start
        for start in starts_up_to(machine, longest)
        if sum(1 for _ in islice(machine.run(start), steps + 2)) <= steps + 1
    ]


def steps_for(machine: TuringMachine, first: Configuration, steps: int) -> dict[str, int]:
    """As many steps as the machine takes from here, where these are more than there are without this option,
    and no more than vertices."""
    taken = sum(1 for _ in islice(machine.run(first), min(steps, MOST_VERTICES) + 1)) - 1
    return {"steps": taken} if taken > STEPS else {}


def examples() -> Sequence[Example]:
    """The busy beaver with four states, and the one with three by line search."""
    for_blank = {"inputs": [[]]}
    return [
        Example(busy_beaver("4x2"), (), for_blank),
        Example(busy_beaver("3x2"), (), for_blank | {"line_search": True}),
    ]


TARGET = Target(
    name="simplex",
    summary="gradient descent whose loss falls from the second step on; a vertex for every configuration",
    paper="Welper, section 4.3 and Corollary 2.2",
    takes=TuringMachine,
    net=SimplexNet,
    build=build_for_inputs,
    estimate=estimate,
    examples=examples,
    built_for_inputs=True,
    first_states=first_states,
    fitted=steps_for,
    options={
        "inputs": Option(None, "inputs to build for, as w1|w2,... ; default: every word up to `longest`"),
        "longest": Option(3, "longest word on the first tape, where no inputs are given"),
        "steps": Option(STEPS, "most steps of the machine on any input"),
        "line_search": Option(False, "choose the step length by a line search", (False, True)),
    },
)
