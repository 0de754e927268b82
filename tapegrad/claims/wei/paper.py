"""The paper whose statements this folder checks, section by section."""

from tapegrad.claims.ledger import Paper

PAPER = Paper("wei", "Wei, Chen, Ma: Statistically meaningful approximation")
