"""Why the paper's network computes its circuit on every input, in floating point and in any order of sums.

With the thresholds 1/4 and 3/4, or without corrections, every number is a multiple of 1/4 and no sum
exceeds 3: nothing is rounded. Thirds are rounded. Let u be the unit roundoff, and let values before a circuit
layer be within e of their bits. A gate adds up at most two hidden units, and each of these at most two
values; so its value is within 4 e + 7 u of its bit. The correction takes a 0 to exactly 0, for both units are
silent. For a 1 both are active, z itself cancels,

    3 (z - 1/3) - 3 (z - 2/3) = 1,

and what is left is rounding, of the thresholds, of both units, of three times each, and of the difference:
9 u at most, however far off z was within 1/3. So e is 9 u at any depth, a gate is within 43 u of its bit, and
an output 2 z - 1 within 19 u of its sign. The certificate says 64 u of both. In double precision it says 512
u, for a checker that itself computes in doubles cannot know better.
"""

from typing import Any

import numpy as np

STATEMENT = (
    "for every input, and for sums in any order, every gate is within after_gates of the bit of its wire, "
    "corrected or not, every output is within at_outputs of -1 or +1, and no sum exceeds largest_sum"
)
OFF = {"float32": 64, "float64": 512}
"""How far gates and outputs may be off, in units of roundoff."""
LARGEST = 3.0
"""The largest sum of bits: a bias of 1 and two of them, or 3 · 2/3 + 3 · 1/3."""
MORE = 2.0**-14
"""What the largest sum of values that are off has more at most."""


def claims(correction: str, dtype: np.dtype[Any]) -> dict[str, float]:
    """The bounds of the certificate."""
    rounds = correction == "thirds"
    off = OFF[dtype.name] * float(np.finfo(dtype).eps) / 2 if rounds else 0.0
    return {"largest_sum": LARGEST + MORE * rounds, "after_gates": off, "at_outputs": off}
