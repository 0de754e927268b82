"""The practical network: ordinary SGD on a hard-tanh network, no spare cells, any number of steps.

Beyond the paper, along the ideas of its section 4.3: a weight that is to change starts out tiny and has a
large weight behind it. The activation is the hard tanh f(x) = max(-2, min(2, x)).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.learners import Learner
from tapegrad.targets.emulator.computation import CONSTANT, Computation
from tapegrad.targets.emulator.graph import Edge, Graph, GraphBuilder, Vertex
from tapegrad.targets.emulator.practical_constants import Constants

SCALE = 2
"""Lemma 1's weights are doubled: total inputs of at least 4, twice the point from which f is flat."""

COMPENSATION = (3 / 8, -5 / 8, -3 / 8, 5 / 8)
"""What each of the four controls of a cell gives to the output, times u; see `_gates`."""


@dataclass(frozen=True, eq=False)
class Parts:
    """A network as built: the graph, its first weights, and where the parts that have a meaning are."""

    graph: Graph
    weights: NDArray[np.float64]
    cells: NDArray[np.int64]
    """The edge that is cell c."""
    finished: Vertex
    """Says whether the learner has finished."""
    computation: tuple[int, int]
    """First and one past the last vertex of the computation component proper (inputs and gates)."""


def build(learner: Learner, constants: Constants) -> Parts:
    """The network of a learner. Vertices, in order: the constant and the inputs x, random bit, guess; for
    each cell its amplifier and its reader; flat copies of the inputs; gates; for each cell four controls
    and two gates; the output."""
    circuit, cells = learner.circuit, learner.cells
    inputs = learner.inputs + 2
    build = GraphBuilder(1 + inputs)
    compute = Computation(build, SCALE)
    edges, amplified, read = [], [], []
    for bit in learner.first:
        edges.append(build.edges)
        amplified.append(build.vertex([(CONSTANT, -constants.w0 if bit else constants.w0)]))
        read.append(build.vertex([(amplified[-1], constants.read)]))
    begin = build.vertices
    wires = compute.circuit(circuit, [*read, *(compute.copy(1 + i) for i in range(inputs))])
    answer, finished = (wires[wire] for wire in circuit.output_wires[:2].tolist())
    flips = compute.flips(circuit, wires, cells)
    end = build.vertices
    to_output: list[Edge] = [(answer, 0.5)]
    for cell in range(cells):
        to_output += _gates(compute, flips[cell], answer, read[cell], amplified[cell], constants)
    build.vertex(to_output)
    return Parts(
        build.graph(), np.array(build.weights, np.float64), np.array(edges, np.int64), finished, (begin, end)
    )


def _gates(
    compute: Computation, flip: Vertex, answer: Vertex, bit: Vertex, amplified: Vertex, constants: Constants
) -> list[Edge]:
    """Controls and gates of one cell; gives their edges to the output.

    A wrong answer of 1 lowers the output, and with it every weight on a path of positive sign, and raises
    those on a path of negative sign; a wrong answer of 0 does the opposite. A positive weight (bit 0) must
    fall and a negative one rise, so the four cases of (answer, bit) open the gates +, -, -, +.

    A gate is at 4 +- 1/2 (closed: flat, output 2) with both its controls at -2, and at +-1/2 (open: linear)
    with one of them at 2. Closed gates cancel, 2u - 2u. Opening + at weight +w0 changes its share from 2u to
    u/2, at -w0 to -u/2, and the mirror image for -; the control that does it, going from -2 to 2, adds the
    difference back: 3u/8, 5u/8 and their negatives.
    """
    controls = [
        compute.all_of([(flip, 1), (answer, said), (bit, holds)]) for said in (1, -1) for holds in (-1, 1)
    ]
    falls_at_1, rises_at_1, falls_at_0, rises_at_0 = controls
    plus = compute.build.vertex([(amplified, constants.gain), (falls_at_1, -1), (rises_at_0, -1)])
    minus = compute.build.vertex([(amplified, constants.gain), (rises_at_1, -1), (falls_at_0, -1)])
    u = constants.gate
    shares = zip(controls, COMPENSATION, strict=True)
    return [(plus, u), (minus, -u), *((control, share * u) for control, share in shares)]
