"""Long runs of the fast engine, spot-checked inside: the full reference gradient and a plain interpreter."""

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad.machines.compiled import run
from tapegrad.machines.library import busy_beaver
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.targets.tape.net import TapeNet

STEPS, ONES = 47_176_870, 4_098


@pytest.mark.slow
def test_the_five_state_champion_runs_to_its_halt():
    machine = busy_beaver("5x2")
    compiled = compile(machine, "tape", cells=32_768)
    net = compiled.net
    assert isinstance(net, TapeNet)
    carry = compiled.start()
    for chosen in (2, 1_000, 1_000_003, 20_000_000):
        carry = net.advance(carry, chosen - carry.steps, "fast")
        assert carry.steps == chosen
        for ours, reference in zip(net.fast_gradient(carry), net.gradient(carry), strict=True):
            assert np.array_equal(ours, reference)
        assert compiled.decode(net.decode(carry)) == run(machine, machine.start(), chosen - 1).final
    carry = net.advance(carry, 10**9, "fast")
    assert carry.steps == STEPS + 1
    assert net.done(carry)
    final = compiled.decode(net.decode(carry))
    assert final == run(machine, machine.start()).final
    assert final is not None
    assert len(final.tapes[0]) == ONES


def counter() -> TuringMachine:
    """Counts in binary for ever: cell 0 is the lowest bit, its neighbours to the left the higher ones."""
    rules = {
        ("add", ("1",)): Rule(("0",), (-1,), "add"),
        ("add", ("0",)): Rule(("1",), (1,), "home"),
        ("home", ("0",)): Rule(("0",), (1,), "home"),
        ("home", ("end",)): Rule(("end",), (-1,), "add"),
    }
    return TuringMachine(rules, "add", blank="0", alphabet=("0", "1", "end"))


@pytest.mark.slow
def test_a_million_reference_steps_leave_no_deviation():
    machine = counter()
    compiled = compile(machine, "tape", cells=64)
    start = machine.start()
    first = type(start)("add", ({1: "end"},), (0,))
    net, carry, largest = compiled.net, compiled.net.start(compiled.encode(first)), 0.0
    for _ in range(20):
        carry = net.advance(carry, 50_000)
        largest = max(largest, net.deviation(carry))
    assert carry.steps == 1_000_000
    assert largest == 0
    assert compiled.decode(net.decode(carry)) == run(machine, first, 999_999).final
