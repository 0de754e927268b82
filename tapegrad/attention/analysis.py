"""Scores, temperature and horizon of attention programs: why their heads are exact in single precision.

**Scores.** A head compares n bits, each as the product of two signs, times a scale S. Where the latest step
wins, a digit of the step's number, of d bits, is added, and S = 2^d; otherwise d = 0. So

    a place that fits        scores  S n + digit            at least  S n
    the null key             scores  S (n - 1)
    where k bits differ      scores  S (n - 2k) + digit     at most   S (n - 1) - 1

All are integers of at most S (n + 1) in magnitude, partial sums too. Up to 2^24 they are exact in float32,
and two scores that differ, differ by 1 at least. The number of a step is searched for digit by digit, the
highest first: of the places that fit and have the highest digits found so far, a head finds the next digit
of the latest. One digit is enough as long as 2^d (n + 1) <= 2^24.

**Softmax.** Scores are multiplied by a power of two, the temperature beta, which does not round them. The
best weigh exp(0) = 1 each, and of N keys the others weigh at most N exp(-beta) together. If several are best,
they agree in the digits found so far and in the digit that is copied. So what is copied is a quotient: k
times a bit, plus what is astray, over k, plus what is astray; sums of k ones do not round, for k < 2^24. To
add a number to a larger one, both not negative, moves the sum by no more than the smaller one, however it is
rounded. So what is astray, with its rounding, comes to 2 N exp(-beta) at most in either sum, and the quotient
is off by 4 N exp(-beta) + 2u at most. The rounding that follows (`2 relu(z - 1/4) - 2 relu(z - 3/4)`) gives
the bit itself where that is at most 1/4. An exponential may be off by some units in its last place, which
changes none of this by more than a millionth part; beta is chosen for an error of 1/8.

**Gates.** On bits, sums with weights 1 and -1 are integers and units with thresholds at quarters give bits,
all without rounding. So a step hands on bits, whatever the steps before it were: nothing accumulates, and the
horizon is where scores, or the numbers of steps, need more than 24 bits.
"""

import math
from dataclasses import dataclass

from tapegrad.attention.program import AttentionProgram
from tapegrad.errors import Refused
from tapegrad.networks.form import Correction

EXACT = 1 << 24
"""Integers up to this have no rounding in float32."""
LONGEST = 1 << 24
"""Most steps that a net can be built for."""
ROUNDING = Correction(0.25, 0.75)
"""For every float z within 1/4 of a bit it gives that bit, without rounding."""


@dataclass(frozen=True)
class Scales:
    """What the weights of heads depend on, apart from the program."""

    steps: int
    """The horizon: how many steps the net can take."""
    digits: tuple[int, ...]
    """Bits of each digit of a step's number, the highest first."""

    @property
    def time(self) -> int:
        """Bits of the number of a step, which goes from 0 to `steps` - 1."""
        return sum(self.digits)

    def digit(self, number: int) -> range:
        """Which bits of the step's number a digit consists of."""
        low = sum(self.digits[number + 1 :])
        return range(low, low + self.digits[number])


def scales_for(program: AttentionProgram, steps: int) -> Scales:
    """As few digits as the scores allow."""
    if not 1 <= steps <= LONGEST:
        raise Refused(
            f"a net for {steps:,} steps cannot be exact in single precision",
            advice=f"Ask for 1 to {LONGEST:,} steps.",
        )
    time = max(1, (steps - 1).bit_length())
    compared = max((len(head.compared) for head in program.heads), default=0)
    if digits := fewest_digits(time, compared, EXACT):
        return Scales(steps, digits)
    raise Refused(
        f"heads that compare {compared + time} bits at {steps:,} steps have scores that are too large for "
        "single precision",
        advice="Ask for fewer steps, or a smaller memory.",
    )


def fewest_digits(time: int, compared: int, largest: int) -> tuple[int, ...]:
    """A number of `time` bits in as few digits as heads can find which compare so many bits besides, with
    scores of at most `largest`; none if they cannot."""
    for count in range(1, time + 1):
        digits = [(time + number) // count for number in range(count)][::-1]
        if all(
            largest_score(compared + sum(digits[:number]), digit) <= largest
            for number, digit in enumerate(digits)
        ):
            return tuple(digits)
    return ()


def largest_score(compared: int, digit: int) -> int:
    """The largest magnitude of a score, for so many bits compared and bits of the digit."""
    return (compared + 1) << digit


def temperature_for(keys: int) -> float:
    """The least power of two for which softmax over so many keys is off by 1/8 at most."""
    beta = 1.0
    while softmax_error(keys, beta) > 1 / 8:
        beta *= 2
    return beta


def softmax_error(keys: int, temperature: float) -> float:
    """How far a bit that is copied by softmax can be from the bit."""
    return 4 * keys * math.exp(-temperature) + 2.0**-23
