"""The ledger of claims: statements of papers as functions that check them on concrete instances, run one
after the other and written up as pages.

A check returns an `Outcome`: what the paper states, what was measured, and the named comparisons that were
made. An outcome whose comparisons do not all come out, or that made none, is FAILED; so is a check that
raises, without stopping the others.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np

Checks = Mapping[str, bool]
"""A sentence for each comparison that was made, and whether it came out."""


class Status(Enum):
    """How a statement fared."""

    HOLDS = "holds"
    CORRECTED = "holds corrected"
    IN_PART = "holds in part"
    NOT_SHOWN = "not shown"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Outcome:
    """`stated` and `measured` are one line each; `note` is the correction, or which part holds, or why
    nothing is shown; `values` are the data behind them."""

    status: Status
    stated: str
    measured: str
    checks: Checks
    note: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


Check = Callable[[bool], Outcome]
"""Checks a statement; the argument asks for larger instances."""


@dataclass(frozen=True)
class Claim:
    """A numbered statement of a paper."""

    paper: "Paper"
    statement: str
    description: str
    check: Check


@dataclass
class Paper:
    """A paper and its claims, in the order of `statements`, or else in the order of declaration. The claims
    are declared by `modules`, imported when they are first asked for: the constructions load JAX."""

    name: str
    title: str
    statements: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    declared: list[Claim] = field(default_factory=list)

    @property
    def claims(self) -> list[Claim]:
        for module in self.modules:
            import_module(module)
        return self.declared

    def claim(self, statement: str, description: str) -> Callable[[Check], Check]:
        """Declares the decorated function to be the check of a statement."""

        def declare(check: Check) -> Check:
            self.declared.append(Claim(self, statement, description, check))
            if self.statements:
                self.declared.sort(key=lambda claim: self.statements.index(claim.statement))
            return check

        return declare


def holds(
    checks: Checks,
    stated: str,
    measured: str,
    note: str = "",
    printed: Checks | None = None,
    parts: Checks | None = None,
    **values: Any,
) -> Outcome:
    """The statement as printed, unless what was run says otherwise. `printed` are sentences of it as they
    stand, tried on the instances: where one does not come out, the statement holds corrected, and `note` is
    the correction. `parts` are what it consists of: where one was not built and run, it holds in part, and
    `note` says which."""
    printed, parts = printed or {}, parts or {}
    checks = {**checks, **{part: True for part, shown in parts.items() if shown}}
    for sentence, came_out in printed.items():
        checks[sentence if came_out else f"not as printed: {sentence}"] = True
    status = Status.HOLDS if all(printed.values()) else Status.CORRECTED
    return _outcome(status if all(parts.values()) else Status.IN_PART, checks, stated, measured, note, values)


def holds_corrected(checks: Checks, stated: str, measured: str, correction: str, **values: Any) -> Outcome:
    """The statement after a slip is put right; the checks should show the slip as well."""
    return _outcome(Status.CORRECTED, checks, stated, measured, correction, values)


def holds_in_part(checks: Checks, stated: str, measured: str, part: str, **values: Any) -> Outcome:
    """Some of the statement; `part` says which, and what becomes of the rest."""
    return _outcome(Status.IN_PART, checks, stated, measured, part, values)


def not_shown(checks: Checks, stated: str, measured: str, why: str, **values: Any) -> Outcome:
    """Nothing that was run would be otherwise if the statement were false; the checks are of what it rests
    on."""
    return _outcome(Status.NOT_SHOWN, checks, stated, measured, why, values)


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
) -> Iterator[Entry]:
    """The ledger of these claims, each entry as soon as it is known."""
    for claim in claims:
        before_each(claim)
        started = time.perf_counter()
        outcome = run_claim(claim, long)
        yield Entry(claim, outcome, time.perf_counter() - started)


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


NOTE_HEADINGS = {
    Status.HOLDS: "Note",
    Status.CORRECTED: "Correction",
    Status.IN_PART: "Which part",
    Status.NOT_SHOWN: "Why not",
    Status.FAILED: "What went wrong",
}


def page(paper: Paper, entries: Sequence[Entry], long: bool) -> str:
    """The page of one paper: a table to look through, then every statement with its checks."""
    counts = Counter(entry.outcome.status for entry in entries)
    summary = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    mode = " --long" if long else ""
    lines = [
        f"# {paper.title}",
        "",
        f"Written by `tapegrad claims {paper.name}{mode} --write`. {len(entries)} statements: {summary}.",
        "",
        "| statement | what it says | outcome |",
        "|---|---|---|",
    ]
    for entry in entries:
        claim = entry.claim
        link = f"[{claim.statement}](#{_anchor(claim.statement)})"
        lines.append(f"| {link} | {_cell(claim.description)} | {entry.outcome.status.value} |")
    for entry in entries:
        lines += ["", *section_of(entry)]
    return "\n".join(lines) + "\n"


def section_of(entry: Entry) -> list[str]:
    """A statement on the page: what is stated, what was measured, and every check."""
    claim, outcome = entry.claim, entry.outcome
    lines = [f"## {claim.statement}", "", f"{claim.description}.", ""]
    lines.append(
        f"- **{outcome.status.value}**, checked by `{claim.check.__module__}.{claim.check.__name__}`"
    )
    if outcome.stated:
        lines.append(f"- Stated: {outcome.stated}")
    if outcome.measured:
        lines.append(f"- Measured: {outcome.measured}")
    if outcome.note:
        lines.append(f"- {NOTE_HEADINGS[outcome.status]}: {outcome.note}")
    lines += [f"- [{'x' if came_out else ' '}] {sentence}" for sentence, came_out in outcome.checks.items()]
    return lines


def _anchor(heading: str) -> str:
    """The name GitHub gives a heading."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
