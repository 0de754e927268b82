"""Welper, "Universality of gradient descent neural network training", statement by statement."""

from tapegrad_papers.ledger import Paper

# fmt: off
STATEMENTS = (
    "Proposition 2.1", "Corollary 2.2", "Corollary 2.3", "Remark 2.4", "Lemma 4.1", "Condition (10)",
    "Condition (15)",
    "Proposition 4.2", "Condition (18)", "Condition (20)", "Proposition 4.3", "Bound (23)", "Section 5.2",
    "Section 5.3", "Section 5.4", "Section 5.5", "Lemma A.1", "Lemma A.2", "Lemma A.3", "Function (34)",
    "Appendix B", "Appendix C",
)
# fmt: on

PAPER = Paper(
    "welper",
    "Welper: Universality of gradient descent neural network training",
    modules=tuple(f"{__name__}.{part}" for part in ("section_2", "section_4", "section_5", "appendices")),
    statements=STATEMENTS,
)
