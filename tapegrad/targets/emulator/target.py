"""The target `emulator`: what it takes, how large its networks are, and examples."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.errors import Refused
from tapegrad.learners import Learner, conjunction, parity
from tapegrad.networks.saving import arrays_of
from tapegrad.targets.emulator.constants import PRECISIONS
from tapegrad.targets.emulator.graph import NEVER, Graph, circuit_size, flip_wires
from tapegrad.targets.emulator.joined import joined
from tapegrad.targets.emulator.loss import Activation, cube_with, hard_tanh, loss_of
from tapegrad.targets.emulator.net import EmulatorNet, PracticalNet
from tapegrad.targets.emulator.paper_nets import DEAD, ExactNet, NoisyNet
from tapegrad.targets.target import Estimate, Example, Option, Target

FORMS = {"practical": PracticalNet.memory, "paper": ExactNet.memory, NoisyNet.memory: NoisyNet.memory}
"""How the weights of each form remember bits."""


class Size(NamedTuple):
    """Computed vertices and edges of a network, counted from the learner's circuit without building it."""

    vertices: int
    edges: int


def practical_size(learner: Learner) -> Size:
    """Gates, copies of the inputs, eight vertices with 30 edges for each cell, and the output."""
    gates, edges = joined(learner.circuit, learner.cells).counts()
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
    changing = int(np.count_nonzero(flips != NEVER))
    components = 2 * bits * samples
    per_step = gates + 1 + 2 + 3 * changing + (2 * bits - 1) + 3 + 1 + 1
    per_step_edges = edges + 1 + 7 + 10 * changing + 3 * (2 * bits - 1) + 9 + 3 + 2 + 1
    return Size(
        11 * components + samples * per_step + once + bits + m + 1 + 4 + 1,
        22 * components + samples * per_step_edges - 1 + once_edges + bits + m + 1 + 9 + 1,
    )


OPTIONS: dict[str, Option] = {
    "form": Option(
        "practical",
        "practical; paper: its exact memory, in rationals; or noise-tolerant, the paper's other one",
        tuple(FORMS),
    ),
    "precision": Option("float64", "of the practical form", tuple(PRECISIONS)),
    "steps": Option(1_000_000, "steps for which a practical network would do even without rounding"),
    "exponent": Option("3", "paper: of the activation, a fraction such as 11/9"),
    "samples": Option(None, "noise-tolerant: how many samples it memorises"),
    "arithmetic": Option("double", "noise-tolerant: of its numbers", ("double", "decimal")),
    "noise": Option(0.0, "sum, over all steps, of the noise on each weight (not of the form paper)"),
    "relative_noise": Option(0.0, "practical: the same relative to the weight"),
}


def build(source: Learner, *, form: str, **options: Any) -> EmulatorNet:
    """The network of a learner."""
    memory = FORMS[form]
    _check_numbers(options)
    for name, memories in (("noise", ("exact",)), ("relative_noise", ("exact", "noise-tolerant"))):
        if options[name] and memory in memories:
            what = name.replace("_", " ")
            raise Refused(f"there is no {what} for {memory} memory", advice="Use form=practical.")
    return EmulatorNet.kinds[memory].compiled(source, **options)


def estimate(source: Learner, *, form: str, **options: Any) -> Estimate:
    """The size of the network, counted from the learner's circuit."""
    _check_numbers(options)
    memory = FORMS[form]
    cells, samples = source.cells, options["samples"] or 1
    depth = 2 * source.circuit.depth  # XOR takes two levels
    if memory == "practical":
        (vertices, edges), saved = practical_size(source), cells
        depth, width, precision = depth + 7, max(4 * cells, source.inputs + 3), options["precision"]
        saved_bytes, constants = 8 * saved, _constants(hard_tanh, precision, {"finished": 0})
    elif memory == "exact":
        (vertices, edges), saved = exact_size(source), cells + 2
        depth, width, precision = depth + 2 * cells + 10, 4 * (2 * cells + 1), "exact"
        saved_bytes, constants = 8 * saved, (0, 0)
    else:
        vertices, edges = noisy_size(source, samples)
        saved = (samples + 1) * (cells + 3) + edges + cells - 1
        depth = (depth + 7) * (samples + 1) + 2 * source.inputs + 12
        width, precision = 4 * samples * (source.inputs + 1), options["arithmetic"]
        saved_bytes = 4 * (saved - cells) + cells
        constants = _constants(cube_with(DEAD), "float64", {})
    weight_bytes = {"float32": 4, "exact": 5}.get(precision, 8)
    return Estimate(
        width=width,
        depth=depth,
        trainable=edges,
        fixed=0,
        parameters=(3 if precision == "exact" else 2) * edges + vertices + 1 + saved + constants[0],
        bytes=edges * (weight_bytes + 4) + 8 * (vertices + 1) + saved_bytes + constants[1],
        steps=None,
        precision=precision,
        notes=(f"{cells:,} bits of memory, {source.circuit.size:,} gates, {edges:,} weights",),
    )


def _constants(activation: Activation, precision: str, watched: Mapping[str, int]) -> tuple[int, int]:
    """Numbers, and bytes, of a loss beside its edges: counted in the smallest."""
    smallest = Graph(1, np.array([0, 1]), np.array([0], np.int32))
    arrays = arrays_of(loss_of(smallest, activation, precision, 1.0, watched))
    own = [array for name, array in arrays.items() if not name.endswith((".starts", ".columns"))]
    return sum(array.size for array in own), sum(array.nbytes for array in own)


def _check_numbers(options: dict[str, Any]) -> None:
    for name in ("steps", "samples"):
        value = options[name]
        if value is not None and (not isinstance(value, int) or value < 1):
            raise Refused(f"the number of {name} must be a positive integer, not {value!r}")
    for name in ("noise", "relative_noise"):
        noise = options[name]
        if not isinstance(noise, int | float) or not 0 <= noise < math.inf:
            raise Refused(f"the {name.replace('_', ' ')} must be a number of at least 0, not {noise!r}")


def examples() -> Sequence[Example]:
    """Small learners with samples, for demonstrations."""
    random = np.random.default_rng(7)
    x = random.integers(0, 2, (40, 8))
    few = random.integers(0, 2, (12, 2))
    return [
        Example(parity(8), (x, x[:, [1, 4, 5]].sum(axis=1) % 2, 1)),
        Example(conjunction(8, 20), (x, x[:, 2] * (1 - x[:, 6]), 2)),
        Example(parity(2), (few, few.sum(axis=1) % 2, 1), {"form": "paper"}),
        Example(parity(2), (few, few[:, 0], 1, False), {"form": "noise-tolerant", "samples": 6}),
    ]


TARGET = Target(
    name="emulator",
    summary="any learner, emulated by plain SGD on a fixed network",
    paper="Abbe, Sandon, section 4",
    takes=Learner,
    net=EmulatorNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options=OPTIONS,
)
