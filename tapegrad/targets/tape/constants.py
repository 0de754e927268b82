"""The constants b, gamma and c of the loss (21), and the bounds that tell running from halted."""

from dataclasses import dataclass

import numpy as np

from tapegrad.errors import Refused

GAMMA = 1
"""With gamma = 1 the rate 1 / gamma and every gradient of a tape or head weight are whole numbers."""

_LARGEST_LOSS = 2**50
"""Whole numbers and their thirds stay exact in double precision below this."""

_TRIES = 1 << 17


@dataclass(frozen=True)
class Constants:
    """b, c, B_low (which is also B_stop) and B_high for machines with `tapes` tapes; gamma is 1."""

    tapes: int
    b: int
    c: int
    low: int
    high: int
    exact: bool
    """Whether the chain rule through the square root is free of rounding at every loss that occurs."""

    @property
    def halted_at_most(self) -> int:
        """The second line of (23): no halted state has a larger loss."""
        return self.c + 8 * self.b**2 * self.tapes + 3 * self.tapes - self.b**3


def choose(tapes: int, final_loss: float) -> Constants:
    """Constants for a machine with this many tapes, whose primary network ends with at most this loss.

    b is the smallest power of two that satisfies (18) and leaves a gap between halted and running:
    b^3 > 8 b^2 d + 3 d. The gap is cut into thirds by B_low and B_high. c is large enough for the loss to
    stay positive (c > b^3) and for B_stop = B_low to exceed the final loss of the primary network. From
    there on up we take the first c for which the chain rule of sqrt(2 l) rounds nowhere, if there is one
    nearby; otherwise tapes and heads are off by some 1e-16, which every later write corrects.
    """
    b = 2
    while not (_satisfies_18(b, tapes) and b**3 > 8 * b**2 * tapes + 3 * tapes + 3):
        b *= 2
    third = (b**3 - 8 * b**2 * tapes - 3 * tapes) // 3
    least = max(b**3 + 1, int(np.ceil(final_loss)) + 2 * third + 1)
    if least + 16 * b**3 > _LARGEST_LOSS:
        raise Refused(
            f"the primary network may end with a loss of {final_loss:.3g}, too large for double precision",
            advice="Use a number format with fewer bits before the point.",
        )
    offset = _first_exact(least, tapes, b)
    c = least + (offset or 0)
    return Constants(tapes, b, c, low=c - 2 * third, high=c - third, exact=offset is not None)


def _satisfies_18(b: int, tapes: int) -> bool:
    """(18), with the stricter of the two forms that the text and the proof give to its second line."""
    return 2 * b**3 >= b**3 + tapes * b and b**3 - 2 * tapes * b >= 4 * tapes * b**2 and b > 1


def _first_exact(least: int, tapes: int, b: int) -> int | None:
    """Automatic differentiation computes d sqrt(u) as (1/2) / sqrt(u), times the incoming a = sqrt(u). The
    product is exactly 1/2 for most u but not for all. While the machine runs, only (d + 1)^2 values of the
    loss occur: d for the moving heads, 2 for each changed symbol, 8 b^2 for each symbol read anew."""
    counts = np.arange(tapes + 1)
    values = (tapes + 2 * counts[:, None] + 8 * b**2 * counts[None, :]).ravel()
    for first in range(0, _TRIES, 1 << 12):
        offsets = np.arange(first, first + (1 << 12))
        root = np.sqrt(2.0 * (least + offsets[:, None] + values[None, :]))
        good = np.all(root * (0.5 / root) == 0.5, axis=1)
        if good.any():
            return int(offsets[np.argmax(good)])
    return None
