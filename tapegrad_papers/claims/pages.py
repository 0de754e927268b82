"""One Markdown page per paper, statement by statement, written from a run of the ledger."""

from collections import Counter
from collections.abc import Sequence

from tapegrad_papers.claims.ledger import Paper, Status
from tapegrad_papers.claims.running import Entry

NOTE_HEADINGS = {
    Status.HOLDS: "Note",
    Status.CORRECTED: "Correction",
    Status.FAILS_AS_PRINTED: "Counterexample",
    Status.ASYMPTOTIC: "Measured in its place",
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
        lines += ["", *_section(entry)]
    return "\n".join(lines) + "\n"


def _section(entry: Entry) -> list[str]:
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
