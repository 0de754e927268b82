"""`tapegrad claims`: runs the statements of the four papers and says how each came out."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tapegrad.commands.output import DISAGREED, AsJson, console, errors, print_json
from tapegrad.errors import InputError
from tapegrad.files import write_atomically
from tapegrad_papers.claims.ledger import Claim, Status
from tapegrad_papers.claims.pages import page
from tapegrad_papers.claims.running import Entry, run_claims

COLOURS = {
    Status.HOLDS: "green",
    Status.CORRECTED: "cyan",
    Status.FAILS_AS_PRINTED: "yellow",
    Status.ASYMPTOTIC: "blue",
    Status.FAILED: "bold red",
}


def claims(
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="welper, goel, abbe-sandon or wei.")
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Larger instances; takes much longer.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only statements whose number or text has this.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write a Markdown page for each paper.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the numbered statements of the papers on concrete instances, one line for each.

    Example: tapegrad claims welper --only "Lemma A"
    """
    from tapegrad_papers.claims.papers import select  # every construction: not needed to start

    chosen = select(paper, only)
    if write is not None and only is not None:
        raise InputError("pages hold all statements of a paper", advice="Leave out --only or --write.")
    with errors.status("") as status:

        def show_progress(claim: Claim) -> None:
            status.update(f"{claim.paper.name}: {claim.statement} ({chosen.index(claim) + 1}/{len(chosen)})")

        entries = run_claims(chosen, long, show_progress)
    if write is not None:
        _write_pages(write, entries, long)
    if as_json:
        print_json([entry.as_json() for entry in entries])
    else:
        _print(entries)
    if any(entry.outcome.status is Status.FAILED for entry in entries):
        raise typer.Exit(DISAGREED)


def _write_pages(folder: Path, entries: Sequence[Entry], long: bool) -> None:
    from tapegrad_papers.claims.papers import PAPERS

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made a folder: {error.strerror}") from error
    for paper in PAPERS:
        own = [entry for entry in entries if entry.claim.paper is paper]
        if own:
            write_atomically(folder / f"{paper.name}.md", page(paper, own, long).encode())


def _print(entries: Sequence[Entry]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("paper", "statement", "status"):
        table.add_column(heading, no_wrap=heading == "paper")
    table.add_column("stated", ratio=3)
    table.add_column("measured", ratio=3)
    table.add_column("seconds", justify="right", no_wrap=True)
    for entry in entries:
        outcome = entry.outcome
        colour = COLOURS[outcome.status]
        table.add_row(
            entry.claim.paper.name,
            entry.claim.statement,
            f"[{colour}]{outcome.status.value}[/{colour}]",
            _escaped(outcome.stated or entry.claim.description),
            _escaped(outcome.measured if outcome.status is not Status.FAILED else outcome.note),
            f"{entry.seconds:.1f}",
        )
    console.print(table)
    counts = Counter(entry.outcome.status for entry in entries)
    summary = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    console.print(f"{len(entries)} statements: {summary}. --json has the values behind them.")


def _escaped(text: str) -> str:
    """Square brackets are mathematics here, not colours."""
    return text.replace("[", r"\[")
