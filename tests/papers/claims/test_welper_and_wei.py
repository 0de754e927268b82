"""Every statement of two papers is there, runs, compares something, and comes out."""

import json

import pytest

from tapegrad_papers.claims import wei, welper
from tapegrad_papers.claims.ledger import Status
from tapegrad_papers.claims.running import Entry, run_claim

WELPER = [
    *("Proposition 2.1", "Corollary 2.2", "Corollary 2.3", "Lemma 4.1", "Proposition 4.2", "Proposition 4.3"),
    *("Bound (23)", "Condition (10)", "Condition (15)", "Condition (18)", "Condition (20)"),
    *("Section 5.2", "Section 5.3", "Section 5.4", "Section 5.5"),
    *("Lemma A.1", "Lemma A.2", "Lemma A.3", "Function (34)", "Appendix B", "Appendix C"),
]
WEI = [
    *("Definition 2.1", "Proposition 2.2", "(2.1)", "(2.2)", "Lemma 2.3", "Corollary A.1"),
    *(
        "Theorem 3.1",
        "Lemma 3.2",
        "Lemma 3.3",
        "Proposition 3.4",
        "Claim 3.5",
        "Proposition B.2",
        "Lemma B.1",
    ),
    *("Theorem 4.1", "Lemma C.1", "Lemma C.2", "Lemma C.3", "Claim C.4", "Claim C.5", "Claim C.6"),
    *("Lemma C.7", "Lemma C.8"),
    # The paper calls two of its five definitions conditions.
    *("Definition D.1", "Definition D.2", "Condition D.3", "Condition D.4", "Definition D.5"),
    *("Theorem D.6", "Lemma D.7", "Lemma D.8", "Lemma D.9"),
]
CLAIMS = [*welper.PAPER.claims, *wei.PAPER.claims]
EXPECTED = {
    "Condition (10)": Status.CORRECTED,
    "Proposition 4.3": Status.CORRECTED,
    "Lemma A.3": Status.CORRECTED,
    "Appendix B": Status.CORRECTED,
    "Definition D.2": Status.FAILS_AS_PRINTED,
    "Theorem 4.1": Status.ASYMPTOTIC,
    "Claim 3.5": Status.HOLDS,
}


@pytest.mark.parametrize(("paper", "statements"), [(welper.PAPER, WELPER), (wei.PAPER, WEI)])
def test_no_statement_is_missing(paper, statements):
    found = [claim.statement for claim in paper.claims]
    assert sorted(found) == sorted(statements)
    assert found == list(paper.statements)
    assert len({claim.check.__name__ for claim in paper.claims}) == len(found)


def check(claim, long):
    outcome = run_claim(claim, long)
    assert outcome.status is not Status.FAILED, outcome.note
    assert outcome.stated
    assert outcome.measured
    assert len(outcome.checks) >= 2
    assert outcome.status is EXPECTED.get(claim.statement, outcome.status)
    if outcome.status is not Status.HOLDS:
        assert outcome.note
    json.dumps(Entry(claim, outcome, 0.0).as_json(), allow_nan=False)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.paper.name} {claim.statement}")
def test_claims_come_out(claim):
    check(claim, long=False)


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.paper.name} {claim.statement}")
def test_claims_come_out_on_larger_instances(claim):
    check(claim, long=True)
