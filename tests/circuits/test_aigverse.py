"""aigverse, an independent reader and simulator of and-inverter graphs, as the oracle for AIGER files."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from tapegrad.circuits import Gate
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.formats import aiger, aiger_binary, read
from tapegrad.circuits.sampler import random_circuit

pytest.importorskip("aigverse")


@pytest.mark.parametrize("seed", range(12))
def test_aigverse_reads_what_is_written_and_simulates_the_same(seed: int, tmp_path: Path) -> None:
    from aigverse import algorithms, io

    circuit = random_circuit(seed, inputs=7, size=60, outputs=6, kinds=tuple(Gate))
    (tmp_path / "c.aig").write_bytes(aiger_binary.write_binary(circuit))
    (tmp_path / "c.aag").write_text(aiger.write_ascii(circuit))
    patterns = np.array(list(itertools.product((0, 1), repeat=7)))[:, ::-1]  # input 0 is the lowest bit
    wanted = evaluate(circuit, patterns).T
    for network in (
        io.read_aiger_into_aig(tmp_path / "c.aig"),
        io.read_ascii_aiger_into_aig(tmp_path / "c.aag"),
    ):
        assert (network.num_pis, network.num_pos) == (7, 6)
        for truth_table, column in zip(algorithms.simulate(network), wanted, strict=True):
            assert [truth_table.get_bit(place) for place in range(128)] == column.tolist()


def test_what_aigverse_writes_is_read(tmp_path: Path) -> None:
    from aigverse import io, networks

    network = networks.Aig()
    a, b, c = (network.create_pi() for _ in range(3))
    network.create_po(network.create_maj(a, b, ~c))
    network.create_po(network.create_xor3(a, b, c))
    io.write_aiger(network, tmp_path / "c.aig")
    circuit = read((tmp_path / "c.aig").read_bytes())
    rows = [[int(x + y + 1 - z >= 2), (x + y + z) % 2] for x, y, z in itertools.product((0, 1), repeat=3)]
    assert evaluate(circuit, list(itertools.product((0, 1), repeat=3))).astype(int).tolist() == rows
