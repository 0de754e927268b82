"""The search finds machines that solve its tasks, and loses nothing when it is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from tapegrad.errors import FormatError, InputError, Refused
from tapegrad.grid_learners import start
from tapegrad.machines.compiled import run as run_machine
from tapegrad.search import TASKS, Family, SearchOptions, canonical_machines, machine_of, run, table_text
from tapegrad.search.batched import evaluate_batched
from tapegrad.search.confirm import confirm
from tapegrad.search.running import evaluate
from tapegrad.search.tasks import draw_instances, task_named

HARD = SearchOptions(single=2, pairs=1, mirrored=True, allowed_errors=2)


def options_for(task):
    return HARD if task == "single-coordinate" else SearchOptions(allowed_errors=0)


@pytest.mark.parametrize("task", TASKS)
def test_finds_a_machine_by_search_alone(task):
    seen = []
    result = run(task, options_for(task), seen.append)
    assert result.error <= 0.02
    assert seen[-1].shards_done == seen[-1].shards
    assert seen[-1].candidates == result.candidates > 10_000
    assert seen[-1].fewest_errors == 0
    rng = np.random.default_rng(99)
    wrong = 0
    for _ in range(60):  # the plain interpreter, with the epilogue, on problems of its own
        problem = task_named(task).draw(rng)
        first = start(result.machine, problem.X, problem.y, problem.x)
        ended = run_machine(result.machine, first, 10_000)
        rows, columns = len(problem.X) + 1, len(problem.x) + 1
        main = {c: s for c, s in ended.final.cells.items() if 0 <= c[0] < rows and 0 <= c[1] < columns}
        assert ended.halted
        assert list(main) == [(0, 0)]
        wrong += (main[0, 0] == "+") != (problem.answer > 0)
    assert wrong <= 3


def test_the_winner_learns_in_the_network_trained_by_sgd():
    found = confirm(run("single-coordinate", HARD), encoding="ternary", points=16)
    assert found.memory_error < 1e-10
    assert found.output < 1e-10
    assert found.agreed == found.points == 16
    assert found.right
    assert found.layers_compared > 100


def test_enumeration_meets_every_machine_once():
    """Brute force over all tables of one state: those that answer every instance are what the tree finds."""
    family, instances = Family(1), draw_instances(TASKS["any-minus"], 12, 0)
    every = _all_one_state_tables()
    right = evaluate(every, 1, instances.grids, instances.start, instances.answer)
    perfect = every[right == 12]
    result = run("any-minus", SearchOptions(single=1, instances=12, allowed_errors=0))
    assert result.complete == len(perfect) > 0
    assert any((result.table == table).all() for table in perfect)
    assert canonical_machines(family) == len(every) == 14**3


def _all_one_state_tables():
    choices = [(move, 0) for move in range(4)] + [(move, 1 + sign) for move in range(5) for sign in range(2)]
    tables = [
        [[0, *blank], [1, *plus], [2, *minus]] for blank in choices for plus in choices for minus in choices
    ]
    return np.array(tables)


def test_batched_and_compiled_evaluation_agree():
    rng = np.random.default_rng(0)
    every = _all_one_state_tables()
    tables = np.concatenate([every[rng.choice(len(every), 200)], every[:1]])
    for task in ("any-minus", "last-label"):
        instances = draw_instances(TASKS[task], 9, 4)
        compiled = evaluate(tables, 1, instances.grids, instances.start, instances.answer)
        assert (evaluate_batched(tables, 1, instances) == compiled).all()


def test_random_search_finds_the_easy_ones():
    result = run("any-minus", SearchOptions(single=1, samples=30_000, allowed_errors=0))
    assert result.error == 0
    assert result.candidates >= 30_000


def test_a_mirrored_machine_is_its_own_mirror_image():
    result = run("single-coordinate", HARD)
    turned = str.maketrans("+-pm", "-+mp")
    machine = machine_of(result.table, result.family)
    for (state, read), rule in machine.rules.items():
        if state[0] in "spm" and state[1:].isdigit():
            other = machine.rules[state.translate(turned), read.translate(turned)]
            assert other.move == rule.move
            assert other.state == rule.state.translate(turned)
    assert "reads +" in table_text(result.table, result.family)


KILLED = """
import sys, time
from tapegrad.search import SearchOptions, run
run("single-coordinate",
    SearchOptions(single=2, pairs=1, mirrored=True, allowed_errors=2, file=sys.argv[1], workers=1),
    lambda now: time.sleep(0.02))
"""


def test_a_killed_search_goes_on_without_loss_or_double_counting(tmp_path):
    file = tmp_path / "search.sqlite"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(file)], env=os.environ)
    while _shards(file) < 20 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = _shards(file)
    assert before >= 20
    whole = run("single-coordinate", HARD)
    options = SearchOptions(single=2, pairs=1, mirrored=True, allowed_errors=2, file=file)
    result = run("single-coordinate", options)
    assert result.resumed == before < 206
    counts = ("complete", "pruned", "discarded", "error")
    assert [getattr(result, c) for c in counts] == [getattr(whole, c) for c in counts]
    again = run("single-coordinate", options)
    assert again.candidates == whole.candidates
    assert again.resumed == 206


def _shards(file):
    if not file.exists():
        return 0
    try:
        return sqlite3.connect(file).execute("SELECT COUNT(*) FROM shard").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_files_of_other_searches_versions_and_kinds_are_refused(tmp_path):
    file = tmp_path / "search.sqlite"
    run("any-minus", SearchOptions(single=1, allowed_errors=0, file=file))
    with pytest.raises(InputError, match="another search: task is 'any-minus' there"):
        run("last-label", SearchOptions(single=1, allowed_errors=0, file=file))
    database = sqlite3.connect(file)
    with database:
        database.execute(
            "UPDATE search SET description = REPLACE(description, '\"version\": 1', '\"version\": 0')"
        )
    with pytest.raises(InputError, match="version is 0 there, 1 here"):
        run("any-minus", SearchOptions(single=1, allowed_errors=0, file=file))
    (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 10)
    with pytest.raises(FormatError, match="no file of a search"):
        run("any-minus", SearchOptions(single=1, file=tmp_path / "text"))


def test_hopeless_and_malformed_requests_are_refused():
    with pytest.raises(InputError, match="no task"):
        run("world-peace")
    with pytest.raises(Refused, match="none of"):
        run("parity-of-all", SearchOptions(single=1, allowed_errors=0))
    with pytest.raises(Refused, match="not searched"):
        Family(99)
    with pytest.raises(Refused, match="mirrored"):
        Family(1, pairs=1)
    with pytest.raises(Refused, match="no engine"):
        run("any-minus", SearchOptions(single=1, engine="telepathy"))


@pytest.mark.slow
def test_ray_finds_the_same():
    pytest.importorskip("ray")
    here = run("parity-of-all", SearchOptions(allowed_errors=0))
    there = run("parity-of-all", SearchOptions(allowed_errors=0, engine="ray"))
    assert there.candidates == here.candidates
    assert (there.table == here.table).all()
