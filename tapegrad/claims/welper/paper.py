"""The paper whose statements this folder checks, section by section."""

from tapegrad.claims.ledger import Paper

PAPER = Paper("welper", "Welper: Universality of gradient descent neural network training")
