"""Robustness with a known radius: how far may every pixel move before the majority turns over?

n pixels have values c_i, clearly dark (up to 1/4) or clearly bright (from 3/4), and more than half of them
are bright. The circuit says that at most half are. Every pixel may be off by e: the region is c_i - e to c_i
+ e.

*The radius.* With m bright pixels the majority turns over once k = m - (n - 1) / 2 of them are dark. Let
c_(1) <= c_(2) <= ... be the bright ones in order. The guard calls a pixel dark below 3/8 and charges q for it
above 1/4 (`tapegrad._vnn.guard`), so moving the k darkest of the bright ones down by e is the best that one
can do, and the greatest value of the network in the region is

    1 - q(c_(1) - e) - ... - q(c_(k) - e)    if c_(k) - e <= 3/8, and at most 0 before that.

It passes 1/2 at one e, the radius, which `radius` solves for exactly. The questions keep away from it: they
take e = c_(k) - 3/8, where the network is nowhere above 0, or e = c_(k) - 1/4, where it reaches 1.
"""

from fractions import Fraction

from tapegrad._vnn.guard import CUTS, THRESHOLD
from tapegrad._vnn.question import Question
from tapegrad.circuits.reductions import count_ones
from tapegrad.circuits.sampler import Draws
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import UInt

SMALLEST, LARGEST = 1, 5_000
STEPS = 64
"""Pixels have values in parts of this."""
CLEAR, DARK = CUTS[0], CUTS[1]
"""A dark pixel costs nothing up to the first, and is dark up to the second."""


def question(size: int, satisfiable: bool, draws: Draws) -> Question:
    """`2 size + 1` pixels, of which a few more than half are bright."""
    pixels = 2 * size + 1
    bright = size + 1 + draws.one_below(max(1, size // 2))
    values = [Fraction(48 + draws.one_below(17), STEPS) for _ in range(bright)]
    values += [Fraction(draws.one_below(17), STEPS) for _ in range(pixels - bright)]
    values = [values[place] for place in draws.order(pixels)]
    flips = bright - size
    order = sorted((value, place) for place, value in enumerate(values) if value > THRESHOLD)
    chosen = [place for _, place in order[:flips]]
    reach = order[flips - 1][0] - (CLEAR if satisfiable else DARK)

    def turned_over(image):
        return count_ones(image) <= size

    traced = trace(turned_over, UInt(pixels), name=f"majority of {pixels}")
    exact = radius([value for value, _ in order[:flips]])
    about = {"pixels": pixels, "flips": flips, "radius": str(exact), "asked": str(reach)}
    box = tuple((value - reach, value + reach) for value in values)
    if not satisfiable:
        why = f"the radius is {exact}, and at {reach} fewer than {flips} bright pixels can be dark"
        return Question(traced.circuit, None, why, about, box)
    witness = tuple(value - reach if place in chosen else value for place, value in enumerate(values))
    return Question(traced.circuit, witness, f"the radius is {exact}, less than {reach}", about, box)


def radius(darkest: list[Fraction]) -> Fraction:
    """The least e at which these bright pixels, moved down by e, cost no more than 1/2 together.

    The cost of each is `(c - e - 1/4) / (3/8 - 1/4)`, cut off at 0 and 1: it falls from 1 at c - 3/8 to 0 at
    c - 1/4. Between two of these ends the sum is linear."""

    def cost(e: Fraction) -> Fraction:
        each = ((c - e - CLEAR) / (DARK - CLEAR) for c in darkest)
        return sum((min(max(own, Fraction(0)), Fraction(1)) for own in each), Fraction(0))

    ends = sorted({c - cut for c in darkest for cut in (CLEAR, DARK)})
    before = max(end for end in ends if cost(end) > THRESHOLD)
    after = min(end for end in ends if cost(end) <= THRESHOLD)
    return before + (after - before) * (cost(before) - THRESHOLD) / (cost(before) - cost(after))
