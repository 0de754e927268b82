"""Every statement of the paper has its claim, and every claim comes out."""

import numpy as np
import pytest

from tapegrad.machines.library import ready
from tapegrad_papers.ledger import Status
from tapegrad_papers.wei import PAPER, remarks
from tests.papers.checking import check, parameters, require_statements

STATEMENTS = [
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
    *("Softmax (section 4.1)", "Residual layers (section 4.1)", "Precision (section 1)"),
    *("Theorem 4.1", "Lemma C.1", "Lemma C.2", "Lemma C.3", "Claim C.4", "Claim C.5", "Claim C.6"),
    *("Lemma C.7", "Lemma C.8"),
    # The paper calls two of its five definitions conditions.
    *("Definition D.1", "Definition D.2", "Condition D.3", "Condition D.4", "Definition D.5"),
    *("Theorem D.6", "Lemma D.7", "Lemma D.8", "Lemma D.9"),
]
EXPECTED = {
    "Definition D.2": Status.CORRECTED,
    "Corollary A.1": Status.HOLDS,
    "Residual layers (section 4.1)": Status.HOLDS,
    "Theorem 4.1": Status.IN_PART,
    "Claim 3.5": Status.HOLDS,
}


def test_no_statement_is_missing():
    require_statements(PAPER, STATEMENTS)


@pytest.mark.parametrize(
    "claim",
    parameters(
        PAPER,
        slow={
            *("Definition 2.1", "(2.1)", "Lemma 3.3", "Claim 3.5", "Theorem 4.1", "Softmax (section 4.1)"),
            *("Residual layers (section 4.1)", "Precision (section 1)"),
            *("Condition D.4", "Theorem D.6", "Lemma D.9"),
        },
    ),
)
def test_claims_come_out(claim):
    check(claim, expected=EXPECTED)


def test_parameters_need_two_bits_after_the_point():
    """The quick part of the row on precision: all are quarters, some no halves, and T = 16 needs 4 more."""
    values = remarks._parameters(remarks.written_out(remarks.transformer(ready("increment"), 16)))
    assert (values * 4 == np.round(values * 4)).all()
    assert not (values * 2 == np.round(values * 2)).all()
    assert 8 <= np.abs(values).max() < 16


@pytest.mark.slow
@pytest.mark.parametrize("claim", parameters(PAPER))
def test_claims_come_out_on_larger_instances(claim):
    check(claim, long=True, expected=EXPECTED)
