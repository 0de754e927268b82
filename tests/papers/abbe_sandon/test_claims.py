"""Every statement of the paper has its claim, and every claim comes out."""

import pytest

from tapegrad_papers.abbe_sandon import PAPER
from tests.papers.checking import check, parameters, require_statements

SECTIONS = ("Section 6.1", "Section 6.2", "Section 6.3")
STATEMENTS = (
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
    *SECTIONS,
)


def test_no_statement_is_missing():
    require_statements(PAPER, STATEMENTS)


@pytest.mark.parametrize(
    "claim",
    parameters(
        PAPER,
        slow={"Corollary 2", "Remark 12", "Theorem 3", "Theorem 4", "Theorem 5", "Theorem 6", *SECTIONS},
    ),
)
def test_claims_come_out(claim):
    check(claim)
