"""A network that has no state, against a circuit: bits in, bits out, by their names."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapegrad_check.core.extract import Extraction, places
from tapegrad_check.core.functions import Functions
from tapegrad_check.core.places import Numbers
from tapegrad_check.core.steps import wires
from tapegrad_check.folder import require
from tapegrad_check.graph import Graph
from tapegrad_check.sources import Circuit


class Proved(NamedTuple):
    """What holds for every input."""

    off: float
    """How far an output is from its bit at most."""
    largest: float
    """What no sum of the network exceeds, whatever its order."""
    nodes: int
    questions: int


def prove(graph: Graph, circuit: Circuit, holds: Sequence[int] = ()) -> Proved:
    """The network computes the circuit, for every input; `CheckError` if it does not. For each row of its
    layers it may be said which wire it holds: twice its number, and one more for the negation, or -1."""
    require(not graph.state and len(graph.inputs) == len(graph.outputs) == 1, "the network has other ports")
    ((name, port),), (output,) = graph.inputs.items(), graph.outputs.values()
    require(port.columns == circuit.inputs, "the inputs have other names than in the circuit")
    require(graph.names_of(output) == circuit.outputs, "the outputs have other names than in the circuit")
    functions = Functions()
    bits = functions.variables(len(circuit.inputs))
    own = wires(functions, circuit, bits)
    functions.asks = True
    hints = {row: own[wire >> 1] ^ wire & 1 for row, wire in enumerate(holds) if 0 <= wire >> 1 < len(own)}
    numbers = Numbers(functions)
    given = places(map(numbers.bit, bits)).reshape(*(1 for _ in port.sizes[:-1]), len(bits))
    hinted = {node.name: hints for node in graph.nodes if node.operation == "layers"}
    made = Extraction(graph, numbers, {name: given}, hinted).values[output]
    require(np.prod(made.shape[:-1]) == 1, "the outputs are not one row for each input")
    found = [
        numbers.literal(place, f"the output {name!r}")
        for place, name in zip(made.reshape(-1), circuit.outputs, strict=True)
    ]
    wanted = [own[wire] for wire in circuit.output_wires.tolist()]
    functions.require_same([literal for literal, _ in found], wanted, "the output", circuit.outputs)
    return Proved(
        max((off for _, off in found), default=0.0),
        numbers.largest,
        len(functions.operands),
        functions.questions,
    )
