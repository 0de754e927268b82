"""The search finds machines that solve its tasks, and loses nothing when it is killed."""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegrad.errors import FormatError, InputError, Refused
from tapegrad.learners.on_grid import start
from tapegrad.machines.compiled import run as run_machine
from tapegrad.search import (
    TASKS,
    Family,
    SearchOptions,
    Task,
    canonical_machines,
    machine_of,
    run,
    table_text,
)
from tapegrad.search.confirm import confirm
from tapegrad.search.shards import Quest, ShardResult, Store, expected_candidates
from tapegrad.search.tasks import draw_instances, laid_out, task_named
from tapegrad.search.tree import evaluate
from tapegrad_papers.goel.restarts import random_table

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


@pytest.mark.slow
def test_the_winner_learns_in_the_network_trained_by_sgd():
    found = confirm(run("single-coordinate", HARD), form="paper", points=16)
    assert found.memory_error < 1e-10
    assert found.output < 1e-10
    assert found.agreed == found.points == 16
    assert found.right
    assert found.layers_compared == found.layers > 100
    assert found.agrees
    broken = replace(found, layers_compared=4)
    assert not broken.agrees


@pytest.mark.parametrize("writes", [False, True])
def test_enumeration_meets_every_machine_once(writes):
    """Brute force over all tables of one state: those that answer every instance are what the tree finds."""
    instances = draw_instances(TASKS["any-minus"], 12, 0)
    every = _all_one_state_tables(writes)
    perfect = every[evaluate(every, 1, instances.problems(2)) == 12]
    options = SearchOptions(single=1, writes=writes, instances=12, allowed_errors=0)
    result = run("any-minus", options)
    assert result.complete == len(perfect) > 0
    assert any((result.table == table).all() for table in perfect)
    assert canonical_machines(options.family()) == len(every)


def _all_one_state_tables(writes=False):
    answers = [(move, 1 + sign) for move in range(5) for sign in range(2)]

    def choices(symbol):
        written = [symbol] if symbol == 0 or not writes else [1, 2]
        return [(w, move, 0) for w in written for move in range(4)] + [
            (symbol, *answer) for answer in answers
        ]

    return np.array([[b, p, m] for b in choices(0) for p in choices(1) for m in choices(2)])


@pytest.mark.parametrize("family", [Family(2), Family(3, writes=True), Family(2, 1, True, True)])
def test_runs_end_as_those_of_the_plain_interpreter(family):
    """Random tables, stepped by the interpreter of grid machines too; what is met twice is met for ever."""
    rng = np.random.default_rng(family.states)
    problems = [TASKS["single-coordinate"].draw(rng) for _ in range(4)]
    instances = laid_out(problems)
    tables = np.stack([random_table(family, rng) for _ in range(3000)])
    quick, right = (evaluate(tables, family.states, instances.problems(k)) for k in (1, 3))
    late = np.flatnonzero(quick != right)
    ends = []
    for i in [*range(60), *late[:5]]:
        machine = machine_of(tables[i], family)
        for k, counted in ((1, quick), (3, right)):
            found = [_plain(machine, problem, k) for problem in problems]
            assert counted[i] == found.count("right")
            ends += found
    assert {"right", "wrong", "circle"} <= set(ends)
    assert "out of time" in ends or not len(late)
    if family == Family(3, writes=True):
        assert len(late)  # there are runs that only the larger time bound lets end


def _plain(machine, problem, exponent):
    """How a run ends before the epilogue begins, by the interpreter alone."""
    limit = (2 * problem.X.size) ** exponent
    seen = set()
    for taken, now in enumerate(machine.run(start(machine, problem.X, problem.y, problem.x))):
        if now.state.startswith("answer"):
            on_sign = now.cells.get(now.head, "0") != "0"
            return "right" if on_sign and (now.state[-1] == "+") == (problem.answer > 0) else "wrong"
        row, column = now.head
        if not (-1 <= row <= len(problem.X) + 1 and -1 <= column <= len(problem.x) + 1):
            return "wrong"
        key = now.state, now.head, tuple(sorted(now.cells.items()))
        if key in seen:
            return "circle"
        if taken == limit:
            return "out of time"
        seen.add(key)
    raise AssertionError("such machines have no rule missing")


SIMULATED = """
import numpy as np
from tapegrad.search import Family, on_gpu
from tapegrad.search.shards import Quest, branches, enumeration, work
from tapegrad.search.tasks import TASKS, draw_instances
on_gpu.THREADS, on_gpu.BLOCKS, on_gpu.WANTED_BRANCHES = 2, 1, 40
quest = Quest(Family(1, writes=True).code(), draw_instances(TASKS["any-minus"], 4, 0).problems(1), 0)
shards = enumeration(quest)[::3]
there = dict(on_gpu.on_gpu(shards, quest))
for shard in shards:
    here = work(shard, quest)
    assert here.counts == there[shard.number].counts
    assert here.errors.min() == there[shard.number].errors.min()
print(len(shards), sum(sum(result.counts) for result in there.values()))
"""


@pytest.mark.slow
def test_the_gpu_kernel_counts_the_same_in_numbas_simulator():
    """No GPU is needed: numba runs the kernel in plain Python, thread by thread."""
    simulator = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    found = subprocess.run([sys.executable, "-c", SIMULATED], env=simulator, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    shards, candidates = map(int, found.stdout.split())
    assert candidates > shards > 10


def test_the_expected_number_of_candidates_is_near_the_true_one():
    options = SearchOptions(single=2, allowed_errors=0)
    problems = draw_instances(TASKS["any-minus"], options.instances, options.seed).problems(options.exponent)
    expected = expected_candidates(Quest(options.family().code(), problems, 0))
    assert expected == pytest.approx(run("any-minus", options).candidates, rel=0.2)
    with pytest.raises(Refused, match="too many to try"):
        run("any-minus", SearchOptions(single=6))


def test_random_search_finds_the_easy_ones():
    result = run("any-minus", SearchOptions(single=1, samples=30_000, allowed_errors=0))
    assert result.error == 0
    assert result.candidates == 30_000


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


@pytest.mark.slow
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


def test_a_file_without_room_is_the_systems_matter(tmp_path):
    store = Store(tmp_path / "search.sqlite", {"task": "any-minus"})
    pages = store.database.execute("PRAGMA page_count").fetchone()[0]
    store.database.execute(f"PRAGMA max_page_count = {pages}")
    many = ShardResult((1, 2, 3), np.zeros((4000, 12), np.int64), np.zeros(4000, np.int64))
    with pytest.raises(OSError, match="No space left") as full:
        store.add(0, many)
    assert full.value.errno == errno.ENOSPC


def test_files_of_other_searches_versions_and_kinds_are_refused(tmp_path):
    file = tmp_path / "search.sqlite"
    run("any-minus", SearchOptions(single=1, allowed_errors=0, file=file))
    with pytest.raises(InputError, match="another search: task is 'any-minus' there"):
        run("last-label", SearchOptions(single=1, allowed_errors=0, file=file))
    database = sqlite3.connect(file)
    with database:
        database.execute(
            "UPDATE search SET description = REPLACE(description, '\"version\": 2', '\"version\": 0')"
        )
    with pytest.raises(InputError, match="version is 0 there, 2 here"):
        run("any-minus", SearchOptions(single=1, allowed_errors=0, file=file))
    (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 10)
    with pytest.raises(FormatError, match="cannot be used as the file of a search"):
        run("any-minus", SearchOptions(single=1, file=tmp_path / "text"))
    with pytest.raises(FormatError, match="cannot be used"):
        run("any-minus", SearchOptions(single=1, file=tmp_path))
    stranger = sqlite3.connect(tmp_path / "addresses")
    with stranger:
        stranger.execute("CREATE TABLE search (name TEXT)")
    with pytest.raises(FormatError, match="a database of something else"):
        run("any-minus", SearchOptions(single=1, file=tmp_path / "addresses"))
    with database:
        database.execute("UPDATE search SET description = '[]'")
    with pytest.raises(FormatError, match="cannot be used"):
        run("any-minus", SearchOptions(single=1, allowed_errors=0, file=file))


def test_a_task_defined_anew_is_another_search(tmp_path, monkeypatch):
    options = SearchOptions(single=1, allowed_errors=24, file=tmp_path / "f")
    mine = Task("mine", "the first feature", lambda rng, X: lambda x: int(x[0]))
    monkeypatch.setitem(TASKS, "mine", mine)
    run("mine", options)
    monkeypatch.setitem(TASKS, "mine", replace(mine, answer=lambda rng, X: lambda x: -int(x[0])))
    with pytest.raises(InputError, match="another search: problems is"):
        run("mine", options)


def test_two_searches_may_share_a_file(tmp_path):
    options = SearchOptions(single=1, allowed_errors=0, file=tmp_path / "f")
    alone = run("any-minus", SearchOptions(single=1, allowed_errors=0))
    other = []

    def meanwhile(now):
        if not other:
            other.append(run("any-minus", options))

    both = run("any-minus", options, meanwhile)
    assert both.candidates == other[0].candidates == alone.candidates


STOPPED = """
import sys
from tapegrad.cli import main
words = ["search", "any-minus", "--states", "3", "--writes", "--no-train", "--file", sys.argv[1]]
sys.argv = ["tapegrad", *words]
main()
"""


@pytest.mark.slow
def test_ctrl_c_stops_a_large_search_at_once(tmp_path):
    file = tmp_path / "search.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(file)],
        stderr=subprocess.PIPE,
        text=True,
        # Whether or not the shell that started the tests has set it to be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while _shards(file) < 1 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "goes on from" in said
    assert _shards(file) >= 1


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
        SearchOptions(single=1, engine="telepathy")
    wrong: list[dict[str, Any]] = [{"instances": 0}, {"samples": -5}, {"workers": -1}, {"exponent": 9}]
    for options in wrong:
        with pytest.raises(InputError, match="must lie between"):
            SearchOptions(**options)
    with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
        SearchOptions(confidence=1)


@pytest.mark.slow
def test_ray_finds_the_same():
    pytest.importorskip("ray")
    here = run("parity-of-all", SearchOptions(allowed_errors=0))
    there = run("parity-of-all", SearchOptions(allowed_errors=0, engine="ray"))
    assert there.candidates == here.candidates
    assert (there.table == here.table).all()
