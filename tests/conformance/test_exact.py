"""Whole numbers: compared with fractions and Python's integers; and what a format owes."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._conformance.exact import Dyadic, evaluated
from tapegrad._conformance.formats import Form, scale_of, shortfall
from tapegrad._conformance.nets import (
    ABOUT,
    CASES,
    GRID_STEPS,
    NUMBER_BITS,
    ROUND_CONSTANT,
    START,
    TRACE,
    TURMITE,
)
from tapegrad._conformance.writing import Player
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.networks.builder import Builder, Layer
from tapegrad.networks.checking import check
from tapegrad.networks.form import Affine
from tests.networks.toy import Toy

MASK = (1 << 32) - 1


def dense(weight, bias, *, relu=True):
    """A network of one layer, `only`."""
    weight = np.array(weight, np.float64)
    graph = Builder("g", np.float64)
    x = graph.affine(
        graph.input("x", "rows", len(weight)), Affine.of(weight.T, np.array(bias, np.float64)), "sum"
    )
    graph.output("only", graph.node("relu", x, name="only") if relu else x)
    return graph.network()


def test_a_dense_layer_beside_fractions():
    rng = np.random.default_rng(0)
    weight, bias = rng.integers(-9, 9, (5, 7)) / 8, rng.integers(-9, 9, 7) / 4
    weight[:, 3] = 0
    x = rng.integers(-9, 9, (4, 5)) / 16
    found = evaluated(dense(weight, bias), {"x": x}).values["only"]
    for row in range(4):
        for unit in range(7):
            terms = [Fraction(x[row, k]) * Fraction(weight[k, unit]) for k in range(5)]
            assert Fraction(found[row, unit]) == max(Fraction(0), sum(terms) + Fraction(bias[unit]))


@pytest.mark.parametrize("name", ["clock", "convolution", "attention"])
def test_every_value_beside_a_backend_in_fractions(cases, name):
    case = cases[name]
    toy, found = Toy(case.network), evaluated(case.network, case.inputs).values
    inputs = {key: toy.constant_of(array) for key, array in case.inputs.items()}
    wanted = {node.name: value for node, value in toy.values(inputs)}
    assert all(value.tolist() == wanted[key] for key, value in found.items())


def test_layers_are_written_out_in_the_columns_that_are_read_again():
    """s2 = relu(x0 + x1), s0 = x0 + s2, s1 = -s0: neither x1 is kept, nor x0 beside what replaces it."""
    graph = Builder("g", np.float64)
    maps = ([1.0, 1.0, 0.0], True, 2), ([1.0, 0.0, 1.0], False, 0), ([-1.0, 0.0, 0.0], False, 1)
    own = [Layer(Affine.of(np.array([row]), np.zeros(1)), np.array([to]), relu) for row, relu, to in maps]
    graph.output("out", graph.layers(graph.input("x", "rows", 2), own, 3, np.array([1]), "units"))
    network, written, x = graph.network(), Builder("written", np.float64), np.array([[3.0, -5.0], [1.0, 2.0]])
    player = Player(network, written, {})
    written.output("out", player.run({"x": player.given("x", x)})[0]["out"])
    made = written.network()
    assert evaluated(made, {"x": x}).values["units.2"].tolist() == [[-3], [-4]]
    widths = {node.name: check(made)[node.name].width for node in made.nodes if node.operation != "affine"}
    assert widths == {"units.0": 1, "units.0.kept": 1, "units.0.row": 2}


def test_bits_are_those_of_the_theorem():
    """1000 * 1 + 24 * 1 needs 1024 = 2^10 steps of 1; with a half among the terms, steps of 1/2."""
    assert evaluated(dense([[1000], [24]], [0]), {"x": np.ones((1, 2))}).bits == 10
    network = dense([[1000], [24]], [0.5])
    found = evaluated(network, {"x": np.ones((1, 2))})
    assert found.bits == 12
    given = {"x": np.ones((1, 2))}
    assert shortfall(network, found, given, "float16") == "layer sum needs 12 bits, float16 has 11"
    assert shortfall(network, found, given, "float32") == ""


def test_signs_do_not_hide_what_a_sum_needs():
    """1024 - 1024 + 1/4 is small, but not on the way."""
    assert evaluated(dense([[1024], [-1024]], [0.25], relu=False), {"x": np.ones((1, 2))}).bits == 14


def test_the_range_of_a_format_counts_too():
    network, given = dense([[65536]], [0]), {"x": np.ones((1, 1))}
    found = evaluated(network, given)
    assert "range" in shortfall(network, found, given, "float16") or "bits" in shortfall(
        network, found, given, "float16"
    )
    assert shortfall(network, found, given, "float64") == ""


def test_numbers_too_far_apart_are_refused():
    with pytest.raises(Refused, match="too far apart"):
        Dyadic.of(np.array([1.0, 2.0**-70]))


@pytest.fixture(scope="module")
def cases():
    return {name: make() for name, make in CASES.items()}


def output(case):
    """What the exact evaluator makes of the last layer."""
    (last,) = case.network.outputs.values()
    return evaluated(case.network, case.inputs).values[last]


@pytest.mark.parametrize("name", CASES)
def test_the_last_layer_is_what_the_source_gives(cases, name):
    assert np.array_equal(output(cases[name]), cases[name].answer)


def words(bits, size):
    return [sum(int(bit) << i for i, bit in enumerate(bits[k : k + size])) for k in range(0, len(bits), size)]


def test_sums_are_those_of_python(cases):
    for name in ("adder", "adder-ternary"):
        case = cases[name]
        for given, answer in zip(case.inputs["bits"], case.answer > 0, strict=True):
            a, b = words(given, 8)
            assert words(answer, 8) == [(a + b) % 256]


def turned(x, by):
    return (x >> by | x << (32 - by)) & MASK


def test_a_round_of_sha256_is_that_of_the_standard(cases):
    """FIPS 180-4, section 6.2.2, in Python's integers."""
    case = cases["sha256"]
    for given, answer in zip(case.inputs["bits"], case.answer > 0, strict=True):
        a, b, c, d, e, f, g, h, w = words(given, 32)
        one = (
            h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (e & f ^ ~e & g & MASK) + ROUND_CONSTANT + w
        )
        two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + (a & b ^ a & c ^ b & c)
        assert words(answer, 32) == [(one + two) & MASK, (d + one) & MASK]
    assert np.array_equal(cases["sha256-compact"].answer, case.answer)


def test_a_number_comes_apart_into_its_bits(cases):
    case = cases["number"]
    found = evaluated(case.network, case.inputs)
    numbers = case.inputs["bits"] @ (1 << np.arange(NUMBER_BITS))
    assert np.array_equal(found.values["number"][:, 0], numbers)
    assert [format(int(n), f"0{NUMBER_BITS}b") for n in numbers] == [
        "".join(str(int(bit)) for bit in row) for row in found.values["bits_again"]
    ]
    assert 11 < found.bits <= 24


def test_the_convolution_is_the_machine(cases):
    """Cell by cell: the grid after the steps, read as a configuration of the interpreter."""
    net = tg.compile(TURMITE, "rcnn", margin=GRID_STEPS).net
    sheet = net.start(START)._replace(grid=output(cases["convolution"]), steps=GRID_STEPS)
    states = [state for state, _ in zip(TURMITE.run(START), range(GRID_STEPS + 1), strict=False)]
    assert len(states) > 2
    assert net.decode(sheet) == states[-1]


def test_attention_follows_the_machine(cases):
    """Row by row: state and head of the interpreter, and each row is what the next one starts from."""
    machine, case = ready("increment"), cases["attention"]
    net: Any = tg.compile(machine, "transformer", form="paper", steps=32).net
    layout, out = net.layout, output(case)
    states = list(machine.run(machine.start("10110111")))
    assert len(states) == len(out)
    for row, state in zip(out, states, strict=True):
        named = [layout.states[i] for i in np.flatnonzero(row[layout.group("st")])]
        place = int(row[layout.group("pos2")] @ (1 << np.arange(layout.position_bits))) - layout.offset
        assert (named, place) == ([state.state], state.heads[0])
    assert np.array_equal(case.inputs["output"][1:], out[:-1])
    times = np.arange(len(out))[:, None] >> np.arange(layout.position_bits) & 1
    assert np.array_equal(case.inputs["time"], times)


@pytest.mark.parametrize(
    ("name", "source", "given", "options"),
    [
        ("clock", "counter8", [TRACE], {"steps": 8}),
        ("program", "subleq-hello", [], {"steps": 64, "input": 1, "output": 4}),
    ],
)
def test_rows_of_a_decoder_are_steps_of_the_interpreter(cases, name, source, given, options):
    """Every register after every step."""
    compiled = tg.compile(source, "transformer", **options)
    states = list(compiled.source.run(compiled.source.start(*given)))[1:]
    out = output(cases[name])
    net: Any = compiled.net
    assert len(states) == len(out) == int(ABOUT[name].split()[0])
    for row, state in zip(out, states, strict=True):
        wanted, _ = net.machine.contents(compiled.encode(state))
        found = {
            own: words(row[net.stream.group(own)], of.width)[0] for own, of in net.layout.registers.items()
        }
        assert found == {own: wanted[own] for own in found}


def test_the_ternary_adder_has_no_other_weights(cases):
    network = cases["adder-ternary"].network
    maps = [node for node in network.nodes if node.operation == "affine"]
    assert {w for node in maps for w in np.unique(network.array(node, "values"))} == {-1, 1}


def test_in_bytes_every_value_is_the_scale_times_what_it_was(cases):
    case = cases["adder"]
    scale = scale_of(case.network, case.inputs)
    assert scale == 4  # corrections at quarters
    form = Form(case.network, "int8", scale)
    assert all(
        form.cast.array(node, "values").dtype == np.int8
        for node in form.cast.nodes
        if node.operation == "affine"
    )
    own = evaluated(case.network, case.inputs).values
    found = evaluated(form.cast, form.inputs(case.inputs)).values
    assert all(np.array_equal(found[name], scale * own[name]) for name in own)
    assert max(np.abs(values).max() for values in found.values()) <= 127


def test_halves_in_weights_are_no_bytes():
    given = {"x": np.ones((1, 1))}
    network = dense([[0.5]], [0])
    assert (
        shortfall(network, evaluated(network, given), given, "int8")
        == "the weights of layer sum are no bytes"
    )
    network = dense([[100]], [100])
    assert "values up to 200" in shortfall(network, evaluated(network, given), given, "int8")
