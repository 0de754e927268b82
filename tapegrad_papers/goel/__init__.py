"""Goel, Kakade, Kalai and Zhang, "Recurrent convolutional neural networks learn succinct learning
algorithms", statement by statement, with random restarts and Turing-optimal learners as tools."""

from tapegrad_papers.ledger import Paper

# fmt: off
STATEMENTS = (
    "Parity", "Definition 1", "Definition 2", "Observation 1", "Definition 3", "Claim 1", "Definition 4",
    "Claim 2", "Algorithm 1", "Theorem 1", "Bit precision", "Corollary 2", "Definition 5", "Lemma 1",
    "Section 5", "Algorithm 2", "Lemma 2", "Lemma 3", "Lemma 4", "Lemma 5", "Lemma 6", "Corollary 3",
)
# fmt: on

PAPER = Paper(
    "goel",
    "Goel, Kakade, Kalai, Zhang: Recurrent convolutional neural networks learn succinct learning algorithms",
    modules=tuple(
        f"{__name__}.{part}"
        for part in ("parity", "definitions", "turing_optimal", "network", "lemma_5", "corollary_2")
    ),
    statements=STATEMENTS,
)
