"""Whole numbers: compared with fractions and Python's integers; and what a format owes."""

from fractions import Fraction

import numpy as np
import pytest

from tapegrad._conformance.exact import Dyadic, evaluated
from tapegrad._conformance.formats import in_bytes, scale_of, shortfall
from tapegrad._conformance.graph import Graph, Layer
from tapegrad._conformance.nets import CASES, NUMBER_BITS, ROUND_CONSTANT
from tapegrad.errors import Refused
from tapegrad.machines.library import ready

MASK = (1 << 32) - 1


def dense(weight, bias, *, relu=True, name="only", reads="x"):
    arrays = {"weight": np.array(weight, np.float64), "bias": np.array(bias, np.float64)}
    return Layer(name, "dense", (reads,), arrays, relu)


def test_a_dense_layer_beside_fractions():
    rng = np.random.default_rng(0)
    weight, bias = rng.integers(-9, 9, (5, 7)) / 8, rng.integers(-9, 9, 7) / 4
    weight[:, 3] = 0
    x = rng.integers(-9, 9, (4, 5)) / 16
    graph = Graph("g", "", {"x": (5,)}, (dense(weight, bias),))
    found = evaluated(graph, {"x": x}).values["only"]
    for row in range(4):
        for unit in range(7):
            terms = [Fraction(x[row, k]) * Fraction(weight[k, unit]) for k in range(5)]
            assert Fraction(found[row, unit]) == max(Fraction(0), sum(terms) + Fraction(bias[unit]))


def test_kinds_agree_with_one_another():
    """The same map as a matrix, by its inputs, and as a convolution of 1 x 1."""
    rng = np.random.default_rng(1)
    weight, bias, x = rng.integers(-3, 4, (4, 6)), rng.integers(-2, 3, 6), rng.integers(0, 3, (5, 4))
    as_matrix = evaluated(Graph("g", "", {"x": (4,)}, (dense(weight, bias),)), {"x": x}).values["only"]
    inputs = np.tile(np.arange(4), (6, 1))
    sparse = Layer(
        "only", "sparse", ("x",), {"inputs": inputs, "weight": weight.T * 1.0, "bias": bias * 1.0}, True
    )
    assert np.array_equal(
        evaluated(Graph("g", "", {"x": (4,)}, (sparse,)), {"x": x}).values["only"], as_matrix
    )
    kernel = weight.T[:, :, None, None] * 1.0
    image = Layer("only", "convolution", ("x",), {"kernel": kernel, "bias": bias * 1.0}, True)
    shown = evaluated(Graph("g", "", {"x": (4, 1, 1)}, (image,)), {"x": x[..., None, None]}).values["only"]
    assert np.array_equal(shown[..., 0, 0], as_matrix)


def test_a_convolution_reads_its_neighbours():
    kernel = np.zeros((1, 1, 3, 3))
    kernel[0, 0, 0, 1] = 1  # the cell above
    layer = Layer("only", "convolution", ("x",), {"kernel": kernel, "bias": np.zeros(1)})
    x = np.arange(9.0).reshape(1, 1, 3, 3)
    found = evaluated(Graph("g", "", {"x": (1, 3, 3)}, (layer,)), {"x": x}).values["only"][0, 0]
    assert found.tolist() == [[0, 0, 0], [0, 1, 2], [3, 4, 5]]


def test_bits_are_those_of_the_theorem():
    """1000 * 1 + 24 * 1 needs 1024 = 2^10 steps of 1; with a half among the terms, steps of 1/2."""
    graph = Graph("g", "", {"x": (2,)}, (dense([[1000], [24]], [0]),))
    assert evaluated(graph, {"x": np.ones((1, 2))}).bits == 10
    graph = Graph("g", "", {"x": (2,)}, (dense([[1000], [24]], [0.5]),))
    found = evaluated(graph, {"x": np.ones((1, 2))})
    assert found.bits == 12
    given = {"x": np.ones((1, 2))}
    assert shortfall(graph, found, given, "float16") == "layer only needs 12 bits, float16 has 11"
    assert shortfall(graph, found, given, "float32") == ""


def test_signs_do_not_hide_what_a_sum_needs():
    """1024 - 1024 + 1/4 is small, but not on the way."""
    graph = Graph("g", "", {"x": (2,)}, (dense([[1024], [-1024]], [0.25], relu=False),))
    assert evaluated(graph, {"x": np.ones((1, 2))}).bits == 14


def test_the_range_of_a_format_counts_too():
    graph = Graph("g", "", {"x": (1,)}, (dense([[65536]], [0]),))
    given = {"x": np.ones((1, 1))}
    assert "range" in shortfall(graph, evaluated(graph, given), given, "float16") or "bits" in shortfall(
        graph, evaluated(graph, given), given, "float16"
    )
    assert shortfall(graph, evaluated(graph, given), given, "float64") == ""


def test_numbers_too_far_apart_are_refused():
    with pytest.raises(Refused, match="too far apart"):
        Dyadic.of(np.array([1.0, 2.0**-70]))


@pytest.fixture(scope="module")
def cases():
    return {name: make() for name, make in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_last_layer_is_what_the_source_gives(cases, name):
    case = cases[name]
    assert np.array_equal(evaluated(case.graph, case.inputs).values[case.graph.output], case.answer)


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
    found = evaluated(case.graph, case.inputs)
    numbers = case.inputs["bits"] @ (1 << np.arange(NUMBER_BITS))
    assert np.array_equal(found.values["number"][:, 0], numbers)
    assert [format(int(n), f"0{NUMBER_BITS}b") for n in numbers] == [
        "".join(str(int(bit)) for bit in row) for row in found.values["bits_again"]
    ]
    assert 11 < found.bits <= 24


def test_attention_follows_the_machine(cases):
    """Row by row: state and head of the interpreter, and each row is what the next one starts from."""
    import tapegrad as tg

    machine, case = ready("increment"), cases["attention"]
    net = tg.compile(machine, "transformer", steps=32).net
    layout, out = net.layout, evaluated(case.graph, case.inputs).values[case.graph.output]
    states = list(machine.run(machine.start("10110111")))
    assert len(states) == len(out)
    for row, state in zip(out, states, strict=True):
        named = [layout.states[i] for i in np.flatnonzero(row[layout.group("st")])]
        place = int(row[layout.group("pos2")] @ (1 << np.arange(layout.position_bits))) - layout.offset
        assert (named, place) == ([state.state], state.heads[0])
    time = np.zeros_like(out)
    time[:, layout.group("pos1")] = np.arange(len(out))[:, None] >> np.arange(layout.position_bits) & 1
    assert np.array_equal(case.inputs["decoder"][1:], out[:-1] + time[1:])


def test_the_ternary_adder_has_no_other_weights(cases):
    assert {w for layer in cases["adder-ternary"].graph.layers for w in np.unique(layer.weight)} == {-1, 0, 1}


def test_in_bytes_every_value_is_the_scale_times_what_it_was(cases):
    case = cases["adder"]
    scale = scale_of(case.graph, case.inputs)
    assert scale == 4  # corrections at quarters
    scaled = in_bytes(case.graph, scale)
    assert all(layer.weight.dtype == np.int8 for layer in scaled.layers)
    own = evaluated(case.graph, case.inputs).values
    found = evaluated(scaled, {"bits": case.inputs["bits"] * scale}).values
    assert all(np.array_equal(found[name], scale * own[name]) for name in own)
    assert max(np.abs(values).max() for values in found.values()) <= 127


def test_halves_in_weights_are_no_bytes():
    graph = Graph("g", "", {"x": (1,)}, (dense([[0.5]], [0]),))
    given = {"x": np.ones((1, 1))}
    assert (
        shortfall(graph, evaluated(graph, given), given, "int8") == "the weights of layer only are no bytes"
    )
    graph = Graph("g", "", {"x": (1,)}, (dense([[100]], [100]),))
    assert "values up to 200" in shortfall(graph, evaluated(graph, given), given, "int8")
