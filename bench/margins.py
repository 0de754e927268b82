"""All-layer margins, bracketed: proved lower bounds beside what attacks find, and the seconds both take."""

import time
from typing import Any

from tapegrad._compile import Compiled, compile
from tapegrad._sources import find
from tapegrad.circuits.model import Circuit
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.margins import (
    chain_of,
    layerwise_bound,
    margin_constants,
    patterns,
    problem_of,
    uncorrected_log10,
)

CIRCUITS = ("adder4", "parity8")
CORRECTIONS = ("thirds", "quarters", "none")
MACHINE, WORD, STEPS = "palindrome", "aba", 32


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in CIRCUITS:
        circuit = find(name).source
        assert isinstance(circuit, Circuit)
        for correction in CORRECTIONS:
            compiled = compile(circuit, "relu", form="paper", correction=correction)
            found += bracket(
                f"relu {name} {correction}", compiled, (patterns(circuit),), correction != "none"
            )
    compiled = compile(find(MACHINE).source, "transformer", form="paper", steps=STEPS)
    for corrections in (True, False):
        what = f"transformer {MACHINE} {WORD} T={STEPS} {'quarters' if corrections else 'none'}"
        found += bracket(what, compiled, (WORD,), corrections)
    return found


def bracket(
    what: str, compiled: Compiled, inputs: tuple[Any, ...], corrections: bool
) -> list[dict[str, Any]]:
    begin = time.perf_counter()
    chain = chain_of(compiled.net)
    if corrections:
        lower = layerwise_bound(chain)
        found = [
            {"what": f"{what}: Theorem D.6", "value": margin_constants(chain).bound, "unit": "2-norm"},
            {"what": f"{what}: layer by layer", "value": lower, "unit": "2-norm"},
        ]
    else:
        found = [{"what": f"{what}: product bound", "value": uncorrected_log10(chain), "unit": "log10"}]
    proved = time.perf_counter() - begin
    begin = time.perf_counter()
    upper = attack(problem_of(compiled, *inputs, corrections=corrections), start=1e-3).radius
    attacked = time.perf_counter() - begin
    return [
        *found,
        {"what": f"{what}: attack", "value": upper, "unit": "2-norm"},
        {"what": f"{what}: time to prove", "value": proved, "unit": "s"},
        {"what": f"{what}: time to attack", "value": attacked, "unit": "s"},
    ]


if __name__ == "__main__":
    for row in rows():
        print(f"{row['what']:<58} {row['value']:>10.4g} {row['unit']}", flush=True)
