"""Words as rows of digits in a record, and rounds of multiplication and division over words.

That 32 rounds make a product or a quotient is proved here.

*Products.* A full adder is an equation: its bits are worth its low bit and twice its carry. Of what 32 rounds
make, and of `words.multiply`, all adders are written down, and with these equations both words of 64 bits are
traced back to the products of single bits: each counts 2^(i + j) times in both. So they are the same number.
Rounds put the lowest bit of a sum on top of the low word, where it stays; carries never leave the 33 bits.

*Quotients.* With a divisor d a round is the step of `words.divide`, so that 32 of them are the very formulas.
A negative word b, which stands for d = 2^32 - b, is added instead. That this round is the one with d, for all
words H and L and all b with a sign, is shown once, with decision diagrams.
"""

from functools import cache

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import require
from tapegrad_check.formulas.diagrams import Diagrams
from tapegrad_check.formulas.words import (
    Ledger,
    Word,
    add,
    divide,
    less,
    multiply,
    number,
    only,
    padded,
    subtract,
    weighed,
    where,
)
from tapegrad_check.in_tokens.page_formulas import Tokens
from tapegrad_check.in_tokens.pages import DIGIT_BIT
from tapegrad_check.in_tokens.rv32_tokens import TOKENS
from tapegrad_check.instructions.rv32 import turned

WIDTH = (TOKENS - 1).bit_length()
"""Bits of a token."""


STEPS = 32
MOST_NODES = 1 << 18


def product_step(n: Nodes, high: Word, low: Word, a: Word, ledger: Ledger | None = None) -> list[int]:
    """A step of multiplication: the high word, then the low one."""
    total = add(n, padded(high, 33), padded(only(n, low[0], a), 33), ledger)
    return [*total[1:], *low[1:], total[0]]


def division_step(n: Nodes, high: Word, low: Word, b: Word, negative: int) -> list[int]:
    """A step of long division: the remainder, then the quotient. What is negative is added."""
    doubled = [low[31], *high]
    if negative:
        total = add(n, padded(doubled[:32], 33), padded(b, 33))
        fits, reduced = n.or_(total[32], doubled[32]), total
    else:
        fits = less(n, doubled, [*b, FALSE]) ^ 1
        reduced = subtract(n, doubled, [*b, FALSE])
    rest = [where(n, fits, x, y) for x, y in zip(reduced, doubled, strict=True)][:-1]
    return [*rest, fits, *low[:31]]


def product_of_rounds(n: Nodes, a: Word, b: Word) -> list[int]:
    """The product of two words, 64 bits; proved to be what rounds make of 0 and the second."""
    ledger: Ledger = []
    found = multiply(n, padded(a, 64), padded(b, 64), ledger)
    rounds: Ledger = []
    high, low = number(0, 32), list(b)
    for _ in range(STEPS):
        both = product_step(n, high, low, a, rounds)
        high, low = both[:32], both[32:]
    same = weighed(found, ledger) == weighed([*low, *high], rounds)
    require(same, "rounds of multiplication do not make a product")
    return found


def quotient_of_rounds(n: Nodes, dividend: Word, b: Word, divisor: Word) -> tuple[list[int], list[int]]:
    """Quotient and remainder by a divisor that the word b stands for: itself, or with a sign what it lacks of
    2^32; proved to be what rounds make of 0 and the dividend."""
    if list(b) != list(divisor):
        require(b[31] == TRUE and list(divisor) == turned(n, TRUE, b), "the divisor is another number")
        prove_negative_divisors()
    quotient, remainder = divide(n, dividend, divisor)
    high, low = number(0, 32), list(dividend)
    for _ in range(STEPS):
        both = division_step(n, high, low, divisor, FALSE)
        high, low = both[:32], both[32:]
    require([*high, *low] == [*remainder, *quotient], "rounds of division do not make a quotient")
    return quotient, remainder


@cache
def prove_negative_divisors() -> None:
    """For all words and all b with a sign, a round with b is one with 2^32 - b. Variables are interleaved;
    those of the low word that only move come last."""
    n = Diagrams(MOST_NODES)
    high = [n.variable(2 * bit + 2) for bit in range(32)]
    b = [*(n.variable(2 * bit + 1) for bit in range(31)), TRUE]
    low = [*(n.variable(100 + bit) for bit in range(31)), n.variable(0)]
    with_sign = division_step(n, high, low, b, TRUE)
    require(
        with_sign == division_step(n, high, low, turned(n, TRUE, b), FALSE), "a round adds something else"
    )


def digits_of(name: str, word: Word) -> dict[str, Word]:
    """The tokens of a row of digits, without flags."""
    return {
        f"{name} {place}": [*word[4 * place : 4 * place + 4], *number(1 << DIGIT_BIT - 4, WIDTH - 4)]
        for place in range(len(word) // 4)
    }


def word_of(tokens: Tokens, name: str) -> list[int]:
    return [bit for place in range(8) for bit in tokens[f"{name} {place}"][:4]]
