"""Circuits written by others: counts, agreement of formats, and Python's integers as the oracle."""

import csv
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.circuits import Circuit, Gate
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.formats import blif, read
from tapegrad.circuits.formats.netlist import in_order
from tapegrad.circuits.layered import layered
from tapegrad.errors import FormatError

_CORPUS = os.environ.get("TAPEGRAD_CORPUS", "")
pytestmark = pytest.mark.skipif(not _CORPUS, reason="TAPEGRAD_CORPUS is not set")
FOLDER = Path(_CORPUS) / "circuits"


def _manifest() -> list[dict[str, str]]:
    if not _CORPUS:
        return []
    with (FOLDER / "MANIFEST.csv").open() as file:
        return [
            {key.split("(")[0]: value for key, value in row.items() if isinstance(value, str)}
            for row in csv.DictReader(file)
        ]


def load(name: str) -> Circuit:
    return read((FOLDER / name).read_bytes())


@pytest.mark.parametrize("row", _manifest(), ids=lambda row: row["file"])
def test_counts_are_those_of_the_manifest(row: dict[str, str]) -> None:
    if row["latches"] != "0":
        with pytest.raises(FormatError, match="sequential"):
            load(row["file"])
        clocked = tg.read(FOLDER / row["file"])
        assert isinstance(clocked, tg.SequentialCircuit)
        if row["latches"]:
            assert (len(clocked.inputs), len(clocked.latches)) == (int(row["inputs"]), int(row["latches"]))
        return
    circuit = load(row["file"])
    if row["file"].endswith("blif"):
        gates, depth = _size_and_depth_in_nets((FOLDER / row["file"]).read_bytes())
    else:
        gates, depth = _size_and_depth_in_ands(circuit)
    assert [len(circuit.inputs), len(circuit.outputs)] == [int(row["inputs"]), int(row["outputs"])]
    assert gates == int(row["gates"])
    if row["file"] != "aiger/halfadder.aag":  # two ANDs in a row by its own text; the manifest says one
        assert depth == int(row["depth"])


def test_a_witness_of_a_bad_state() -> None:
    """The file comes with a witness: from a latch of 0, one cycle without inputs leads to a bad state."""
    assert (FOLDER / "aiger/cnt1.wit").read_text().split("\n")[:5] == ["1", "b0", "0", "", "."]
    source = tg.read(FOLDER / "aiger/cnt1.aag")
    assert isinstance(source, tg.SequentialCircuit)
    *_, state = source.run(source.start(2))
    assert state.outputs.tolist() == [[0], [1]]


def _size_and_depth_in_ands(circuit: Circuit) -> tuple[int, int]:
    """The reader gives one AND or NOR for each AND of the file; NOTs and constants do not count there."""
    first, depth = len(circuit.inputs), [0] * circuit.wires
    for gate in range(circuit.size):
        kind, i, j = circuit.kinds[gate], circuit.left[gate], circuit.right[gate]
        depth[first + gate] = max(depth[i], depth[j]) + 1 if kind in (Gate.AND, Gate.NOR) else 0
        if kind == Gate.NOT:
            depth[first + gate] = depth[i]
    ands = int(np.isin(circuit.kinds, (Gate.AND, Gate.NOR)).sum())
    return ands, max((depth[wire] for wire in circuit.output_wires), default=0)


def _size_and_depth_in_nets(data: bytes) -> tuple[int, int]:
    """Covers of two operands count for depth; buffers, inverters and constants for size alone."""
    netlist = blif.netlist(data)
    depth = dict.fromkeys(netlist.inputs, 0)
    for name in in_order(netlist.nets, lambda net: netlist.nets[net].reads if net in netlist.nets else ()):
        if name in netlist.nets:
            reads = netlist.nets[name].reads
            depth[name] = max((depth[read] for read in reads), default=0) + (len(reads) > 1)
    return len(netlist.nets), max(depth[name] for name in netlist.outputs)


@pytest.mark.parametrize("name", ["adder", "bar", "cavlc", "ctrl", "dec", "int2float", "router"])
def test_aiger_and_blif_agree(name: str) -> None:
    one, other = load(f"epfl/{name}.aig"), load(f"epfl/{name}.blif")
    assert (one.inputs, one.outputs) == (other.inputs, other.outputs)
    bits = np.random.default_rng(0).integers(0, 2, (4096, len(one.inputs))).astype(bool)
    assert np.array_equal(evaluate(one, bits), evaluate(other, bits))
    few = layered(other)
    assert np.array_equal(list(few.after.run(few.encode(bits[:50])))[-1].bits, evaluate(one, bits[:50]))


def values(circuit: Circuit, numbers: list[list[int]], sizes: list[int]) -> list[int]:
    """Numbers in, lowest bits first, one after the other; the outputs as one number."""
    rows = [
        [number >> bit & 1 for number, size in zip(row, sizes, strict=True) for bit in range(size)]
        for row in numbers
    ]
    return [sum(int(bit) << place for place, bit in enumerate(row)) for row in evaluate(circuit, rows)]


_MASK = 2**64 - 1


@pytest.mark.parametrize(
    ("file", "sizes", "answer"),
    [
        ("epfl/adder.aig", [128, 128], lambda a, b: a + b),
        ("epfl/adder.blif", [128, 128], lambda a, b: a + b),
        ("epfl/bar.aig", [128, 7], lambda a, n: (a << n | a >> (128 - n)) & (2**128 - 1)),
        ("bristol/adder64.txt", [64, 64], lambda a, b: a + b & _MASK),
        ("bristol/sub64.txt", [64, 64], lambda a, b: a - b & _MASK),
        ("bristol/mult64.txt", [64, 64], lambda a, b: a * b & _MASK),
        ("bristol/neg64.txt", [64], lambda a: -a & _MASK),
        ("bristol/zero_equal.txt", [64], lambda a: int(a == 0)),
    ],
)
def test_python_integers_give_the_same(file: str, sizes: list[int], answer: Callable[..., int]) -> None:
    rng = random.Random(0)
    numbers = [[rng.getrandbits(size) for size in sizes] for _ in range(500)]
    numbers += [[0 for _ in sizes], [1 for _ in sizes], [2**size - 1 for size in sizes]]
    assert values(load(file), numbers, sizes) == [answer(*row) for row in numbers]


def test_the_decoder_is_one_hot() -> None:
    outputs = values(load("epfl/dec.aig"), [[number] for number in range(256)], [8])
    assert sorted(outputs) == [1 << place for place in range(256)]
