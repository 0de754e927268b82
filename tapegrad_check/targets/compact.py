"""The independent checker of compact `relu` nets: from the graph to "computes this circuit on every input".

What the network computes is proved from its graph alone (`core.stateless`). Here is what the loader reads
beside it, and what the certificate claims: which wire of the circuit each unit holds, or its negation, or
that it is a step on the way to one; whether units read earlier layers than the one before them; and that
nothing is rounded.
"""

from typing import Any

import numpy as np

from tapegrad_check.arithmetic import SINGLE
from tapegrad_check.core.stateless import Proved, prove
from tapegrad_check.fields import array, number, whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.graph import Graph
from tapegrad_check.sources import Circuit, Model
from tapegrad_check.targets.layers import wired

ENTRIES = {"form", "skips"}
CLAIMS = {"statement", "units", "held", "largest_sum", "at_outputs"}
STATEMENT = (
    "for every input, every unit that holds a wire of the circuit has the wire's bit or its negation, every "
    "output is -1 or +1 as the circuit's bit is 0 or 1, and no sum exceeds largest_sum, so nothing is rounded"
)
ARRAYS = {"holds"}
OUTPUT = 3
"""What an output's own sum comes to, 2 z - 1 of a bit, which the certificate does not count."""
WHOLE = 1 << SINGLE.digits
"""Up to here float32 has every whole number."""


def check(
    config: dict[str, Any], own: Arrays, certificate: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    require(config.keys() == ENTRIES and config["form"] == "practical", "the net is of no known form")
    require(own.keys() == ARRAYS, "arrays are others")
    net, skips = wired(graph), config["skips"]
    require(type(skips) is bool, "it is not said whether there are skip connections")
    chained = skips or net.reads_before()
    require(chained, "a unit reads past the layer before it, without skip connections")
    require((np.diff(net.bounds[:-1]) > 0).all(), "a layer has no units")
    holds = array(own, "holds", np.int32, (net.units,))
    require((holds >= -1).all(), "a unit holds no wire and no negation of one")
    require(source is None or isinstance(source, Circuit), "a relu net is that of a circuit")
    circuit = source if isinstance(source, Circuit) else None
    proved = prove(graph, circuit, np.append(holds, np.full(len(net.outputs), -1)).astype(np.int64))
    held = int((holds >= 0).sum())
    _claims(certificate, len(holds), held, proved)
    kept = "any earlier layer" if skips else "the layer before them"
    statements = [
        f"all {net.units:,} units read places that exist in {kept}",
        f"no sum exceeds {proved.largest:,.10g}, in whatever order it is taken, and {net.dtype} has all of "
        "these: nothing is rounded, for any input",
    ]
    if circuit is None:
        return Checked([*statements, "every output is -1 or +1, for any input"])
    return Checked(
        [
            *statements,
            f"for any input, each of {held:,} units has the bit of the wire that it holds, or its negation, "
            "and each output is -1 or +1 as the circuit's is 0 or 1, by name",
            f"{proved.functions:,} functions of bits were compared for that, with {proved.questions:,} "
            "questions to a solver, whose proofs were followed step by step",
        ]
    )


def _claims(claims: dict[str, Any], units: int, held: int, proved: Proved) -> None:
    require(claims.keys() == CLAIMS and claims["statement"] == STATEMENT, "the certificate has other claims")
    require(claims["units"] == units, "the certificate counts other units")
    require(claims["held"] == held, "the certificate counts other units that hold a wire")
    claimed, largest = whole(claims["largest_sum"], "the largest sum", 0, WHOLE), proved.largest
    require(largest <= max(claimed, OUTPUT), f"a sum can be {largest:,.10g}, more than the certificate says")
    require(number(claims["at_outputs"], "the error of outputs") == 0, "outputs are exact")
    require(proved.exact, "a sum of the network may be rounded")
