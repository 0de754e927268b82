"""Every statement of the two papers has its claim, and all come out in the quick mode."""

import pytest

from tapegrad_papers.claims import abbe_sandon, goel
from tapegrad_papers.claims.ledger import Status
from tapegrad_papers.claims.running import run_claim

GOEL = (
    *(f"Definition {i}" for i in range(1, 6)),
    "Observation 1",
    "Claim 1",
    "Claim 2",
    "Theorem 1",
    "Corollary 2",
    *(f"Lemma {i}" for i in range(1, 7)),
    "Corollary 3",
    "Algorithm 1",
    "Algorithm 2",
    "Section 5",
    "Bit precision",
)
ABBE_SANDON = (
    "Lemma 1",
    "Definition 6",
    "Lemma 2",
    "Lemma 3",
    "Remark 9",
    "Theorem 4",
    "Remark 10",
    "Corollary 1",
    "Remark 11",
    "Definition 7",
    "Lemma 4",
    "Lemma 5",
    "Lemma 6",
    "Theorem 5",
    "Remark 12",
    "Remark 13",
    "Section 4.3",
    "Theorem 3",
    "Corollary 2",
    "Theorem 6",
    "Lemma 7",
    "Corollary 3",
    "Section 6.1",
    "Section 6.2",
    "Section 6.3",
)
LONG = {("abbe-sandon", "Theorem 6"), ("abbe-sandon", "Section 6.2"), ("goel", "Lemma 5")}
"""Claims that take more than a few seconds even in quick mode."""
CLAIMS = [
    pytest.param(
        claim,
        id=f"{claim.paper.name} {claim.statement}",
        marks=[pytest.mark.slow] if (claim.paper.name, claim.statement) in LONG else [],
    )
    for claim in (*goel.PAPER.claims, *abbe_sandon.PAPER.claims)
]


@pytest.mark.parametrize(("paper", "statements"), [(goel.PAPER, GOEL), (abbe_sandon.PAPER, ABBE_SANDON)])
def test_no_statement_is_missing(paper, statements) -> None:
    found = [claim.statement for claim in paper.claims]
    assert sorted(found) == sorted(statements)
    assert len({claim.check for claim in paper.claims}) == len(found)


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_comes_out(claim) -> None:
    outcome = run_claim(claim)
    assert outcome.status is not Status.FAILED, outcome.note
    assert outcome.checks
    assert outcome.stated
    assert outcome.measured
    if outcome.status in (Status.CORRECTED, Status.FAILS_AS_PRINTED, Status.ASYMPTOTIC):
        assert outcome.note
