"""Values going in and coming out, of every width, signed and not, in every form in which a user has them: no
bit is lost, and arrays have the type of the width, whatever the values are. Python's integers are the oracle.
"""

import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad._sources import kind_of, parse_inputs
from tapegrad.circuits.scalars import limits
from tapegrad.errors import InputError
from tests.test_cli import tapegrad


class Tensor:
    """An array of another package, such as PyTorch's."""

    def __init__(self, array: np.ndarray) -> None:
        self.own = array

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.own


def held(width: int, signed: bool) -> Any:
    """The type of an array that holds all integers of this width."""
    return np.int64 if width + (not signed) <= 64 else np.uint64 if width <= 64 else object


@cache
def complement(width: int, signed: bool) -> tg.Compiled:
    """x -> -1 - x as a net; 2^width - 1 - x where it is unsigned."""
    return tg.compile(tg.trace(lambda x: ~x, (tg.Int if signed else tg.UInt)(width)), "relu")


@cache
def complement_of_rows(width: int, signed: bool) -> tg.Compiled:
    """The same of two numbers."""
    rows = tg.Array((tg.Int if signed else tg.UInt)(width), 2)
    return tg.compile(tg.trace(lambda x: {"out": tg.array([~x[0], ~x[1]])}, rows), "relu")


@cache
def circuit(width: int) -> tg.Compiled:
    """The same as a circuit, whose numbers are unsigned."""
    return tg.compile(tg.trace(lambda x: ~x, tg.UInt(width)).circuit, "relu")


def lists(values: list[int], width: int, signed: bool) -> list[Any]:
    """A list of numbers as users have it."""
    arrays = [np.array(values, object)]
    for exact in (np.uint8, np.int8, np.uint32, np.int32, np.uint64, np.int64):
        if np.iinfo(exact).min <= min(values) and max(values) <= np.iinfo(exact).max:
            arrays.append(np.array(values, exact))
    found = [values, tuple(values), *arrays, *map(Tensor, arrays), [np.asarray(v)[()] for v in values]]
    if find_spec("torch") and np.iinfo(np.int64).min <= min(values) and max(values) <= np.iinfo(np.int64).max:
        import torch

        found.append(torch.tensor(values))
    return found


WIDTHS = st.one_of(
    st.sampled_from([1, 8, 31, 32, 33, 52, 53, 54, 62, 63, 64, 65, 127, 128]), st.integers(1, 128)
)


@st.composite
def numbers(draw: Callable[..., Any]) -> tuple[int, bool, list[int]]:
    """A width, whether it has a sign, and numbers: those at the ends and the powers of two among them."""
    width, signed = draw(WIDTHS), draw(st.booleans())
    low, high = limits((tg.Int if signed else tg.UInt)(width))
    powers = [n for k in range(width + 1) for n in ((1 << k) - 1, 1 << k, -(1 << k)) if low <= n <= high]
    one = st.one_of(st.sampled_from([low, high, 0]), st.sampled_from(powers), st.integers(low, high))
    return width, signed, draw(st.lists(one, min_size=1, max_size=4))


@settings(max_examples=40, deadline=None)
@given(numbers())
def test_no_bit_is_lost_in_any_form(drawn: tuple[int, bool, list[int]]) -> None:
    width, signed, values = drawn
    wanted = [-1 - x if signed else (1 << width) - 1 - x for x in values]
    net, rows, dtype = complement(width, signed), complement_of_rows(width, signed), held(width, signed)
    for own in lists(values, width, signed):
        found = net(own)
        assert (found.dtype, found.tolist()) == (dtype, wanted)
        assert net(x=own).tolist() == wanted
    for own, expected in zip(values, wanted, strict=True):
        for form in (own, np.array([own], object)[0], np.asarray(own), Tensor(np.asarray(own))):
            found = net(form)
            assert type(found) is int
            assert found == expected
        assert typed(net, str(own)) == typed(net, f"x={own}") == expected

    pairs = list(zip(values, wanted[::-1], strict=True))  # a complement is a number of the type as well
    turned = list(zip(wanted, values[::-1], strict=True))
    for own in (
        pairs,
        [list(pair) for pair in pairs],
        np.array(pairs, object),
        Tensor(np.array(pairs, object)),
    ):
        found = rows(own)["out"]
        assert (found.dtype, found.shape) == (dtype, (len(pairs), 2))
        assert list(map(tuple, found.tolist())) == turned
    for pair, expected in zip(pairs, turned, strict=True):
        assert rows(pair) == rows(np.array(pair, object)) == {"out": list(expected)}
        assert typed(rows, json.dumps(pair)) == typed(rows, "{},{}".format(*pair)) == {"out": list(expected)}


def typed(net: tg.Compiled, text: str) -> Any:
    """What `tapegrad run --json` says of an input as it is typed."""
    source: Any = net.source
    state = net.run(*parse_inputs(source, [text])).state
    return json.loads(json.dumps(kind_of(source).state_json(source, state)))


@settings(max_examples=30, deadline=None)
@given(numbers())
@example((64, False, [(1 << 64) - 1, 3]))
def test_circuits_lose_no_bit(drawn: tuple[int, bool, list[int]]) -> None:
    width, _, values = drawn
    net = circuit(width)
    wanted = [(-1 - x) % (1 << width) for x in values]
    for own in lists(values, width, signed=False):
        found = net(x=own)
        assert (found.dtype, found.tolist()) == (held(width, signed=False), wanted)
        assert net(own).tolist() == wanted
    for own, expected in zip(values, wanted, strict=True):
        assert net(own) == net(np.asarray(own)) == expected
        assert typed(net, f"x={own}") == {"out": expected}
        # with a clock: one number for each cycle
    clocked = tg.SequentialCircuit(net.source, ())  # type: ignore[arg-type]
    (trace,) = kind_of(clocked).call(clocked, (), {"x": values}).inputs
    assert [sum(int(bit) << i for i, bit in enumerate(row)) for row in trace] == [
        x % (1 << width) for x in values
    ]


def test_products_of_a_batch_are_those_of_its_rows() -> None:
    def product(a: tg.UInt(32), b: tg.UInt(32)):  # type: ignore[valid-type]
        return a.to(tg.UInt(64)) * b.to(tg.UInt(64))

    a, b = [4294967295, 3, 4000000001], [4294967295, 5, 4000000003]
    found = tg.compile(product, "relu")(a, b)
    assert (found.dtype, found.tolist()) == (np.uint64, [x * y for x, y in zip(a, b, strict=True)])


@pytest.mark.parametrize(("of", "own"), [(tg.UInt(8), np.uint8), (tg.Int(8), np.int8)])
def test_every_step_wraps_as_in_numpys_arrays(of: Any, own: Any) -> None:
    """What the README says; C would compute in `int` until the end."""

    def function(a, b):
        return [(a + b) // 2, a * b % 7, (a - b) >> 1, (a ^ b) * 3]

    a, b = (side.ravel() for side in np.meshgrid(*2 * [np.arange(-128, 256, 3).astype(own)]))
    found = tg.compile(tg.trace(function, of, of), "relu")(a, b)
    assert [part.tolist() for part in found] == [part.tolist() for part in function(a, b)]


def test_labels_of_a_learner_are_the_users_own_numbers() -> None:
    rows, labels = [[0, 0], [0, 1], [1, 0], [1, 1]] * 4, [1, 1, (1 << 63) + 1, (1 << 63) + 1] * 4
    net = tg.compile("learn-dictator8", "emulator")
    wide = [[*row, *row, *row, *row] for row in rows]
    net.fit(wide, labels)
    assert net.predict(wide).tolist() == labels
    assert net.score(wide, labels) == 1


def test_the_command_line_loses_no_bit(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from tapegrad import Array, Int, UInt\n"
        "def f(a: UInt(128), b: Int(128), c: Array(UInt(64), 2)):\n"
        "    return {'a': ~a, 'b': ~b, 'c': [c[1], c[0]]}\n"
    )
    a, b, c = (1 << 128) - 2, -(1 << 127), [(1 << 64) - 1, 3]
    words = ["run", "mine.py:f", "-t", "relu", "--input", str(a), "--input", f"b={b}", "--input", f"c={c}"]
    said = json.loads(tapegrad(*words, "--json", cwd=tmp_path).stdout)
    assert said["output"] == {"a": 1, "b": -1 - b, "c": c[::-1]}
    assert f"'b': {-1 - b}" in tapegrad(*words, cwd=tmp_path).stdout
    for text in ("5", "a=5", "10100000"):
        assert json.loads(tapegrad("run", "popcount8", text, "-t", "relu", "--json").stdout)["output"] == {
            "out": 2
        }


@pytest.mark.parametrize(
    "value", [1.0, np.array(1.5), np.array([3.0, 1.0]), [2.0**63, 1], np.array([2**63, 1.0])]
)
def test_floats_are_no_integers(value: Any) -> None:
    for net in (complement(64, False), circuit(64)):
        with pytest.raises(InputError, match=r"Floats round integers of more than 53 bits"):
            net(value)


def test_other_values_keep_their_type() -> None:
    def function(a: tg.Fixed(4, 4), b: tg.Float16, c: tg.Bit):  # type: ignore[valid-type]
        return [a, b, (c, ~c)]

    net = tg.compile(function, "relu")
    a, b, (c, d) = net([1, -0.5], [2, 0.5], [1, 0])
    assert [x.dtype for x in (a, b, c, d)] == [np.float64, np.float64, bool, bool]
    assert [x.tolist() for x in (a, b, c, d)] == [[1, -0.5], [2, 0.5], [True, False], [False, True]]
    nothing = net([], 0, 1)
    assert [x.dtype for x in (*nothing[:2], *nothing[2])] == [np.float64, np.float64, bool, bool]


def test_a_list_for_one_input_is_a_batch_and_for_several_a_row_of_bits() -> None:
    one, several, bits = circuit(4), tg.compile("adder4", "relu"), tg.compile("parity8", "relu")
    row = [0, 1, 1, 0]
    assert one(row).tolist() == one(x=row).tolist() == one(np.array(row)).tolist() == [15, 14, 14, 15]
    assert one([row]).tolist() == one(np.array([row])).tolist() == [9]  # bits 0 1 1 0 are 6
    assert several([1, 1, 0, 0, 1, 0, 1, 0]) == several(3, 5) == 8
    assert (
        several([3, 1], [5, 1]).tolist()
        == several([[1, 1, 0, 0, 1, 0, 1, 0], [1, 0, 0, 0] * 2]).tolist()
        == [8, 2]
    )
    with pytest.raises(InputError, match="8 inputs, but 2 bits"):
        several([3, 5])
    with pytest.raises(InputError, match="differ in length"):
        several([[1, 0], [1]])
    assert len(kind_of(bits.source).call(bits.source, ([1] * 8,), {}).inputs[0]) >= 1


@pytest.mark.parametrize("target", ["relu", "transformer", "emulator", "decoder", "tape", "simplex", "rcnn"])
def test_batches_run_on_every_target(target: str) -> None:
    def function(a: tg.UInt(2), b: tg.UInt(2)):  # type: ignore[valid-type]
        return {"sum": a + b, "less": a < b}

    net, a = tg.compile(function, target), [3, 1, 0]
    found = net(a, 2)
    assert found["sum"].tolist() == [(x + 2) % 4 for x in a]
    assert found["less"].tolist() == [x < 2 for x in a]
    run = net.run(a, [2, 2, 2])
    assert run.halted
    assert run.value["sum"].tolist() == found["sum"].tolist()
    assert run.steps >= max(net.run(x, 2).steps for x in a)
    assert net([], 3)["sum"].shape == (0,)


def test_a_batch_that_ends_too_late_says_so() -> None:
    net = tg.compile("adder2", "tape")
    run = net.run([1, 3], [1, 3], steps=2)
    assert (run.halted, run.state, run.value) == (False, None, None)
