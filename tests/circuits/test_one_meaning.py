"""A function means the same traced and run: types of results come from types alone, and NumPy's ways to index
are right or refused."""

import operator
import random
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapegrad import read
from tapegrad.circuits import (
    Array,
    Bit,
    Fixed,
    Float,
    Int,
    UFixed,
    UInt,
    array,
    concat,
    count_ones,
    largest,
    parity,
    smallest,
    sort,
    total,
    trace,
    where,
)
from tapegrad.circuits.scalars import BitType, IntType
from tapegrad.errors import SourceError, TapegradError

Operation = Callable[..., Any]

OPERATIONS: list[tuple[int, Operation]] = [
    *((2, own) for own in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)),
    *((2, own) for own in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)),
    *((2, own) for own in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)),
    *((1, own) for own in (operator.neg, operator.invert, abs, count_ones, parity, lambda a: a.bit_count())),
    *((1, lambda a, of=of: a.to(of)) for of in (UInt(3), Int(3), UInt(6), Int(6))),
    *((3, own) for own in (where, lambda a, b, c: a.with_bit(b, c), lambda a, b, c: array([a, b])[c])),
    *((3, lambda a, b, c, own=own: own([a, b, c])) for own in (total, smallest, largest, sum, sort)),
    (2, pow),
    (2, operator.truediv),
    *((1, lambda a, of=of: a.to(of)) for of in (Fixed(3, 2), UFixed(2, 2), Float(3, 2), Float(4, 3))),
    (2, divmod),
    (2, lambda a, b: a[b]),
    (2, concat),
    (1, lambda a: a[1:]),
    (1, lambda a: where(a, 200, 7)),
    (2, lambda a, b: where(a, 1, b)),
    (2, lambda a, b: where(a, array([b, 3]), array([1, b]))[1]),
]
TYPES = [Bit, UInt(1), UInt(3), UInt(5), Int(2), Int(4), Int(5), Fixed(3, 2), UFixed(1, 3), Float(3, 2)]


def values_of(of: Any) -> Sequence[Any]:
    if not isinstance(of, BitType | IntType):
        return [of.number(bits) for bits in range(1 << of.width)]
    return range(-(1 << of.width - 1), 1 << of.width - 1) if of.signed else range(1 << of.width)


def flat(value: Any) -> list[Any]:
    """The single values of a result."""
    return [own for part in value for own in flat(part)] if isinstance(value, tuple | list) else [value]


def random_function(draw: random.Random) -> tuple[Operation, list[Any], list[list[int]]]:
    """A function of random types and operations; and, for every call of it, which of them it refused."""
    types = [draw.choice(TYPES) for _ in range(3)]
    plan = [(*draw.choice(OPERATIONS), [draw.random() for _ in range(3)]) for _ in range(5)]
    numbers = [draw.choice([0, 1, 2, 3, 7, -1]) for _ in range(2)]
    refused: list[list[int]] = []

    def function(a: Any, b: Any, c: Any) -> Any:
        known: list[Any] = [a, b, c]
        refused.append([])
        for step, (arity, operation, places) in enumerate(plan):
            pool = known + numbers if step % 2 else known
            # A number alone does nothing traced, so that a first operand is a value.
            chosen = [known[int(places[0] * len(known))], *(pool[int(p * len(pool))] for p in places[1:])]
            try:
                result = operation(*chosen[:arity])
            except (TapegradError, TypeError, IndexError, AttributeError):
                refused[-1].append(step)
                continue
            known += [own for own in flat(result) if hasattr(own, "wires")]
        return tuple(known)

    return function, types, refused


def agree(seed: int) -> int:
    """Compares a random function, traced and run, on random arguments; how many results it has."""
    draw = random.Random(seed)
    function, types, refused = random_function(draw)
    traced = trace(function, *types)
    cases = [[draw.choice(values_of(of)) for of in types] for _ in range(6)]
    *_, rows = traced.circuit.run(traced.circuit.start([traced.encode(*case) for case in cases]))
    for case, row in zip(cases, rows, strict=True):
        assert repr(traced.plain(*case)) == repr(traced.decode(row)), (seed, case)  # NaN is not equal to NaN
    assert all(own == refused[0] for own in refused), (seed, refused)
    return len(traced.output) - 3


def test_random_expressions() -> None:
    """A third of the operations do not go with their operands; most do."""
    assert sum(agree(seed) for seed in range(400)) > 400


@pytest.mark.slow
def test_many_random_expressions() -> None:
    """Others every day; a seed that fails is named."""
    first = 100_000 * date.today().toordinal()
    assert sum(agree(seed) for seed in range(first, first + 100_000)) > 100_000


def test_what_where_gives_has_the_common_type_for_either_condition() -> None:
    traced = trace(lambda c, x: where(c, 200, x) + 100 > 250, Bit, UInt(8))
    assert [traced(c, 0) for c in (0, 1)] == [traced.plain(c, 0) for c in (0, 1)] == [False, False]
    wider = trace(lambda c, x, y: where(c, x, y) + x, Bit, UInt(4), UInt(8))
    assert wider(1, 15, 0) == wider.plain(1, 15, 0) == 30


def test_sums_are_as_wide_as_their_widest_term() -> None:
    traced = trace(lambda a, b, c: total([a, b, c]), UInt(2), UInt(2), UInt(8))
    assert traced(3, 3, 1) == traced.plain(3, 3, 1) == 7


def test_a_function_that_depends_on_something_else_is_noticed() -> None:
    widths = iter([4, 5])
    traced = trace(lambda a: a.to(UInt(next(widths))), UInt(3))
    with pytest.raises(SourceError, match=r"UInt\(5\).*UInt\(4\)"):
        traced.plain(1)


@pytest.mark.parametrize("count", range(1, 9))
def test_sorting_networks_sort_all_zeros_and_ones(count: int) -> None:
    """Which suffices: the 0-1 principle, Knuth 5.3.4."""
    for number in range(1 << count):
        bits = [number >> place & 1 for place in range(count)]
        assert [int(bit) for bit in sort(Array(Bit, count)(bits))] == sorted(bits)


def test_sorting_traced_values() -> None:
    traced = trace(sort, Array(Int(4), 5))
    assert traced([3, -8, 7, 0, -1]) == traced.plain([3, -8, 7, 0, -1]) == [-8, -1, 0, 3, 7]
    assert list(sort([3, 1, 2])) == [1, 2, 3]


def test_writing_a_bit() -> None:
    traced = trace(lambda x, i, b: (x.with_bit(i, b), x.with_bit(0, 1)), Int(4), UInt(3), Bit)
    for x in values_of(Int(4)):
        for i in range(8):
            for b in (0, 1):
                bits = x & 15 & ~(1 << i) | (b << i & 15)
                expected = (bits - 16 if bits > 7 else bits, x | 1)
                assert traced(x, i, b) == traced.plain(x, i, b) == expected

    def assigned(x: Any) -> Any:
        x[0] = 1
        return x

    with pytest.raises(SourceError, match="with_bit"):
        trace(assigned, UInt(4))


@pytest.mark.parametrize(
    "table", [bytes([9, 250, 3]), np.array([9, 250, 3], np.uint8), np.array([-9, 2, 3], np.int16)]
)
def test_bytes_and_numpy_arrays_as_tables(table: Any) -> None:
    traced = trace(lambda i: array(table)[i] + 1, UInt(2))
    width, signed = (16, True) if isinstance(table, np.ndarray) and table.dtype == np.int16 else (8, False)
    assert traced.output == (Int if signed else UInt)(width)
    assert [traced(i) for i in range(3)] == [traced.plain(i) for i in range(3)] == [int(v) + 1 for v in table]


def test_plain_numbers_need_a_type() -> None:
    with pytest.raises(SourceError, match=r"UInt\(8\)\(3\)"):
        trace(lambda i: where(i == 1, 3, 250), UInt(2))
    with pytest.raises(SourceError, match="astype"):
        array(np.array([0.5j]))


def test_a_table_of_plain_numbers_has_the_least_type_that_holds_them() -> None:
    for table, of in (([9, 250, 3], UInt(8)), ([-9, 100, 3], Int(8)), ([1, 0, 1], UInt(1))):
        traced = trace(lambda i, own=table: array(own)[i], UInt(2))
        assert traced.output == of
        assert [traced(i) for i in range(4)] == [traced.plain(i) for i in range(4)] == [*table, 0]


PLAIN, NUMPYS = [9, 250, 3], np.array([9, 250, 3])


def in_a_list(i):
    return PLAIN[i] + 1


def in_bytes(i):
    return b"abcd"[i]


def in_an_array(i):
    return NUMPYS[i]


def among(i):
    return i in PLAIN


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (in_a_list, "return array(PLAIN)[i] + 1"),
        (in_bytes, "return array(b'abcd')[i]"),
        (in_an_array, "return array(NUMPYS)[i]"),
        (among, "return any_of(array(PLAIN) == i)"),
    ],
)
def test_looking_up_in_ordinary_sequences_is_refused_with_the_line_rewritten(
    function: Operation, says: str
) -> None:
    with pytest.raises(SourceError) as caught:
        trace(function, UInt(2))
    assert f"Write `{says}` instead." in str(caught.value)


GRID = np.arange(12).reshape(3, 4)
INDICES: list[Any] = [
    1, -1, slice(None), slice(1, None), slice(None, None, -1), (1, 2), (slice(None), 1), (0, slice(1, 3)),
    (slice(1, 3), slice(None, None, 2)), (slice(None), -1),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing_is_numpys(index: Any) -> None:
    traced = trace(lambda a: a[index], Array(UInt(8), 3, 4))
    assert traced(GRID.tolist()) == traced.plain(GRID.tolist()) == GRID[index].tolist()


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("whole", [True, False])
def test_assigning_is_numpys(index: Any, whole: bool) -> None:
    """A value of the region's own shape, or a single one for all of it."""
    values = (50 + np.arange(GRID[index].size)).reshape(GRID[index].shape).tolist() if whole else 77

    def function(a: Any) -> Any:
        alias, row = a, a[0]
        a[index] = array(values) if isinstance(values, list) else values
        return array(alias), row

    traced = trace(function, Array(UInt(8), 3, 4))
    expected = GRID.copy()
    expected[index] = values
    result = traced(GRID.tolist())
    assert result == traced.plain(GRID.tolist())
    assert result[0] == expected.tolist()
    if isinstance(index, tuple):
        assert result[1] == expected[0].tolist()


def test_a_traced_index_at_any_axis() -> None:
    def function(a: Any, i: Any, v: Any) -> Any:
        a[:, i] = v
        a[i, 0] = v + 1
        return a, a[1:, i]

    traced = trace(function, Array(UInt(8), 3, 4), UInt(2), UInt(8))
    for i in range(4):
        expected = GRID.copy()
        expected[:, i] = 99
        if i < 3:
            expected[i, 0] = 100
        outcome = (expected.tolist(), expected[1:, i].tolist())
        assert traced(GRID.tolist(), i, 99) == traced.plain(GRID.tolist(), i, 99) == outcome


def test_assigning_a_row_with_the_wrong_number_of_values() -> None:
    def function(a: Any) -> Any:
        a[1:] = array([1, 2, 3])
        return a

    with pytest.raises(SourceError, match="3 values cannot be assigned to 2 places"):
        trace(function, Array(UInt(4), 3))


@pytest.mark.parametrize("index", [None, ..., [0, 1], np.array([True, False, True]), 1.5, "0", True, ()])
def test_other_ways_to_index_are_refused(index: Any) -> None:
    with pytest.raises(SourceError, match="index"):
        trace(lambda a: a[index], Array(UInt(4), 3))


def test_shapes_meet_as_in_numpy() -> None:
    square, row = np.arange(9).reshape(3, 3), np.array([10, 20, 30])

    def function(a: Any, b: Any) -> Any:
        return a + b, b - a, a * 2, where(a < 4, b, a), a @ b, b @ a, a @ a, a // 2, a % 3

    traced = trace(function, Array(UInt(8), 3, 3), Array(UInt(8), 3))
    expected = (
        square + row, row - square, square * 2, np.where(square < 4, row, square), square @ row, row @ square,
        square @ square, square // 2, square % 3,
    )  # fmt: skip
    arguments = square.tolist(), row.tolist()
    result = traced(*arguments)
    assert result == traced.plain(*arguments)
    assert list(result) == [(part % 256).tolist() for part in expected]


@pytest.mark.parametrize(
    "function",
    [np.dot, np.add, lambda a, b: np.array([a, b]), lambda a, b: np.sum(a), lambda a, b: np.stack(a)],
)
def test_numpys_own_functions_are_refused(function: Operation) -> None:
    with pytest.raises((SourceError, TypeError)):
        trace(function, Array(UInt(4), 2), Array(UInt(4), 2))
    with pytest.raises((SourceError, TypeError)):
        trace(function, UInt(4), UInt(4))


def test_numbers_to_the_left_of_arrays() -> None:
    def function(a: Any) -> Any:
        return 7 // a, 7 % a, 3 << a, 2**a, 200 >> a, *divmod(6, a), *divmod(a, 3), np.array([1, 0, 1]) @ a

    traced = trace(function, Array(UInt(3), 3))
    a = np.array([1, 5, 7])
    wanted = 7 // a, 7 % a, 3 << a, 2**a, 200 >> a, *divmod(6, a), *divmod(a, 3), np.int64(8 % 8)
    assert traced(a) == traced.plain(a) == tuple(own.tolist() for own in wanted)


def test_python_integers_own_methods() -> None:
    traced = trace(lambda a: (a.bit_length(), a.bit_count(), +a), Int(4))
    for a in range(-8, 8):
        assert traced(a) == traced.plain(a) == (a.bit_length(), (a & 15).bit_count(), a)
    with pytest.raises(SourceError, match="step by step"):
        trace(lambda a: pow(a, 2, 5), UInt(4))
    with pytest.raises(SourceError, match=r"array\(values\)"):
        trace(lambda a: NUMPYS + a, UInt(4))


def test_postponed_annotations() -> None:
    def function(a, b):
        return a + b

    function.__annotations__ = {"a": "UInt(3)", "b": "Bit"}
    assert trace(function)(7, 1) == 0
    function.__annotations__ = {"a": "Nonsense(3)", "b": "Bit"}
    with pytest.raises(SourceError, match=r"'Nonsense\(3\)', which stands for nothing"):
        trace(function)


def in_one_line(a, b):
    return a if a < b else b + 1


def results(a, b):
    if a < b:
        return a
    return b + 1


def both_sides(a, b):
    if a == b:  # noqa: SIM108
        c = a
    else:
        c = b * 2
    return c


def one_side(a, b):
    if a == b:
        b = a + 1
    return b


def conjunction(a, b):
    return (a < b and b < 3) | (a == 7)


def negation(a, b):
    return not a


def chain(a, b):
    return 1 < a < b


def extremes(a, b):
    return max(a, b) + 1


def inner(a, b):
    b = [(2 if a < x else 3) for x in (b, 4)]
    return b[0]


def loops(a, b):
    while a < b:
        a = a + 1
    return a


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (in_one_line, "return where(a < b, a, b + 1)"),
        (results, "return where(a < b, a, b + 1)"),
        (both_sides, "c = where(a == b, a, b * 2)"),
        (one_side, "b = where(a == b, a + 1, b)"),
        (conjunction, "return (a < b) & (b < 3) | (a == 7)"),
        (negation, "return a == 0"),
        (chain, "return (1 < a) & (a < b)"),
        (extremes, "return largest([a, b]) + 1"),
        (inner, "b = [where(a < x, 2, 3) for x in (b, 4)]"),
    ],
)
def test_branches_are_refused_with_the_line_rewritten(function: Operation, says: str) -> None:
    with pytest.raises(SourceError) as caught:
        trace(function, UInt(4), UInt(4))
    assert f"Write `{says}` instead." in str(caught.value)


def counts_up(a, b):
    if a & 4:
        b += 3
    return b


def test_a_sum_in_a_branch_is_rewritten() -> None:
    """A test that is no comparison has the place of the whole statement."""
    with pytest.raises(SourceError, match=r"Write `b = where\(a & 4, b \+ 3, b\)` instead"):
        trace(counts_up, UInt(4), UInt(4))


def test_a_loop_gets_advice_with_its_own_test() -> None:
    with pytest.raises(SourceError, match=r"Loop a fixed number of times .*`where\(a < b, new, old\)`"):
        trace(loops, UInt(4), UInt(4))


FILES = {
    "import tapegrad as tg\ndef f(a: tg.UInt(4)):\n    return max(a, 3)\n": "Write `return tg.largest([a",
    "from tapegrad import UInt, largest\ndef f(a: UInt(4)):\n    return max(a, 3)\n": "`return largest([a",
    "import tapegrad\ndef f(a):\n    return a\n": "as in def f(a: tapegrad.UInt(8)): for 8",
    "import tapegrad as tg\ndef f(a: list[tg.UInt(4)]):\n    return a\n": "write tg.Array(tg.UInt(8), 4)",
    "import tapegrad as tg\ndef f(a: int):\n    return a\n": "write tg.UInt(8) for 0 to 255",
    "import tapegrad as tg\ndef f(a: 'UInt(8)'):\n    return a\n": "'UInt(8)', which stands for nothing",
    "import tapegrad as tg\ndef f(a: tg.UInt(4)):\n    a + 1\n": "'f' gives back nothing",
    "import tapegrad as tg\ndef f(a: tg.UInt(4)):\n    return {1: 2}[a]\n": "Use `tg.array(table)[x]`",
    "import tapegrad as tg\ndef f(a: tg.UInt(4)):\n    return f(a - 1)\n": "RecursionError",
    "import tapegrad as tg\ndef f(a: tg.UInt(4)[3]):\n    return a\n": "Write Array(UInt(4), 3)",
}


@pytest.mark.parametrize("text", FILES)
def test_advice_can_be_typed_as_it_stands(text: str, tmp_path: Path) -> None:
    """In the names that the file has: what it imported the package as, or the names themselves."""
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(TapegradError) as caught:
        read(f"{tmp_path / 'own.py'}:f")
    assert FILES[text] in str(caught.value)


def test_branches_that_have_no_such_line_get_advice_in_general() -> None:
    with pytest.raises(SourceError, match="Use `where"):
        trace(eval("lambda a: 1 if a else 0"), Bit)  # a function without a file


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda a: a + None, "TypeError: unsupported operand"),
        (lambda a: a.nothing, "AttributeError: .*'nothing'"),
        (lambda a: [a][3], "IndexError: list index"),
        (lambda a: 1 // (0 * len([a])), "ZeroDivisionError"),
    ],
)
def test_a_mistake_in_the_function_is_told_with_its_line(function: Operation, told: str) -> None:
    line = function.__code__.co_firstlineno
    with pytest.raises(SourceError, match=rf"'slip' ends in {told}.*test_one_meaning.py, line {line}"):
        trace(function, UInt(3), name="slip")
