"""The paper whose statements this folder checks."""

from tapegrad.claims.ledger import Paper

PAPER = Paper("abbe-sandon", "Abbe, Sandon: On the universality of deep learning")
