"""What a claim is: a statement of a paper, as a function that checks it on concrete instances.

The function returns an `Outcome`: what the paper states, what was measured, and the named checks that
were made. An outcome whose checks do not all come out, or that made none, is FAILED.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Checks = Mapping[str, bool]
"""A sentence for each comparison that was made, and whether it came out."""


class Status(Enum):
    """How a statement fared."""

    HOLDS = "holds"
    CORRECTED = "holds corrected"
    FAILS_AS_PRINTED = "fails as printed"
    ASYMPTOTIC = "asymptotic"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Outcome:
    """`stated` and `measured` are one line each; `note` is the correction, the counterexample, or what was
    measured in place of a limit; `values` are the numbers behind them."""

    status: Status
    stated: str
    measured: str
    checks: Checks
    note: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A numbered statement of a paper. `check(long)` runs it; `long` asks for larger instances."""

    paper: "Paper"
    statement: str
    description: str
    check: Callable[[bool], Outcome]


@dataclass
class Paper:
    """A paper and its claims, in the order of `statements`, the paper's own, or else as they were "
    "declared."""

    name: str
    title: str
    statements: tuple[str, ...] = ()
    claims: list[Claim] = field(default_factory=list)

    def claim(
        self, statement: str, description: str
    ) -> Callable[[Callable[[bool], Outcome]], Callable[[bool], Outcome]]:
        """Declares the decorated function to be the check of a statement."""

        def declare(check: Callable[[bool], Outcome]) -> Callable[[bool], Outcome]:
            self.claims.append(Claim(self, statement, description, check))
            if self.statements:
                self.claims.sort(key=lambda claim: self.statements.index(claim.statement))
            return check

        return declare


def holds(checks: Checks, stated: str, measured: str, note: str = "", **values: Any) -> Outcome:
    """The statement as printed."""
    return _outcome(Status.HOLDS, checks, stated, measured, note, values)


def holds_corrected(checks: Checks, stated: str, measured: str, correction: str, **values: Any) -> Outcome:
    """The statement after a slip is put right; the checks should show the slip as well."""
    return _outcome(Status.CORRECTED, checks, stated, measured, correction, values)


def fails_as_printed(
    checks: Checks, stated: str, measured: str, counterexample: str, **values: Any
) -> Outcome:
    """The statement is false; the checks establish the counterexample."""
    return _outcome(Status.FAILS_AS_PRINTED, checks, stated, measured, counterexample, values)


def asymptotic(checks: Checks, stated: str, measured: str, instead: str, **values: Any) -> Outcome:
    """A statement about a limit or with unnamed constants; `instead` says what was measured in its place."""
    return _outcome(Status.ASYMPTOTIC, checks, stated, measured, instead, values)


def _outcome(
    status: Status, checks: Checks, stated: str, measured: str, note: str, values: Mapping[str, Any]
) -> Outcome:
    checks = {sentence: bool(came_out) for sentence, came_out in checks.items()}
    wrong = [sentence for sentence, came_out in checks.items() if not came_out]
    if not checks:
        return Outcome(Status.FAILED, stated, measured, checks, "nothing was checked", values)
    if wrong:
        note = f"did not come out: {'; '.join(wrong)}"
        return Outcome(Status.FAILED, stated, measured, checks, note, values)
    return Outcome(status, stated, measured, checks, note, values)
