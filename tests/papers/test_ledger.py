"""The ledger itself: what fails is FAILED, what breaks off stops nobody, and everything can be printed."""

import json

import numpy as np
import pytest

from tapegrad_papers.commands import COLOURS
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
