"""The size of the networks, counted from the learner's circuit without building them."""

from typing import NamedTuple

from tapegrad.learners import Learner
from tapegrad.targets.emulator.computation import NEVER, circuit_size, flip_wires


class Size(NamedTuple):
    """Number of computed vertices and of edges."""

    vertices: int
    edges: int


def practical_size(learner: Learner) -> Size:
    """Gates, copies of the inputs, eight vertices with 30 edges for each cell, and the output."""
    gates, edges = circuit_size(learner.circuit, learner.cells)
    inputs = learner.inputs + 2
    return Size(gates + 8 * learner.cells + inputs + 1, edges + 30 * learner.cells + inputs + 1)


def exact_size(learner: Learner) -> Size:
    """2m + 1 components of 12 vertices, m readers, a unary counter of m (m - 1) gates, v_0 and the output."""
    gates, edges = circuit_size(learner.circuit, learner.cells)
    m, inputs = learner.cells, learner.inputs + 2
    components = 2 * m + 1
    return Size(
        gates + 12 * components + m + inputs + m * (m - 1) + m + 3,
        edges + 22 * components + m + inputs + 3 * m * (m - 1) + m + 2,
    )


def noisy_size(learner: Learner, samples: int) -> Size:
    """2 n T components of 11 vertices, T copies of the circuit, and what leads from one to the next."""
    circuit, m, bits = learner.circuit, learner.cells, learner.inputs + 1
    flips = flip_wires(circuit, m)
    gates, edges = circuit_size(circuit, m)
    once, once_edges = circuit_size(circuit, 0)
    changing = m - flips.count(NEVER)
    components = 2 * bits * samples
    per_step = gates + 1 + 2 + 3 * changing + (2 * bits - 1) + 3 + 1 + 1
    per_step_edges = edges + 1 + 7 + 10 * changing + 3 * (2 * bits - 1) + 9 + 3 + 2 + 1
    return Size(
        11 * components + samples * per_step + once + bits + m + 1 + 4 + 1,
        22 * components + samples * per_step_edges - 1 + once_edges + bits + m + 1 + 9 + 1,
    )
