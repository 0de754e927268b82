"""Which claims fail once something has been broken."""

from tapegrad_papers.claims.ledger import Status
from tapegrad_papers.claims.running import run_claim


def failing(paper, *statements):
    """Which of these statements fail now; each must fail by a check, not by an error on the way."""
    claims = {claim.statement: claim for claim in paper.PAPER.claims}
    outcomes = {statement: run_claim(claims[statement]) for statement in statements}
    return [
        statement
        for statement, outcome in outcomes.items()
        if outcome.status is Status.FAILED and "did not come out" in outcome.note
    ]
