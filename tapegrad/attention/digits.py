"""Words of memory machines in tokens: hexadecimal digits with two flags, and arithmetic digit by digit.

The token of a digit has the number `DIGIT` + digit, plus `F` and `G` for its flags, which mean what the row
says: a carry, a borrow, or what is known of the digits before. Rows begin with the lowest digit.
"""

from collections.abc import Callable, Sequence

from tapegrad.attention.cells import Look, Where

NIBBLE = 4
BASE = 1 << NIBBLE
F, G, DIGIT = 16, 32, 64
VALUE, FLAG_F, FLAG_G, IS_DIGIT = tuple(range(NIBBLE)), 4, 5, 6
"""Bits of a digit's number."""


def digit_word(number: int) -> str:
    """A digit as people read it: `f` as it is, `f+` with the first flag, `f!` with the second."""
    return f"{number % BASE:x}" + "+" * bool(number & F) + "!" * bool(number & G)


def digits_of(value: int, count: int) -> list[int]:
    """Tokens of a number, the lowest digit first."""
    return [DIGIT + (value >> NIBBLE * place) % BASE for place in range(count)]


def number_of(tokens: Sequence[int]) -> int:
    """The number that digits stand for, whatever their flags."""
    return sum(token % BASE << NIBBLE * place for place, token in enumerate(tokens))


def row(name: str, count: int) -> list[str]:
    """The slots of a word's digits."""
    return [f"{name} {place}" for place in range(count)]


def look(slot: str, *bits: int, where: Where = "this") -> Look:
    """The digit in a slot, or these bits of its token."""
    return Look(where, slot, bits or VALUE)


def plain(digit: int) -> int:
    """A digit without flags."""
    return DIGIT + digit


def flagged(condition: int | bool) -> int:
    """The first flag."""
    return F if condition else 0


def marked(condition: int | bool) -> int:
    """The second flag."""
    return G if condition else 0


def above(limit: int) -> Callable[[int], bool]:
    """Whether a digit, with the flag F where digits before it are above those of the limit, leaves the number
    above it, whose digit here is `limit`. The argument is the digit with F."""
    return lambda seen: seen % BASE > limit or (seen % BASE == limit and seen & F > 0)


def carrying(total: int) -> int:
    """A digit, with the first flag where it carries."""
    return plain(total % BASE) + flagged(total >= BASE)


def sum_of(*terms: int) -> int:
    """A digit of a sum."""
    return carrying(sum(terms))
