"""Conditions under which nets are exact, tried on either side of where they stop to hold."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._sources import read
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine, Matrix
from tapegrad.networks.heads import Block
from tapegrad.targets.emulator import constants as memory
from tapegrad.targets.rcnn.exactness import bump_rounding, kink_margin
from tapegrad.targets.transformer.exactness import require_absorbed, stray_weight, temperature_for
from tapegrad.targets.transformer.net import TransformerNet

# The practical memory of the emulator


@pytest.mark.parametrize("cells", [1, 2, 3, 4, 5, 8, 9, 1000])
def test_gates_share_the_output(cells: int) -> None:
    u = memory.gate_weight(cells)
    assert math.frexp(u)[0] == 0.5
    assert u * cells <= 1 < 2 * u * cells


def test_the_drift_is_that_of_the_derivation() -> None:
    assert memory.drift(1.0, 1, 1) == (20 * 7 + 41 + 28) / 2
    assert memory.drift(2.0**-2, 4, 3) == 2 * 9 / 2 / 16 * (20 * 25 * 4 + 41 + 28 * 16)


@pytest.mark.parametrize(
    ("precision", "cells", "largest"), [("float64", 5, -33), ("float32", 5, -18), ("float64", 1, -30)]
)
def test_changes_vanish_up_to_some_size_of_a_cell(precision: str, cells: int, largest: int) -> None:
    """The smallest weight is 3u/8 = 1.5 u/4; half its unit, u/4 2^-p, is more than the change 8 w0^2 / u."""
    number, u = np.dtype(precision).type, memory.gate_weight(cells)
    assert memory.changes_vanish(2.0**largest, cells, precision)
    assert not memory.changes_vanish(2.0 ** (largest + 1), cells, precision)
    smallest, change = number(3 * u / 8), number(8 * 4.0**largest / u)
    assert smallest + change == smallest == smallest - change


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("cells", "steps"), [(1, 1), (1, 10**9), (5, 10), (5, 10**6), (100, 1), (100, 10**7)]
)
def test_cells_are_as_large_as_they_may_be(cells: int, steps: int, precision: str) -> None:
    chosen = memory.choose(cells, steps, precision)
    assert chosen.gate == memory.gate_weight(cells)

    def will_do(w0: float) -> bool:
        return memory.changes_vanish(w0, cells, precision) and memory.drift(w0, cells, steps) <= 1 / 8

    assert will_do(chosen.w0)
    assert not will_do(2 * chosen.w0)
    assert (chosen.gain * chosen.w0, chosen.read * chosen.w0) == (1 / 2, -4)
    assert chosen.rate * 4 * chosen.gate * chosen.gain == 2 * chosen.w0


def test_memories_that_do_not_fit_a_precision_are_refused() -> None:
    memory.choose(1 << 19, 1, "float32")
    with pytest.raises(Refused, match="too many for float32"):
        memory.choose((1 << 19) + 1, 1, "float32")
    for precision, exponent in (("float32", 61), ("float64", 509)):
        longest = int(2**exponent / math.sqrt(4 * (20 * 7 + 41 + 28)))
        assert memory.choose(1, longest - longest // 10**6, precision).w0 == 2.0**-exponent
        with pytest.raises(Refused, match=f"beyond the range of {precision}"):
            memory.choose(1, longest + longest // 10**6, precision)


@pytest.mark.parametrize("p", [Fraction(3), Fraction(11, 9), Fraction(4)])
def test_the_paths_of_exact_memory_give_one_share_and_flip(p: Fraction) -> None:
    """In logarithms, with doubles: open, a path gives 1/m0; the rate turns every weight into its negative; a
    control at 2 takes away what v_4 gets."""
    own = memory.ExactConstants.of(p, 3)
    field = own.field
    bases = [math.log(2), math.log(p), math.log(field.m0)]

    def log(number) -> float:
        r, exponents = number.r, number.exponents
        return math.log(r) + sum(float(e) * base for e, base in zip(exponents, bases, strict=True))

    path = [log(own.path(t)) for t in range(1, 7)]
    value, values = math.log(2), []
    for weight in path[:5]:
        value = float(p) * (value + weight)
        values.append(value)
    share = value + path[5]
    assert share == pytest.approx(-math.log(field.m0), rel=1e-9)
    for t, weight in enumerate(path, start=1):
        slope = math.log(4 * p) + share + (6 - t) * math.log(p) - weight
        assert log(own.rate) + slope == pytest.approx(math.log(2) + weight, rel=1e-9)
    assert log(own.first) == pytest.approx(values[0], rel=1e-9)
    assert log(own.control) == pytest.approx(values[2] + path[3] - math.log(2), rel=1e-9)
    assert math.log(2) + path[0] < 1e-9


def test_exponents_out_of_range_are_refused() -> None:
    for p in (Fraction(1), Fraction(41, 10)):
        with pytest.raises(Refused, match="above 1 and at most 4"):
            memory.ExactConstants.of(p, 1)
    assert memory.ExactConstants.of(Fraction(11, 9), 10**30).field.m0 == 10**30


# Softmax


@pytest.mark.parametrize("radius", [1 / 4, 1 / 3])
def test_softmax_is_sharp_enough_and_rounds_little_enough(radius: float) -> None:
    most = int(radius / 4 * 2**24)  # keys, by 2 N u <= radius / 2
    beta = temperature_for(most - 2, radius)
    assert stray_weight(most - 2, beta) == pytest.approx(radius / 2)
    with pytest.raises(Refused, match="not exact in single precision"):
        temperature_for(most - 1, radius)
    assert stray_weight(8, 3.0, 2.0) == 10 * math.exp(-6)


def test_softmax_that_corrections_do_not_absorb_is_refused() -> None:
    net = compile(read("1RB1LB_1LA1RZ"), "transformer", form="paper", steps=3, attention="softmax").net
    assert isinstance(net, TransformerNet)
    layers, steps, beta = net.layers, net.layout.steps, net.temperature
    require_absorbed(layers, steps, beta)
    with pytest.raises(Refused, match="do not absorb"):
        require_absorbed(layers, steps, beta - 1e-9)
    with_encoder = next(n for n, layer in enumerate(layers) if layer.encoder_attention is not None)
    attending = next(n for n, layer in enumerate(layers) if len(layer.attended()))
    for number, alter in ((attending, _doubled), (with_encoder, _asked)):
        altered = tuple(alter(layer) if n == number else layer for n, layer in enumerate(layers))
        with pytest.raises(Refused, match="do not absorb"):
            require_absorbed(altered, steps, beta)


def _doubled(layer: Block) -> Block:
    """Rows that read what an attention adds read it twice."""
    first, *rest = layer.feed_forward
    return replace(layer, feed_forward=(replace(first, map=_scaled(first.map, 2.0)), *rest))


def _scaled(map: Affine | Matrix, by: float) -> Matrix:
    dense = map.dense()
    return replace(dense, weight=by * np.asarray(dense.weight))


def _asked(layer: Block) -> Block:
    """The query to the encoder reads all coordinates, also those that the same layer adds to."""
    attention = layer.encoder_attention
    assert attention is not None
    query = attention.query.dense()
    everywhere = replace(query, weight=np.ones_like(np.asarray(query.weight)))
    return replace(layer, encoder_attention=replace(attention, query=everywhere))


# Filters


def _filter(*maps: tuple[list[int], list[float], list[float]]) -> Any:
    """As much of a filter as the numbers below depend on: rows, values and biases of each map."""
    found = []
    for rows, values, bias in maps:
        entries = SimpleNamespace(rows=np.array(rows), values=np.array(values), bias=np.array(bias))
        found.append(SimpleNamespace(entries=lambda entries=entries: entries, bias=entries.bias))
    return SimpleNamespace(maps=found)


def test_questions_of_a_filter_by_hand() -> None:
    """Values from -1 to 2 are 3 apart at most. A question adds up |weights| times that, and its bias; there
    are two roundings more than terms."""
    values, eps = np.array([2.0, -1.0, 0.5]), float(np.finfo(np.float64).eps)
    for bias, wanted in (([0.5, 7.0], 4 * 15.5), ([0.5, -20.0], 3 * 23.0), ([0.0, 0.0], 4 * 15.0)):
        questions = _filter(([], [], []), ([0, 0, 1], [2.0, -3.0, 1.0], bias))
        assert bump_rounding(questions, values) == wanted * eps
    for kinks, margin in (([0.0], 0.5), ([0.75], 0.25), ([-3.0], 2.0), ([3.0], 1.0), ([0.0, 1.75], 0.25)):
        assert kink_margin(_filter(([], [], [-kink for kink in kinks])), values) == margin
