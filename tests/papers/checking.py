"""What the tests of all four papers do with claims: run them, and see which fail once something is broken."""

import inspect
import json
import re
import textwrap
from pathlib import Path

import pytest

from tapegrad_papers.ledger import Entry, Status, run_claim, section_of


def require_statements(paper, statements):
    """Every statement has one claim, with a check of its own, in the order of the paper."""
    found = [claim.statement for claim in paper.claims]
    assert sorted(found) == sorted(statements)
    assert found == list(paper.statements)
    assert len({claim.check.__name__ for claim in paper.claims}) == len(found)


def parameters(paper, slow=()):
    """The claims as parameters of a test; those named take more than a few seconds even in the quick mode."""
    return [
        pytest.param(claim, id=claim.statement, marks=[pytest.mark.slow] if claim.statement in slow else [])
        for claim in paper.claims
    ]


def check(claim, long=False, expected=None):
    """The claim comes out, says what it compared, can be written as JSON, and is what its page says."""
    outcome = run_claim(claim, long)
    assert outcome.status is not Status.FAILED, outcome.note
    assert outcome.status is (expected or {}).get(claim.statement, outcome.status)
    assert outcome.stated
    assert outcome.measured
    assert len(outcome.checks) >= 2
    if outcome.status is not Status.HOLDS:
        assert outcome.note
    entry = Entry(claim, outcome, 0.0)
    json.dumps(entry.as_json(), allow_nan=False)
    if not long:
        require_on_page(entry)


PAGES = Path(__file__).parents[2] / "docs" / "claims"
ROUNDING = re.compile(r"\d(\.\d+)?e-(0[9]|[1-9]\d)")
"""What rounding leaves, which differs from one processor to the next."""


def require_on_page(entry):
    """The page of the paper has this very section, and the outcome in its table."""
    page = ROUNDING.sub("~0", (PAGES / f"{entry.claim.paper.name}.md").read_text(encoding="utf-8"))
    section = ROUNDING.sub("~0", "\n".join(section_of(entry)))
    assert f"{section}\n" in page, f"docs/claims says otherwise; the row is now:\n{section}"
    assert f" {entry.outcome.status.value} |" in next(
        line for line in page.splitlines() if line.startswith(f"| [{entry.claim.statement}]")
    )


def failing(paper, *statements):
    """Which of these statements fail now; each must fail by a check, not by an error on the way."""
    claims = {claim.statement: claim for claim in paper.PAPER.claims}
    outcomes = {statement: run_claim(claims[statement]) for statement in statements}
    return [
        statement
        for statement, outcome in outcomes.items()
        if outcome.status is Status.FAILED and "did not come out" in outcome.note
    ]


def mutated(function, old, new):
    """The function with one piece of its source replaced, which must be there."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in {function.__name__}"
    names = dict(function.__globals__)
    exec(compile(source.replace(old, new), function.__code__.co_filename, "exec"), names)
    return names[function.__name__]
