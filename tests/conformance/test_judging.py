"""Runtimes judged: those that are here, and some with faults planted in them."""

import importlib.util
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from tapegrad._conformance import FORMAT_NAMES, NET_NAMES, RUNTIME_NAMES
from tapegrad._conformance.formats import NAMES, Form
from tapegrad._conformance.judging import judged, located
from tapegrad._conformance.kit import member, read_kit, write_kit
from tapegrad._conformance.nets import ABOUT, CASES, decoder_case
from tapegrad._conformance.reading import first_fault
from tapegrad._conformance.runtimes import RUNTIMES
from tapegrad._conformance.runtimes import on_numpy as by_numpy
from tapegrad.errors import BrokenNet, FormatError
from tests.conformance.test_exact import dense

FEW = ("adder-ternary", "number", "convolution", "attention", "clock", "training-float32")


class Kit(dict):
    """Members are made when they are first asked for: some take seconds."""

    def __missing__(self, name):
        self[name] = member(name)
        return self[name]


@pytest.fixture(scope="module")
def kit():
    return Kit()


def test_names_on_the_command_line_are_those_there_are():
    assert tuple(RUNTIMES) == RUNTIME_NAMES
    assert NAMES == FORMAT_NAMES


LONG = pytest.param("sha256", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [LONG, *(name for name in NET_NAMES if name != "sha256")])
def test_numpy_is_exact_in_every_format(kit, name):
    owed = [own for own in FORMAT_NAMES if not kit[name].shortfalls[own]]
    assert owed
    for own in FORMAT_NAMES:
        found = judged("numpy", "default", own, kit[name])
        assert found["outcome"] == ("exact" if own in owed else "beyond"), found


@pytest.mark.parametrize("level", RUNTIMES["onnxruntime"].levels)
@pytest.mark.parametrize("own", ["float32", "int8"])
def test_onnxruntime_is_exact(kit, level, own):
    pytest.importorskip("onnxruntime")
    for name in ("adder", "sha256-compact", "convolution", "attention", "clock", "program"):
        wanted = "beyond" if kit[name].shortfalls[own] else "exact"
        assert judged("onnxruntime", level, own, kit[name])["outcome"] == wanted


def test_a_format_that_a_runtime_lacks_is_refused_with_its_words(kit):
    pytest.importorskip("onnxruntime")
    found = judged("onnxruntime", "full", "bfloat16", kit["adder-ternary"])
    assert found["outcome"] == "refused"
    assert "NOT_IMPLEMENTED" in found["reason"]
    assert judged("onnxruntime", "full", "float32", kit["training-float32"])["outcome"] == "refused"


@pytest.mark.parametrize(
    "name",
    [
        "convolution",
        *(
            pytest.param(own, marks=pytest.mark.slow)
            for own in ("adder", "training-float32", "training-float64")
        ),
    ],
)
def test_jax_is_exact(kit, name):
    own = "float64" if name.endswith("64") else "float32"
    before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    try:
        assert judged("jax", "highest", own, kit[name])["outcome"] == "exact"
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_torch_is_exact(kit, name):
    assert judged("torch", "eager", "float32", kit[name])["outcome"] == "exact"


@pytest.mark.skipif(importlib.util.find_spec("ai_edge_litert") is None, reason="needs ai-edge-litert")
def test_litert_is_exact(kit):
    for name in ("adder", "sha256-compact", "convolution", "attention", "clock", "program"):
        assert judged("litert", "reference", "float32", kit[name])["outcome"] == "exact"
    assert judged("litert", "reference", "int8", kit["adder"])["outcome"] == "exact"


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8"])
def test_units_that_read_nothing(written, name):
    """Nor that read more than others: 3, and x + 2 y - 1."""
    form = Form(dense([[0, 1], [0, 2]], [3, -1]), name, 1, written)
    x = form.inputs({"x": np.array([[1.0, 2.0], [3.0, 0.0]])})
    nothing = Form(dense([[0], [0]], [3]), name, 1, written)
    for runtime in ("numpy", "onnxruntime"):
        if runtime == "onnxruntime" and (name == "bfloat16" or not importlib.util.find_spec(runtime)):
            continue
        prepare = RUNTIMES[runtime].prepare()
        level = RUNTIMES[runtime].levels[0]
        assert prepare(form, level, ["only"])(x)["only"].tolist() == [[3, 4], [3, 2]]
        assert prepare(nothing, level, ["only"])(x)["only"].tolist() == [[3], [3]]


@pytest.mark.slow
def test_instructions_of_risc_v_go_through_the_kit(tmp_path, monkeypatch):
    """Three at once, on a machine with 21,471 coordinates."""
    monkeypatch.setattr("tapegrad._conformance.writing.MOST_STEPS", 3)
    monkeypatch.setitem(ABOUT, "rv32", "RISC-V")
    case = partial(decoder_case, "rv32-fibonacci", far=1024.0, written=False, steps=64)
    monkeypatch.setitem(CASES, "rv32", case)
    write_kit(tmp_path / "kit", ["rv32"], onnx=False)
    (own,) = read_kit(tmp_path / "kit")
    assert len(own.names) > 6000
    assert judged("numpy", "default", "float32", own)["outcome"] == "exact"


def test_scores_that_are_not_hidden_far_enough_are_noticed(monkeypatch):
    """Rows that see later ones do not give what the steps do, one after the other."""
    monkeypatch.setitem(CASES, "attention", partial(decoder_case, "increment", "10110111", far=0.5, steps=32))
    with pytest.raises(BrokenNet, match="does not give what its source does"):
        member("attention")


# Planted faults


def to_tf32(x):
    """Rounded to ten bits after the leading one, as tensor cores do with float32."""
    whole = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((whole + (1 << 12)) >> 13 << 13).astype(np.uint32).view(np.float32)


def test_a_kernel_in_tf32_is_found_and_located(kit, monkeypatch):
    """Only the network whose numbers have more bits goes wrong, where its number is first read."""
    monkeypatch.setattr(
        by_numpy.NumPyRuntime, "product_of", lambda self, x, y: to_tf32(x) @ to_tf32(y), raising=True
    )
    assert judged("numpy", "default", "float32", kit["adder"])["outcome"] == "exact"
    found = judged("numpy", "default", "float32", kit["number"])
    numbers = kit["number"].expected["number"]
    first = int(np.flatnonzero(to_tf32(numbers)[:, 0] != numbers[:, 0])[0])
    assert found["outcome"] == "fault"
    assert (found["fault"]["layer"], found["fault"]["place"]) == ("cut_15", (first, 0))
    assert found["fault"]["got"] == to_tf32(numbers)[first, 0]


@pytest.mark.parametrize(("layer", "unit"), [("units.20", 3), ("units.0", 0), ("units.55", 7)])
def test_one_unit_off_by_the_last_place_is_named(kit, monkeypatch, layer, unit):
    plain = by_numpy.NumPyRuntime.relu

    def faulty(self, own, x):
        found = plain(self, own, x)
        if own.name == layer:
            found[5, unit] = np.nextafter(found[5, unit], np.float32(9))
        return found

    monkeypatch.setattr(by_numpy.NumPyRuntime, "relu", faulty)
    found = judged("numpy", "default", "float32", kit["adder"])
    assert (found["fault"]["layer"], found["fault"]["place"]) == (layer, (5, unit))
    assert f"layer {layer}, unit {unit}, pattern 5" in found["reason"]


def test_a_fault_that_corrections_mend_is_found_too(kit, monkeypatch):
    """The output stays right; the layer does not."""
    plain = by_numpy.NumPyRuntime.relu

    def faulty(self, own, x):
        found = plain(self, own, x)
        return found + np.float32(2**-10) if own.name == "units.1" else found

    monkeypatch.setattr(by_numpy.NumPyRuntime, "relu", faulty)
    assert judged("numpy", "default", "float32", kit["adder"])["fault"]["layer"] == "units.1"


def test_a_fault_of_fusion_alone_is_located_by_halving(kit):
    """Wrong from layer 13 on, unless all layers are looked at: as if two were fused."""
    own, runs = kit["adder-ternary"], []

    def prepare(form, level, wanted):
        def program(inputs):
            runs.append(list(wanted))
            found = by_numpy.prepare(form, level, wanted)(inputs)
            if len(wanted) < len(own.names):
                found = {k: v + (own.names.index(k) >= 13) for k, v in found.items()}
            return found

        return program

    fault, how = located(prepare, "default", "float32", own)
    assert fault is not None
    assert (fault.layer, how) == ("units.13", "one layer at a time")
    assert len(runs) < 10


def test_a_rate_of_training_off_by_a_little_is_found(kit, monkeypatch):
    """Cells move by twice their size; with another rate not quite."""
    from dataclasses import replace

    own = kit["training-float32"]
    other = replace(own, rate=own.rate * (1 + 2**-20)).training("float32")
    found = first_fault(own.names, own.expected, by_numpy.train(other, "default"))
    assert found is not None
    assert found.layer == "step_0.weights_0"


def test_the_learner_has_learned(kit):
    """The expected weights hold the memory of the interpreter, after every sample."""
    import tapegrad as tg
    from tapegrad._conformance.training import BITS, SHOWN
    from tapegrad.learners.library import parity

    learner, own = parity(BITS), kit["training-float64"]
    net: Any = tg.compile(learner, "emulator").net
    x = np.array(SHOWN)[:, None] >> np.arange(BITS) & 1
    state = learner.start(x, x[:, 0] ^ x[:, 2], guessing=False)
    states = list(learner.run(state))
    first = np.flatnonzero(net.graph.levels()[net.graph.ends] == 1)
    cells = np.searchsorted(first, net.cells)
    assert np.array_equal(first[cells], net.cells)
    changed = set()
    for step, after in enumerate(states[1:]):
        weights = own.expected[f"step_{step}.weights_0"][cells]
        assert tuple((weights < 0).astype(int)) == after.memory
        changed.add(after.memory)
    assert len(changed) > 2


def test_what_is_no_number_is_a_fault_and_another_shape_is_refused():
    wanted = {"a": np.zeros((2, 2))}
    found = first_fault(["a"], wanted, {"a": np.array([[0, 0], [np.nan, 0]])})
    assert found is not None
    assert found.place == (1, 0)
    assert found.to_json()["got"] == "nan"
    with pytest.raises(FormatError, match="shape"):
        first_fault(["a"], wanted, {"a": np.zeros((2, 3))})
