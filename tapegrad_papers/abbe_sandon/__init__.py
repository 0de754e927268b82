"""Abbe and Sandon, "On the universality of deep learning", statement by statement, with the experiments on
what gradient descent learns and what it does not."""

from tapegrad_papers.ledger import Paper

# fmt: off
STATEMENTS = (
    "Lemma 1", "Definition 6", "Lemma 2", "Lemma 3", "Remark 9", "Theorem 4", "Remark 10", "Corollary 1",
    "Remark 11", "Definition 7", "Lemma 4", "Lemma 5", "Lemma 6", "Theorem 5", "Remark 12", "Remark 13",
    "Section 4.3", "Theorem 3", "Corollary 2", "Theorem 6", "Lemma 7", "Corollary 3", "Section 6.1",
    "Section 6.2", "Section 6.3",
)
# fmt: on

_MODULES = ("memory", "emulation", "metaalgorithm", "noise", "noisy_learning", "limits")

PAPER = Paper(
    "abbe-sandon",
    "Abbe, Sandon: On the universality of deep learning",
    modules=tuple(f"{__name__}.{part}" for part in _MODULES),
    statements=STATEMENTS,
)
