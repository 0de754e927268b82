"""Every statement of the paper has its claim, and every claim comes out."""

import pytest

from tapegrad_papers.ledger import Status
from tapegrad_papers.welper import PAPER, appendices
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


@pytest.mark.parametrize(("mantissa", "exponent"), [(4, 1), (3, 2), (1, 0), (6, 3)])
def test_the_algorithm_of_appendix_b_is_right_on_every_number_of_a_format(mantissa, exponent):
    """Against Python's ints: a number is its digits, shifted; no other has fewer of them shifted out."""
    every = {(-1) ** s * (a << b) for s in (0, 1) for a in range(2 << mantissa) for b in range(2 << exponent)}
    assert appendices.numbers_of(mantissa, exponent) == sorted(every)
    for x in every:
        sign, digits, b = appendices.floating(x, mantissa, exponent)
        assert x == (-digits if sign else digits) << b
        assert digits < 2 << mantissa
        assert b == 0 or digits >> mantissa == 1
    for misprint in ("normalised", *appendices.MISPRINTS):
        assert appendices.wrong_numbers(mantissa, exponent, misprint) or (exponent, misprint) == (
            0,
            "line 13",
        )


def test_what_was_given_as_the_correction_of_appendix_b_leaves_most_numbers_wrong():
    """With the printed exponents: 47 of the 79 numbers above 0 with five digits and two of the exponent."""
    right = {a << b for a in range(16, 32) for b in range(2)}  # 2^m e <= x < 2^(m+1) e for a printed e
    above = [x for x in appendices.numbers_of(4, 1) if x > 0]
    assert (len(above), sum(x not in right for x in above)) == (79, 47)
    assert appendices.wrong_numbers(4, 1) == []


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
