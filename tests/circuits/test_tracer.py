"""Traced functions against Python's own integers, exhaustively at small widths."""

import itertools
import time
from operator import add, and_, eq, floordiv, ge, gt, le, lshift, lt, mod, mul, ne, or_, rshift, sub, xor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.circuits import (
    Array,
    Bit,
    Int,
    UInt,
    all_of,
    any_of,
    array,
    concat,
    count_ones,
    largest,
    parity,
    smallest,
    total,
    trace,
    where,
)
from tapegrad.errors import InputError, Refused, SourceError
from tapegrad.targets.relu.target import TARGET as RELU


def values(of):
    if of == Bit:
        return range(2)
    return range(-(1 << of.width - 1), 1 << of.width - 1) if of.signed else range(1 << of.width)


def wrapped(number, of):
    """What a Python integer becomes in a type of fixed width."""
    number %= 1 << of.width
    return number - (1 << of.width) if of.signed and number >= 1 << of.width - 1 else number


def all_agree(function, types, expected):
    """The circuit, for every input at once, and the function on concrete values."""
    traced = trace(function, *types)
    cases = list(itertools.product(*map(values, types)))
    *_, rows = traced.circuit.run(traced.circuit.start([traced.encode(*case) for case in cases]))
    for case, row in zip(cases, rows, strict=True):
        assert traced.decode(row) == expected(*case) == traced.plain(*case), case


@pytest.mark.parametrize("of", [UInt(4), Int(4), UInt(1), Int(1)])
@pytest.mark.parametrize("operation", [add, sub, mul, and_, or_, xor])
def test_arithmetic_wraps(operation, of):
    all_agree(operation, [of, of], lambda a, b: wrapped(operation(a, b), of))


@pytest.mark.parametrize("types", [(UInt(3), UInt(5)), (Int(3), Int(5)), (Int(5), Bit), (UInt(4), Bit)])
@pytest.mark.parametrize("operation", [add, sub, mul, and_, or_, xor])
def test_the_wider_type_wins(operation, types):
    wider = max(types, key=lambda t: t.width)
    all_agree(operation, types, lambda a, b: wrapped(operation(a, b), wider))
    all_agree(operation, types[::-1], lambda a, b: wrapped(operation(a, b), wider))


@pytest.mark.parametrize(
    "types",
    [(UInt(4), UInt(4)), (Int(4), Int(4)), (Int(3), UInt(4)), (UInt(2), Int(4)), (Bit, Int(3)), (Bit, Bit)],
)
@pytest.mark.parametrize("operation", [eq, ne, lt, le, gt, ge])
def test_comparisons_compare_the_numbers(operation, types):
    all_agree(operation, types, operation)


@pytest.mark.parametrize("of", [UInt(4), Int(4)])
@pytest.mark.parametrize("number", [-17, -3, 0, 5, 7, 16, 40])
@pytest.mark.parametrize("operation", [eq, ne, lt, le, gt, ge])
def test_comparisons_with_any_python_number(operation, of, number):
    all_agree(lambda a: operation(a, number), [of], lambda a: operation(a, number))
    all_agree(lambda a: operation(number, a), [of], lambda a: operation(number, a))


@pytest.mark.parametrize("of", [UInt(4), Int(4), UInt(1), Int(1)])
@pytest.mark.parametrize("operation", [floordiv, mod])
def test_division_is_pythons_and_total(operation, of):
    def expected(a, b):
        by_zero = {floordiv: -1, mod: a}[operation]
        return wrapped(operation(a, b) if b else by_zero, of)

    all_agree(operation, [of, of], expected)
    all_agree(lambda a: (operation(a, 1), operation(1, a)) if of.width > 1 else (operation(a, a),), [of],
              lambda a: (expected(a, 1), expected(1, a)) if of.width > 1 else (expected(a, a),))  # fmt: skip


@pytest.mark.parametrize("types", [(Int(5), Int(3)), (UInt(3), UInt(5)), (UInt(4), Bit), (Bit, Int(3))])
def test_divmod(types):
    wider = max(types, key=lambda t: t.width)

    def expected(a, b):
        quotient, rest = divmod(int(a), int(b)) if b else (-1, int(a))
        return wrapped(quotient, wider), wrapped(rest, wider)

    all_agree(divmod, types, expected)
    assert trace(lambda a: divmod(7, a), UInt(4))(2) == (3, 1)


@pytest.mark.parametrize("of", [UInt(4), Int(4)])
def test_powers(of):
    all_agree(pow, [of, UInt(3)], lambda a, n: wrapped(a**n, of))
    all_agree(lambda a: (a**0, a**1, a**5), [of], lambda a: tuple(wrapped(a**n, of) for n in (0, 1, 5)))
    all_agree(lambda n: (3**n, 2**n, 0**n), [UInt(3)], lambda n: (3**n, 2**n, 0**n))


def test_numbers_shifted_by_a_value_keep_all_their_bits():
    all_agree(
        lambda n: (1 << n, 5 << n, 0 << n, 200 >> n, -9 >> n),
        [UInt(3)],
        lambda n: (1 << n, 5 << n, 0, 200 >> n, -9 >> n),
    )


@pytest.mark.parametrize("of", [UInt(5), Int(5)])
@pytest.mark.parametrize("operation", [lshift, rshift])
def test_shifts(operation, of):
    all_agree(operation, [of, UInt(4)], lambda a, n: wrapped(operation(a, n), of))
    all_agree(operation, [of, Bit], lambda a, n: wrapped(operation(a, n), of))
    for by in (0, 2, 5, 9):
        all_agree(lambda a, by=by: operation(a, by), [of], lambda a, by=by: wrapped(operation(a, by), of))


@pytest.mark.parametrize("of", [UInt(4), Int(4)])
def test_single_operands(of):
    all_agree(lambda a: (-a, ~a), [of], lambda a: (wrapped(-a, of), wrapped(~a, of)))
    all_agree(lambda a: (abs(a), a.bit_count()), [of], lambda a: (abs(a), (a & 15).bit_count()))
    all_agree(
        lambda a: (3 - a, a * 5, 1 + a, a & 0b1010, 2 | a, 7 ^ a),
        [of],
        lambda a: tuple(wrapped(x, of) for x in (3 - a, a * 5, 1 + a, a & 0b1010, 2 | a, 7 ^ a)),
    )


def test_casts_extend_by_sign_and_cut_off():
    for before, after in itertools.product((UInt(3), Int(3), Bit), (UInt(5), Int(5), UInt(2), Int(2))):
        all_agree(lambda a, after=after: a.to(after), [before], lambda a, after=after: wrapped(a, after))


def test_bits_of_an_integer():
    all_agree(
        lambda a, i: (a[0], a[-1], a[1:4], a[i], concat(a[3:], a[:3]), concat(a[0], 1, a)),
        [UInt(6), UInt(3)],
        lambda a, i: (
            bool(a & 1),
            bool(a >> 5),
            a >> 1 & 7,
            bool(a >> i & 1),
            a >> 3 | (a & 7) << 3,
            a & 1 | 2 | a << 2,
        ),
    )


def test_where_over_structures():
    def function(c, a, b):
        return where(c, {"x": a, "y": [b, 1]}, {"x": b, "y": [a, c]}), where(c, 0, 1), where(a, b, 9)

    def expected(c, a, b):
        chosen = {"x": a, "y": [b, 1]} if c else {"x": b, "y": [a, False]}
        return chosen, not c, b if a else 9

    all_agree(function, [Bit, UInt(3), UInt(4)], expected)
    assert where(True, "any", "thing") == "any"  # ordinary conditions choose between anything


def test_where_element_by_element():
    traced = trace(lambda a, b: where(a < b, a, 9), Array(UInt(4), 3), Array(UInt(4), 3))
    case = [1, 7, 3], [2, 2, 4]
    assert traced(*case) == traced.plain(*case) == [1, 9, 3]


def test_reductions():
    def function(a, b, c):
        bits = a.bits() + b.bits()
        numbers = [a, b, c]
        return (
            (any_of(bits), all_of(bits), parity(bits), count_ones(bits)),
            (total(numbers), smallest(numbers), largest(numbers), sum(numbers)),
        )

    def expected(a, b, c):
        ones = bin(a).count("1") + bin(b).count("1")
        numbers = (a, b, c)
        sums = (sum(numbers) % 8, min(numbers), max(numbers), sum(numbers) % 8)
        return (ones > 0, ones == 5, ones % 2 == 1, ones), sums

    all_agree(function, [UInt(3), UInt(2), UInt(3)], expected)


@pytest.mark.parametrize("length", [1, 3, 4, 5])
def test_reading_an_array_by_a_traced_index(length):
    traced = trace(lambda a, i, x: (a[i], array([x, *a[1:]])[0]), Array(UInt(5), length), UInt(3), UInt(5))
    for index in range(8):
        cells = [7 * k + 3 & 31 for k in range(length)]
        expected = cells[index] if index < length else 0
        assert traced(cells, index, 9) == traced.plain(cells, index, 9) == (expected, 9)


@pytest.mark.parametrize("length", [1, 3, 4, 5])
def test_writing_an_array_by_a_traced_index(length):
    def function(a, i, v):
        a[i] = v
        a[0] = a[0] + 1
        return a

    traced = trace(function, Array(UInt(5), length), UInt(3), UInt(5))
    for index in range(8):
        cells = [7 * k + 3 & 31 for k in range(length)]
        expected = list(cells)
        if index < length:
            expected[index] = 11
        expected[0] += 1
        assert traced(cells, index, 11) == traced.plain(cells, index, 11) == expected


def test_two_dimensions():
    def function(a, i, j, v):
        a[i, j] = v
        a[0, 1] = ~a[0, 1]
        return a, a[j, i], a[1] ^ a[0]

    traced = trace(function, Array(Bit, 2, 3), Bit, UInt(2), Bit)
    for i, j, v in itertools.product(range(2), range(3), range(2)):
        grid = [[True, False, True], [False, False, True]]
        expected = np.array(grid)
        expected[i, j] = v
        expected[0, 1] ^= True
        other = bool(expected[j, i]) if j < 2 else False
        answer = (expected.tolist(), other, (expected[1] ^ expected[0]).tolist())
        assert traced(grid, i, j, v) == traced.plain(grid, i, j, v) == answer


def test_arrays_work_element_by_element():
    def function(a, b, x):
        grown = a + b
        grown += x
        return grown, a * b - x, a < b, ~a, np.array([1, 2, 3]) + a, a == [1, 2, 3]

    def expected(a, b, x):
        a, b = np.array(a), np.array(b)
        parts = (
            (a + b + x) % 256,
            (a * b - x) % 256,
            a < b,
            255 - a,
            (a + np.array([1, 2, 3])) % 256,
            a == [1, 2, 3],
        )
        return tuple(part.tolist() for part in parts)

    traced = trace(function, Array(UInt(8), 3), Array(UInt(8), 3), UInt(8))
    for case in [([1, 2, 200], [4, 255, 3], 7), ([0, 9, 3], [5, 5, 5], 250)]:
        assert traced(*case) == traced.plain(*case) == expected(*case)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_32_bit_multiplier(a, b):
    assert MULTIPLIER(a, b) == a * b == MULTIPLIER.plain(a, b)


MULTIPLIER = trace(lambda a, b: a.to(UInt(64)) * b, UInt(32), UInt(32), name="multiplier")


def test_names_and_types_of_inputs_and_outputs():
    def function(c: Bit, x: UInt(2), m: Array(Bit, 2, 2), rest: (Bit, Int(1)) = None, steps: int = 3):  # type: ignore
        return {"sum": x + steps, "carry": c, "pair": (rest[0], m[1])}

    circuit = trace(function, rest=(Bit, Int(1))).circuit
    rows = ("m[0][0]", "m[0][1]", "m[1][0]", "m[1][1]")
    assert circuit.inputs == ("c", "x[0]", "x[1]", *rows, "rest[0]", "rest[1][0]")
    assert circuit.outputs == ("sum[0]", "sum[1]", "carry", "pair[0]", "pair[1][0]", "pair[1][1]")
    assert trace(lambda *bits: bits, Bit, UInt(2)).circuit.inputs == ("x0", "x1[0]", "x1[1]")
    assert trace(lambda a: a, UInt(2)).circuit.outputs == ("out[0]", "out[1]")


def test_few_gates():
    assert trace(lambda a, b: a + b, UInt(8), UInt(8)).circuit.size == 2 + 5 * 6 + 2
    assert trace(lambda c, a, b: where(c, a, b), Bit, UInt(8), UInt(8)).circuit.size == 24
    assert trace(lambda a: a * 8 + (a ^ a) + (a & 0), UInt(8)).circuit.size == 1  # constant zeros
    assert trace(lambda a: where(Bit(1), a << 3, a >> 2), UInt(8)).circuit.size == 1


def branch(a):
    return 1 if a < 3 else 0


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (branch, [UInt(4)]),
        (lambda a: not a, [Bit]),
        (lambda a, b: a and b, [Bit, Bit]),
        (lambda a, b: max(a, b), [UInt(4), UInt(4)]),
        (lambda a: [1, 2, 3][a], [UInt(2)]),
        (lambda a: 1 if a == [1, 0] else 0, [Array(Bit, 2)]),
        (lambda a: list(range(a)), [UInt(2)]),
    ],
)
def test_branching_names_where_and_the_line(function, types):
    with pytest.raises(SourceError, match="where") as caught:
        trace(function, *types)
    assert caught.value.where.startswith("test_tracer.py, line ")


@pytest.mark.parametrize(
    ("function", "types", "says"),
    [
        (lambda a, b: a + b, [UInt(4), Int(4)], "do not mix"),
        (lambda a: a + 16, [UInt(4)], "does not fit"),
        (lambda a, b: a**b, [UInt(4), Int(2)], "unsigned"),
        (lambda a: a**-1, [UInt(4)], "power"),
        (lambda a: a << a, [Int(4)], "unsigned"),
        (lambda a: a << True, [Bit], "no arithmetic"),
        (lambda a: a << -1, [UInt(4)], "shift"),
        (lambda a, i: array([a, a])[i], [Bit, Int(2)], "unsigned"),
        (lambda a: 3, [Bit], "no bit, number or array"),
        (lambda a: where(a, 3, 4), [Bit], "type of 3 and 4"),
        (lambda a: array(["x", "y"])[a], [Bit], "single values"),
        (lambda a: array([None, a])[a], [Bit], "single values"),
        (lambda a, b: a, [Bit], "no type"),
        (lambda a: a, [Bit, Bit], "do not match"),
        (lambda a: a, ["Bit"], "stands for nothing"),
        (lambda a: a, [7], "is no type"),
        (lambda a, b: a + b, [Array(UInt(3), 2), Array(UInt(3), 3)], "do not go together"),
        (lambda a: total([a, a]), [Bit], "count_ones"),
        (lambda a: sum([a, a]), [Bit], "count_ones"),
        (lambda a: 1 << a, [UInt(8)], "width"),
        (lambda a: -1 << a, [UInt(2)], "width"),
        (lambda a: 3**a, [UInt(6)], "width"),
    ],
)
def test_mistakes_are_named(function, types, says):
    with pytest.raises(SourceError, match=says):
        trace(function, *types)


@pytest.mark.parametrize("arguments", [(1,), (1, 2, 3), (16, 0), (-1, 0), (1.5, 0), ("1", 0), ([1], 0)])
def test_arguments_that_do_not_fit(arguments):
    traced = trace(lambda a, b: a + b, UInt(4), UInt(4))
    for way in (traced, traced.plain):
        with pytest.raises(InputError):
            way(*arguments)


@pytest.mark.parametrize(
    ("operation", "width", "gates"),
    [(mul, 4096, 50_343_936), (floordiv, 2048, 33_554_432), (pow, 512, 200_737_152)],
)
def test_what_would_take_minutes_is_refused_in_a_second(operation, width, gates):
    began = time.perf_counter()
    with pytest.raises(
        Refused, match=rf" of {width:,} bits takes about {gates:,} gates.*at most.*test_tracer\.py"
    ):
        trace(lambda a, b: operation(a, b), UInt(width), UInt(width))
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("operation", [mul, floordiv, pow])
def test_as_many_gates_are_told_as_there_would_be(operation, monkeypatch):
    def function(a, b):
        return operation(a, b)

    size = trace(function, UInt(24), UInt(24)).circuit.size
    monkeypatch.setattr("tapegrad.circuits.tracer.MOST_GATES", int(1.3 * size))
    assert trace(function, UInt(24), UInt(24)).circuit.size == size
    monkeypatch.setattr("tapegrad.circuits.tracer.MOST_GATES", int(0.8 * size))
    with pytest.raises(Refused, match="takes about"):
        trace(function, UInt(24), UInt(24))


def test_what_takes_long_says_so(monkeypatch, capsys):
    """How far it is, and then that it is compiled; whoever need not wait is told nothing."""

    def slow(a):
        for _ in range(40):
            time.sleep(0.01)
            a = a * 3 + 1
        return a

    def build(*_, **settings):
        time.sleep(0.3)
        return made(*_, **settings)

    monkeypatch.setattr("tapegrad._alive.FIRST", 600)  # however busy the machine is
    tg.compile(trace(slow, UInt(8)), "relu")
    assert capsys.readouterr().err == ""
    made = RELU.build
    monkeypatch.setitem(vars(RELU), "build", build)
    monkeypatch.setattr("tapegrad._alive.FIRST", 0.1)
    monkeypatch.setattr("tapegrad._alive.THEN", 0.1)
    tg.compile(trace(slow, UInt(8)), "relu")
    *traced, last = capsys.readouterr().err.splitlines()
    sizes = [
        int(said.removeprefix("slow: ").removesuffix(" gates so far").replace(",", ""))
        for said in traced
        if "so far" in said
    ]
    assert last == "slow is being compiled for relu"
    assert len(sizes) > 1
    assert sizes == sorted(set(sizes))
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_a_wide_product_with_few_ones_is_quick():
    began = time.perf_counter()
    traced = trace(lambda a: a * 5, UInt(16_384))
    assert traced(3 << 16_000) == 15 << 16_000
    assert time.perf_counter() - began < 5
