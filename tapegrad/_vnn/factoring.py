"""Factoring: is N a product of two w-bit numbers, both greater than 1?

Of a product of two numbers that were drawn the answer is yes, and the numbers are the witness. Of a prime it
is no. Numbers are tested by Miller and Rabin's method with the first twelve primes as bases, which is a proof
below 3.3 * 10^24 (Sorenson and Webster, 2015), that is, up to 40 bits.
"""

from tapegrad._vnn.question import Question, point
from tapegrad.circuits.sampler import Draws
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import UInt

SMALLEST, LARGEST = 2, 40
BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
PART = 24
"""Bits that are drawn at a time: a double has more than enough."""


def question(size: int, satisfiable: bool, draws: Draws) -> Question:
    """Numbers of `size` bits; the greater part of those drawn have their top bit set."""

    def factors(a, b):
        product = a.to(UInt(2 * size)) * b
        return (product == number) & (a > 1) & (b > 1)

    p = q = 0
    if satisfiable:
        p, q = (_prime(draws, 1 << size - 1, 1 << size) for _ in range(2))
        number = p * q
    else:
        number = _prime(draws, 1 << 2 * size - 2, 1 << 2 * size - 1)
    traced = trace(factors, UInt(size), UInt(size), name=f"factors of {number}")
    about = {"number": number, "bits": size}
    if not satisfiable:
        return Question(traced.circuit, None, f"{number} is a prime", about)
    return Question(traced.circuit, point(traced.encode(p, q)), f"{number} = {p} * {q}", about)


def is_prime(number: int) -> bool:
    """Whether a number up to 3.3 * 10^24 is a prime."""
    if number < 2:
        return False
    for base in BASES:
        if number % base == 0:
            return number == base
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in BASES:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def _prime(draws: Draws, low: int, high: int) -> int:
    """A prime from `low` to below `high`; between a number and its double there always is one."""
    start = low + _below(draws, high - low)
    for step in range(high - low):
        number = low + (start - low + step) % (high - low)
        if is_prime(number):
            return number
    raise AssertionError((low, high))


def _below(draws: Draws, limit: int) -> int:
    drawn = 0
    for _ in range(0, limit.bit_length() + PART, PART):
        drawn = drawn << PART | draws.one_below(1 << PART)
    return drawn % limit
