"""The paper whose statements this folder checks."""

from tapegrad.claims.ledger import Paper

PAPER = Paper(
    "goel",
    "Goel, Kakade, Kalai, Zhang: Recurrent convolutional neural networks learn succinct learning algorithms",
)
