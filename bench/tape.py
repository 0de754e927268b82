"""Gradient steps a second of the target `tape`, beside interpreters that run the same machine.

The fast engine runs the 5-state busy-beaver champion to its halt, with the full reference gradient compared
at chosen steps; the reference engine takes steps at several lengths of the tape. Times are of the processor.
"""

import time
from itertools import islice

import numpy as np
from automata.tm.dtm import DTM

from tapegrad._compile import compile
from tapegrad.machines.compiled import run
from tapegrad.machines.library import busy_beaver
from tapegrad.targets.extended.examples import EXAMPLES
from tapegrad.targets.tape.net import TapeNet

CHAMPION = "5x2"
CHOSEN = (1_000, 1_000_000, 10_000_000, 40_000_000)


def champion_by_gradient_descent() -> tuple[float, int, float]:
    """Seconds and gradient steps to the halt, and the largest difference of gradients at the chosen steps."""
    compiled = compile(busy_beaver(CHAMPION), "tape", cells=32_768)
    net = compiled.net
    assert isinstance(net, TapeNet)
    net.advance(compiled.start(), 10, "fast")  # compile first
    carry, seconds, difference = net.step(compiled.start()), 0.0, 0.0
    for chosen in (*CHOSEN, 10**9):
        began = time.process_time()
        carry = net.advance(carry, chosen - carry.steps, "fast")
        seconds += time.process_time() - began
        if not net.done(carry):
            pairs = zip(net.fast_gradient(carry), net.gradient(carry), strict=True)
            difference = max(difference, *(float(np.abs(a - b).max()) for a, b in pairs))
    assert net.done(carry)
    return seconds, carry.steps, difference


def compiled_interpreter() -> float:
    """Seconds to the halt."""
    machine = busy_beaver(CHAMPION)
    run(machine, machine.start(), 1000)
    began = time.process_time()
    run(machine, machine.start())
    return time.process_time() - began


def automata_lib(steps: int = 20_000) -> float:
    """Seconds a step."""
    transitions: dict = {}
    for (state, (symbol,)), rule in busy_beaver(CHAMPION).rules.items():
        direction = "R" if rule.moves[0] == 1 else "L"
        transitions.setdefault(state, {})[symbol] = (rule.state, rule.write[0], direction)
    machine = DTM(
        states=set("ABCDEZ"),
        input_symbols={"1"},
        tape_symbols={"0", "1"},
        transitions=transitions,
        initial_state="A",
        blank_symbol="0",
        final_states={"Z"},
    )
    began = time.process_time()
    taken = sum(1 for _ in islice(machine.read_input_stepwise(""), steps))
    return (time.process_time() - began) / taken


def reference_step(cells: int, steps: int = 3_000) -> float:
    """Microseconds for a step of automatic differentiation of the whole network."""
    compiled = compile(busy_beaver(CHAMPION), "tape", cells=cells)
    carry = compiled.net.advance(compiled.start(), 100)
    carry = compiled.net.advance(carry, 100)  # now everything is compiled, the test for the end too
    began = time.process_time()
    compiled.net.advance(carry, steps)
    return (time.process_time() - began) / steps * 1e6


def rows() -> list[dict]:
    """The benchmark's table."""
    seconds, steps, difference = champion_by_gradient_descent()
    interpreter = compiled_interpreter()
    library = automata_lib() * steps
    champion = f"5-state champion to its halt, {steps:,} gradient steps"
    found: list[dict] = [
        {"what": champion, "value": seconds, "unit": "s"},
        {
            "what": champion,
            "value": interpreter,
            "unit": "s",
            "rival": "our compiled interpreter",
            "ratio": interpreter / seconds,
        },
        {
            "what": champion,
            "value": library,
            "unit": "s",
            "rival": "automata-lib, from 20,000 steps",
            "ratio": library / seconds,
        },
        {
            "what": f"largest difference to the reference gradient at {len(CHOSEN)} chosen steps",
            "value": difference,
            "unit": "",
        },
    ]
    for cells in (256, 1_024, 4_096, 16_384, 65_536):
        microseconds = reference_step(cells)
        found.append({"what": f"reference step, {cells:,} cells", "value": microseconds, "unit": "us"})
    search = EXAMPLES["xor"].run()
    what = f"XOR search, {search.steps:,} gradient steps, compiling included"
    found.append({"what": what, "value": search.seconds, "unit": "s"})
    return found


if __name__ == "__main__":
    for row in rows():
        rival = f", {row['rival']} ({row['ratio']:.3g} times ours)" if "rival" in row else ""
        print(f"{row['what']}{rival}: {row['value']:.4g} {row['unit']}")
