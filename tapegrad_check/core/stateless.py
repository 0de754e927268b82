"""A network that has no state, against a circuit: bits in, bits out, by their names."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.extract import Extraction, places
from tapegrad_check.core.functions import Functions
from tapegrad_check.core.layers import NOTHING
from tapegrad_check.core.places import Numbers
from tapegrad_check.folder import require
from tapegrad_check.graph import Graph
from tapegrad_check.sources import Circuit


class Proved(NamedTuple):
    """What holds for every input."""

    off: float
    """How far an output is from its bit at most."""
    bits: float
    """How far any number that is a bit may be off."""
    largest: float
    """What no sum of the network exceeds, whatever its order."""
    exact: bool
    """Whether no sum is ever rounded."""
    functions: int
    """Functions of bits that were met."""
    questions: int
    """How often the solver was asked."""


def prove(graph: Graph, circuit: Circuit | None, holds: NDArray[np.int64] | None = None) -> Proved:
    """The network computes the circuit, for every input; `CheckError` if it does not. It may be said which
    wires of the circuit the rows of its layers hold: for each row twice the number, and one more for the
    negation, or -1. Then that is proved, too. Without a circuit: all outputs are bits."""
    require(not graph.state and len(graph.inputs) == len(graph.outputs) == 1, "the network has other ports")
    ((name, port),), (output,) = graph.inputs.items(), graph.outputs.values()
    outputs = graph.names_of(output)
    functions = Functions()
    bits = functions.variables(len(port.columns))
    own: list[int] = []
    if circuit is not None:
        require(port.columns == circuit.inputs, "the inputs have other names than in the circuit")
        require(outputs == circuit.outputs, "the outputs have other names than in the circuit")
        own = functions.wires(circuit, bits)
    functions.sweeps = holds is None or circuit is None
    said = {} if holds is None or circuit is None else _said(graph, holds, own)
    numbers = Numbers(functions)
    given = places(map(numbers.bit, bits)).reshape(*(1 for _ in port.sizes[:-1]), len(bits))
    extraction = Extraction(graph, numbers, {name: given}, said)
    made = extraction.values[output]
    require(np.prod(made.shape[:-1]) == 1, "the outputs are not one row for each input")
    for layers, literal in said.items():
        unequal = extraction.found[layers].unequal
        literals = [numbers.literal(place, f"the unit '{row}'")[0] for row, place in unequal]
        wanted = literal[[row for row, _ in unequal]].tolist()
        functions.require_equal(literals, wanted, "what is held by unit", [str(row) for row, _ in unequal])
    named = outputs or tuple(map(str, range(made.size)))
    found = [
        numbers.literal(place, f"the output {name!r}")
        for place, name in zip(made.reshape(-1), named, strict=True)
    ]
    if circuit is not None:
        wanted = [own[wire] for wire in circuit.output_wires.tolist()]
        functions.require_equal([literal for literal, _ in found], wanted, "the output", circuit.outputs)
    return Proved(
        max((off for _, off in found), default=0.0),
        max(numbers.sizes, default=0.0),
        numbers.largest,
        numbers.exact,
        len(functions.operands),
        functions.questions,
    )


def _said(graph: Graph, holds: NDArray[np.int64], own: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    """For the only node of layers, the functions that its rows are said to be."""
    (layers,) = (node.name for node in graph.nodes if node.operation == "layers")
    require((holds >> 1 < len(own)).all(), "a unit holds a wire that the circuit does not have")
    there, literals = holds >= 0, np.full(len(holds), NOTHING)
    literals[there] = np.array(own, np.int64)[holds[there] >> 1] ^ holds[there] & 1
    return {layers: literals}
