"""Arithmetic on words of literals, against numbers: all small words, and bits that are known or not."""

from itertools import product

import pytest

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.formulas.words import (
    Ledger,
    above,
    add,
    chosen,
    column_sum,
    differing,
    divide,
    either,
    equal,
    less,
    lines,
    multiply,
    number,
    only,
    padded,
    subtract,
    total,
    weighed,
    where,
)

WIDTH = 3
EVERY = range(1 << WIDTH)
NODES = Nodes()


def worth(word: list[int]) -> int:
    assert set(word) <= {FALSE, TRUE}
    return sum(1 << place for place, bit in enumerate(word) if bit == TRUE)


def test_numbers() -> None:
    assert number(5, 4) == [TRUE, FALSE, TRUE, FALSE]
    assert number(-1, 3) == [TRUE] * 3
    assert padded([TRUE], 3) == [TRUE, FALSE, FALSE]
    assert padded([FALSE], 3, TRUE) == [FALSE, TRUE, TRUE]
    assert padded(number(6, 3), 2) == [FALSE, TRUE]


@pytest.mark.parametrize("a", EVERY)
@pytest.mark.parametrize("b", EVERY)
def test_two_words(a: int, b: int) -> None:
    x, y, most = number(a, WIDTH), number(b, WIDTH), 1 << WIDTH
    assert worth(add(NODES, x, y)) == (a + b) % most
    assert worth(subtract(NODES, x, y)) == (a - b) % most
    assert worth(multiply(NODES, x, y)) == a * b % most
    assert less(NODES, x, y) == (TRUE if a < b else FALSE)
    assert equal(NODES, x, y) == equal(NODES, x, b) == (TRUE if a == b else FALSE)
    assert worth(differing(NODES, x, y)) == a ^ b
    assert [worth(part) for part in divide(NODES, x, y)] == ([a // b, a % b] if b else [most - 1, a])
    assert worth(either(NODES, TRUE, x, y)) == a
    assert worth(either(NODES, FALSE, x, y)) == b
    assert worth(chosen(NODES, (TRUE, x), (TRUE, y), (FALSE, number(7, WIDTH)))) == a | b
    assert worth(only(NODES, TRUE, x)) == a
    assert worth(only(NODES, FALSE, x)) == 0
    for c in EVERY:
        assert worth(total(NODES, [x, y, number(c, WIDTH), x, y])) == (2 * a + 2 * b + c) % most


@pytest.mark.parametrize("most", range(-2, 20))
def test_above(most: int) -> None:
    for a in EVERY:
        assert above(NODES, number(a, WIDTH), most) == (TRUE if a > most else FALSE)


@pytest.mark.parametrize("count", range(1, 9))
def test_lines(count: int) -> None:
    for a in EVERY:
        assert lines(NODES, number(a, WIDTH), count) == [TRUE if a == n else FALSE for n in range(count)]


def test_columns() -> None:
    for bits in product((FALSE, TRUE), repeat=3):
        low, carry = column_sum(NODES, bits)
        assert worth([low, carry]) == sum(bit == TRUE for bit in bits)
    assert column_sum(NODES, [TRUE]) == (TRUE, FALSE)


def value(nodes: Nodes, literal: int, given: dict[int, int]) -> int:
    """The value of a literal where the variables have these."""
    operands = nodes.operands[literal >> 1]
    if operands is None:
        bit = given.get(literal >> 1, 0)
    else:
        x, y = (value(nodes, own, given) for own in operands)
        bit = x ^ y if nodes.is_xor[literal >> 1] else x & y
    return bit ^ (literal & 1)


def test_one_bit_or_another() -> None:
    """Whatever is known of the flag and of both; and as few gates as that allows."""
    nodes = Nodes()
    variables = nodes.variables(3)
    literals = [FALSE, TRUE, *variables, *(literal ^ 1 for literal in variables)]
    for flag, a, b in product(literals, repeat=3):
        found = where(nodes, flag, a, b)
        for bits in product((0, 1), repeat=3):
            given = {literal >> 1: bit for literal, bit in zip(variables, bits, strict=True)}
            wanted = value(nodes, a if value(nodes, flag, given) else b, given)
            assert value(nodes, found, given) == wanted
    flag, a, b = variables
    assert where(nodes, flag, a, a) == a
    assert where(nodes, flag, TRUE, b) == where(nodes, flag, flag, b) == nodes.or_(flag, b)
    assert where(nodes, flag, a, FALSE) == where(nodes, flag, a, flag) == nodes.and_(flag, a)
    assert where(nodes, flag, FALSE, b) == nodes.and_(flag ^ 1, b)
    assert where(nodes, flag, a, TRUE) == nodes.or_(flag ^ 1, a)


def test_what_a_word_is_worth() -> None:
    """By its adders: 3 a + 2 b of five bits, in whatever order it is added up, and nothing else."""
    n = Nodes()
    a, b = n.variables(3), n.variables(3)
    wide, double = [*a, FALSE, FALSE], [FALSE, *a, FALSE]
    twice_b = [FALSE, *b, FALSE]
    ledger: Ledger = []
    first = total(n, [wide, double, twice_b], ledger)
    wanted = {own: 3 << place for place, own in enumerate(a)} | {
        own: 2 << place for place, own in enumerate(b)
    }
    assert weighed(first, ledger) == wanted
    other: Ledger = []
    assert weighed(add(n, add(n, twice_b, wide, other), double, other), other) == wanted
    assert weighed(add(n, add(n, wide, wide, other), twice_b, other), other) != wanted
    # Above the width nothing counts, and without adders a word is worth its bits.
    assert weighed(a, []) == {own: 1 << place for place, own in enumerate(a)}
    narrow: Ledger = []
    assert weighed(add(n, a, a, narrow), narrow) == {a[0]: 2, a[1]: 4}
    assert weighed([TRUE, FALSE, TRUE], []) == {TRUE: 5}
