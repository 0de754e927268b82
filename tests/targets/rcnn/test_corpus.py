"""Turmites written by others, on the filter: step by step, then to the end of long runs."""

import csv
import os
from pathlib import Path

import pytest

from tapegrad.machines.compiled import run
from tapegrad.machines.formats import golly
from tapegrad.machines.model import GridMachine
from tapegrad.targets.rcnn import RcnnNet

CORPUS = os.environ.get("TAPEGRAD_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="TAPEGRAD_CORPUS is not set")
LIST = Path(CORPUS) / "machines" / "turmites" / "turmite_busy_beavers.csv"


def turmites(most_steps):
    if not CORPUS:
        return []
    with LIST.open() as file:
        rows = [row for row in csv.DictReader(file) if row["grid"] == "2D"]
    return [row for row in rows if int(row["measured_steps"]) <= most_steps]


def machine_and_net(row, encoding, margin):
    machine = golly.read(row["spec"].encode()).machine
    assert isinstance(machine, GridMachine)
    return machine, RcnnNet.of(machine, encoding, margin)


@pytest.mark.parametrize("row", turmites(150), ids=lambda row: row["spec"])
@pytest.mark.parametrize("encoding", ["ternary", "channels"])
def test_short_turmites_agree_at_every_step(row, encoding):
    machine, net = machine_and_net(row, encoding, 12)
    carry = net.start(machine.start())
    steps = 0
    for configuration in machine.run(machine.start()):
        assert net.decode(carry) == configuration
        if not net.done(carry):
            carry = net.step(carry)
            steps += 1
    assert net.done(carry)
    assert steps == int(row["measured_steps"])


@pytest.mark.slow
@pytest.mark.parametrize("row", turmites(30_000), ids=lambda row: row["spec"])
def test_longer_turmites_agree_at_every_hundredth_and_at_the_last_step(row):
    machine, net = machine_and_net(row, "channels", 120)
    state, carry = machine.start(), net.start(machine.start())
    stride = max(100, int(row["measured_steps"]) // 20)
    while not net.done(carry):
        state = run(machine, state, stride).final
        carry = net.advance(carry, stride, "fast")
        assert net.decode(carry) == state
    assert machine.step(state) is None
    assert len(state.cells) == int(row["measured_nonzero"])


@pytest.mark.slow
@pytest.mark.parametrize("row", turmites(10_000_000), ids=lambda row: row["spec"])
def test_every_turmite_ends_as_it_should(row):
    machine, net = machine_and_net(row, "ternary", 300)
    steps = int(row["measured_steps"])
    ended = run(machine, machine.start(), steps)
    assert ended.halted
    assert net.decode(net.advance(net.start(machine.start()), steps, "fast")) == ended.final
