"""The ledger itself: what fails is FAILED, what breaks off stops nobody, and everything can be printed."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tapegrad_papers import ledger
from tapegrad_papers.commands import COLOURS, select
from tapegrad_papers.ledger import (
    NOTE_HEADINGS,
    Outcome,
    Paper,
    Status,
    holds,
    holds_corrected,
    holds_in_part,
    not_shown,
    page,
    run_claims,
)


def small_paper():
    paper = Paper("small", "A small paper", statements=("Lemma 1", "Lemma 2", "Lemma 3"))

    @paper.claim("Lemma 3", "Breaks off")
    def lemma_3(long: bool) -> Outcome:
        raise ArithmeticError("no such number")

    @paper.claim("Lemma 1", "Two is less than three")
    def lemma_1(long: bool) -> Outcome:
        values = {"array": np.arange(3), "number": np.float64(2.5), "pair": (1, {"a": np.int64(2)})}
        return holds({"2 < 3": 2 < 3}, "2 < 3", "[2, 3]" if long else "2", **values)

    @paper.claim("Lemma 2", "Three is less | than two")
    def lemma_2(long: bool) -> Outcome:
        return holds_corrected({"2 < 3": True, "3 < 2": 3 < 2}, "3 < 2", "3", correction="3 > 2")

    return paper


def test_an_outcome_holds_only_if_all_its_checks_come_out_and_there_are_some():
    assert holds({"a": True}, "", "").status is Status.HOLDS
    assert holds_corrected({"a": True}, "", "", "").status is Status.CORRECTED
    assert holds_in_part({"a": True}, "", "", "").status is Status.IN_PART
    assert not_shown({"a": True}, "", "", "").status is Status.NOT_SHOWN
    assert [status.value for status in Status if status is not Status.FAILED] == [
        "holds", "holds corrected", "holds in part", "not shown",
    ]  # fmt: skip
    for kind in (holds, holds_corrected, holds_in_part, not_shown):
        assert kind({"a": True, "b": False}, "", "", "").status is Status.FAILED
        assert kind({}, "", "", "").status is Status.FAILED
        assert "did not come out: b" in kind({"a": True, "b": False}, "", "", "").note


@pytest.mark.parametrize(
    ("printed", "parts", "status"),
    [
        ({"x": True}, {"y": True}, Status.HOLDS),
        ({"x": False, "z": True}, {}, Status.CORRECTED),
        ({}, {"y": False, "z": True}, Status.IN_PART),
        ({"x": False}, {"y": False}, Status.IN_PART),
    ],
)
def test_a_status_follows_from_what_came_out_as_printed_and_what_was_built(printed, parts, status):
    outcome = holds({"a": True}, "", "", printed=printed, parts=parts)
    assert outcome.status is status
    shown = [f"{'' if came_out else 'not as printed: '}{sentence}" for sentence, came_out in printed.items()]
    assert outcome.checks == dict.fromkeys(
        ["a", *(part for part, built in parts.items() if built), *shown], True
    )
    assert holds({"a": False}, "", "", printed=printed, parts=parts).status is Status.FAILED


def test_claims_run_in_the_order_of_the_paper_and_a_broken_one_stops_nobody():
    seen = []
    running = run_claims(small_paper().claims, before_each=lambda claim: seen.append(claim.statement))
    entries = [next(running)]
    assert seen == ["Lemma 1"], "an entry is given before the next claim is run"
    entries += running
    assert seen == ["Lemma 1", "Lemma 2", "Lemma 3"]
    assert [e.outcome.status for e in entries] == [Status.HOLDS, Status.FAILED, Status.FAILED]
    assert "no such number" in entries[2].outcome.note


def test_a_statement_that_the_paper_does_not_have_is_refused():
    with pytest.raises(ValueError, match="not in tuple"):
        small_paper().claim("Lemma 4", "")(lambda long: holds({"a": True}, "", ""))


def test_entries_are_plain_json():
    found = json.loads(json.dumps([entry.as_json() for entry in run_claims(small_paper().claims, long=True)]))
    assert found[0]["values"] == {"array": [0, 1, 2], "number": 2.5, "pair": [1, {"a": 2}]}
    assert found[0]["measured"] == "[2, 3]"
    assert found[1]["checks"] == {"2 < 3": True, "3 < 2": False}
    assert {"paper", "statement", "description", "function", "status", "stated", "note", "seconds"} <= set(
        found[0]
    )


def test_a_page_has_every_statement_with_its_checks():
    paper = small_paper()
    text = page(paper, list(run_claims(paper.claims)), long=False)
    assert "3 statements: 1 holds, 2 FAILED." in text
    assert "| [Lemma 2](#lemma-2) | Three is less \\| than two | FAILED |" in text
    assert "- [x] 2 < 3" in text
    assert "- [ ] 3 < 2" in text
    assert "the check broke off with ArithmeticError: no such number" in text


def test_every_outcome_has_a_heading_and_a_colour():
    assert set(NOTE_HEADINGS) == set(COLOURS) == set(Status)


KINDS = {"holds", "holds_corrected", "holds_in_part", "not_shown"}
NAMES = ("checks", "stated", "measured", "note")
"""Arguments by position; the fourth has other names too."""
REFERENCE = re.compile(r"\([A-Z]?\.?[\d.]+\)|\b[A-Z]\.\d+|\b[A-Z][a-z]+ [A-Z]?\.?\d+(\.\d+)?")
"""(2.2), D.6, Theorem 3: places in a paper."""
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?: ?%| million)?")
OF_THE_PAPERS = {
    "2^-201 3^-27", "24 gamma", "flat from 1.5", "100 s units", "16 s = 2^", "ln(|F| / 0.01)", "99%",
}  # fmt: skip
"""Numbers in formulas, and shares that a check asks for."""


def written_out(text):
    """Numbers in the text that look like results: with a point, a per cent sign, or above a dozen."""
    for formula in OF_THE_PAPERS:
        text = text.replace(formula, "")
    found = NUMBER.findall(REFERENCE.sub("", text))
    return [n for n in found if set(n) & set(".% ") or int(n.replace(",", "")) > 12]


def literals(node):
    """The text that stands in the source; what is put into an f-string is left out."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for below in ast.iter_child_nodes(node):
            yield from literals(below)


def numbers_in_notes(source):
    """Function and number for each number that is written out in what was measured or in a note."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KINDS:
                    given = dict(zip(NAMES, call.args, strict=False))
                    given |= {word.arg: word.value for word in call.keywords if word.arg is not None}
                    for name in ("measured", "note", "correction", "part", "why"):
                        texts = literals(given[name]) if name in given else ()
                        yield from ((function.name, n) for text in texts for n in written_out(text))


def test_no_number_in_a_note_is_written_out():
    """Whatever is said of a run was computed in it."""
    folder = Path(ledger.__file__).parent
    files = [*folder.rglob("*.py")]
    assert {path.parent.name for path in files} >= {"welper", "goel", "abbe_sandon", "wei"}
    assert [(path.name, *found) for path in files for found in numbers_in_notes(path.read_text())] == []


def test_every_command_of_the_errata_names_a_statement_of_its_paper():
    page = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
    commands = re.findall(r'`tapegrad claims (\S+)((?: --only "[^"]+")?)`', page)
    assert len(commands) > 50
    for paper, only in commands:
        assert select(paper, only.removeprefix(' --only "').removesuffix('"'))
    assert "Remark 10" not in page


@pytest.mark.parametrize(
    ("note", "numbers"),
    [
        ('"accuracy 0.97"', ["0.97"]),
        ('f"of {n} weights 1,363 change, as in Theorem 13"', ["1,363"]),
        ('"wrong in " + f"40 of {n}"', ["40"]),
        ('f"{n:.2f} of (2.2), by Lemma D.13, in 2 or 3 steps"', []),
    ],
)
def test_a_number_that_is_written_out_is_found(note, numbers):
    source = f"def row(n):\n    return holds(checks, 'a', 'b', note={note})"
    assert [number for _, number in numbers_in_notes(source)] == numbers
