"""Every statement of the paper has its claim, and every claim comes out."""

from typing import Any, cast

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.circuits import Gate
from tapegrad.learners import parity
from tapegrad.targets.emulator import build
from tapegrad_papers.abbe_sandon import PAPER
from tapegrad_papers.ledger import Status
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


EXPECTED = {
    "Lemma 2": Status.CORRECTED,
    "Lemma 4": Status.CORRECTED,
    "Theorem 3": Status.CORRECTED,
    "Corollary 2": Status.CORRECTED,
    "Section 4.3": Status.IN_PART,
}


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
    check(claim, expected=EXPECTED)


def test_m_gates_choose_the_spare_components_as_well_as_m_squared(monkeypatch):
    """Remark 10: spare component i flips iff bit i of the memory does not, so that m of both do."""
    x = np.random.default_rng(3).integers(0, 2, (12, 2))
    counted: Any = compile(parity(2), "emulator", form="paper").net
    monkeypatch.setattr(
        build, "_spare_flips", lambda compute, flips: [compute.gate(Gate.NOT, one) for one in flips]
    )
    compiled = compile(parity(2), "emulator", form="paper")
    m, net = parity(2).cells, cast(Any, compiled.net)
    assert counted.graph.vertices - net.graph.vertices == m * m - m
    assert verify(compiled, [(x, x[:, 0] ^ x[:, 1], 5)]).agreed
    carry = compiled.start(x, x[:, 0] ^ x[:, 1], 5)
    for _ in range(6):
        carry = compiled.net.step(carry)
        assert abs(carry.output) == 1
