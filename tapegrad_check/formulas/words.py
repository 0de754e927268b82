"""Arithmetic on words of literals, the lowest bit first: sums, differences, products, quotients, choices.

A full adder is the parity of three bits and their majority; a product is the sum of its columns; a quotient
is long division, a bit at a time.
"""

from collections.abc import Sequence

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes

Word = Sequence[int]


def number(value: int, width: int) -> list[int]:
    """The binary digits of a number, modulo 2^width."""
    return [TRUE if value >> bit & 1 else FALSE for bit in range(width)]


def padded(word: Word, width: int, fill: int = FALSE) -> list[int]:
    """Cut off at the top, or filled up there."""
    return [*word[:width], *[fill] * (width - len(word))]


def only(n: Nodes, flag: int, word: Word) -> list[int]:
    """The word where the flag is 1, else 0."""
    return [n.and_(bit, flag) for bit in word]


def chosen(n: Nodes, *choices: tuple[int, Word]) -> list[int]:
    """The OR of the words whose flags are 1: the one word, where one flag is."""
    masked = [only(n, flag, word) for flag, word in choices]
    return [n.any_of(column) for column in zip(*masked, strict=True)]


def either(n: Nodes, flag: int, a: Word, b: Word) -> list[int]:
    """`a` where the flag is 1, else `b`."""
    return chosen(n, (flag, a), (flag ^ 1, b))


def differing(n: Nodes, a: Word, b: Word) -> list[int]:
    """The bits in which two words differ."""
    return [n.xor(x, y) for x, y in zip(a, b, strict=True)]


def where(n: Nodes, flag: int, a: int, b: int) -> int:
    """One bit or another, as one gate where something is known of them, else as a change of `b`."""
    if a == b:
        return a
    if a in (flag, TRUE):
        return n.or_(flag, b)
    if b in (flag, FALSE):
        return n.and_(flag, a)
    if a == FALSE:
        return n.and_(flag ^ 1, b)
    if b == TRUE:
        return n.or_(flag ^ 1, a)
    return n.xor(b, n.and_(flag, n.xor(a, b)))


Ledger = list[tuple[Word, int, int]]
"""Up to three bits that were added, their low bit and their carry: the sum of the bits is low + 2 carry."""


def column_sum(n: Nodes, bits: Word, ledger: Ledger | None = None) -> tuple[int, int]:
    """The sum of up to three bits: its low bit and its carry."""
    a, b, c = (*bits, FALSE, FALSE, FALSE)[:3]
    differ = n.xor(a, b)
    low, carry = n.xor(differ, c), n.or_(n.and_(a, b), n.and_(differ, c))
    if ledger is not None:
        ledger.append((bits, low, carry))
    return low, carry


def total(n: Nodes, words: Sequence[Word], ledger: Ledger | None = None) -> list[int]:
    """The sum of words of one width, modulo 2^width. Bits of one weight are a column; threes become one bit
    of theirs and a carry, until no column has more than two; then the carry runs through."""
    columns = [[bit for bit in column if bit != FALSE] for column in zip(*words, strict=True)]
    while any(len(column) > 2 for column in columns):
        fewer: list[list[int]] = [[] for _ in range(len(columns) + 1)]
        for weight, column in enumerate(columns):
            threes = len(column) // 3 * 3
            for first in range(0, threes, 3):
                low, carry = column_sum(n, column[first : first + 3], ledger)
                fewer[weight].append(low)
                fewer[weight + 1].append(carry)
            fewer[weight] += column[threes:]
        columns = fewer[:-1]
    found, carry = [], FALSE
    for column in columns:
        low, carry = column_sum(n, [*column, *([carry] if carry != FALSE else [])], ledger)
        found.append(low)
    return found


def weighed(word: Word, ledger: Ledger) -> dict[int, int]:
    """How often each literal counts in the number that a word is, modulo 2^width, by the sums of a ledger
    from the last to the first. Every entry is an equation between numbers, so whichever are used, the number
    stays the same. Two words of one width that weigh the same are the same number, and so the same bits."""
    counts: dict[int, int] = {}
    modulus = 1 << len(word)

    def count(literal: int, times: int) -> None:
        if literal != FALSE:
            counts[literal] = (counts.get(literal, 0) + times) % modulus

    for place, literal in enumerate(word):
        count(literal, 1 << place)
    for bits, low, carry in reversed(ledger):
        times = counts.get(low, 0)
        count(low, -times)
        count(carry, -2 * times)
        for bit in bits:
            count(bit, times)
    return {literal: times for literal, times in counts.items() if times}


def add(n: Nodes, a: Word, b: Word, ledger: Ledger | None = None) -> list[int]:
    """a + b modulo 2^width."""
    return total(n, [a, b], ledger)


def subtract(n: Nodes, a: Word, b: Word) -> list[int]:
    """a - b modulo 2^width. The borrow of a bit is b where the bits differ, else the borrow before it."""
    found, borrow = [], FALSE
    for x, y in zip(a, b, strict=True):
        differ = n.xor(x, y)
        found.append(n.xor(differ, borrow))
        borrow = where(n, differ, y, borrow)
    return found


def less(n: Nodes, a: Word, b: Word) -> int:
    """1 if a < b as numbers without a sign: the highest bit that differs decides."""
    verdict = FALSE
    for x, y in zip(a, b, strict=True):
        verdict = where(n, n.xor(x, y), y, verdict)
    return verdict


def above(n: Nodes, a: Word, most: int) -> int:
    """1 if a number without a sign is larger than a constant, which may be negative."""
    if most < 0:
        return TRUE
    width = max(len(a), most.bit_length())
    return less(n, number(most, width), padded(a, width))


def equal(n: Nodes, a: Word, b: Word | int) -> int:
    """1 if two words are the same."""
    other = number(b, len(a)) if isinstance(b, int) else b
    return n.any_of([n.xor(x, y) for x, y in zip(a, other, strict=True)]) ^ 1


def multiply(n: Nodes, a: Word, b: Word, ledger: Ledger | None = None) -> list[int]:
    """a b modulo 2^width: the products of bits, column by column."""
    width = len(a)
    columns = [[n.and_(a[i], b[weight - i]) for i in range(weight + 1)] for weight in range(width)]
    columns = [[bit for bit in column if bit != FALSE] for column in columns]
    rows = [[column[i] if i < len(column) else FALSE for column in columns] for i in range(width)]
    return total(n, rows, ledger)


def divide(n: Nodes, a: Word, b: Word) -> tuple[list[int], list[int]]:
    """Quotient and remainder of numbers without a sign; by 0: all ones, and `a`."""
    if set(b) == {FALSE}:
        return [TRUE] * len(a), list(a)
    remainder, quotient = [FALSE] * len(a), []
    divisor = [*b, FALSE]
    for bit in reversed(a):
        extended = [bit, *remainder]
        fits = less(n, extended, divisor) ^ 1
        reduced = subtract(n, extended, divisor)
        remainder = [where(n, fits, x, y) for x, y in zip(reduced, extended, strict=True)][:-1]
        quotient.append(fits)
    return quotient[::-1], remainder


def lines(n: Nodes, address: Word, count: int) -> list[int]:
    """For each number below `count`, 1 if the address is that; decoded from the highest bit down."""
    flags = [TRUE]
    for weight in reversed(range(len(address))):
        bit = address[weight]
        flags = [n.and_(flag, side) for flag in flags for side in (bit ^ 1, bit)]
        flags = flags[: -(-count >> weight)]
    return flags[:count]
