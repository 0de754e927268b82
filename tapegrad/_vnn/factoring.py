"""Factoring: is N a product of two w-bit numbers, both greater than 1?

Of a product of two numbers that were drawn the answer is yes, and the numbers are the witness. Of a prime it
is no. Numbers are tested by Miller and Rabin's method with the first twelve primes as bases, which is a proof
below 3.3 * 10^24 (Sorenson and Webster, 2015), that is, up to 81 bits. Greater primes are built with a proof
(Pocklington, 1914): let n - 1 be a multiple of a prime q > sqrt(n), with a^(n - 1) = 1 modulo n and
a^((n - 1) / q) - 1 prime to n. Modulo any prime p that divides n, the order of a divides n - 1 and not
(n - 1) / q, so that q divides it, and p > q > sqrt(n): then n itself is a prime.

Bit by bit (`serial`), a product is a sum s + c that is kept as two numbers. For each bit of a, lowest first,
b or nothing is added; the lowest bit of s is then final, is compared with the next bit of N, and leaves.
After all bits of a, the bits of s + c come out in the same way.
"""

from math import gcd

from tapegrad._draws import Draws
from tapegrad._vnn.question import Question, point
from tapegrad._vnn.rounds import Step, Word, added, bits_of, chained, halved, one_round, turned
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import UInt

SMALLEST, LARGEST = 2, 256
PROVED = 81
"""Bits up to which Miller and Rabin's method is a proof."""
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


def serial(size: int, satisfiable: bool, draws: Draws) -> Question:
    """The same question in rounds."""
    p = q = 0
    if satisfiable:
        p, q = (proven_prime(draws, size) for _ in range(2))
    number = p * q if satisfiable else proven_prime(draws, 2 * size - 1)
    rounds = factor_rounds(number, size)
    asked = chained(rounds, f"factors of {number}, bit by bit")
    about = {"number": number, "bits": size}
    if not satisfiable:
        return Question(asked, None, f"{number} is a prime", about, rounds=rounds)
    witness = point([*bits_of(p, size), *bits_of(q, size)])
    return Question(asked, witness, f"{number} = {p} * {q}", about, rounds=rounds)


def factor_rounds(number: int, size: int) -> tuple[Circuit, ...]:
    """Rows are a, which is turned, b, s, c, and whether all is well so far."""

    def begin(build: CircuitBuilder, a: Word, b: Word) -> list[Word]:
        zeros = words.constant(build, 0, size)
        above_one = (words.any_of(build, own[1:]) for own in (a, b))
        return [a, b, zeros, zeros, [build.and_(*above_one)]]

    def compared(build: CircuitBuilder, s: Word, well: Word, bit: int) -> list[Word]:
        return [halved(build, s), [build.and_(well[0], s[0] if bit else build.not_(s[0]))]]

    def adding(bit: int) -> Step:
        def step(build: CircuitBuilder, a: Word, b: Word, s: Word, c: Word, well: Word) -> list[Word]:
            s, c = added(build, s, c, [build.and_(a[0], own) for own in b])
            s, well = compared(build, s, well, bit)
            return [turned(a), b, s, c, well]

        return step

    def flushing(bit: int) -> Step:
        def step(build: CircuitBuilder, s: Word, c: Word, well: Word) -> list[Word]:
            s, c = added(build, s, c, None)
            s, well = compared(build, s, well, bit)
            return [s, c, well]

        return step

    row, rest, bits = (size, size, size, size, 1), (size, size, 1), bits_of(number, 2 * size)
    first = one_round("begin", (size, size), begin)
    add = [one_round(f"add, then {bit}", row, adding(bit)) for bit in (0, 1)]
    drop = one_round("factors are done", row, lambda _, a, b, s, c, well: [s, c, well])
    flush = [one_round(f"then {bit}", rest, flushing(bit)) for bit in (0, 1)]
    last = one_round("is all well?", rest, lambda _, s, c, well: [well])
    return (first, *(add[bit] for bit in bits[:size]), drop, *(flush[bit] for bit in bits[size:]), last)


def proven_prime(draws: Draws, bits: int) -> int:
    """A prime of exactly so many bits, proved by Pocklington's theorem where it is large."""
    low, high = 1 << bits - 1, 1 << bits
    if bits <= PROVED:
        return _prime(draws, low, high)
    q = proven_prime(draws, (bits + 1) // 2 + 1)  # q >= 2^((bits + 1) // 2) >= sqrt(high)
    while True:
        number = 2 * q * (low // (2 * q) + 1 + _below(draws, low // (2 * q) - 1)) + 1
        if low <= number < high and pocklington(number, q):
            return number


def pocklington(number: int, q: int) -> bool:
    """Whether 2 proves a number to be a prime, by a prime q > sqrt(number) that divides number - 1."""
    power = pow(2, (number - 1) // q, number)
    return q * q > number and pow(power, q, number) == 1 and gcd(power - 1, number) == 1


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
