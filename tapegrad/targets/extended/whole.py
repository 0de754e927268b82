"""Corollary 2.2: the extended network whose simplex has a vertex for every whole configuration, for all data
of a format and a shape at once. Its loss never rises once the labels are read; its size is exponential in the
data."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.machines.model import TuringMachine
from tapegrad.targets.descent.loss import ExtendedNetwork, SquaredError, Thresholds
from tapegrad.targets.descent.net import Descent, DescentNet
from tapegrad.targets.extended.build import Algorithm
from tapegrad.targets.extended.formats import NumberFormat
from tapegrad.targets.extended.primary import OfVertices, PrimaryNetwork
from tapegrad.targets.simplex.build import (
    Vertices,
    choose,
    configuration,
    key,
    reachable,
    steps_left,
    weighted,
)
from tapegrad.targets.simplex.loss import ChosenLoss, SimplexLoss
from tapegrad.targets.simplex.net import SimplexNet

MOST_DATA_BITS = 14
"""Of x and y together; there are as many runs as data."""
MOST_STEPS = 10_000
"""Of the machine on any of the data."""


class WholeNet(SimplexNet):
    """Section 4.3 with a primary network and data. The first vertex stands for the machine's start on any of
    them; the data choose where the first edge leads (`ChosenLoss`), so that the machine's first step is a
    gradient step like every other, and there are as many as Proposition 2.1 says."""

    engines: ClassVar[tuple[str, ...]] = ("reference",)

    def done(self, carry: Descent) -> bool:
        """Criterion (4), from the loss itself."""
        return DescentNet.done(self, carry)


def build(
    algorithm: Algorithm,
    primary: PrimaryNetwork,
    shapes: tuple[tuple[int, int], tuple[int, int]],
    data_format: NumberFormat,
    weight_format: NumberFormat,
    final_loss: float,
) -> WholeNet:
    """The net for all data of these shapes whose labels are not all 0. Its steps are unit steps: a line
    search would end, at the last of them, on the ramp of the halt switch, wherever a blend of f_TM and
    f_theta has a smaller loss than f_theta."""
    machine, labels = algorithm.machine, int(np.prod(shapes[1])) * data_format.width
    codes, second = [], []
    for bits in _all_data(algorithm.bits, labels):
        after = machine.step(algorithm.on(bits))
        if after is None:
            raise Refused(f"the machine {machine.name!r} takes no step on some data")
        codes.append(bits)
        second.append(after)
    found = reachable(machine, [*second, algorithm.start], MOST_STEPS, strict=True)
    names = machine.states, machine.alphabet
    number = {key(configuration(found, row, *names)): row for row in range(len(found.state))}
    start, first_to = number[key(algorithm.start)], np.array([number[key(one)] for one in second])
    longest = first_to[np.argmax(steps_left(found.successor)[first_to])]  # sets the level of the start
    successor = np.where(np.arange(len(found.state)) == start, longest, found.successor).astype(np.int32)
    vertices = replace(found, successor=successor)
    levels = choose(int(steps_left(vertices.successor).max()), final_loss)
    weights = weighted(vertices.successor, levels)
    outside, first = float(levels.outside), weights["edge_from"] == start
    level = weights["vertex_weight"]
    edges = {name: weights[name][~first] for name in ("edge_from", "edge_to", "edge_weight")}
    loss = ChosenLoss(
        SimplexLoss(level, **edges, outside=outside),
        start=start,
        first_to=first_to,
        first_weight=(level[start] + level[first_to]) / 2,
        codes=2.0 * np.array(codes) - 1,
    )
    bounds = Thresholds(data_format.smallest**2, float(levels.low), float(levels.high))
    shown = OfVertices(primary, data_format, weight_format, _results(vertices, algorithm))
    error = SquaredError(ExtendedNetwork(loss, shown, bounds), *map(np.zeros, shapes))
    return WholeNet.of(loss.runs, vertices, levels, *names, False, error)


def require_small(machine: TuringMachine, bits: int) -> None:
    """Refuses machines with other symbols than the corollary's two, and too many data."""
    if set(machine.alphabet) != {"0", "1"} or machine.blank != "0":
        raise Refused(
            f"the machine {machine.name!r} has other symbols than 0, the blank, and 1",
            advice="Use target='tape'.",
        )
    if bits > MOST_DATA_BITS:
        raise Refused(
            f"the data have {bits} bits, so that whole configurations would be those of 2^{bits} runs; the "
            f"limit is {MOST_DATA_BITS} bits",
            advice="Use target='tape', whose size does not grow with the number of possible data.",
        )


def _all_data(bits: int, labels: int) -> Iterator[tuple[int, ...]]:
    """Every row of bits whose last ones, the labels, are not all 0 (assumption (5))."""
    for found in product((0, 1), repeat=bits):
        if any(found[-labels:]):
            yield found


def _results(vertices: Vertices, algorithm: Algorithm) -> NDArray[np.float64]:
    """For each vertex the bits of the result, as signs."""
    columns = []
    for tape, cell, sign in algorithm.result.tolist():
        place = cell - vertices.first_cell
        inside = 0 <= place < vertices.cells.shape[2]
        ones = vertices.cells[:, tape, place] if inside else np.zeros(len(vertices.state))
        columns.append(sign * (2.0 * ones - 1))
    return np.stack(columns, axis=1)
