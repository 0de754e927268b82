"""Running claims one after the other; one that raises is FAILED and does not stop the others."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegrad_papers.claims.ledger import Claim, Outcome, Status


@dataclass(frozen=True)
class Entry:
    """A line of the ledger: a claim, how it came out, and how long that took."""

    claim: Claim
    outcome: Outcome
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {
            "paper": self.claim.paper.name,
            "statement": self.claim.statement,
            "description": self.claim.description,
            "function": self.claim.check.__name__,
            "status": self.outcome.status.value,
            "stated": self.outcome.stated,
            "measured": self.outcome.measured,
            "note": self.outcome.note,
            "checks": dict(self.outcome.checks),
            "values": _plain(self.outcome.values),
            "seconds": round(self.seconds, 3),
        }


def run_claims(
    claims: Sequence[Claim], long: bool = False, before_each: Callable[[Claim], None] = lambda claim: None
) -> list[Entry]:
    """The ledger of these claims."""
    entries = []
    for claim in claims:
        before_each(claim)
        started = time.perf_counter()
        outcome = run_claim(claim, long)
        entries.append(Entry(claim, outcome, time.perf_counter() - started))
    return entries


def run_claim(claim: Claim, long: bool = False) -> Outcome:
    """The outcome of one claim, whatever happens in it."""
    try:
        return claim.check(long)
    except Exception as error:  # the ledger reports every failure and goes on
        what = f"{type(error).__name__}: {error}"
        return Outcome(Status.FAILED, "", "", {}, f"the check broke off with {what}")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None) else str(value)
