"""The core of the checker by itself: proofs, functions, numbers."""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise, product

import numpy as np
import pytest

from tapegrad_check.arithmetic import FORMATS
from tapegrad_check.core import functions as functions_of
from tapegrad_check.core.functions import FALSE, TRUE, Effort, Functions
from tapegrad_check.core.lrat import refutes
from tapegrad_check.core.places import BIT, NEGATED, Form, Numbers, Place
from tapegrad_check.core.solver import Answer, solve
from tapegrad_check.folder import CheckError, NotProved

# Proofs


def satisfied(formula: Sequence[Sequence[int]], variables: int) -> bool:
    """Whether some assignment makes all clauses true, one after the other."""
    for values in product((False, True), repeat=variables):
        if all(any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in formula):
            return True
    return False


def test_a_proof_is_followed_step_by_step() -> None:
    formula = [[1, 2], [1, -2], [-1, 2], [-1, -2]]
    assert refutes(b"5 1 0 1 2 0\n6 0 5 3 4 0\n", formula)
    assert refutes(b"5 1 0 1 2 0\n5 d 1 2 0\n6 0 5 3 4 0\n", formula)
    for bad in (
        b"",
        b"5 1 0 1 2 0\n",  # no contradiction
        b"5 1 0 1 0\n6 0 5 3 4 0\n",  # not from the first alone
        b"5 1 0 1 3 0\n6 0 5 3 4 0\n",  # nor from these
        b"5 1 0 1 2 0\n5 d 5 0\n6 0 5 3 4 0\n",  # what was deleted
        b"5 1 0 1 2 0\n6 0 3 4 0\n",  # two literals are open
        b"5 1 0 1 2 0\n6 0 7 3 4 0\n",  # no such clause
        b"5 1 0 -1 2 0\n6 0 5 3 4 0\n",  # a step that keeps solutions, but does not follow
        b"5 1 1 2\n6 0 5 3 4 0\n",
        b"five 1 0 1 2 0\n",
        b"5\n",
        b"\xff",
    ):
        assert not refutes(bad, formula), bad
    assert not refutes(b"5 1 0 1 2 0\n6 0 5 3 4 0\n", formula[:3])
    # The first clause has two literals that are not false, and does not say which of them is true.
    assert not refutes(b"4 0 1 2 3 0\n", [[1, 2], [-1, 2], [-1, -2]])


def test_answers_of_the_solver_are_true() -> None:
    random, ends = np.random.default_rng(1), set()
    for _ in range(300):
        formula = []
        for _ in range(int(random.integers(5, 30))):
            size = int(random.integers(1, 4)) if random.random() < 0.5 else 3
            chosen = random.choice(5, size, replace=False) + 1
            formula.append([int(one) * int(random.choice([-1, 1])) for one in chosen])
        answer = solve(formula, 1000)
        assert answer.refuted != satisfied(formula, 5)
        if answer.solution is not None:
            ones = set(answer.solution)
            assert all(ones & set(clause) for clause in formula)
        ends.add(answer.refuted)
    assert ends == {False, True}


def test_a_wrong_proof_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegrad_check.core.solver.refutes", lambda proof, formula: False)
    with pytest.raises(CheckError, match="proof that is none"):
        solve([[1], [-1]], 10)


def test_a_question_is_given_up() -> None:
    def at(pigeon: int, hole: int) -> int:
        return 8 * pigeon + hole + 1

    formula = [[at(i, j) for j in range(8)] for i in range(9)]
    formula += [[-at(i, j), -at(k, j)] for j in range(8) for i in range(9) for k in range(i)]
    assert solve(formula, 5) == (False, None)


# Functions


def columns_of(count: int) -> list[int]:
    return [sum((row >> at & 1) << row for row in range(1 << count)) for at in range(count)]


@pytest.mark.parametrize("window", [0, 16])
@pytest.mark.parametrize("seed", range(4))
def test_literals_are_the_functions_they_stand_for(
    seed: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random formulas of five variables against their truth tables; what is the same function is one literal.
    By truth tables, and by the solver alone."""
    monkeypatch.setattr(functions_of, "WINDOW", window)
    monkeypatch.setattr(functions_of, "MOST_COLUMNS", window)
    monkeypatch.setattr(functions_of, "PATTERNS", 32)  # so few that much looks alike
    random, every = np.random.default_rng(seed), (1 << 32) - 1
    own = Functions(seed)
    own.sweeps = True
    tables = dict(zip(own.variables(5), columns_of(5), strict=True)) | {FALSE: 0}

    def table_of(literal: int) -> int:
        return tables[literal & ~1] ^ (every if literal & 1 else 0)

    for _ in range(300):
        chosen = [int(one) ^ int(random.integers(2)) for one in random.choice(sorted(tables), 3)]
        kind, table = int(random.integers(3)), int(random.integers(256))
        if kind == 0:
            found, wanted = own.and_(chosen[0], chosen[1]), table_of(chosen[0]) & table_of(chosen[1])
        elif kind == 1:
            found, wanted = own.xor(chosen[0], chosen[1]), table_of(chosen[0]) ^ table_of(chosen[1])
        elif len({one >> 1 for one in chosen} - {0}) == 3:
            found, wanted = own.table(table, chosen), 0
            for row in range(8):
                terms = [table_of(one) ^ (0 if row >> at & 1 else every) for at, one in enumerate(chosen)]
                wanted |= terms[0] & terms[1] & terms[2] if table >> row & 1 else 0
        else:
            continue
        if found & ~1 in tables:
            assert table_of(found) == wanted
        else:
            wanted ^= every if found & 1 else 0
            assert wanted not in tables.values()
            assert wanted ^ every not in tables.values()
            tables[found & ~1] = wanted
    assert len(tables) > 100
    listed = sorted(tables)
    for _ in range(100):
        chosen = [int(one) ^ int(random.integers(2)) for one in random.choice(listed, 3)]
        both = table_of(chosen[0]) & table_of(chosen[1]) & table_of(chosen[2])
        assert own.possible(chosen, Effort.ASK) == (both != 0)
    assert own.possible([listed[1]] * 9, Effort.ASK)
    assert not own.possible([*[listed[1]] * 9, listed[1] ^ 1], Effort.ASK)


def test_what_differs_rarely_is_told_apart() -> None:
    """A conjunction of 24 bits, half of them negated, is 0 on all inputs that were drawn."""
    own = Functions()
    bits = [bit ^ number & 1 for number, bit in enumerate(own.variables(24))]
    own.sweeps = True
    found = own.all_of(bits)
    assert own.questions
    assert found != FALSE
    with pytest.raises(CheckError, match="the bit 'rare' differs"):
        own.require_equal([TRUE, found], [TRUE, FALSE], "the bit", ["common", "rare"])


def test_a_solver_that_gives_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions_of, "solve", lambda formula, conflicts: Answer(False))
    own = Functions()
    own.sweeps = True
    bits = [bit ^ number & 1 for number, bit in enumerate(own.variables(24))]
    assert own.all_of(bits) != FALSE
    assert own.possible(bits, Effort.ASK)


def test_what_meets_near_by_is_seen_without_the_solver() -> None:
    """Not both x, and y but not x, whatever x, y and what is beside them are."""
    own = Functions()
    bits = own.variables(90)

    def deep(first: int) -> int:
        return reduce(own.xor, (own.and_(a, b) for a, b in pairwise(bits[first : first + 30])))

    x = deep(0)
    other = own.and_(x ^ 1, deep(30))
    beside = deep(60)
    assert not own.possible([x, other, beside], Effort.ASK)
    assert own.possible([x, other ^ 1, beside], Effort.ASK)
    assert not own.questions


def test_what_is_hinted_is_all_that_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions_of, "MOST_COLUMNS", 0)
    own = Functions()
    a, b, c = own.variables(3)
    one, other = own.and_(a, own.and_(b, c)), own.and_(own.and_(a, b), c)
    assert one != other
    assert own.table(1 << 7, [a, b, c], other) == other
    assert own.table(1 << 7, [a, b, c], one) == one


def test_what_has_to_be_known_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither a look nor a few questions tell; and what may be is still possible."""
    monkeypatch.setattr(functions_of, "MOST_COLUMNS", 0)
    monkeypatch.setattr(functions_of, "MOST_ASKED", 0)
    own = Functions()
    a, b, c = own.variables(3)
    one, other = own.xor(own.xor(a, b), c), own.xor(a, own.xor(b, c)) ^ 1
    assert own.possible([one, other], Effort.ASK)
    assert not own.possible([one, other], Effort.SETTLE)
    bits = own.variables(40)
    assert own.possible([bit ^ number & 1 for number, bit in enumerate(bits)], Effort.SETTLE)


def test_what_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same function twice, and a solver that gives up."""
    monkeypatch.setattr(functions_of, "MOST_COLUMNS", 0)
    own = Functions()
    a, b, c = own.variables(3)
    pair = [own.and_(a, own.and_(b, c))], [own.and_(own.and_(a, b), c)]
    assert pair[0] != pair[1]
    own.require_equal(*pair, "the bit", ["x"])
    monkeypatch.setattr(functions_of, "solve", lambda formula, conflicts: Answer(False))
    with pytest.raises(NotProved, match="could not be compared"):
        own.require_equal(*pair, "the bit", ["x"])


# Numbers


def closed_bits(numbers: Numbers, count: int) -> list[Place]:
    return [numbers.bit(own) for own in numbers.functions.variables(count)]


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_sums_leaves_the_bounds(seed: int, name: str) -> None:
    """Random networks of small and rough weights, in both orders of sums, for all bits."""
    random, dtype = np.random.default_rng(seed), np.dtype(name)
    numbers = Numbers(Functions())
    count = 4
    places = closed_bits(numbers, count)
    leaves = [place.leaves[0] for place in places]
    rows = np.arange(1 << count)
    values = [np.array([(rows >> at & 1).astype(dtype)] * 2) for at in range(count)]
    rough = exact = 0
    for _ in range(60):
        chosen = [int(one) for one in random.integers(len(places), size=int(random.integers(1, 5)))]
        small = random.integers(-3, 4, len(chosen)) * 2.0 ** random.integers(-2, 3)
        weights = (small if random.random() < 0.6 else random.normal(size=len(chosen))).astype(dtype)
        bias = dtype.type(random.choice([0, 1, -1, 1 / 3]))
        rectified = bool(random.integers(2))
        found = numbers.affine(
            weights.tolist(), [places[one] for one in chosen], float(bias), FORMATS[name], rectified
        )
        both = []
        for order in (1, -1):
            total = np.full(len(rows), bias)
            for weight, one in list(zip(weights, chosen, strict=True))[::order]:
                total = (total + weight * values[one][int(order < 0)]).astype(dtype)
            both.append(np.maximum(total, 0) if rectified else total)
        off = found.form.off([numbers.sizes[own] for own in found.deviations])
        # Each leaf is one of the bits, or a function of them that was found to be a bit.
        at = np.zeros(len(rows), int)
        for i, leaf in enumerate(found.leaves):
            if leaf in leaves:
                bit = rows >> leaves.index(leaf) & 1
            else:
                bit = np.array(
                    [
                        _bit(
                            numbers.functions,
                            leaf,
                            dict(zip(leaves, (int(r) >> j & 1 for j in range(count)), strict=True)),
                        )
                        for r in rows
                    ]
                )
            at |= bit << i
        for side in both:
            assert (np.abs(side.astype(np.float64) - found.form.values[at]) <= off[at]).all()
        if np.abs(found.form.values).max() < 100 and off.max() < 0.1:
            places.append(found)
            values.append(np.array(both))
        exact, rough = exact + (off.max() == 0), rough + (off.max() > 0)
    assert min(exact, rough) > 5


def _bit(own: Functions, literal: int, given: dict[int, int]) -> int:
    if literal & ~1 in given or literal < 2:
        return given.get(literal & ~1, 0) ^ literal & 1
    operands = own.operands[literal >> 1]
    assert operands is not None
    a, b = (_bit(own, operand, given) for operand in operands)
    return (a ^ b if own.is_xor[literal >> 1] else a & b) ^ literal & 1


def test_a_correction_forgets_how_far_a_bit_is_off() -> None:
    numbers, single = Numbers(Functions()), FORMATS["float32"]
    z = numbers.bit(numbers.functions.variables(1)[0], 0.05)
    third = float(np.float32(1 / 3))
    cuts = [numbers.affine([1.0], [z], -cut, single, True) for cut in (third, 2 * third)]
    found = numbers.affine([3.0, -3.0], cuts, 0.0, single, True)
    literal, off = numbers.literal(found, "z")
    assert literal == z.leaves[0]
    assert off < 1e-5


def test_products_of_large_numbers_round_by_as_much() -> None:
    single, third, tenth = FORMATS["float32"], np.float32(1 / 3), np.float32(0.1)
    numbers = Numbers(Functions())
    (bit,) = closed_bits(numbers, 1)
    for large in (999.0, 1001.0, 1003.0, 1007.0):
        wide = numbers.sum([large], [bit], 0.0, single, False)
        found = numbers.sum([float(third)], [wide], float(tenth), single, False).form
        lost = abs(float(third * np.float32(large) + tenth) - found.values[1])
        assert 0 < lost <= found.off([])[1] < 1e-3


def test_exact_means_in_every_order() -> None:
    """relu(2^25 x + y - 2^25) is AND in doubles; in float32 it depends on the order."""
    for name, bit in (("float32", False), ("float64", True)):
        numbers = Numbers(Functions())
        x, y = closed_bits(numbers, 2)
        found = numbers.affine([2.0**25, 1.0], [x, y], -(2.0**25), FORMATS[name], True)
        assert (len(found.leaves) == 1 and found.form is BIT) == bit


def test_a_bit_that_may_be_far_off_is_none() -> None:
    """1 - 2 x, to which a large number is added and taken away again: in doubles this is the negation."""
    numbers, single = Numbers(Functions()), FORMATS["float32"]
    (x,) = closed_bits(numbers, 1)
    for large, bit in ((2.0**20, True), (2.0**27, False)):
        signed = numbers.affine([-large, -2.0, large], [x, x, x], 1.0, single, False)
        found = numbers.affine([0.5, 1.0], [signed, numbers.constant(0.5)], 0.0, single, False)
        if bit:
            assert numbers.literal(found, "it") == (x.leaves[0] ^ 1, 0.0)
        else:
            with pytest.raises(CheckError, match="no bit"):
                numbers.literal(found, "it")


def test_a_small_number_is_not_nothing() -> None:
    """A unit that is 2^-60 where it is on, whose readers make up for it."""
    numbers, single = Numbers(Functions()), FORMATS["float32"]
    x, y = closed_bits(numbers, 2)
    small = 2.0**-60
    both = numbers.affine([small, small], [x, y], -small, single, True)
    found = numbers.affine([1 / small], [both], 0.0, single, True)
    assert found.leaves == (numbers.functions.and_(*x.leaves, *y.leaves),)


def test_overflow_is_refused() -> None:
    numbers = Numbers(Functions())
    (x,) = closed_bits(numbers, 1)
    large = numbers.affine([2.0**126], [x], 0.0, FORMATS["float32"], False)
    with pytest.raises(CheckError, match="may overflow"):
        numbers.affine([2.0, 2.0], [large, large], 0.0, FORMATS["float32"], False)


def test_bits_that_exclude_each_other() -> None:
    """(a and b) + (not a and c) is a bit; without the negation it is none."""
    numbers = Numbers(Functions())
    numbers.functions.sweeps = True
    single = FORMATS["float32"]
    a, b, c = closed_bits(numbers, 3)
    first = numbers.affine([1.0, 1.0], [a, b], -1.0, single, True)
    for weight, bias, bit in ((-1.0, 0.0, True), (1.0, -1.0, False)):
        second = numbers.affine([weight, 1.0], [a, c], bias, single, True)
        found = numbers.affine([1.0, 1.0], [first, second], 0.0, single, True)
        assert (found.form in (BIT, NEGATED)) == bit
    with pytest.raises(CheckError, match="the output is no bit"):
        numbers.literal(found, "the output")


def test_too_many_bits() -> None:
    numbers = Numbers(Functions())
    bits = closed_bits(numbers, 13)
    numbers.affine([1.0] * 12, bits[:12], 0.0, FORMATS["float32"], False)
    with pytest.raises(NotProved, match="more than 12 bits"):
        numbers.affine([1.0] * 13, bits, 0.0, FORMATS["float32"], False)


def test_bits_at_other_values_are_none() -> None:
    """A bit at 2 is not a bit at 1: the table has the values."""
    numbers = Numbers(Functions())
    (x,) = closed_bits(numbers, 1)
    twice = numbers.affine([2.0], [x], 0.0, FORMATS["float32"], True)
    assert twice.form.values.tolist() == [0, 2]
    assert isinstance(twice.form, Form)
    with pytest.raises(CheckError, match="no bit"):
        numbers.literal(twice, "it")
