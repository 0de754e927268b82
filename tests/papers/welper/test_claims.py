"""Every statement of the paper has its claim, and every claim comes out."""

import pytest

from tapegrad_papers.ledger import Status
from tapegrad_papers.welper import PAPER
from tests.papers.checking import check, parameters, require_statements

STATEMENTS = [
    *(
        "Proposition 2.1",
        "Corollary 2.2",
        "Corollary 2.3",
        "Remark 2.4",
        "Lemma 4.1",
        "Proposition 4.2",
        "Proposition 4.3",
    ),
    *("Bound (23)", "Condition (10)", "Condition (15)", "Condition (18)", "Condition (20)"),
    *("Section 5.2", "Section 5.3", "Section 5.4", "Section 5.5"),
    *("Lemma A.1", "Lemma A.2", "Lemma A.3", "Function (34)", "Appendix B", "Appendix C"),
]
EXPECTED = {
    "Condition (10)": Status.CORRECTED,
    "Proposition 4.3": Status.CORRECTED,
    "Lemma A.3": Status.CORRECTED,
    "Appendix B": Status.CORRECTED,
    "Remark 2.4": Status.HOLDS,
}


def test_no_statement_is_missing():
    require_statements(PAPER, STATEMENTS)


@pytest.mark.parametrize(
    "claim",
    parameters(
        PAPER,
        slow={
            "Section 5.2",
            "Section 5.3",
            "Section 5.4",
            "Proposition 2.1",
            "Corollary 2.2",
            "Remark 2.4",
            "Proposition 4.2",
            "Condition (18)",
        },
    ),
)
def test_claims_come_out(claim):
    check(claim, expected=EXPECTED)


@pytest.mark.slow
@pytest.mark.parametrize("claim", parameters(PAPER))
def test_claims_come_out_on_larger_instances(claim):
    check(claim, long=True, expected=EXPECTED)
