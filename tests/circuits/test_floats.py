"""Floats as types: every result bit for bit that of NumPy, or, for formats that NumPy lacks, that of a search
among all floats."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tapegrad.circuits import (
    Array,
    BFloat16,
    Bit,
    Fixed,
    Float,
    Float16,
    Float32,
    Int,
    Traced,
    UFixed,
    UInt,
    array,
    largest,
    sort,
    total,
    trace,
    where,
)
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.library import FUNCTIONS
from tapegrad.circuits.types import layout_from_json, layout_to_json
from tapegrad.errors import InputError, SourceError

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
EVERY_HALF = np.arange(1 << 16)
EDGES = [0, 1, 2, 0x3FF, 0x400, 0x401, 0x7FF, 0x800, 0x37FF, 0x3800, 0x3BFF, 0x3C00, 0x3C01, 0x4000, 0x7800]
EDGES += [0x7BFE, 0x7BFF, 0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7FFF]
"""Zero, subnormals, powers of two and their neighbours, the largest, infinity, several NaNs."""

Whole = NDArray[np.int64]


def bits_of(numbers: Whole, width: int) -> NDArray[np.uint8]:
    return (numbers[:, None] >> np.arange(width) & 1).astype(np.uint8)


def by_circuit(traced: Traced, *patterns: Whole) -> Whole:
    """The output as an integer for every pattern of bits."""
    widths = [of.width for of in traced.inputs.values()]
    rows = np.hstack([bits_of(own, width) for own, width in zip(patterns, widths, strict=True)])
    outputs = evaluate(traced.circuit, rows).astype(np.int64)
    return (outputs << np.arange(outputs.shape[1])).sum(axis=1)


def by_function(traced: Traced, *patterns: Whole) -> list[int]:
    """The same by the function itself, on concrete values."""
    widths = [of.width for of in traced.inputs.values()]
    rows = np.hstack([bits_of(own, width) for own, width in zip(patterns, widths, strict=True)])
    *_, outputs = traced.run(rows.astype(bool))
    return [sum(int(bit) << place for place, bit in enumerate(row)) for row in outputs]


def half(patterns: Whole) -> NDArray[np.float16]:
    return patterns.astype(np.uint16).view(np.float16)


def pairs(count: int) -> tuple[Whole, Whole]:
    """All pairs of edges of either sign, random ones, and some whose difference is small."""
    draw = np.random.default_rng(7)
    edges = np.array([edge | sign for edge in EDGES for sign in (0, 0x8000)])
    a, b = draw.integers(0, 1 << 16, (2, count))
    near = (a + draw.integers(-1500, 1500, count)) % (1 << 16) ^ draw.integers(0, 2, count) << 15
    return (
        np.concatenate([np.repeat(edges, len(edges)), a, a]),
        np.concatenate([np.tile(edges, len(edges)), b, near]),
    )


def same_halves(found: Whole, wanted: NDArray[Any]) -> None:
    """Bit for bit; NaN for NaN, and always the same NaN."""
    nan = np.isnan(wanted)
    assert (found[nan] == Float16.nan).all()
    np.testing.assert_array_equal(found[~nan], wanted[~nan].view(np.uint16))


@pytest.mark.parametrize("operation", ARITHMETIC)
def test_arithmetic_is_numpys(operation: Callable[..., Any]) -> None:
    a, b = pairs(20_000)
    traced = trace(lambda x, y: operation(x, y), Float16, Float16)
    with np.errstate(all="ignore"):
        wanted = operation(half(a), half(b))
    found = by_circuit(traced, a, b)
    same_halves(found, wanted)
    assert by_function(traced, a[:600], b[:600]) == found[:600].tolist()
    assert by_function(traced, a[-300:], b[-300:]) == found[-300:].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("operation", ARITHMETIC)
def test_arithmetic_is_numpys_on_ten_million_pairs(operation: Callable[..., Any]) -> None:
    traced = trace(lambda x, y: operation(x, y), Float16, Float16)
    draw = np.random.default_rng(8)
    for _ in range(10):
        a, b = draw.integers(0, 1 << 16, (2, 1_000_000))
        with np.errstate(all="ignore"):
            same_halves(by_circuit(traced, a, b), operation(half(a), half(b)))


@pytest.mark.parametrize("operation", COMPARISONS)
def test_comparisons_are_numpys(operation: Callable[..., Any]) -> None:
    a, b = pairs(20_000)
    traced = trace(lambda x, y: operation(x, y), Float16, Float16)
    assert traced.output == Bit
    np.testing.assert_array_equal(by_circuit(traced, a, b), operation(half(a), half(b)))
    assert by_function(traced, a[:600], b[:600]) == operation(half(a), half(b))[:600].tolist()


@pytest.mark.parametrize("constant", [0.0, -0.0, 1.5, -65504.0, math.inf, math.nan, 6e-8])
def test_all_halves_against_constants(constant: float) -> None:
    """Comparisons, sums and products; constants to the left and to the right."""

    def function(x: Any) -> Any:
        compared = [x < constant, constant <= x, x == constant, x != constant]
        return [*compared, x + constant, constant - x, constant * x, x / constant]

    every, of = half(EVERY_HALF), np.float16(constant)
    with np.errstate(all="ignore"):
        compared = [every < of, of <= every, every == of, every != of]
        numbers = [every + of, of - every, of * every, every / of]
    rows = evaluate(trace(function, Float16).circuit, bits_of(EVERY_HALF, 16)).astype(np.int64)
    for place, wanted in enumerate(compared):
        np.testing.assert_array_equal(rows[:, place], wanted)
    for place, wanted in enumerate(numbers):
        part = rows[:, 4 + 16 * place : 20 + 16 * place]
        same_halves((part << np.arange(16)).sum(axis=1), wanted)


def test_one_operand_on_all_halves() -> None:
    """Negation and abs change the sign alone, of NaN too."""
    for function, wanted in ((operator.neg, EVERY_HALF ^ 0x8000), (abs, EVERY_HALF & 0x7FFF)):
        traced = trace(lambda x, own=function: own(x), Float16)
        np.testing.assert_array_equal(by_circuit(traced, EVERY_HALF), wanted)
        some = EVERY_HALF[::301]
        assert by_function(traced, some) == wanted[::301].tolist()


@pytest.mark.parametrize("of", [Int(8), UInt(8), Int(20), UInt(3)])
def test_all_halves_to_integers(of: Any) -> None:
    """Rounded down, modulo 2^width; what is no number gives 0."""
    traced = trace(lambda x: x.to(of), Float16)
    found = by_circuit(traced, EVERY_HALF)
    every = half(EVERY_HALF).astype(float)
    exact = np.where(np.isfinite(every), np.floor(np.where(np.isfinite(every), every, 0)), 0).astype(np.int64)
    np.testing.assert_array_equal(found, exact % (1 << of.width))
    assert by_function(traced, EVERY_HALF[::301]) == found[::301].tolist()


@pytest.mark.parametrize("of", [Fixed(6, 5), UFixed(4, 12), Fixed(20, 0)])
def test_all_halves_to_fixed_point(of: Any) -> None:
    traced = trace(lambda x: x.to(of), Float16)
    found = by_circuit(traced, EVERY_HALF)
    for pattern in (*EDGES, *range(0, 1 << 16, 97)):
        x = float(half(np.array([pattern]))[0])
        steps = math.floor(Fraction(x) * (1 << of.fraction)) if math.isfinite(x) else 0
        assert found[pattern] == steps % (1 << of.width), x
    assert by_function(traced, EVERY_HALF[::301]) == found[::301].tolist()


@pytest.mark.parametrize("of", [Int(12), UInt(17), Int(20)])
def test_integers_to_halves(of: Any) -> None:
    numbers = np.arange(1 << of.width)[:: 1 << max(0, of.width - 15)]
    traced = trace(lambda x: x.to(Float16), of)
    signed = np.where(of.signed & (numbers >> of.width - 1 == 1), numbers - (1 << of.width), numbers)
    with np.errstate(over="ignore"):
        same_halves(by_circuit(traced, numbers), signed.astype(np.float16))
    assert by_function(traced, numbers[::301]) == by_circuit(traced, numbers[::301]).tolist()


@pytest.mark.parametrize("of", [Fixed(4, 12), UFixed(0, 30), Fixed(30, 4)])
def test_fixed_point_to_halves(of: Any) -> None:
    numbers = np.random.default_rng(3).integers(0, 1 << of.width, 4000)
    values = np.array([of.number(int(number)) for number in numbers])
    with np.errstate(over="ignore"):
        same_halves(by_circuit(trace(lambda x: x.to(Float16), of), numbers), values.astype(np.float16))


@pytest.mark.parametrize(("of", "to"), [(Float16, Float32), (Float32, Float16), (Float32, BFloat16)])
def test_other_formats(of: Float, to: Float) -> None:
    """NumPy's casts; a bfloat16 is the upper half of a float32, rounded."""
    draw = np.random.default_rng(4)
    exponents = draw.integers(90, 145, 20_000) << 23 if of == Float32 else 0
    a = (draw.integers(0, 1 << of.width, 20_000) & (0x807FFFFF if of == Float32 else 0xFFFF)) | exponents
    a[:3] = of.infinity, of.nan, of.infinity | 1 << of.width - 1
    kinds: dict[Any, Any] = {Float16: np.uint16, Float32: np.uint32}
    values = a.astype(kinds[of]).view({Float16: np.float16, Float32: np.float32}[of])
    found = by_circuit(trace(lambda x: x.to(to), of), a)
    if to == BFloat16:
        wanted = a + 0x7FFF + (a >> 16 & 1) >> 16
        wanted[np.isnan(values)] = BFloat16.nan
        np.testing.assert_array_equal(found, wanted)
        return
    with np.errstate(over="ignore"):
        cast = values.astype({Float16: np.float16, Float32: np.float32}[to])
    nan = np.isnan(cast)
    np.testing.assert_array_equal(found[~nan], cast[~nan].view(kinds[to]))
    assert (found[nan] == to.nan).all()


@pytest.mark.parametrize("operation", [operator.add, operator.mul])
def test_float32_is_numpys(operation: Callable[..., Any]) -> None:
    draw = np.random.default_rng(5)
    a, b = draw.integers(0, 1 << 32, (2, 10_000))
    b[:5000] = (a[:5000] + draw.integers(-(1 << 25), 1 << 25, 5000)) % (1 << 32) ^ 1 << 31
    x, y = (own.astype(np.uint32).view(np.float32) for own in (a, b))
    with np.errstate(all="ignore"):
        wanted = operation(x, y)
    found = by_circuit(trace(lambda p, q: operation(p, q), Float32, Float32), a, b)
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(found[~nan], wanted[~nan].view(np.uint32))


def nearest(of: Float, exact: NDArray[np.float64]) -> Whole:
    """The bits of the floats next to these numbers, found among all of them: of two the even one; from half a
    step beyond the last on, infinity."""
    finite = np.array([of.number(bits) for bits in range(of.infinity)])
    middles = np.append((finite[:-1] + finite[1:]) / 2, finite[-1] + (finite[-1] - finite[-2]) / 2)
    place = np.searchsorted(middles, np.abs(exact))
    tie = (place < len(middles)) & (middles[np.minimum(place, len(middles) - 1)] == np.abs(exact))
    return place + (tie & (place % 2 == 1)) | np.signbit(exact) << of.width - 1


@pytest.mark.parametrize("of", [Float(4, 3), Float(2, 1), Float(3, 2)])
@pytest.mark.parametrize("operation", ARITHMETIC)
def test_all_pairs_of_small_floats(of: Float, operation: Callable[..., Any]) -> None:
    """Exponents of small formats have less room than the significands: the shifts must not mind."""
    count = 1 << of.width
    a, b = np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
    traced = trace(lambda x, y: operation(x, y), of, of)
    found = by_circuit(traced, a, b)
    numbers = np.array([of.number(bits) for bits in range(count)])
    with np.errstate(all="ignore"):
        exact = operation(numbers[a], numbers[b])  # in double precision, which has room for all but quotients
    np.testing.assert_array_equal(found, np.where(np.isnan(exact), of.nan, nearest(of, exact)))
    some = np.random.default_rng(1).integers(0, len(a), 300)
    assert by_function(traced, a[some], b[some]) == found[some].tolist()


def test_types_decide_and_do_not_mix() -> None:
    with pytest.raises(SourceError, match=r"do not mix.*\.to"):
        trace(lambda x, y: x + y, Float16, Float32)
    with pytest.raises(SourceError, match="do not mix"):
        trace(lambda x, y: x < y, Float16, Int(8))
    with pytest.raises(SourceError, match="no integer"):
        trace(lambda x: x + 1.5, Int(8))
    with pytest.raises(SourceError, match="//"):
        trace(lambda x: x / 2, Int(8))
    with pytest.raises(SourceError, match="mantissa"):
        Float(5, 60)
    for of in (Float16, Fixed(3, 4), UFixed(0, 9)):
        assert layout_from_json(layout_to_json(of)) == of
    for text in ("Float(5, 010)", "Float(5,10)", "Fixed(3)", "Float(5, 99)", "UInt(0)", "Float(5, 10) "):
        with pytest.raises((ValueError, SourceError)):
            layout_from_json(text)


def test_values_are_chosen_sorted_and_looked_up() -> None:
    table = np.array([1.5, -2.25, 1e-7, np.inf], np.float16)

    def function(x: Any, i: Any, c: Any) -> Any:
        looked_up = array(table)[i]
        return sort([x, looked_up, 0.5]), where(c, x, 2.5), largest([x, looked_up]), total([x, 1, looked_up])

    traced = trace(function, Float16, UInt(2), Bit)
    for x in (0.1, -7.0, 65504.0):
        for i, own in enumerate(table.tolist()):
            rounded = float(np.float16(x))
            with np.errstate(over="ignore"):
                added = float(np.float16(x) + np.float16(1) + np.float16(own))
            wanted = sorted([rounded, own, 0.5]), (2.5, rounded)[i % 2], max(rounded, own), added
            assert traced(x, i, i % 2) == traced.plain(x, i, i % 2) == wanted


def test_arrays_of_floats() -> None:
    traced = trace(lambda a, b: a @ b, Array(Float16, 3), Array(Float16, 3))
    a, b = np.array([0.1, 2.7, -3.3], np.float16), np.array([1.1, 0.3, 5.5], np.float16)
    products = a * b
    wanted = float(products[0] + products[1] + products[2])
    assert traced(a, b) == traced.plain(a.tolist(), b.tolist()) == wanted


def test_ready_functions() -> None:
    assert FUNCTIONS["float16-add"].traced("sum")(1.5, 2.25) == 3.75
    assert FUNCTIONS["float16-multiply"].traced("product").plain(1.5, 2.25) == 3.375
    assert FUNCTIONS["float16-less"].traced("less")(1.5, 2.25) is True
    with pytest.raises(InputError, match="no number"):
        FUNCTIONS["float16-add"].traced("sum")("much", 1)
