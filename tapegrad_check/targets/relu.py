"""The independent checker of `relu` nets: from the graph to "computes this circuit on every input".

What the network computes is proved from its graph alone (`core.stateless`), in both forms. Here is what the
loader reads beside it, and what the certificate claims: which wire of the circuit each unit holds, or its
negation, or that it is a step on the way to one; which layers units read; and how far values may be off,
whatever the order of sums.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.stateless import prove
from tapegrad_check.fields import array, number, whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.graph import Graph
from tapegrad_check.sources import Circuit, Model
from tapegrad_check.sources.circuits import ARITY
from tapegrad_check.targets.layers import Wired, wired

NAMES = {
    0: "FALSE",
    8: "AND",
    6: "XOR",
    14: "OR",
    1: "NOR",
    9: "XNOR",
    3: "NOT",
    7: "NAND",
    12: "ID",
    15: "TRUE",
}
"""Bit 2a + b of a kind is the gate's value for operands a, b."""
IDENTITY = 12
CORRECTIONS = {"thirds": (1 / 3, 2 / 3), "quarters": (1 / 4, 3 / 4), "none": None}
"""Thresholds of the corrections that the loader knows, before they are rounded to the precision."""
EXACT = (
    "for every input, every unit that holds a wire of the circuit has the wire's bit or its negation, every "
    "output is -1 or +1 as the circuit's bit is 0 or 1, and no sum exceeds largest_sum, so nothing is rounded"
)
BOUNDED = (
    "for every input, and for sums in any order, every gate is within after_gates of the bit of its wire, "
    "corrected or not, every output is within at_outputs of -1 or +1, and no sum exceeds largest_sum"
)
COMPACT_BOUNDS, PAPER_BOUNDS = (
    {"largest_sum": 3.0, "at_outputs": 0.0},
    {"largest_sum": 0.0, "after_gates": 0.0, "at_outputs": 0.0},
)
"""The claims that are bounds, and what holds anyway: the largest sum of the compact form does not count that
of an output, 2 z - 1 of a bit."""
NO_WIRE = -1


def check(
    config: dict[str, Any], own: Arrays, certificate: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    net = wired(graph)
    require(source is None or isinstance(source, Circuit), "a relu net is that of a circuit")
    circuit = source if isinstance(source, Circuit) else None
    if "form" in config:
        holds, before = _compact(config, own, net)
        known = {"statement": EXACT, "units": net.units, "held": int((holds != NO_WIRE).sum())}
        bounds = COMPACT_BOUNDS
    else:
        gates, before = gates_of(config, own, net), "the layer before them"
        if circuit is not None:
            _same_circuit(gates, circuit)
        counts = zip(*np.unique(gates.kinds, return_counts=True), strict=True)
        holds, known = gates.holds(), {"statement": BOUNDED, "gates": {NAMES[k]: int(n) for k, n in counts}}
        bounds = PAPER_BOUNDS
    for claim, value in known.items():
        same = claim in certificate and certificate[claim] == value
        require(same, f"the certificate has other {'claims' if claim == 'statement' else claim}")
    require(certificate.keys() == {*known, *bounds}, "the certificate has other claims")
    proved = prove(graph, circuit, np.append(holds, np.full(len(net.outputs), NO_WIRE)))
    require(proved.exact or bounds is PAPER_BOUNDS, "a sum of the network may be rounded")
    off = 2 * proved.off  # an output is a half of a row's sum, and a half
    found = {"largest_sum": proved.largest, "after_gates": proved.bits, "at_outputs": off}
    for claim, least in bounds.items():
        claimed = max(number(certificate[claim], f"the claim {claim!r}"), least)
        require(found[claim] <= claimed, f"{claim} can be {found[claim]:,.10g}, more than is claimed")
    require(off < 1, "an output can be so far off that its sign is another")
    statements = [
        f"all {net.units:,} units read places that exist in {before}",
        f"no sum exceeds {proved.largest:,.10g}, in whatever order it is taken"
        + (f", and {net.dtype} has all of these: nothing is rounded, for any input" if proved.exact else ""),
    ]
    ends = f"within {off:.3g} of -1 or +1" if off else "-1 or +1"
    if circuit is None:
        return Checked([*statements, f"every output is {ends}, for any input"])
    near = f"is within {proved.bits:.3g} of" if proved.bits else "has"
    return Checked(
        [
            *statements,
            f"for any input, each of {int((holds != NO_WIRE).sum()):,} units {near} the bit of the wire that "
            f"it holds, or its negation, and each output is {ends} as the circuit's is 0 or 1, by name",
            f"{proved.functions:,} functions of bits were compared for that, with {proved.questions:,} "
            "questions to a solver, whose proofs were followed step by step",
        ]
    )


def _compact(config: dict[str, Any], own: Arrays, net: Wired) -> tuple[NDArray[np.int64], str]:
    """What each unit holds, and where units read."""
    fits = config.keys() == {"form", "skips"} and config["form"] == "practical"
    require(fits, "the net is of no known form")
    require(own.keys() == {"holds"}, "arrays are others")
    skips = config["skips"]
    require(type(skips) is bool, "it is not said whether there are skip connections")
    require(skips or net.reads_before(), "a unit reads past the layer before it, without skip connections")
    require((np.diff(net.bounds[:-1]) > 0).all(), "a layer has no units")
    holds = array(own, "holds", np.int32, (net.units,)).astype(np.int64)
    require((holds >= NO_WIRE).all(), "a unit holds no wire and no negation of one")
    return holds, "any earlier layer" if skips else "the layer before them"


class Gates(NamedTuple):
    """The gates of the paper's form. A circuit layer is one of hidden units, then one with a unit for each
    gate; two more correct these."""

    net: Wired
    part: NDArray[np.uint8]
    """For each unit which of these layers it is in."""
    bounds: NDArray[np.int64]
    """Where the gates of each circuit layer begin, and where those of the last end."""
    kinds: NDArray[np.uint8]
    wires: NDArray[np.int32]
    operands: NDArray[np.int64]
    """What each gate reads, by its place in the circuit layer before: what its first hidden unit reads; 0 for
    what it does not."""

    def holds(self) -> NDArray[np.int64]:
        """What each unit holds: the unit of a gate, and the one that corrects it, the gate's wire."""
        found = np.full(self.net.units, NO_WIRE, np.int64)
        for part in (1, 3):
            at = self.part == part
            found[at] = 2 * self.wires.astype(np.int64) if at.any() else 0
        return found

    def circuit(self) -> Arrays:
        """The arrays of the layered circuit."""
        left, right = np.ascontiguousarray(self.operands.astype(np.int32).T)
        return {
            "kinds": self.kinds,
            "left": left,
            "right": right,
            "wires": self.wires,
            "bounds": self.bounds,
        }


def gates_of(config: dict[str, Any], own: Arrays, net: Wired) -> Gates:
    """The gates that a net says it has, and how its units lie in layers of these. What they compute is not
    said."""
    require(config.keys() == {"correction", "padded_width"}, "the net has other entries than a relu net")
    require(own.keys() == {"gates.kinds", "gates.wires"}, "arrays are others")
    name = config["correction"]
    require(isinstance(name, str) and name in CORRECTIONS, "the correction is unknown")
    thresholds, sizes = CORRECTIONS[name], np.diff(net.bounds)[:-1]
    parts = 4 if thresholds else 2
    fits = len(sizes) > 0 and len(sizes) % parts == 0
    require(fits, "the number of layers does not fit the correction")
    require(net.reads_before(), "a unit reads outside the layer before")
    widths = sizes[1::parts]
    part = np.repeat(np.arange(len(sizes)) % parts, sizes).astype(np.uint8)
    if thresholds:
        fits = (sizes[2::4] == 2 * widths).all() and (sizes[3::4] == widths).all()
        require(fits, "a correction does not fit its layer")
        cuts = net.biases[: net.units][part == 2].reshape(-1, 2)
        fits = (cuts == -np.array(thresholds, cuts.dtype)).all()
        require(fits, f"the correction is not that of {name!r}")
    if config["padded_width"] is not None:
        whole(config["padded_width"], "the width", int(sizes.max()), 1 << 31)
    count = int(widths.sum())
    kinds = array(own, "gates.kinds", np.uint8, (count,))
    require(np.isin(kinds, list(NAMES)).all(), "there is a gate of no known kind")
    wires = array(own, "gates.wires", np.int32, (count,))
    bounds = np.append(0, np.cumsum(widths))
    return Gates(net, part, bounds, kinds, wires, _operands(net, np.flatnonzero(part == 1)))


def _operands(net: Wired, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    counts, begins = np.diff(net.starts), net.begins
    found, reads = np.zeros((len(rows), 2), np.int64), np.flatnonzero(counts[rows])
    hidden = net.places[net.starts[rows[reads]]] - len(net.inputs)
    for side in (0, 1):
        there = counts[hidden] > side
        unit = hidden[there]
        layer = np.searchsorted(net.bounds, unit, side="right") - 1
        found[reads[there], side] = net.places[net.starts[unit] + side] - begins[layer]
    return found


def _same_circuit(gates: Gates, circuit: Circuit) -> None:
    """Every gate is the one that the circuit has for its wire, of operands that hold the circuit's, or hands
    on a wire."""
    inputs, wires = len(gates.net.inputs), gates.wires.astype(np.int64)
    gate = wires - inputs
    known = (wires >= 0) & (gate < len(circuit.kinds))
    require(known.all(), "a gate holds a wire that the circuit does not have")
    # Before each circuit layer stand the inputs, or the gates of the layer before.
    held, begins = np.append(np.arange(inputs), wires), np.append(0, inputs + gates.bounds[:-2])
    before = np.repeat(begins, np.diff(gates.bounds))
    own, same = gate >= 0, gates.kinds == IDENTITY
    own[own] = gates.kinds[own] == circuit.kinds[gate[own]]
    for side, theirs in enumerate((circuit.left, circuit.right)):
        used = np.flatnonzero(ARITY[gates.kinds] > side)
        reads, asked = held[before[used] + gates.operands[used, side]], np.full(len(used), -1)
        asked[own[used]] = theirs[gate[used][own[used]]]
        same[used] &= reads == wires[used]
        own[used] &= reads == asked
    require((own | same).all(), "a gate is not the one that the circuit has for its wire")
