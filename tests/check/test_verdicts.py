"""Which verdict follows from what was proved; and small parts of passes and pages that others rest on."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapegrad_check
from tapegrad_check import folder as folders
from tapegrad_check import passes
from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE, Checked, CheckError, NotProved
from tapegrad_check.in_tokens import program_texts
from tapegrad_check.instructions.ports import Layout
from tapegrad_check.passes import Bound, programs, rasp
from tapegrad_check.sources import Learner
from tapegrad_check.targets.emulator import for_the_first
from tapegrad_check.targets.heads import _gate
from tests.check.test_ground import RV, SUBLEQ


def report(monkeypatch: pytest.MonkeyPatch, bound: Bound, verdict: str) -> tapegrad_check.CheckReport:
    config = {"target": "relu", "net": {}}
    folder = SimpleNamespace(config=config, own={}, certificate={"claims": {}}, network=None, known={})
    monkeypatch.setattr(tapegrad_check, "read_folder", lambda path: folder)
    monkeypatch.setattr(passes, "bound_source", lambda folder: bound)
    monkeypatch.setattr(tapegrad_check, "checked_by", lambda *of: Checked(["it holds"], verdict))
    return tapegrad_check.check("net")


@pytest.mark.parametrize(
    ("source", "tested", "own", "wanted"),
    [
        (SUBLEQ, None, COMPUTES_SOURCE, COMPUTES_SOURCE),
        (SUBLEQ, None, OWN_TABLE, OWN_TABLE),
        (SUBLEQ, 3, COMPUTES_SOURCE, folders.tested_on(3)),
        (SUBLEQ, 3, OWN_TABLE, OWN_TABLE),
        (None, None, COMPUTES_SOURCE, OWN_TABLE),
        (None, 3, COMPUTES_SOURCE, OWN_TABLE),
        (None, None, folders.tested_on(1), folders.tested_on(1)),
        (SUBLEQ, None, for_the_first(5), "computes this source, for the first 5 samples"),
        (SUBLEQ, 3, for_the_first(5), folders.tested_on(3)),
        (None, None, for_the_first(5), OWN_TABLE),
    ],
)
def test_verdicts(
    source: Any, tested: int | None, own: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least of what holds of the way to the net, and of the net; 0 for nothing less than all."""
    found = report(monkeypatch, Bound(source, "it is too far", ("on the way",), tested), own)
    assert found.verdict == wanted
    assert found.code == {COMPUTES_SOURCE: 0, OWN_TABLE: 4, for_the_first(5): 6}.get(wanted, 5)
    assert ("the source was not checked: it is too far" in found.statements) == (source is None)
    assert found.statements[-2:] == ("on the way", "it holds")


# Pages of programs


def subleq(**changes: Any) -> dict[str, Any]:
    return {"kind": "subleq", "ram": 8, "width": 8, "counted": 2} | changes


def test_machines_of_subleq() -> None:
    for width, ram in ((8, 127), (16, 200), (32, 400)):
        page, tokens, proved = program_texts._subleq(subleq(width=width, ram=ram), ram, 2, None)
        assert (len(page.slots) > 9, tokens > 9, proved) == (True, True, [])
    for changes, ram, said in (
        ({"more": 1}, 8, "other entries"),
        ({"width": 24}, 24, "does not consist of words"),
        ({"width": 16}, 7, "does not consist of words"),
        ({"width": 32}, 6, "does not consist of words"),
        ({}, 128, "every address"),
        ({"width": 7}, 8, "width of a word"),
        ({"width": 33}, 8, "width of a word"),
    ):
        with pytest.raises(CheckError, match=said):
            program_texts._subleq(subleq(**changes), ram, 2, None)
    program_texts._subleq(subleq(), 8, 2, SUBLEQ)
    with pytest.raises(CheckError, match="not those of the source"):
        program_texts._subleq(subleq(width=16), 8, 2, SUBLEQ)


def test_machines_of_rv32(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(program_texts.rv32_proof, "prove", lambda *sizes: asked.append(sizes) or 7)
    data = {"kind": "rv32", "ram": 16, "counted": 2}
    page, tokens, proved = program_texts._rv32(data, 16, 2, RV)
    assert (asked, tokens, page.ram) == ([(16, 2)], program_texts.rv32_tokens.TOKENS, 16)  # type: ignore[attr-defined]
    assert "7 cases" in proved[0]
    assert "49 instructions" in proved[0]
    for entry in (4, 8, 12):
        program_texts._rv32(data, 16, 2, replace(RV, entry=entry))
    for entry in (1, 2, 6):
        with pytest.raises(NotProved, match="no multiple of 4"):
            program_texts._rv32(data, 16, 2, replace(RV, entry=entry))
    program_texts._rv32(data, 12, 2, None)
    with pytest.raises(CheckError, match="does not consist of words"):
        program_texts._rv32(data, 14, 2, None)
    with pytest.raises(CheckError, match="other entries"):
        program_texts._rv32(data | {"width": 32}, 16, 2, None)


def test_what_is_claimed_of_a_text() -> None:
    net: Any = SimpleNamespace(
        horizon=500, record=9, digits=[0, 1, 2], largest=lambda: 77, beta=3.0, stray=0.125
    )
    claims = {
        "dtype": "float32", "tokens": 500, "record": 9, "layers": 4, "largest_score": 77.0, "score_gap": 0.5,
        "mean_error": 1 / (1 << 20), "temperature": 3.0, "softmax_error": 0.125, "logit_gap": 1.0,
    }  # fmt: skip
    program_texts._claims(claims, net)
    for name, own in claims.items():
        with pytest.raises(CheckError, match="claims something else"):
            program_texts._claims(claims | {name: 2 * own}, net)


def test_digits_that_count_the_input() -> None:
    graph: Any = None  # nobody looks at it before
    for counted in (0, 7, True):
        with pytest.raises(CheckError, match="digits that count the input"):
            program_texts.check({"machine": subleq(counted=counted)}, {}, None, graph)
    for counted in (1, 6):
        with pytest.raises(CheckError, match="other entries"):
            program_texts.check({"machine": subleq(counted=counted, more=1)}, {}, None, graph)
    for ram in (0, -4):
        with pytest.raises(CheckError, match="size of memory"):
            program_texts.check({"machine": subleq(ram=ram)}, {}, None, graph)


# Passes


def test_room_for_the_formulas_of_a_circuit() -> None:
    circuit: Any = SimpleNamespace(inputs=[0] * 10, kinds=[0] * 100)
    assert programs._room(circuit).most == (1 << 17) + 8 * 110


@pytest.mark.parametrize("count", range(6))
def test_gates_are_their_tables(count: int) -> None:
    n = Nodes()
    table = 0x9E37_79B9_7F4A_7C15 & (1 << (1 << count)) - 1
    for row in range(1 << count):
        assert _gate(n, [row >> bit & 1 for bit in range(count)], table) == table >> row & 1


def lessons(**changes: Any) -> tuple[Any, Any]:
    """A program and what is saved as its learner, as far as it is looked at without the proof."""
    names = tuple(Layout.sized("subleq", 8, 5, 1, 1).names())
    circuit = SimpleNamespace(outputs=("answer", "finished", *names), inputs=(*names, "random", "guess"))
    after = object.__new__(Learner)
    given = {"circuit": circuit, "bits": 0, "first": (False,) * len(names)} | changes
    for name, own in given.items():
        object.__setattr__(after, name, own)
    options = {"steps": 5, "input": 1, "output": 1} | changes.get("options", {})
    return after, SimpleNamespace(saved=lambda: after, option=options.__getitem__, proves=False)


def test_lessons_within_their_bounds() -> None:
    after, step = lessons()
    assert programs._learner(SUBLEQ, step) is after
    for steps in (1, 1 << 40):
        programs._learner(SUBLEQ, lessons(options={"steps": steps})[1])
    for steps in (0, (1 << 40) + 1):
        with pytest.raises(CheckError, match="number of samples"):
            programs._learner(SUBLEQ, lessons(options={"steps": steps})[1])
    for changes in ({"bits": 1}, {"first": (False, True)}):
        with pytest.raises(CheckError, match="first memory are others"):
            programs._learner(SUBLEQ, lessons(**changes)[1])
    names = after.circuit.outputs[2:]
    other = SimpleNamespace(outputs=("finished", "answer", *names), inputs=after.circuit.inputs)
    with pytest.raises(CheckError, match="gives something else"):
        programs._learner(SUBLEQ, lessons(circuit=other)[1])
    with pytest.raises(CheckError, match="becomes no circuit"):
        programs._circuit(SUBLEQ, step)


def test_bounds_of_circuits_of_rasp() -> None:
    assert (rasp.FEW_INPUTS, rasp.FEW_VALUES, rasp.AT_ONCE) == (1 << 16, 1 << 32, 1 << 12)


def test_means_of_numbers_that_are_too_large() -> None:
    rows, values = np.ones((1, 2, 2), bool), np.array([[0, 1]])
    for most, fits in (((1 << 48) - 1, True), (1 << 48, False)):
        mean = Fraction(most, 2)
        program: Any = SimpleNamespace(
            nodes=[None, SimpleNamespace(reads=(0, 0), what=None)],
            values=[[0, most]],
            places=[None, {mean: 7}],
        )
        if fits:
            assert rasp._means(program, 1, rows, values).tolist() == [[7, 7]]
        else:
            with pytest.raises(NotProved, match="too large"):
                rasp._means(program, 1, rows, values)
