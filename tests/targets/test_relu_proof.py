"""The bounds of the paper's form against numpy's own rounding, and the checker against altered nets."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegrad.circuits.model import Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.targets.relu.build import CORRECTIONS
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, OF_NETWORK
from tapegrad_check.sources import Circuit as CheckersCircuit
from tests.check.altering import Net, net_of
from tests.check.test_core_networks import every_input, outputs

VALUES, BIASES, COLUMNS = (f"network.units.{part}" for part in ("values", "biases", "columns"))


CIRCUIT = random_circuit(3, inputs=6, size=40, outputs=4, kinds=tuple(Gate))


def saved_net(**options: Any) -> Net:
    """A net as the checker is given it."""
    return net_of(CIRCUIT, "relu", {"form": "paper", **options})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name, correction in CORRECTIONS.items() if correction])
def test_corrections_mend_what_is_far_off(name: str, dtype: str) -> None:
    """numpy's own arithmetic, all over the radius: within the 9 u of the derivation."""
    correction, number = CORRECTIONS[name], np.dtype(dtype).type
    assert correction is not None
    (low, high), last = correction.rows(dtype)
    around = np.linspace(0, 0.99 * float(correction.low), 10_001).astype(dtype)
    for bit, z in ((0, around), (1, 1 - around), (1, 1 + around)):
        first, second = (np.maximum(z + number(cut.bias), 0) for cut in (low, high))
        found = np.maximum(number(last.first) * first + number(last.second) * second, 0)
        off = np.abs(found.astype(float) - bit).max() / (np.finfo(dtype).eps / 2)
        assert off <= 9
        assert off == 0 or name == "thirds"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_the_certificate_covers_all_kinds_of_gates(correction: str, dtype: str) -> None:
    """And is at most eight times what is proved, where anything is rounded at all."""
    circuit = random_circuit(3, inputs=6, size=300, outputs=60, kinds=tuple(Gate))
    net = net_of(circuit, "relu", {"correction": correction, "dtype": dtype})
    assert {Gate[name] for name in net.claims["gates"]} == set(Gate)
    assert net.verdict("relu") == COMPUTES_SOURCE
    for claim in ("after_gates", "at_outputs"):
        assert (net.claims[claim] > 0) == (correction == "thirds")
        less = replace(net, claims=net.claims | {claim: net.claims[claim] / 8})
        if correction == "thirds":
            with pytest.raises(CheckError, match=f"{claim} can be"):
                less.verdict("relu")


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
    assert len(statements) == 4
    assert ("nothing is rounded" in statements[1]) == ("correction" in options)


def test_altered_numbers_are_seen_or_do_no_harm() -> None:
    """Any number of the network, and any gate or wire, changed by one or by a hair, one at a time. What
    passes is run on all inputs, sum by sum in either order."""
    net, random, passed = saved_net(), np.random.default_rng(1), 0
    bits, right = every_input(CIRCUIT)
    for name in net.arrays:
        for place in random.permutation(net.arrays[name].size)[:24].tolist():
            altered = net.arrays[name].copy()
            number = altered.reshape(-1)[place]
            hair = altered.dtype.kind == "f" and place % 2
            altered.reshape(-1)[place] = np.nextafter(number, altered.dtype.type(9)) if hair else number + 1
            other = replace(net, arrays=net.arrays | {name: altered})
            try:
                other.verdict("relu")
            except CheckError:
                continue
            passed += 1
            own = {n.removeprefix(OF_NETWORK): a for n, a in other.arrays.items()}
            assert net.network is not None
            assert (np.abs(outputs((net.network, own), bits) - right) < net.claims["at_outputs"]).all()
    assert 0 < passed < 40


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("after_gates", 0.0),
        ("after_gates", 1.9e-6),
        ("after_gates", "1/6"),
        ("at_outputs", 0.0),
        ("at_outputs", 1e-6),
        ("largest_sum", 3.0),
        ("largest_sum", float("nan")),
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
    arrays = net.arrays | {VALUES: values, BIASES: biases}
    scaled = replace(net, arrays=arrays, claims=net.claims | {"largest_sum": 4 * scale + 4})
    if right:
        assert scaled.verdict("relu") == COMPUTES_SOURCE
    else:
        with pytest.raises(CheckError, match=r"overflow|is no bit|differs"):
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
