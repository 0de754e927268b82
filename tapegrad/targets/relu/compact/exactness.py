"""Why nothing rounds in a compact network.

Weights and biases are whole numbers. A unit that holds a wire has its bit, so its value is at most 1. A unit
within a gate reads bits, or other such units: its value is at most its bias and the sum, over the weights
that are positive, of weight times the largest value read. Any partial sum, in any order, is at most the sum
of the magnitudes of all terms. As long as that is no more than 2^24, every number that occurs on the way is
one that float32 has, and no result is rounded.
"""

import numpy as np
from jaxtyping import Int

from tapegrad._jit import njit
from tapegrad.errors import Refused
from tapegrad.networks.wiring import Wiring

STATEMENT = (
    "for every input, every unit that holds a wire of the circuit has the wire's bit or its negation, every "
    "output is -1 or +1 as the circuit's bit is 0 or 1, and no sum exceeds largest_sum, so nothing is rounded"
)
WHOLE = 1 << 24
"""Up to here float32 has every whole number."""


def largest_sum(wiring: Wiring, holds: Int[np.ndarray, " units"]) -> int:
    """What no sum of a unit exceeds; refused where float32 could round one."""
    weights, biases = (part.astype(np.int64) for part in (wiring.values, wiring.biases))
    found = int(_largest(wiring.inputs, wiring.starts, wiring.places, weights, biases, holds))
    if found > WHOLE:
        raise Refused(
            f"a sum in the network may reach {found:,}, and float32 has all whole numbers only up to 2^24",
            advice="Please report this circuit.",
        )
    return found


@njit()
def _largest(inputs, starts, places, weights, biases, holds):  # pragma: no cover - compiled
    most = np.ones(inputs + len(biases), np.int64)
    largest = np.int64(1)  # an output is at most 1
    for unit in range(len(holds)):
        above, total = biases[unit], abs(biases[unit])
        for read in range(starts[unit], starts[unit + 1]):
            term = weights[read] * most[places[read]]
            above += max(term, 0)
            total += abs(term)
        if holds[unit] < 0:
            most[inputs + unit] = min(max(above, 0), 1 << 40)
        largest = max(largest, total)
    return largest
