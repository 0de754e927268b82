"""How sharp softmax must be to be hard, and how long a context single precision can carry.

The network of `tapegrad.interop.decoder.weights` uses softmax in two ways.

*Pointing.* The best score beats the others by a gap g. Scaled by beta with `beta g >= 150 ln 2`, every other
weight is at most `2^-150`, half the smallest float: it is rounded to 0, the best weight is 1, and what is
copied is copied bit for bit. No error is left that could add up over layers or steps.

*Counting.* Head 0 of block 0 gives each of p tokens the weight 1/N, by a score of ln(N - p) for the first
token. Here rounding stays. With u = 2^-24, the weights are off by `(2 ln N + p + 9) u` relatively (logarithm,
exp, sum of p + 1 terms, quotient), and summing p moves adds `(p + 1) u`; so the count, at most p, is off by
at most `n (2 n + 2 ln n + 10) u` for a context of n tokens.

The count x is then used to point at token number |x|: score `2 x k - k^2`, whose gap is 1 for whole x, and
`1 - 2 e` for an x that is off by e. Products and sums in these scores, at most 3 n^2 in size, are off by
`8 n^2 u` at most.
"""

import math

from tapegrad.errors import Refused

UNIT_ROUNDOFF = 2.0**-24
UNDERFLOW = 150 * math.log(2)
"""exp(-UNDERFLOW) is half the smallest positive float."""
LEAST_GAP = 1 / 2
EXACT_INTEGERS = 1 << 24


def count_error(context: int) -> float:
    """How far the count of moves may be off."""
    return context * (2 * context + 2 * math.log(context) + 10) * UNIT_ROUNDOFF


def pointing_gap(context: int) -> float:
    """By how much, at least, the right token beats any other when a count points at it."""
    return 1 - 2 * count_error(context) - 2 * 8 * context**2 * UNIT_ROUNDOFF


def largest_context() -> int:
    """The longest context for which the gap is still LEAST_GAP."""
    context = 2
    while pointing_gap(context + 1) >= LEAST_GAP:
        context += 1
    return context


def scale_for(gap: float) -> float:
    """The power of two (which scales scores without rounding) that makes softmax hard."""
    return 2.0 ** math.ceil(math.log2(UNDERFLOW / gap))


def check_context(context: int, position_bits: int) -> None:
    """Refuses contexts that single precision cannot carry exactly."""
    if context < 2:
        raise Refused(f"a context of {context} tokens holds no run")
    if context > largest_context():
        raise Refused(
            f"in single precision a context of {context} tokens is too long to count moves exactly",
            advice=f"At most {largest_context()} tokens, input and steps together.",
        )
    largest_score = scale_for(1.0) * (context * (2 * position_bits + 1))
    assert largest_score < EXACT_INTEGERS, "follows from the bound above"
