"""Patterns a second of the compiled evaluator, beside aigverse on the same and-inverter graph.

aigverse simulates truth tables: all patterns of the inputs, one bit each in every node. So the circuit that
both run has 16 inputs (65,536 patterns); the 64 x 64 multiplier shows the evaluator on a wide one.

`python -m bench.circuits FILE...` measures circuits in files instead: bools beside words, and, where the file
is BLIF and the program `berkeley-abc` or `abc` is there, how many ANDs its tables become, beside those of
ABC's `strash`.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tapegrad.circuits import Circuit, CircuitBuilder
from tapegrad.circuits.evaluator import Evaluator, packed, unpacked
from tapegrad.circuits.formats import aiger_binary, read
from tapegrad.circuits.formats.aig import aig_of
from tapegrad.circuits.layered import LayeredCircuit, layered
from tapegrad.circuits.library import ready

INPUTS = 16
PATTERNS, MANY = 4096, 1 << 20


def rows() -> list[dict]:
    """Every measurement; those with a rival were taken in turns, best of several."""
    own = ("interrupts9", "corrector32", "adder64", "multiplier16")
    on_bools = [row for name in own for row in (_on_bools(name, ready(name)), _on_many(name, ready(name)))]
    return [_beside_aigverse(), *_wide_multiplier(), *on_bools]


def of_file(path: Path) -> list[dict]:
    """What is measured of one file."""
    circuit = read(path.read_bytes())
    if not isinstance(circuit, Circuit):
        sys.exit(f"{path.name} has latches; only circuits without a state are measured here")
    found = [_on_bools(path.name, circuit), _on_many(path.name, circuit)]
    program = shutil.which("berkeley-abc") or shutil.which("abc")
    if program and path.suffix == ".blif":
        found.append(_beside_strash(path, circuit, program))
    return found


def _on_bools(name: str, circuit: Circuit) -> dict:
    """Rows of bools beside words of 64 patterns, for 4,096 patterns, which stay in the processor's cache."""
    evaluator = Evaluator(circuit)
    bits = np.random.default_rng(0).integers(0, 2, (PATTERNS, len(circuit.inputs))).astype(bool)
    words = packed(bits)
    assert np.array_equal(evaluator(bits), unpacked(evaluator.packed(words), PATTERNS))
    seconds, on_words = _in_turns(lambda: evaluator(bits), lambda: evaluator.packed(words), times=200)
    return {
        "what": f"evaluate {name} of {circuit.size:,} gates, {len(circuit.inputs)} inputs and "
        f"{len(circuit.outputs)} outputs, on bools",
        "value": PATTERNS / seconds,
        "unit": "patterns/s",
        "rival": "on words",
        "rival_value": PATTERNS / on_words,
        "ratio": on_words / seconds,
    }


def _on_many(name: str, circuit: Circuit) -> dict:
    """The same for a million patterns, which come from memory and go there; and, for comparison, what it
    takes only to read as many bytes and to fill a new array as large as the result."""
    evaluator = Evaluator(circuit)
    bits = np.random.default_rng(0).integers(0, 2, (MANY, len(circuit.inputs)), np.uint8).astype(bool)
    words = packed(bits)
    seconds, on_words = _in_turns(lambda: evaluator(bits), lambda: evaluator.packed(words), times=30)
    reading, filling = _in_turns(
        bits.max, lambda: np.empty((len(circuit.outputs), MANY), bool).fill(True), times=30
    )
    return {
        "what": f"evaluate {name} on {MANY:,} rows of bools, {bits.nbytes >> 20} MB",
        "value": MANY / seconds,
        "unit": "patterns/s",
        "rival": f"on words ({100 * (reading + filling) / seconds:.0f}% of the time is that of memory alone)",
        "rival_value": MANY / on_words,
        "ratio": on_words / seconds,
    }


def _beside_strash(path: Path, circuit: Circuit, program: str) -> dict:
    """ANDs of the tables of a BLIF file: ours, and those of ABC's `strash`."""
    done = subprocess.run(
        [program, "-c", f"read_blif {path}; strash; print_stats"], capture_output=True, text=True, check=True
    )
    stated = re.search(r"and = *(\d+)", done.stdout)
    if stated is None:
        sys.exit(f"{program} did not say how many ANDs {path.name} has: {done.stdout[-200:]}")
    ours, theirs = len(aig_of(circuit).left), int(stated[1])
    return {
        "what": f"read {path.name}",
        "value": ours,
        "unit": "ANDs",
        "rival": "ABC, strash",
        "rival_value": theirs,
        "ratio": ours / theirs,
    }


def _beside_aigverse() -> dict:
    from aigverse import algorithms, io

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "squares.aig"
        path.write_bytes(aiger_binary.write_binary(_squares()))
        network = io.read_aiger_into_aig(path)
        io.write_aiger(network, path)  # what aigverse made of it, so that both run the same ANDs
        circuit = read(path.read_bytes())
    numbers = np.arange(1 << INPUTS)
    words = packed((numbers[:, None] >> np.arange(INPUTS) & 1).astype(bool))
    evaluator = Evaluator(circuit)

    tables = algorithms.simulate(network)
    ours = evaluator.packed(words)
    for table, row in zip(tables, ours, strict=True):
        assert int(table.to_binary(), 2) == int.from_bytes(row.astype("<u8").tobytes(), "little")
    seconds, rival_seconds = _in_turns(lambda: evaluator.packed(words), lambda: algorithms.simulate(network))
    return {
        "what": f"evaluate a circuit of {network.num_gates:,} ANDs on all patterns of {INPUTS} inputs",
        "value": len(numbers) / seconds,
        "unit": "patterns/s",
        "rival": "aigverse simulate",
        "rival_value": len(numbers) / rival_seconds,
        "ratio": rival_seconds / seconds,
    }


def _wide_multiplier() -> list[dict]:
    circuit = _multiplier(64)
    words = np.random.default_rng(0).integers(0, 1 << 63, (128, 4096), np.uint64)
    evaluator = Evaluator(circuit)
    few = np.random.default_rng(0).integers(0, 2, (64, 128)).astype(bool)
    assert np.array_equal(evaluator(few), circuit.wire_values(few)[circuit.output_wires].T)
    seconds, layering = _in_turns(lambda: evaluator.packed(words), lambda: layered(circuit))
    after = layered(circuit).after
    assert isinstance(after, LayeredCircuit)
    return [
        {
            "what": f"evaluate a 64 x 64 multiplier of {circuit.size:,} gates",
            "value": 64 * words.shape[1] / seconds,
            "unit": "patterns/s",
        },
        {"what": f"put it into {after.depth} layers, {after.size:,} gates", "value": layering, "unit": "s"},
    ]


def _in_turns(one: Callable[[], object], other: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """The shortest of several runs of each, taken in turns on a machine that is never quiet."""
    best = [float("inf")] * 2
    for _ in range(times):
        for place, run in enumerate((one, other)):
            began = time.perf_counter()
            run()
            best[place] = min(best[place], time.perf_counter() - began)
    return best[0], best[1]


def _product(build: CircuitBuilder, a: list[int], b: list[int], size: int) -> list[int]:
    """The lowest bits of a product, by rows of full adders."""
    total = [build.and_(bit, b[0]) for bit in a[:size]]
    total += [build.constant(False)] * (size - len(total))
    for shift in range(1, len(b)):
        carry = build.constant(False)
        for place in range(shift, min(size, shift + len(a) + 1)):
            term = build.and_(a[place - shift], b[shift]) if place - shift < len(a) else build.constant(False)
            half = build.xor(total[place], term)
            both = build.and_(total[place], term)
            total[place], carry = build.xor(half, carry), build.or_(both, build.and_(half, carry))
    return total


def _multiplier(bits: int) -> Circuit:
    build = CircuitBuilder()
    a, b = ([build.input(f"{letter}[{i}]") for i in range(bits)] for letter in "ab")
    for place, wire in enumerate(_product(build, a, b, 2 * bits)):
        build.output(f"product[{place}]", wire)
    return build.circuit(f"{bits} x {bits} multiplier")


def _squares(rounds: int = 24) -> Circuit:
    """Again and again: x times x with some bits flipped, modulo 2^16, then each bit XORed with another."""
    build = CircuitBuilder()
    x = [build.input(f"x[{i}]") for i in range(INPUTS)]
    for k in range(1, rounds + 1):
        flipped = [build.not_(bit) if (2 * k + 1) * 40503 >> i & 1 else bit for i, bit in enumerate(x)]
        x = _product(build, x, flipped, INPUTS)
        x = [build.xor(bit, x[i - 3]) for i, bit in enumerate(x)]
    for place, wire in enumerate(x):
        build.output(f"y[{place}]", wire)
    return build.circuit("squares")


if __name__ == "__main__":
    for row in [row for file in sys.argv[1:] for row in of_file(Path(file))] or rows():
        print(row)
