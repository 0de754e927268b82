"""Tables of programs: what is run, how far, and a bad table or vertex for every condition."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import save
from tapegrad._sources import source_to_json
from tapegrad.lowering import program_machine as lowering
from tapegrad_check import CheckError
from tapegrad_check.folder import Folder, NotProved, read_folder
from tapegrad_check.instructions.execution import rule_of
from tapegrad_check.instructions.rv32 import PAGE
from tapegrad_check.on_tapes.layout import FETCH, TRAPS, laid_out
from tapegrad_check.passes import tables
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import Machine, Model, Rule, model_of
from tests.check.test_programs_on_tapes import COUNTING, ECHO, checked, program, table_of

FOREVER = "subleq 8 9\n6 6 0  0 0 0  0 0 0"
RV32_TEXT = ".equ __ram, 32\nli a0, 6\nebreak"


@pytest.fixture(scope="module")
def subleq() -> Machine:
    found = model_of(*source_to_json(lowering.subleq_machine()))
    assert isinstance(found, Machine)
    return found


def passed(source: str, machine: Model, target: str = "tape", cells: int = 400, **of_step: Any) -> Any:
    """What the pass makes of a program and the machine that is saved as its table."""
    network = {"inputs": {"H": {"shape": [cells, 4]}}}
    folder = SimpleNamespace(config={"target": target}, network=network)
    step = SimpleNamespace(saved=lambda: machine, proves=True, folder=folder, statements=[], tested=[])
    step.__dict__.update(of_step)
    step.after = tables.PASSES["memory on tapes"](checked(program(source)), step)  # type: ignore[arg-type]
    return step


# What is tried, and how far


def test_what_is_said_of_a_table_that_is_proved(subleq: Machine) -> None:
    step = passed(ECHO, subleq)
    assert step.after is subleq
    assert step.tested == []
    assert step.statements == [
        "one instruction of the table is one of subleq, for all that pc, memory, input and output can be and "
        "all that earlier ones have left: on each of 40 ways the tapes show the same then"
    ]


@pytest.fixture
def _unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is proved, so that it is run beside the definition."""

    def fails(*_: Any) -> int:
        raise NotProved("it is too large")

    monkeypatch.setattr(tables, "PROOFS", {"subleq": fails, "rv32im": fails})


def test_constants() -> None:
    assert (tables.STEPS_AT_LEAST, tables.STEPS_PER_RULE, tables.STEPS_OF_ONE) == (1 << 18, 8, 1 << 18)
    assert (tables.SMALL, tables.WORDS_PER_STEP, tables.TIMES) == (64, 4, {"rv32im": 3, "subleq": 64})


@pytest.mark.usefixtures("_unproved")
def test_what_is_said_of_a_program_that_reads(subleq: Machine) -> None:
    step = passed(ECHO, subleq)
    assert step.after is subleq
    assert step.tested == [3]
    assert step.statements == [
        "on 3 inputs the program was run by the table and by subleq, for 2, 6, 14 instructions, and both "
        "show the same after each",
        "so they do after 64 single instructions on random memories; 595 of 3,008 rules of the table were "
        "used, in 187 of 191 states; it is not proved for all inputs: it is too large",
    ]


@pytest.mark.usefixtures("_unproved")
def test_what_is_said_of_one_that_does_not_and_of_one_that_does_not_end(subleq: Machine) -> None:
    ends = passed(COUNTING, subleq)
    assert ends.tested == []
    assert ends.statements[0].startswith("the program ends after 2 instructions without a look at its input")
    on = passed(FOREVER, subleq)
    assert on.tested == [3]
    assert on.statements[0].count("(not to its end)") == 3


def test_long_proofs_may_be_left_out(subleq: Machine) -> None:
    step = passed(ECHO, subleq, proves=False)
    assert (step.after, step.tested, step.statements) == (subleq, [], [])


def test_the_steps_of_an_instruction_are_counted(subleq: Machine) -> None:
    own = checked(program(COUNTING))
    first = tables.first(own, b"")

    def after(most: int) -> tables.After:
        return tables.Table(subleq).instruction(FETCH, laid_out(own, first), [0] * 4, most)

    whole = after(1 << 20)
    assert whole.state == FETCH
    assert after(whole.steps) == whole
    assert after(whole.steps - 1) == tables.After(None, whole.steps - 1, 0)


def test_a_comparison_counts_as_steps(subleq: Machine) -> None:
    """A memory of 4 n words takes n steps more for each instruction."""
    text = "subleq 32 {}\n6 6 0  0 0 0  0 0 0"
    small, large = (checked(program(text.format(words))) for words in (9, 40_009))
    steps = tables.followed(small, tables.Table(subleq), b"", 50_000).instructions
    assert steps > 10
    assert tables.followed(large, tables.Table(subleq), b"", 50_000).instructions in (4, 5)


@pytest.mark.usefixtures("_unproved")
def test_where_no_instruction_ends_nothing_is_said(subleq: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "STEPS_AT_LEAST", 10)
    monkeypatch.setattr(tables, "STEPS_PER_RULE", 0)
    with pytest.raises(NotProved, match="takes more than 10 steps"):
        passed(ECHO, subleq)


def test_every_instruction_is_tried_by_itself() -> None:
    own = replace(checked(program(RV32_TEXT)), ram=tables.SMALL)
    states = list(tables._random_states(own, np.random.default_rng(0)))
    codes = [int.from_bytes(bytes(state.memory[:4]), "little") for state in states]
    rules = [rule for _, _, rule in PAGE for _ in range(3)]
    assert [rule_of(code) for code in codes] == rules
    assert all(len(state.memory) == 64 and len(state.x) == 32 for state in states)
    assert all(state.x[0] == 0 and state.pc == 0 for state in states)
    assert {state.x[10] for state in states} == {0, 1, 2}
    assert {state.x[12] for state in states} == {0, 1, 2, 3}
    assert {state.x[17] for state in states} == {62, 63, 64, 93}
    assert {state.input for state in states} == set(tables.INPUTS)
    others = [value for state in states for value in (*state.x[1:10], *state.x[18:])]
    assert max(others) > 1 << 31
    assert 0.4 < sum(value < 64 for value in others) / len(others) < 0.6
    assert max(byte for state in states for byte in state.memory) == 255


def test_every_kind_of_address_is_tried() -> None:
    own = replace(checked(program(COUNTING)), ram=tables.SMALL)
    states = list(tables._random_states(own, np.random.default_rng(0)))
    assert len(states) == 64
    assert all(len(state.memory) == 64 and max(state.memory) < 256 for state in states)
    outside = [tuple(word == 255 for word in state.memory[:3]) for state in states]
    assert len({kind[:2] for kind in outside}) == len({kind[1:] for kind in outside}) == 4
    assert 0.2 < np.mean(outside) < 0.4
    rest = [word for state in states for word in state.memory[3:]]
    assert 0.75 < sum(word < 64 for word in rest) / len(rest) < 0.87
    assert np.mean([word == 255 for state in states for word in state.memory[3:6]]) < 0.05
    assert {state.input for state in states} == set(tables.INPUTS)


# What is refused


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tapes": 3}, "other tapes"),
        ({"alphabet": ("0", "1", "2")}, "other tapes"),
        ({"start": "hop"}, "other tapes"),
        ({"accept": ()}, "ends well"),
        ({"reject": ("end",)}, "ends well"),
        ({"accept": ("jump outside memory",)}, "ends well"),
    ],
)
def test_tables_of_another_form(subleq: Machine, change: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckError, match=said):
        passed(COUNTING, replace(subleq, **change))


@pytest.mark.parametrize("state", TRAPS["subleq"])
def test_what_has_stopped_stays(subleq: Machine, state: str) -> None:
    rules = {**subleq.rules, (state, ("0",) * 4): Rule(("0",) * 4, (0,) * 4, FETCH)}
    with pytest.raises(CheckError, match="goes on"):
        passed(COUNTING, replace(subleq, rules=rules, accept=("end",)))


def test_sources_of_another_kind(subleq: Machine) -> None:
    with pytest.raises(CheckError, match="becomes no machine"):
        passed(COUNTING, checked(program(COUNTING)))
    step = SimpleNamespace(saved=lambda: subleq, proves=True)
    with pytest.raises(CheckError, match="becomes no machine"):
        tables.PASSES["memory on tapes"](subleq, step)  # type: ignore[arg-type]


def test_targets_and_sizes_that_are_not_known(subleq: Machine) -> None:
    with pytest.raises(NotProved, match="target 'elsewhere'"):
        passed(COUNTING, subleq, target="elsewhere")
    assert not passed(COUNTING, subleq, cells=82).tested  # 9 words of 9 cells, and the end
    with pytest.raises(NotProved, match="does not fit"):
        passed(COUNTING, subleq, cells=81)
    for cells in (1, (1 << 22) + 1):
        with pytest.raises(CheckError, match="number of cells"):
            passed(COUNTING, subleq, cells=cells)
    passed(COUNTING, subleq, cells=1 << 22)


def test_programs_that_start_between_two_instructions() -> None:
    machine = replace(table_of(lowering.subleq_machine()).machine, accept=(), states=(FETCH,), rules={})
    own = checked(program(RV32_TEXT))
    step = SimpleNamespace(saved=lambda: machine, proves=True, folder=SimpleNamespace(config={"target": "x"}))
    for entry, said in ((2, "no multiple of 4"), (4, "target 'x'"), (8, "target 'x'")):
        with pytest.raises(NotProved, match=said):
            tables.PASSES["memory on tapes"](replace(own, entry=entry), step)  # type: ignore[arg-type]


def test_a_head_that_does_not_come_home(subleq: Machine) -> None:
    """An instruction that leaves all as it should be, and a head elsewhere."""
    own = checked(program(COUNTING))
    state = tables.first(own, b"")
    tapes = laid_out(own, state)
    tables._same(own, FETCH, tapes, [0] * 4, state, "")
    with pytest.raises(CheckError, match="something else"):
        tables._same(own, FETCH, tapes, [0, 0, 0, 1], state, "")
    stopped = replace(state, trap=2)
    tables._same(own, TRAPS["subleq"][1], tapes, [0, 0, 0, 1], stopped, "")
    with pytest.raises(CheckError, match="in the middle"):
        tables._same(own, "hop", tapes, [0] * 4, state, "")


@pytest.mark.usefixtures("_unproved")
def test_an_instruction_by_itself_must_end(subleq: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "STEPS_OF_ONE", 50)
    with pytest.raises(CheckError, match="does not come to the end"):
        passed(ECHO, subleq)


# Vertices


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("net") / "echo"
    save(compile(program(ECHO), "simplex", inputs=[("",)]), folder)
    return folder


def compared(folder: Folder, source: str = ECHO) -> list[str]:
    """What is said of its vertices."""
    step = Step(folder, 0, "memory on tapes")
    tables._vertices(checked(program(source)), step.saved(), step)  # type: ignore[arg-type]
    return step.statements


def with_array(folder: Folder, name: str, place: Any, value: Any) -> Folder:
    altered = folder.arrays[name].copy()
    altered[place] = value
    return replace(folder, arrays={**folder.arrays, name: altered}, known={})


def test_bad_vertices(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else is wrong with them is for the checker of the target to find."""
    folder = read_folder(saved)
    assert compared(folder)[0].startswith("between 2 pairs of vertices lies one instruction each")
    monkeypatch.setattr(tables.simplex, "check", lambda *others: None)
    states, first_cell = folder.config["net"]["states"], folder.config["net"]["first_cell"]
    fetching = np.flatnonzero(folder.own["state"] == states.index(FETCH))
    stopped = np.flatnonzero(folder.own["state"] == states.index("end"))
    edge_from, edge_to = (folder.arrays[f"network.edge_{end}.index"] for end in ("from", "to"))
    on_the_way = int(edge_to[edge_from == fetching[0]][0])
    after = np.flatnonzero(edge_from == on_the_way)
    memory, marks = (0, 3 - first_cell), (2, slice(0, 1 - first_cell))
    for name, place, value, said in (
        ("heads", (fetching[1], 3), 1, "not at home"),
        ("cells", (fetching[1], *memory), 1 - folder.own["cells"][(fetching[1], *memory)], "no instruction"),
        ("cells", (fetching[0], *marks), 0, "no state of the program"),
        ("state", stopped[0], states.index("jump outside memory"), "no instruction"),
        ("network.edge_to.index", after, on_the_way, "in the middle"),
    ):
        with pytest.raises(CheckError, match=said):
            compared(with_array(folder, name, place, value))
    net = {**folder.config["net"], "symbols": ["1", "0"]}
    with pytest.raises(CheckError, match="other tapes"):
        compared(replace(folder, config={**folder.config, "net": net}))
    with pytest.raises(CheckError, match="other tapes"):
        compared(replace(folder, arrays={**folder.arrays, "cells": folder.own["cells"][:, :3]}))


def test_vertices_have_room_for_the_memory(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = read_folder(saved)
    monkeypatch.setattr(tables.simplex, "check", lambda *others: None)
    end = 16 * 9 - folder.config["net"]["first_cell"]
    for cells, enough in ((end + 1, True), (end, False)):
        cut = replace(folder, arrays={**folder.arrays, "cells": folder.own["cells"][:, :, :cells]})
        if enough:
            assert compared(cut)
        else:
            with pytest.raises(CheckError, match="no room"):
                compared(cut)


def test_the_next_vertex_between_two_instructions() -> None:
    """Two ways that meet at 4, and one that ends at 7, where no instruction ends."""
    successor = [1, 2, 4, 4, 5, 5, 7, 7, 3]
    between = [True, False, False, True, False, True, True, False, False]
    assert tables._next_of(successor, between) == [5, 5, 5, 5, 5, None, None, None, 3]
