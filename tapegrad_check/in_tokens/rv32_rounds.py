"""Words as rows of digits in a record, and one round of multiplication or division over words."""

from tapegrad_check.formulas.nodes import FALSE, Nodes
from tapegrad_check.formulas.words import Word, add, less, number, only, padded, subtract, where
from tapegrad_check.in_tokens.page_formulas import Tokens
from tapegrad_check.in_tokens.pages import DIGIT_BIT
from tapegrad_check.in_tokens.rv32_tokens import TOKENS

WIDTH = (TOKENS - 1).bit_length()
"""Bits of a token."""


def product_step(n: Nodes, high: Word, low: Word, a: Word) -> list[int]:
    """A step of multiplication: the high word, then the low one."""
    total = add(n, padded(high, 33), padded(only(n, low[0], a), 33))
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


def digits_of(name: str, word: Word) -> dict[str, Word]:
    """The tokens of a row of digits, without flags."""
    return {
        f"{name} {place}": [*word[4 * place : 4 * place + 4], *number(1 << DIGIT_BIT - 4, WIDTH - 4)]
        for place in range(len(word) // 4)
    }


def word_of(tokens: Tokens, name: str) -> list[int]:
    return [bit for place in range(8) for bit in tokens[f"{name} {place}"][:4]]
