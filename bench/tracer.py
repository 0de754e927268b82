"""How long tracing takes, and what lowering between circuits and machines costs in steps and states."""

import time
from collections.abc import Callable
from typing import Any

from examples.sha256 import compress
from tapegrad.circuits import Array, UInt, trace
from tapegrad.circuits.library import ready
from tapegrad.lowering.circuit_machine import evaluator_machine, straight_line
from tapegrad.lowering.configurations import unroll
from tapegrad.machines.library import ready as ready_machine


def rows() -> list[dict]:
    """Every measurement."""
    return [*_tracing(), *_machines(), _unrolling()]


def _tracing() -> list[dict]:
    words = Array(UInt(32), 8), Array(UInt(32), 16)
    seconds, circuit = _timed(lambda: ready("multiplier32"))
    hashed, compression = _timed(lambda: trace(compress, *words).circuit)
    return [
        {"what": f"trace a 32 x 32 multiplier ({circuit.size:,} gates)", "value": seconds, "unit": "s"},
        {"what": f"trace SHA-256's compression ({compression.size:,} gates)", "value": hashed, "unit": "s"},
    ]


def _machines() -> list[dict]:
    found = []
    for name in ("adder8", "multiplier4", "multiplier8"):
        circuit = ready(name)
        ways = {f"straight line, {k} tape(s)": straight_line(circuit, k) for k in (1, 2, 3)}
        ways["evaluator machine"] = evaluator_machine(circuit)
        for way, rewriting in ways.items():
            first = rewriting.encode(circuit.start([1] * len(circuit.inputs)))
            steps = sum(1 for _ in rewriting.after.run(first)) - 1
            states = len(rewriting.after.states)  # type: ignore[attr-defined]
            found.append(
                {"what": f"{name} as a machine: {way}, {states:,} states", "value": steps, "unit": "steps"}
            )
    return found


def _unrolling() -> dict:
    machine = ready_machine("palindrome")
    seconds, rewriting = _timed(lambda: unroll(machine, 200, 64))
    size = rewriting.after.size  # type: ignore[attr-defined]
    return {"what": f"unroll 200 steps on 64 cells ({size:,} gates)", "value": seconds, "unit": "s"}


def _timed(make: Callable[[], Any]) -> tuple[float, Any]:
    best, made = float("inf"), None
    for _ in range(3):
        began = time.perf_counter()
        made = make()
        best = min(best, time.perf_counter() - began)
    return best, made


if __name__ == "__main__":
    for row in rows():
        print(f"{row['what']}: {row['value']:.4g} {row['unit']}")
