"""The paper whose statements this folder checks."""

from tapegrad_papers.claims.ledger import Paper

PAPER = Paper(
    "goel",
    "Goel, Kakade, Kalai, Zhang: Recurrent convolutional neural networks learn succinct learning algorithms",
    statements=(
        "Definition 1",
        "Definition 2",
        "Observation 1",
        "Definition 3",
        "Claim 1",
        "Definition 4",
        "Claim 2",
        "Algorithm 1",
        "Theorem 1",
        "Bit precision",
        "Corollary 2",
        "Definition 5",
        "Lemma 1",
        "Section 5",
        "Algorithm 2",
        "Lemma 2",
        "Lemma 3",
        "Lemma 4",
        "Lemma 5",
        "Lemma 6",
        "Corollary 3",
    ),
)
