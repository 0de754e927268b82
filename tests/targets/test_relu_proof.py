"""The static proof: its intervals against numpy's own rounding, and the checker against altered nets."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad_check.targets.relu as checker
from tapegrad.circuits.model import Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.networks.intervals import Interval, Rounding, at_least, at_most
from tapegrad.targets.relu.build import CORRECTIONS
from tapegrad.targets.relu.exactness import prove
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.sources import Circuit as CheckersCircuit
from tests.check.altering import Net, net_of

VALUES, BIASES, COLUMNS = (f"network.units.{part}" for part in ("values", "biases", "columns"))


def saved_net(seed: int = 3, **options: Any) -> Net:
    """A net as the checker is given it."""
    circuit = random_circuit(seed, inputs=6, size=40, outputs=4, kinds=tuple(Gate))
    return net_of(circuit, "relu", {"form": "paper", **options})


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(("float32", "float64")),
    st.tuples(*[st.integers(-12, 12)] * 3),
    st.tuples(*[st.floats(0, 2, width=32)] * 4),
)
def test_intervals_hold_what_numpy_computes(
    dtype: str, row: tuple[int, ...], ends: tuple[float, ...]
) -> None:
    number = np.dtype(dtype).type
    weights = [number(x) / number(3) for x in row]
    x, y = sorted(ends[:2]), sorted(ends[2:])
    span = Rounding(dtype).affine(
        [float(w) for w in weights[:2]],
        float(weights[2]),
        [Interval(*map(Fraction, x)), Interval(*map(Fraction, y))],
    )
    for a in x:
        for b in y:
            value = (weights[0] * number(a) + weights[1] * number(b)) + weights[2]
            assert span.low <= Fraction(float(value)) <= span.high


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(("float32", "float64")),
    st.tuples(*[st.fractions(-4, 4, max_denominator=12)] * 3),
    st.tuples(*[st.fractions(Fraction(1, 9), 2, max_denominator=9)] * 4),
)
def test_two_models_of_rounding_agree(
    dtype: str, row: tuple[Fraction, ...], ends: tuple[Fraction, ...]
) -> None:
    """That of the compiler and that of the checker, which were written apart; nothing here is subnormal."""
    x, y = sorted(ends[:2]), sorted(ends[2:])
    ours = Rounding(dtype).affine(row[:2], row[2], [Interval(*x), Interval(*y)])
    theirs = checker.Rounded(dtype).unit(row, (x[0], x[1]), (y[0], y[1]))  # type: ignore[arg-type]
    assert theirs == (ours.low, ours.high)


def test_what_is_too_small_may_be_flushed_to_zero() -> None:
    single, tiny, one = checker.Rounded("float32"), Fraction(1, 1 << 126), Fraction(1)
    for span, flushed in (
        ((tiny / 2, one), (0, one)),
        ((-one, -tiny / 2), (-one, 0)),
        ((tiny, one), (tiny, one)),
        ((-one, -tiny), (-one, -tiny)),
        ((Fraction(0), tiny / 2), (0, tiny / 2)),
        ((-one, one), (-one, one)),
    ):
        assert single._flushed(span) == flushed
    assert single.slack((tiny, tiny)) == 0 < single.slack((tiny / 2, tiny / 2))
    assert single.slack((one, one)) == 0 < single.slack((one / 3, one / 3))
    longest, longer = one * (2**24 - 1), one * (2**24 + 1)
    assert single.slack((longest, longest)) == 0 < single.slack((longer, longer))
    zero = Fraction(0), Fraction(0)
    assert single.unit((tiny, Fraction(0), Fraction(0)), (one / 2, one), zero)[0] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name, correction in CORRECTIONS.items() if correction])
def test_corrections_mend_what_the_proof_says(name: str, dtype: str) -> None:
    """numpy's own arithmetic on values all over the allowance stays within the proved error."""
    correction, number = CORRECTIONS[name], np.dtype(dtype).type
    assert correction is not None
    (low, high), last = correction.rows(dtype)
    proof = prove(list(Gate), name, dtype)
    around = np.linspace(0, float(proof.allowance), 10_001).astype(dtype)
    for bit, z in ((0, around), (1, 1 - around), (1, 1 + around)):
        first, second = (np.maximum(z + number(cut.bias), 0) for cut in (low, high))
        found = np.maximum(number(last.first) * first + number(last.second) * second, 0)
        assert np.abs(found.astype(float) - bit).max() <= float(proof.after_correction)
    assert (name == "thirds") == (proof.after_correction > 0)


@given(st.fractions())
def test_doubles_on_the_safe_side(value: Fraction) -> None:
    assert Fraction(at_most(value)) <= value <= Fraction(at_least(value))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"correction": "quarters", "dtype": "float64"},
        {"correction": "none"},
        {"depth": 200, "width": 500},
    ],
)
def test_checker_agrees(options: dict[str, Any]) -> None:
    statements = saved_net(**options).checked("relu").statements
    assert len(statements) == 5


def test_checker_sees_every_altered_number() -> None:
    """Any number of the network, and any gate or wire, changed by one, one at a time."""
    net, random = saved_net(), np.random.default_rng(1)
    for name in net.arrays:
        for place in random.permutation(net.arrays[name].size)[:12].tolist():
            altered = net.arrays[name].copy()
            altered.reshape(-1)[place] += altered.dtype.type(1)
            with pytest.raises(CheckError):
                replace(net, arrays=net.arrays | {name: altered}).verdict("relu")


def test_checker_sees_a_hair() -> None:
    """The smallest change of a weight that the precision has."""
    net = saved_net()
    for name in (VALUES, BIASES):
        for place in range(0, len(net.arrays[name]), 11):
            altered = net.arrays[name].copy()
            altered[place] = np.nextafter(altered[place], np.float32(9))
            with pytest.raises(CheckError):
                replace(net, arrays=net.arrays | {name: altered}).verdict("relu")


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("after_gates", 0.0),
        ("after_correction", 1e-9),
        ("after_correction", 0.2),
        ("allowance", 0.4),
        ("at_outputs", 0.0),
        ("at_outputs", 1.5),
        ("unit_roundoff", 2.0**-53),
        ("allowance", "1/6"),
        ("gates", {}),
    ],
)
def test_checker_sees_altered_claims(claim: str, value: Any) -> None:
    net = saved_net()
    with pytest.raises(CheckError):
        replace(net, claims=net.claims | {claim: value}).verdict("relu")


def test_checker_sees_altered_config() -> None:
    net = saved_net()
    for key, value in (("correction", "none"), ("correction", "quarters"), ("padded_width", 1)):
        with pytest.raises(CheckError):
            replace(net, config=net.config | {key: value}).verdict("relu")


SCALES = [(2.0**8, True), (2.0**127, False), (2.0**-8, True), (2.0**-127, False)]


@pytest.mark.parametrize(("scale", "right"), SCALES)
def test_weights_that_cancel_only_in_real_arithmetic_are_seen(scale: float, right: bool) -> None:
    """Hidden units enlarged and the units behind them reduced: the same function, until a sum overflows or a
    weight is too small to be normal."""
    net = saved_net(correction="quarters")
    bounds, starts = (net.arrays[f"network.units.{part}"] for part in ("bounds", "starts"))
    layer = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    behind = layer < len(bounds) - 2  # the outputs stay as they are
    hidden, out = behind & (layer % 4 == 0), behind & (layer % 4 == 1)
    values, biases = net.arrays[VALUES].copy(), net.arrays[BIASES].copy()
    values[np.repeat(hidden, np.diff(starts))] *= np.float32(scale)
    biases[hidden] *= np.float32(scale)
    values[np.repeat(out, np.diff(starts))] /= np.float32(scale)
    wide = {kind: [-4 * scale - 4, 4 * scale + 4] for kind in net.claims["pre_activations"]}
    arrays = net.arrays | {VALUES: values, BIASES: biases}
    scaled = replace(net, arrays=arrays, claims=net.claims | {"pre_activations": wide})
    if right:
        assert scaled.verdict("relu") == COMPUTES_SOURCE
    else:
        with pytest.raises(CheckError, match="too large or too small"):
            scaled.verdict("relu")


def test_another_circuit_of_the_same_shape_is_seen() -> None:
    """A net that computes something else than the circuit saved beside it, every gate in itself right."""
    net = saved_net()
    source = net.source
    assert isinstance(source, CheckersCircuit)
    left, right = source.left.copy(), source.right.copy()
    swap = np.flatnonzero((ARITY_TWO[source.kinds]) & (left != right))[-1]
    left[swap], right[swap] = right[swap], left[swap]
    with pytest.raises(CheckError, match="not the one that the circuit has"):
        replace(net, source=replace(source, left=left, right=right)).verdict("relu")


ARITY_TWO = np.array([kind in set(Gate) and Gate(kind).arity == 2 for kind in range(16)])
