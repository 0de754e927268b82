"""Every statement of the paper has its claim, and every claim comes out."""

import pytest

from tapegrad_papers.goel import PAPER
from tests.papers.checking import check, parameters, require_statements

STATEMENTS = (
    "Parity",
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


def test_no_statement_is_missing():
    require_statements(PAPER, STATEMENTS)


@pytest.mark.parametrize(
    "claim",
    parameters(
        PAPER,
        slow={
            "Definition 2",
            "Definition 3",
            "Definition 5",
            "Lemma 2",
            "Lemma 3",
            "Lemma 5",
            "Bit precision",
        }
        | {"Theorem 1", "Lemma 1", "Corollary 2", "Algorithm 1", "Algorithm 2", "Section 5"},
    ),
)
def test_claims_come_out(claim):
    check(claim)
