"""Campaigns: programs that depend on their seeds alone, planted faults that are found, made smaller and kept,
and results that survive a kill and do not depend on the number of workers."""

import json
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad._campaign import texts, trained
from tapegrad._campaign.judging import judge, shrunk
from tapegrad._campaign.programs import KINDS, LENGTHS, Program, program
from tapegrad._campaign.run import CHUNK, FAILURES, RESULTS, SUMMARY, Plan, run
from tapegrad._sources import written
from tapegrad.circuits.model import Circuit
from tapegrad.cli import app
from tapegrad.errors import FormatError, InputError
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.networks.backends.numba import Numba


def programs(target: str, count: int, first: int = 0) -> list[Any]:
    return [program(target, None, seed, {}) for seed in range(first, first + count)]


@pytest.mark.parametrize(
    ("target", "engine"),
    [
        ("simplex", "reference"),
        ("simplex", "fast"),
        ("tape", "fast"),
        ("transformer", "fast"),
        pytest.param("emulator", "reference", marks=pytest.mark.slow),
        ("emulator", "fast"),
        pytest.param("relu", "reference", marks=pytest.mark.slow),
        ("relu", "fast"),
        ("rcnn", "fast"),
        ("decoder", "fast"),
    ],
)
def test_random_programs_agree(target, engine):
    verdicts = judge(programs(target, 12), engine)
    assert [verdict.mismatch for verdict in verdicts] == [""] * 12
    assert sum(verdict.states > 0 for verdict in verdicts) >= 8


@pytest.mark.parametrize("target", ["emulator", pytest.param("transformer", marks=pytest.mark.slow)])
def test_programs_with_memory_agree(target):
    made = [program(target, "program", seed, {}) for seed in range(4)]
    verdicts = judge(made, "fast")
    assert not any(verdict.mismatch or verdict.refused for verdict in verdicts)
    # Every state that the interpreter passes, in each of the runs.
    inputs = [one.inputs[0] for one in made if one.inputs is not None]
    runs = [one.source.run(one.source.start(*words)) for one, words in zip(made, inputs, strict=True)]
    passed = [len(list(islice(run, 41))) for run in runs]
    assert [verdict.states for verdict in verdicts] == passed


@pytest.mark.slow
def test_ten_thousand_programs(tmp_path):
    """Every target and engine."""
    plan = Plan(tuple(KINDS), ("reference", "fast"), 850)
    summary = run(plan, tmp_path, workers=2)
    assert sum(row["programs"] for row in summary["rows"]) > 10_000
    assert summary["mismatches"] == 0, summary
    assert all(row["agreed"] > 0.8 * row["programs"] for row in summary["rows"])


def test_a_batch_compares_as_many_states_as_one_by_one():
    """`verify`, which takes one step after the other, counts the same states."""
    for one, verdict in zip(programs("simplex", 8), judge(programs("simplex", 8), "reference"), strict=True):
        if not verdict.refused:
            net = tg.compile(one.source, "simplex", **one.options)
            assert verdict.states == tg.verify(net, one.inputs).states


def test_machines_are_of_all_sizes():
    machines = [one.source for one in programs("tape", 300)]
    assert all(isinstance(machine, TuringMachine) for machine in machines)
    assert {machine.tapes for machine in machines} == {1, 2, 3}
    assert {len(machine.states) for machine in machines} == set(range(2, 9))
    assert {len(machine.alphabet) for machine in machines} == {2, 3, 4, 5}
    assert any(0 in rule.moves for machine in machines for rule in machine.rules.values())
    full = [len(m.rules) == len(m.states) * len(m.alphabet) ** m.tapes for m in machines]
    assert any(full)
    assert not all(full)
    assert {one.source.name.split()[1] for one in programs("relu", 4)} == {"circuit", "function"}


def test_seeds_say_all():
    for target in KINDS:
        for one, other in zip(programs(target, 4, 7), programs(target, 4, 7), strict=True):
            assert written(one.source) == written(other.source)
            assert repr(one.inputs) == repr(other.inputs)


# Planted faults


def forgets_to_write(net, vertex, tapes, heads, *others):
    """The engine `fast` of `tape`, but the cell under the first head stays as it was."""
    under = tapes[heads[0], 0]
    place = heads[0]
    found = true_run(net, vertex, tapes, heads, *others)
    tapes[place, 0] = under
    return found


true_run = trained.tape_fast.run
true_layers, true_between = Numba.layers, Numba.between


def test_a_fault_in_an_engine_is_found_and_made_smaller(monkeypatch):
    monkeypatch.setattr(trained.tape_fast, "run", forgets_to_write)
    tried = programs("tape", 16)
    verdicts = judge(tried, "fast")
    failed = [one for one, verdict in zip(tried, verdicts, strict=True) if verdict.mismatch]
    assert failed
    first = min(failed, key=lambda one: len(one.source.rules))
    smaller, verdict = shrunk(first, "fast")
    assert verdict.mismatch
    assert isinstance(smaller.source, TuringMachine)
    assert len(smaller.source.rules) <= 2
    assert smaller.inputs is not None
    assert len(smaller.inputs) == 1
    monkeypatch.undo()
    assert not judge([smaller], "fast")[0].mismatch


def test_circuits_are_made_smaller(monkeypatch):
    """An engine that takes every value of a layer with three gates or more for 0."""

    def between(self, node, slots, first, last):
        bounds = self.part(node, "bounds")
        return true_between(self, node, slots, first, last) * (bounds[last] - bounds[last - 1] < 3)

    monkeypatch.setattr(Numba, "between", between)
    tried = programs("relu", 16)
    verdicts = zip(tried, judge(tried, "fast"), strict=True)
    failed = [one for one, verdict in verdicts if verdict.mismatch and isinstance(one.source, Circuit)]
    assert failed
    smaller, verdict = shrunk(failed[0], "fast")
    assert verdict.mismatch
    assert isinstance(smaller.source, Circuit)
    assert isinstance(failed[0].source, Circuit)
    assert smaller.source.size < failed[0].source.size


TOKENS = texts.TapeTokens
true_text = texts.Fast.advance


@pytest.mark.parametrize(
    ("slot", "token", "other"),
    [
        (0, TOKENS.DIGITS, TOKENS.DIGITS + 2),  # where the head is
        (1, TOKENS.DIGITS, TOKENS.DIGITS + 8),
        (2, TOKENS.SYMBOLS, TOKENS.SYMBOLS + 1),  # what it sees
        (2, TOKENS.SYMBOLS + 1, TOKENS.SYMBOLS),
        (3, TOKENS.SYMBOLS + 3, TOKENS.SYMBOLS + 5),  # what the machine does
    ],
)
def test_every_token_of_a_record_is_compared(slot, token, other, monkeypatch):
    """One machine with one tape and two symbols, whose records have four tokens; some of them are others."""
    rules = {
        ("a", ("0",)): Rule(("1",), (1,), "b"),
        ("a", ("1",)): Rule(("0",), (1,), "a"),
        ("b", ("0",)): Rule(("0",), (1,), "a"),
        ("b", ("1",)): Rule(("1",), (-1,), "a"),
    }
    machine = TuringMachine(rules, "a", blank="0", alphabet=("0", "1"))
    one = Program("decoder", machine, (("10",),), {"tokens": 480})
    (genuine,) = judge([one], "fast")
    assert genuine.states == LENGTHS["decoder"]
    changed = []

    def another(self, tokens, last):
        text = true_text(self, tokens, last)
        for place in range(len(tokens) + slot, len(text), 4):
            if text[place] == token and not changed:
                text[place] = other
                changed.append(place)
        return text

    monkeypatch.setattr(texts.Fast, "advance", another)
    assert judge([one], "fast")[0].mismatch
    assert changed


def test_a_text_that_ends_early_or_goes_on_is_a_mismatch(monkeypatch):
    halting = TuringMachine({("a", ("0",)): Rule(("1",), (1,), "b")}, "a", blank="0", alphabet=("0", "1"))
    one = Program("decoder", halting, ((),), {"tokens": 480})
    assert judge([one], "fast")[0].states == 2
    for change in (lambda text: [*text[:-1], TOKENS.START], lambda text: text[:-4]):
        monkeypatch.setattr(texts.Fast, "advance", lambda *a, change=change: change(true_text(*a)))
        assert judge([one], "fast")[0].mismatch


def test_texts_are_compared_as_verify_does():
    """As many states as `verify` compares, which takes one record after the other."""
    for one, verdict in zip(programs("decoder", 6), judge(programs("decoder", 6), "fast"), strict=True):
        net = tg.compile(one.source, "decoder", **one.options)
        steps = LENGTHS["decoder"] - 1
        assert verdict.states == tg.verify(net, one.inputs, steps=steps, engine="fast").states


def test_horizons_differ():
    assert {one.options["tokens"] for one in programs("decoder", 200)} == {480, 3_000, 60_000}


def test_a_value_that_is_no_number_is_a_mismatch(monkeypatch):
    """In both forms."""
    monkeypatch.setattr(Numba, "between", lambda *a: true_between(*a) * np.float32("nan"))
    monkeypatch.setattr(Numba, "layers", lambda *a: true_layers(*a) * np.float32("nan"))
    drawn = programs("relu", 8)
    assert {one.options["form"] for one in drawn} == {"paper", "practical"}
    assert all(verdict.mismatch for verdict in judge(drawn, "fast"))


@pytest.mark.parametrize(
    ("target", "options"), [("transformer", {"form": "practical"}), ("emulator", {"form": "paper"})]
)
def test_other_nets_of_a_target_are_followed_one_by_one(target, options):
    """Heads and gates in place of the paper's layers, and a memory of exact fractions."""
    drawn = [program(target, None, seed, options) for seed in range(3)]
    verdicts = judge(drawn, "fast" if target == "transformer" else "reference")
    assert not any(verdict.mismatch or verdict.refused for verdict in verdicts)
    assert all(verdict.states > 0 for verdict in verdicts)


def test_a_crash_is_a_mismatch_of_its_own_program(monkeypatch):
    def crashes(net, vertex, *others):
        if len(net.own) > 12:
            raise ZeroDivisionError("planted")
        return true(net, vertex, *others)

    true = trained.simplex_fast.run
    monkeypatch.setattr(trained.simplex_fast, "run", crashes)
    verdicts = judge(programs("simplex", 24), "fast")
    assert {verdict.mismatch for verdict in verdicts} == {"", "ZeroDivisionError: planted"}


def test_failures_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(trained.tape_fast, "run", forgets_to_write)
    line = ["campaign", "-t", "tape", "--engine", "fast", "-c", "4", "-o", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 1
    (row,) = json.loads(done.output)["rows"]
    assert row["mismatches"]
    assert row["agreed"] + len(row["mismatches"]) + sum(row["refused"].values()) == 4
    assert json.loads((tmp_path / SUMMARY).read_text())["mismatches"] == len(row["mismatches"])
    files = {failure["seed"]: tmp_path / FAILURES / failure["file"] for failure in row["mismatches"]}
    assert all(tg.read(str(file)).name == f"random machine {seed}" for seed, file in files.items())
    file = next(iter(files.values()))
    ran = CliRunner().invoke(app, ["run", str(file), "--target", "tape", "--steps", "30", "--json"])
    assert ran.exit_code in (0, 3), ran.output


@pytest.mark.parametrize("target", KINDS)
def test_sources_of_every_kind_are_written_and_read(target):
    for one in programs(target, 2):
        assert written(tg.read(written(one.source).decode())) == written(one.source)


@pytest.mark.parametrize(
    "rest", ["", ' 3, "arrays": []}', ' {"kind": "circuit"}, "arrays": {"a": ["object", []]}}']
)
def test_bad_files_are_refused(rest):
    with pytest.raises(tg.TapegradError):
        tg.read('{"tapegrad source":' + rest)


# The folder


PLAN = Plan(("simplex",), ("fast",), 3 * CHUNK + 5, seed=11)
TABLE = ("programs", "agreed", "states", "refused", "mismatches")


def table(summary):
    return [{name: row[name] for name in TABLE} for row in summary["rows"]]


def line(folder, workers):
    words = ["-t", "simplex", "--engine", "fast", "-c", str(PLAN.programs), "--seed", "11", "-o", str(folder)]
    return [sys.executable, "-m", "tapegrad.cli", "campaign", *words, "--workers", str(workers), "--json"]


@pytest.mark.slow
def test_one_worker_or_two_or_killed_gives_the_same(tmp_path):
    expected = table(run(PLAN, workers=1))
    assert expected[0]["programs"] == PLAN.programs
    process = subprocess.Popen(line(tmp_path, 2), stdout=subprocess.DEVNULL)
    results, children = tmp_path / RESULTS, set[int]()
    while not results.exists() or results.read_bytes().count(b"\n") < 2:
        assert process.poll() is None, "it must not be over yet"
        children |= descendants(process.pid)
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = results.read_bytes().count(b"\n") - 1
    assert before < 4
    with results.open("ab") as file:
        file.write(b'{"number": 3, "targ')  # as if killed while it was writing
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}/stat").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [child for child in children if Path(f"/proc/{child}").exists()], "workers end with it"
    done = subprocess.run(line(tmp_path, 2), capture_output=True, text=True, check=True)
    assert table(json.loads(done.stdout)) == expected
    assert len(results.read_text().splitlines()) == 1 + 4


def descendants(parent):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True).stdout
    return {int(pid) for pid in found.split()}


def test_a_folder_belongs_to_one_campaign(tmp_path):
    plan = Plan(("simplex",), ("fast",), 3)
    first = run(plan, tmp_path)
    assert first["date"]
    assert table(run(plan, tmp_path)) == table(first)
    with pytest.raises(InputError, match="another campaign"):
        run(Plan(("simplex",), ("fast",), 4), tmp_path)
    (tmp_path / RESULTS).write_text("nonsense\n")
    with pytest.raises(FormatError):
        run(plan, tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        run(plan, file)


@pytest.mark.parametrize(
    "words", [["--engine", "quick"], ["-t", "none"], ["teapot", "-t", "relu"], ["-t", "relu", "--seed", "-1"]]
)
def test_bad_options(words):
    done = CliRunner().invoke(app, ["campaign", "-c", "1", *words])
    assert isinstance(done.exception, tg.TapegradError) or done.exit_code == 2
