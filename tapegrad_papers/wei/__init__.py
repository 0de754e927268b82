"""Wei, Chen and Ma, "Statistically meaningful approximation", statement by statement, with margins and sample
sizes of concrete networks as tools."""

from tapegrad_papers.ledger import Paper

# fmt: off
STATEMENTS = (
    "Definition 2.1", "Proposition 2.2", "(2.1)", "(2.2)", "Lemma 2.3", "Corollary A.1", "Theorem 3.1",
    "Lemma 3.2", "Lemma 3.3", "Proposition 3.4", "Claim 3.5", "Lemma B.1", "Proposition B.2",
    "Theorem 4.1", "Softmax (section 4.1)", "Residual layers (section 4.1)", "Precision (section 1)",
    "Lemma C.1", "Lemma C.2", "Lemma C.3", "Claim C.4", "Claim C.5", "Claim C.6",
    "Lemma C.7", "Lemma C.8", "Definition D.1", "Definition D.2", "Condition D.3", "Condition D.4",
    "Definition D.5", "Theorem D.6", "Lemma D.7", "Lemma D.8", "Lemma D.9",
)
# fmt: on

PAPER = Paper(
    "wei",
    "Wei, Chen, Ma: Statistically meaningful approximation",
    modules=tuple(
        f"{__name__}.{part}"
        for part in (
            *("section_2", "appendix_a", "section_3", "appendix_c", "remarks"),
            *("appendix_d", "theorem_d_6", "residual_layers"),
        )
    ),
    statements=STATEMENTS,
)
