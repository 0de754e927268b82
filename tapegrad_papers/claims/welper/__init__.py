"""Welper: Universality of gradient descent neural network training, statement by statement."""

from tapegrad_papers.claims.welper import (
    appendix_a,
    appendix_bc,
    section_2,
    section_4_3,
    section_4_4,
    section_5,
)
from tapegrad_papers.claims.welper.paper import PAPER

__all__ = ["PAPER", "appendix_a", "appendix_bc", "section_2", "section_4_3", "section_4_4", "section_5"]
