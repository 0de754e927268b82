"""Every single-tape machine of the corpus that halts within 4,096 steps, as a transformer."""

import csv
import os
from itertools import islice
from pathlib import Path

import pytest

import tapegrad as tg
from tapegrad.machines import TuringMachine
from tapegrad.machines.compiled import run
from tapegrad.machines.formats import read
from tapegrad.machines.formats.bbchallenge import read_list

FOLDER = os.environ.get("TAPEGRAD_CORPUS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="TAPEGRAD_CORPUS is not set")
MOST_STEPS = 4096


def machines(
    of_each_list: int | None, most_steps: int = MOST_STEPS
) -> list[tuple[str, TuringMachine, object, int]]:
    """Name, machine, first configuration and number of steps."""
    if not FOLDER:
        return []
    corpus = Path(FOLDER) / "machines"
    found = []
    for folder in ("turingmachine.io", "morphett"):
        with open(corpus / folder / "reference_runs.csv", newline="") as file:
            for row in csv.DictReader(file):
                symbols = tuple(dict.fromkeys(row["input"].replace(" ", "")))
                loaded = read((corpus / folder / row["file"]).read_bytes(), symbols=symbols)
                start = loaded.start(row["input"]) if row["input"] else loaded.start()
                found.append((row["file"], loaded.machine, start))
    for text in sorted((corpus / "busy-beaver").glob("?x?.txt")):
        for loaded in islice(read_list(text.read_bytes()), of_each_list):
            found.append((f"{text.stem} {loaded.machine.name}", loaded.machine, loaded.machine.start()))
    halting = []
    for name, machine, start in found:
        outcome = run(machine, start, most_steps)
        if outcome.halted:
            halting.append((name, machine, start, outcome.steps))
    return halting


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
def test_every_step_of_the_corpus(attention: str) -> None:
    checked = 0
    for name, machine, start, steps in machines(None):
        room = 1 << max(steps, 32).bit_length()
        net = tg.compile(machine, "transformer", steps=room, attention=attention)
        report = tg.verify(net, [(start,)], steps=steps + 2)
        assert report.agreed, (name, report)
        assert report.complete
        assert report.steps == steps + 1
        checked += 1
    assert checked >= 300


def test_every_step_of_the_corpus_by_the_fast_engine() -> None:
    """Fewer machines, and the engine that the other tests hold against the reference engine."""
    checked = 0
    for name, machine, start, steps in machines(3, most_steps=512):
        net = tg.compile(machine, "transformer", steps=max(steps, 32))
        report = tg.verify(net, [(start,)], steps=steps + 2, engine="fast")
        assert report.agreed, (name, report)
        assert report.complete
        checked += 1
    assert checked >= 20
