"""Damaged files and random bytes give a circuit or a FormatError, and what is read can be written."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits import Gate
from tapegrad.circuits.clocked.library import random_sequential
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.circuits.formats import FORMATS, aiger, aiger_binary, blif
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import FormatError, Refused
from tapegrad.source import Format

_PIECES = [
    b"0",
    b"1",
    b"2",
    b"-",
    b" ",
    b"\n",
    b"\r\n",
    b"\\\n",
    b"#",
    b"(",
    b")",
    b"=",
    b",",
    b"\xff",
    b"\0",
]
_PIECES += [b"aag", b"aig", b".names", b".inputs", b".outputs", b".latch", b".end", b"INPUT", b"OUTPUT"]
_PIECES += [
    b"AND",
    b"XOR",
    b"INV",
    b"NOT",
    b"99999999999",
    b"268435456",
    b"\x80\x80\x80\x80\x80\x80",
    b"i0 a\n",
]


def seeds() -> dict[str, list[bytes]]:
    """A few sound files of each format."""
    files = {known.name: [known.example.encode()] for known in FORMATS}
    for seed in range(6):
        circuit = random_circuit(seed, inputs=4, size=12, outputs=3, kinds=tuple(Gate))
        files["aiger-ascii"].append(aiger.write_ascii(circuit).encode())
        files["aiger-binary"].append(aiger_binary.write_binary(circuit))
        files["blif"].append(blif.write(circuit).encode())
        clocked = random_sequential(seed, size=12)
        files["aiger-ascii"].append(aiger.write_ascii(clocked).encode())
        files["aiger-binary"].append(aiger_binary.write_binary(clocked))
        files["blif"].append(blif.write(clocked).encode())
    files["blif"].append(b".model m\n.inputs a clk\n.outputs q\n.latch a q re clk 2\n.end\n")
    files["bench"].append(b"INPUT(a)\nOUTPUT(q)\nq = DFF(n)\nn = NAND(a, q)\n")
    files["bench"].append(b"INPUT(a)\nOUTPUT(y)\ny = NAND(a, m, a)\nm = BUFF(n)\nn = vdd\n# end\n")
    files["bristol"].append(b"3 6\n1 2\n1 2\n\n1 1 0 2 INV\n1 1 1 3 EQ\n4 2 0 1 2 3 4 5 MAND\n")
    files["bristol"].append(b"1 3\n1 1 1\n\n2 1 0 1 2 OR\n")
    return files


SEEDS = seeds()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One to four changes: a byte, a cut, a repetition, a piece of syntax, lines swapped."""
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        change = rng.randrange(6)
        if change == 0:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif change == 1:
            data = data[:at] + data[to:]
        elif change == 2:
            data = data[:to] + data[at:]
        elif change == 3:
            data = data[:at] + rng.choice(_PIECES) + data[at:]
        elif change == 4:
            data = data[:at]
        else:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = b"\n".join(lines)
    return data


def check(known: Format, data: bytes) -> bool:
    """Whether the file could be read; what could is written and read back with the same names."""
    known.detect(data)
    try:
        circuit = known.read(data)
    except FormatError as error:
        _check_message(error)
        return False
    for writer in FORMATS:
        if writer.write is not None:
            try:
                text = writer.write(circuit)
            except Refused:
                continue
            again = writer.read(text.encode() if isinstance(text, str) else text)
            assert (again.inputs, again.outputs) == (circuit.inputs, circuit.outputs)
            assert type(again) is type(circuit)
            if isinstance(circuit, SequentialCircuit):
                assert (again.latches, again.resets) == (circuit.latches, circuit.resets)
    return True


def _check_message(error: FormatError) -> None:
    assert error.where, error
    assert "\n" not in str(error)


def fuzz(known: Format, examples: int, seed: int) -> int:
    rng = random.Random(seed)
    return sum(check(known, damaged(rng.choice(SEEDS[known.name]), rng)) for _ in range(examples))


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
def test_damaged_files(known: Format) -> None:
    assert 0 < fuzz(known, 400, seed=1) < 400  # some still read, some do not


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
@given(data=st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_random_bytes(known: Format, data: bytes) -> None:
    opening = known.example.encode()[:8]
    check(known, data)
    check(known, opening + data)


@pytest.mark.slow
@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
def test_damaged_files_at_length(known: Format) -> None:
    fuzz(known, 100_000, seed=2)
