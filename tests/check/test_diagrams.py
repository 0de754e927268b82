"""Decision diagrams are the functions that they are built for, each once, and as small as they should be."""

import random

import pytest

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.diagrams import Diagrams

EVERY = 0xFFFF


def drawn(seed: int, count: int = 200) -> tuple[Diagrams, dict[int, int]]:
    """Functions of four variables, whose levels are 0, 7, 14 and 21, with their truth tables of 16 bits."""
    draw, n = random.Random(seed), Diagrams(1 << 12)
    columns = [sum(1 << row for row in range(16) if row >> bit & 1) for bit in range(4)]
    known = {FALSE: 0, TRUE: EVERY, **{n.variable(7 * bit): column for bit, column in enumerate(columns)}}
    for _ in range(count):
        a, b = draw.choice(list(known)), draw.choice(list(known))
        for found, table in ((n.and_(a, b), known[a] & known[b]), (n.xor(a, b), known[a] ^ known[b])):
            assert known.setdefault(found, table) == table
            assert known.setdefault(found ^ 1, table ^ EVERY) == table ^ EVERY
    return n, known


@pytest.mark.parametrize("seed", range(3))
def test_diagrams_are_the_functions_that_they_are_built_for(seed: int) -> None:
    n, known = drawn(seed)
    assert len({*known.values()}) == len(known)  # equal functions are equal literals
    draw = random.Random(seed)
    for _ in range(400):
        a, b = draw.choice(list(known)), draw.choice(list(known))
        assert n.disjoint(a, b) == (known[a] & known[b] == 0)
        assert n.disjoint(a, b) == n.disjoint(b, a)


@pytest.mark.parametrize("seed", range(3))
def test_within_a_condition(seed: int) -> None:
    """Where it holds, the function is kept; elsewhere its value is one that it has where it holds: so where
    one of several is 1 and no two under the condition, they are so everywhere."""
    n, known = drawn(seed, 100)
    draw = random.Random(seed)
    for _ in range(300):
        a, b = draw.choice(list(known)), draw.choice(list(known))
        if b == FALSE:
            continue
        inside = n.within(a, b)
        assert n.and_(n.xor(inside, a), b) == FALSE
        assert n.within(a ^ 1, b) == inside ^ 1
        c = draw.choice(list(known))
        parts = [n.and_(a, c), n.and_(a, c ^ 1), a ^ 1]
        one, other, rest = (n.within(part, b) for part in parts)
        assert n.or_(n.or_(one, other), rest) == TRUE
        assert n.disjoint(one, other)
        assert n.disjoint(one, rest)
        assert n.disjoint(other, rest)


def test_within_takes_the_nearest_place() -> None:
    """Where a condition fixes a variable the function no longer depends on it."""
    n = Diagrams(100)
    x, y = n.variable(1), n.variable(2)
    both = n.and_(x, y)
    assert n.within(both, x) == y
    assert n.within(both, y) == x
    assert n.within(n.xor(x, y), x ^ 1) == y
    assert n.within(n.xor(x, y), x) == y ^ 1
    assert n.within(both, n.or_(x, y)) == both
    assert n.within(y, n.or_(x ^ 1, y)) == n.or_(x, y)


def test_examples() -> None:
    n, known = drawn(0)
    for function, table in known.items():
        if table:
            row = sum(1 << bit for bit in range(4) if 7 * bit in n.example(function))
            assert n.example(function) <= {0, 7, 14, 21}
            assert table >> row & 1


def test_a_node_for_each_function_and_no_more() -> None:
    """Parity of eight variables has one for each, and the conjunction one for each number of them."""
    n = Diagrams(1 << 10)
    variables = [n.variable(level) for level in range(8)]
    assert [n.variable(level) for level in range(8)] == variables
    parity, all_of = FALSE, TRUE
    for variable in reversed(variables):
        parity, all_of = n.xor(variable, parity), n.and_(variable, all_of)
    assert max(parity, all_of) >> 1 == 8 + 7 + 7


def test_what_is_never_both_is_seen_without_a_node() -> None:
    n = Diagrams(5)
    a, b, c = (n.variable(level) for level in range(3))
    assert not n.disjoint(a, b)
    assert n.disjoint(n.and_(a, b), a ^ 1)
    assert not n.disjoint(c, n.and_(a, b))
    assert n.variable(3)  # there is still room for it


def test_diagrams_that_grow_too_large_are_given_up() -> None:
    n = Diagrams(10)
    assert len({n.variable(level) >> 1 for level in range(10)}) == 10
    with pytest.raises(NotProved, match="too large"):
        n.variable(10)
