"""The weights of the construction: each kind of gate as two ReLU layers, and the correction between layers.

Lemma B.1 gives a circuit layer the shape `relu(W2 relu(W1 h + b1) + b2)`. Its gates are (Proposition B.2)

    AND = relu(a + b - 1)      OR = 1 - relu(1 - a - b)      NOT = relu(1 - a)      ID = relu(a)

and the rest follow in the same shape: NAND = 1 - AND and NOR = 1 - OR only change the second layer; a
constant is a bias of the second layer and has no hidden unit. XOR takes two hidden units, since one is
monotone in some linear form of (a, b) and XOR in none: XOR = |a - b| = relu(a - b) + relu(b - a), and
XNOR = 1 - XOR.

Correction layers stand between two circuit layers and take values near a bit to that bit. Proposition 3.4:
`round(z) = 3 relu(z - 1/3) - 3 relu(z - 2/3)` is 0 below 1/3 and 1 above 2/3. In general
`s relu(z - low) - s relu(z - high)` with `s = 1 / (high - low)`, so a value less than `min(low, 1 - high)`
away from a bit is mended: that is the radius.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tapegrad.circuits.layered import LARGEST, LayeredCircuit, LayerState
from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.networks.wiring import Wiring
from tapegrad.source import Rewriting

DTYPES = ("float32", "float64")


class Row(NamedTuple):
    """A unit with at most two inputs: `relu(first * x + second * y + bias)`."""

    first: float
    second: float
    bias: float


class Gadget(NamedTuple):
    """A gate: hidden units that read the gate's operands, and the unit that reads those."""

    hidden: tuple[Row, ...]
    out: Row
    formula: str
    line: str
    """Where it comes from."""


_AND, _NEITHER = Row(1, 1, -1), Row(-1, -1, 1)
_DIFFERENCES = (Row(1, -1, 0), Row(-1, 1, 0))
_PASS, _INVERT = Row(1, 0, 0), Row(-1, 0, 1)
_PAPER = "Proposition B.2"
_DERIVED = "derived, in the shape of Lemma B.1"

GADGETS: dict[Gate, Gadget] = {
    Gate.ID: Gadget((_PASS,), _PASS, "relu(a)", "proof of Lemma B.1"),
    Gate.NOT: Gadget((_INVERT,), _PASS, "relu(1 - a)", "proof of Lemma B.1"),
    Gate.AND: Gadget((_AND,), _PASS, "relu(a + b - 1)", _PAPER),
    Gate.OR: Gadget((_NEITHER,), _INVERT, "1 - relu(1 - a - b)", _PAPER),
    Gate.NAND: Gadget((_AND,), _INVERT, "1 - relu(a + b - 1)", _DERIVED),
    Gate.NOR: Gadget((_NEITHER,), _PASS, "relu(1 - a - b)", _DERIVED),
    Gate.XOR: Gadget(_DIFFERENCES, Row(1, 1, 0), "relu(a - b) + relu(b - a)", _DERIVED),
    Gate.XNOR: Gadget(_DIFFERENCES, Row(-1, -1, 1), "1 - relu(a - b) - relu(b - a)", _DERIVED),
    Gate.FALSE: Gadget((), Row(0, 0, 0), "0", _DERIVED),
    Gate.TRUE: Gadget((), Row(0, 0, 1), "1", _DERIVED),
}

READ_OUT = Row(2, 0, -1)
"""The last layer, linear: `2 z - 1` takes bits to -1 and +1 (proof of Theorem 3.1)."""

# The same table as arrays with the kind of gate as index.
HIDDEN_COUNT = np.zeros(16, np.int64)
HIDDEN_ROWS = np.zeros((16, 2, 3))
OUT_ROWS = np.zeros((16, 3))
for _kind, _gadget in GADGETS.items():
    HIDDEN_COUNT[_kind] = len(_gadget.hidden)
    HIDDEN_ROWS[_kind, : len(_gadget.hidden)] = np.array(_gadget.hidden).reshape(-1, 3)
    OUT_ROWS[_kind] = _gadget.out


@dataclass(frozen=True)
class Correction:
    """`s relu(z - low) - s relu(z - high)`: two hidden units and one that takes their difference."""

    low: Fraction
    high: Fraction
    line: str

    def rows(self, dtype: str) -> tuple[tuple[Row, Row], Row]:
        """The hidden units and the unit that reads them, as numbers of this precision."""
        number = np.dtype(dtype).type
        slope = float(1 / (self.high - self.low))
        hidden = Row(1, 0, -float(number(self.low))), Row(1, 0, -float(number(self.high)))
        return hidden, Row(slope, -slope, 0)


CORRECTIONS: dict[str, Correction | None] = {
    "thirds": Correction(Fraction(1, 3), Fraction(2, 3), "Proposition 3.4"),
    "quarters": Correction(
        Fraction(1, 4), Fraction(3, 4), "Proposition 3.4 with quarters, which have no rounding error"
    ),
    "none": None,
}


def relu_layers(correction: str) -> int:
    """How many ReLU layers one circuit layer takes: two for the gates, two for the correction."""
    return 2 if CORRECTIONS[correction] is None else 4


# From a layered circuit to its network, with two inputs to a unit; and circuits of a given depth.


def layer_sizes(circuit: LayeredCircuit, correction: str) -> Int[np.ndarray, " layers"]:
    """Units in every layer of the network: for each circuit layer the hidden units of its gates, the
    gates, twice as many units that cut at both thresholds, the corrected gates; at the end the outputs."""
    hidden = np.concatenate([[0], np.cumsum(HIDDEN_COUNT[circuit.kinds])])
    gates = np.diff(circuit.bounds)
    columns = [np.diff(hidden[circuit.bounds]), gates]
    if CORRECTIONS[correction] is not None:
        columns += [2 * gates, gates]
    return np.append(np.stack(columns, axis=1).reshape(-1), len(circuit.outputs))


def count_entries(circuit: LayeredCircuit, correction: str) -> int:
    """Weights of the network that are not 0."""
    gates = np.count_nonzero(HIDDEN_ROWS[..., :2], axis=(1, 2)) + np.count_nonzero(OUT_ROWS[:, :2], axis=1)
    cuts = 0 if CORRECTIONS[correction] is None else 4
    return int((gates[circuit.kinds] + cuts).sum()) + len(circuit.outputs)


def lay_out(circuit: LayeredCircuit, correction: str, dtype: str) -> Wiring:
    """The network of a layered circuit (Lemma B.1 and Proposition 3.4, layer after layer)."""
    sizes = layer_sizes(circuit, correction)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    units = _Units(np.zeros((bounds[-1], 2), np.int32), np.zeros((bounds[-1], 3), dtype))
    per_layer = relu_layers(correction)
    # For each gate: where its circuit layer starts, its place there, the place of its first hidden unit.
    layer = np.repeat(np.arange(circuit.depth), np.diff(circuit.bounds))
    place = np.arange(circuit.size) - circuit.bounds[layer]
    many = HIDDEN_COUNT[circuit.kinds]
    before = np.cumsum(many) - many
    hidden = before - before[circuit.bounds[layer]]
    operands = np.stack([circuit.left, circuit.right], axis=1)

    at = bounds[per_layer * layer] + hidden
    for which in (0, 1):
        has = many > which
        units.set(at[has] + which, operands[has], HIDDEN_ROWS[circuit.kinds[has], which])
    at = bounds[per_layer * layer + 1] + place
    units.set(at, np.stack([hidden, hidden + 1], axis=1), OUT_ROWS[circuit.kinds])

    chosen = CORRECTIONS[correction]
    if chosen is not None:
        cuts, difference = chosen.rows(dtype)
        at = bounds[per_layer * layer + 2] + 2 * place
        for which, cut in enumerate(cuts):
            units.set(at + which, place[:, None], cut)
        at = bounds[per_layer * layer + 3] + place
        units.set(at, np.stack([2 * place, 2 * place + 1], axis=1), difference)
    outputs = np.arange(len(circuit.outputs))
    units.set(bounds[-2] + outputs, outputs[:, None], READ_OUT)
    return units.wired(len(circuit.inputs), bounds)


class _Units(NamedTuple):
    """Units with two inputs each, in the layer before, of which those with weight 0 do not count."""

    inputs: Int[np.ndarray, "units two"]
    rows: Float[np.ndarray, "units three"]

    def set(
        self,
        at: Int[np.ndarray, " units"],
        inputs: Int[np.ndarray, "units _"],
        rows: Row | Float[np.ndarray, "units three"],
    ) -> None:
        self.inputs[at], self.rows[at] = inputs, rows

    def wired(self, inputs: int, bounds: Int[np.ndarray, " ends"]) -> Wiring:
        """An input for each weight; where both are the same, there are two."""
        unit, side = np.nonzero(self.rows[:, :2])
        starts = np.searchsorted(unit, np.arange(len(self.rows) + 1))
        before = np.concatenate([[0], inputs + bounds[:-2]])
        begins = np.repeat(before, np.diff(bounds))
        places = begins[unit] + self.inputs[unit, side]
        return Wiring(inputs, bounds, starts, places, self.rows[unit, side], self.rows[:, 2])


def padded(circuit: LayeredCircuit, depth: int, correction: str) -> Rewriting:
    """The circuit with identity layers at its end, so that its net has `depth` ReLU layers (proof of
    Theorem 3.1). Each becomes an identity and a correction, as in the paper. The outputs are those of the
    very last layer."""
    each = relu_layers(correction)
    own = each * circuit.depth
    if depth < own or depth % each:
        raise Refused(
            f"the net cannot have {depth:,} ReLU layers: its circuit needs {own:,}, and layers are added "
            f"{each} at a time",
            advice=f"Choose {max(own, depth + -depth % each):,}.",
        )
    layers, outputs = depth // each - circuit.depth, len(circuit.outputs)
    if circuit.size + layers * max(1, outputs) > LARGEST:
        raise Refused(
            f"padded to {depth:,} ReLU layers, the circuit would have more than {LARGEST:,} gates",
            advice="Choose a smaller depth.",
        )
    last = circuit.layer(circuit.depth).wires
    after = LayeredCircuit(
        inputs=circuit.inputs,
        outputs=circuit.outputs,
        kinds=np.append(circuit.kinds, np.full(layers * outputs, Gate.ID, np.uint8)),
        left=np.append(circuit.left, np.tile(np.arange(outputs, dtype=np.int32), layers)),
        right=np.append(circuit.right, np.zeros(layers * outputs, np.int32)),
        wires=np.append(circuit.wires, np.tile(last, layers)),
        bounds=np.append(circuit.bounds, circuit.bounds[-1] + outputs * np.arange(1, layers + 1)),
        name=circuit.name,
    )

    def decode(state: LayerState) -> LayerState | None:
        if state.layer == after.depth:
            return LayerState(circuit.depth, state.bits)
        return state if state.layer < circuit.depth else None

    return Rewriting("identity layers", circuit, after, lambda state: state, decode)
