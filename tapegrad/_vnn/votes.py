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

from tapegrad._draws import Draws
from tapegrad._vnn.guard import CUTS, THRESHOLD
from tapegrad._vnn.question import Question
from tapegrad._vnn.rounds import Word, chained, one_round, turned
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.reductions import count_ones
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import UInt

SMALLEST, LARGEST = 1, 5_000
STEPS = 64
"""Pixels have values in parts of this."""
CLEAR, DARK = CUTS[0], CUTS[1]
"""A dark pixel costs nothing up to the first, and is dark up to the second."""


def question(size: int, satisfiable: bool, draws: Draws) -> Question:
    """`2 size + 1` pixels, of which a few more than half are bright."""
    return _asked(size, satisfiable, draws, serially=False)


def serial(size: int, satisfiable: bool, draws: Draws) -> Question:
    """The same, a pixel counted in each round."""
    return _asked(size, satisfiable, draws, serially=True)


def _asked(size: int, satisfiable: bool, draws: Draws, *, serially: bool) -> Question:
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

    rounds = counting_rounds(pixels, size) if serially else ()
    asked = (
        chained(rounds, f"majority of {pixels}, one by one")
        if rounds
        else trace(turned_over, UInt(pixels), name=f"majority of {pixels}").circuit
    )
    exact = radius([value for value, _ in order[:flips]])
    about = {"pixels": pixels, "flips": flips, "radius": str(exact), "asked": str(reach)}
    box = tuple((value - reach, value + reach) for value in values)
    if not satisfiable:
        why = f"the radius is {exact}, and at {reach} fewer than {flips} bright pixels can be dark"
        return Question(asked, None, why, about, box, rounds)
    witness = tuple(value - reach if place in chosen else value for place, value in enumerate(values))
    return Question(asked, witness, f"the radius is {exact}, less than {reach}", about, box, rounds)


def counting_rounds(pixels: int, most: int) -> tuple[Circuit, ...]:
    """Rows are the pixels, turned by one place a round, and the number of bright ones so far; in the end it
    is to be at most `most`."""
    bits = pixels.bit_length()

    def count(build: CircuitBuilder, image: Word, total: Word) -> list[Word]:
        carry, new = image[0], []
        for own in total:
            new.append(build.xor(own, carry))
            carry = build.and_(own, carry)
        return [turned(image), new]

    def end(build: CircuitBuilder, image: Word, total: Word) -> list[Word]:
        return [[words.less(build, total, words.constant(build, most + 1, bits))]]

    first = one_round("begin", (pixels,), lambda build, image: [image, words.constant(build, 0, bits)])
    each = one_round("count", (pixels, bits), count)
    return (first, *[each] * pixels, one_round("at most so many?", (pixels, bits), end))


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
