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

from tapegrad.circuits.model import Gate

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
