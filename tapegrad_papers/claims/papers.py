"""The four papers of the ledger."""

from tapegrad.errors import InputError
from tapegrad_papers.claims import abbe_sandon, goel, wei, welper
from tapegrad_papers.claims.ledger import Claim, Paper

PAPERS: tuple[Paper, ...] = (welper.PAPER, goel.PAPER, abbe_sandon.PAPER, wei.PAPER)


def select(paper: str | None = None, only: str | None = None) -> list[Claim]:
    """The claims of one paper or of all; `only` keeps those whose number or description contains it."""
    names = [p.name for p in PAPERS]
    if paper is not None and paper not in names:
        raise InputError(f"no paper called {paper!r}", advice=f"There are {', '.join(names)}.")
    claims = [claim for p in PAPERS if paper in (None, p.name) for claim in p.claims]
    if only is not None:
        sought = only.casefold()
        claims = [c for c in claims if sought in f"{c.statement}: {c.description}".casefold()]
        if not claims:
            raise InputError(
                f"no statement contains {only!r}", advice="`tapegrad claims --json` has all of them."
            )
    return claims
