"""Readers against small files whose meaning is plain, and writers against readers."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits import Circuit, CircuitBuilder, Gate
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.formats import FORMATS, bench, blif, bristol, detect, read
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import FormatError, Refused

BY_NAME = {known.name: known for known in FORMATS}
WRITERS = [known for known in FORMATS if known.write is not None]


def table(circuit: Circuit) -> list[list[int]]:
    """Outputs for every input pattern, in the order 0..0, 0..1, ..., 1..1."""
    patterns = list(itertools.product((0, 1), repeat=len(circuit.inputs)))
    return evaluate(circuit, np.array(patterns).reshape(len(patterns), -1)).astype(int).tolist()


def written(known_as: str, circuit: Circuit) -> bytes:
    write = BY_NAME[known_as].write
    assert write is not None
    text = write(circuit)
    return text.encode() if isinstance(text, str) else text


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
def test_examples_are_recognised_and_read(known) -> None:
    data = known.example.encode()
    assert [other.name for other in FORMATS if other.detect(data)] == [known.name]
    circuit = read(data)
    if len(circuit.outputs) == 2:  # a half adder in every format that is not binary
        assert table(circuit) == [[0, 0], [1, 0], [1, 0], [0, 1]]
    else:
        assert table(circuit) == [[0], [0], [0], [1]]


@pytest.mark.parametrize("known", WRITERS, ids=lambda known: known.name)
@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(0, 6),
    size=st.integers(0, 40),
    outputs=st.integers(0, 8),
)
@settings(max_examples=80, deadline=None)
def test_what_is_written_reads_back(known, seed: int, inputs: int, size: int, outputs: int) -> None:
    circuit = random_circuit(seed, inputs=inputs, size=size, outputs=outputs, kinds=tuple(Gate))
    data = written(known.name, circuit)
    assert detect(data) is known
    again = read(data)
    assert (again.inputs, again.outputs) == (circuit.inputs, circuit.outputs)
    assert table(again) == table(circuit)
    # AIGER is a normal form: writing what was read gives the same bytes. BLIF grows by no more than
    # the buffers of outputs.
    if known.name.startswith("aiger"):
        assert written(known.name, again) == data


def test_large_differences_are_written_in_several_bytes() -> None:
    build = CircuitBuilder(simplify=False)
    first = build.input("a")
    wires = [build.input(f"x{i}") for i in range(40_000)]
    build.output("near", build.and_(wires[-1], wires[-2]))
    build.output("far", build.and_(first, wires[-1]))
    again = read(written("aiger-binary", build.circuit()))
    assert again.left.tolist() == [40_000, 40_000]
    assert again.right.tolist() == [39_999, 0]


def test_names_that_a_format_cannot_hold_are_refused() -> None:
    def with_names(name_in: str, name_out: str) -> Circuit:
        build = CircuitBuilder()
        build.output(name_out, build.not_(build.input(name_in)))
        return build.circuit()

    for name in ("two words", "#", ".names", "back\\slash", ""):
        with pytest.raises(Refused, match="cannot be written to BLIF"):
            written("blif", with_names(name, "y"))
    with pytest.raises(Refused, match="the same net"):
        written("blif", with_names("a", "a"))
    with pytest.raises(Refused, match="cannot be written to AIGER"):
        written("aiger-ascii", with_names("a\nc", "y"))
    spaced = with_names("two words", "n0")
    assert read(written("aiger-ascii", spaced)).inputs == ("two words",)
    assert read(written("blif", with_names("n1", "n"))).outputs == ("n",)


def test_ascii_aiger_in_any_order_with_gaps() -> None:
    data = b"aag 90 2 0 2 3\n4\n20\n8\n21\n8 181 161\n160 4 20\n180 5 21\ni1 b\no0 xor\nc\nany\n\xff\n"
    circuit = read(data)
    assert circuit.inputs == ("i0", "b")
    assert circuit.outputs == ("xor", "o1")
    assert table(circuit) == [[0, 1], [1, 0], [1, 1], [0, 0]]


def test_aiger_with_constants_as_operands() -> None:
    assert table(read(b"aag 4 1 0 4 3\n2\n4\n6\n8\n1\n4 2 1\n6 0 2\n8 1 1\n")) == [[0, 0, 1, 1], [1, 0, 1, 1]]


def test_default_names_keep_clear_of_given_ones() -> None:
    assert read(b"aag 2 2 0 0 0\n2\n4\ni0 i1\n").inputs == ("i1", "i1'")


def test_zero_properties_of_aiger_1_9_are_accepted() -> None:
    assert table(read(b"aag 1 1 0 1 0 0 0 0 0\n2\n3\n")) == [[1], [0]]


def blif_function(operands: int, *rows: str) -> list[int]:
    names = " ".join(f"x{i}" for i in range(operands))
    text = f".model m\n.inputs {names}\n.outputs y\n.names {names} y\n" + "\n".join(rows) + "\n.end\n"
    return [row[0] for row in table(read(text.encode()))]


@given(st.integers(0, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_covers_mean_what_their_rows_say(operands: int, data) -> None:
    cubes = data.draw(st.lists(st.text("01-", min_size=operands, max_size=operands), max_size=5))
    value = data.draw(st.sampled_from("01"))

    def inside(pattern: tuple[int, ...]) -> bool:
        return any(all(c in ("-", str(b)) for c, b in zip(cube, pattern, strict=True)) for cube in cubes)

    wanted = [
        int(inside(pattern) == (value == "1")) if cubes else 0
        for pattern in itertools.product((0, 1), repeat=operands)
    ]
    assert blif_function(operands, *(f"{cube} {value}".strip() for cube in cubes)) == wanted


def test_two_input_covers_are_single_gates() -> None:
    circuit = read(b".inputs a b\n.outputs y\n.names a b y\n00 0\n.end")
    assert circuit.kinds.tolist() == [Gate.OR]


def test_blif_continuations_comments_and_order() -> None:
    text = b"""# a comment
.model two # words
.inputs a \\
  b
.outputs \\
 y
.default_input_arrival 0 0
.names m y # uses m before it is defined
0 1
.names a b m
11 1
.end
anything
"""
    circuit = read(text)
    assert (circuit.name, circuit.inputs, circuit.outputs) == ("two", ("a", "b"), ("y",))
    assert table(circuit) == [[1], [1], [1], [0]]
    assert list(blif.netlist(text).nets) == ["y", "m"]


def test_bench_gates_of_any_arity() -> None:
    text = b"""# c17-like
input(a)
INPUT( b )
INPUT(c)
OUTPUT(n)
OUTPUT(p)
OUTPUT(x)
OUTPUT(one)
OUTPUT(same)
n = nand(a, b, c)
p = XOR(a, b, c)
x = XNOR(a, b, c)
one = vdd
same = BUFF(inner)
inner = OR(a, b)
"""
    bits = list(itertools.product((0, 1), repeat=3))
    wanted = [[int(not all(p)), sum(p) % 2, 1 - sum(p) % 2, 1, int(p[0] or p[1])] for p in bits]
    assert table(read(text)) == wanted
    assert list(bench.netlist(text).outputs) == ["n", "p", "x", "one", "same"]


def test_bristol_gates_old_header_and_bit_order() -> None:
    new = b"5 10\n1 3\n2 1 4\n\n2 1 0 1 3 AND\n1 1 1 4 EQ\n1 1 2 5 EQW\n1 1 0 6 INV\n4 2 0 1 2 2 7 8 MAND\n"
    new = new.replace(b"5 10", b"5 9").replace(b"2 1 4", b"1 4")
    circuit = read(new)
    assert circuit.outputs == ("out0[0]", "out0[1]", "out0[2]", "out0[3]")
    rows = [[c, 1 - a, a & c, b & c] for a, b, c in itertools.product((0, 1), repeat=3)]
    assert table(circuit) == rows
    old = b"2 4\n1 1 1\n\n2 1 0 1 2 XOR\n1 1 2 3 INV\n"
    assert bristol.detect(old)
    assert table(read(old)) == [[1], [0], [0], [1]]


def test_unknown_content_is_refused_with_the_list_of_formats() -> None:
    for data in (b"", b"\0" * 50, b"hello", b"\xff\xfe"):
        assert detect(data) is None
        with pytest.raises(FormatError, match="aiger-ascii, aiger-binary, blif, bench, bristol"):
            read(data)
