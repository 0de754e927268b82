"""Wei, Chen, Ma: Statistically meaningful approximation, statement by statement."""

from tapegrad_papers.claims.wei import (
    appendix_c,
    appendix_c_search,
    appendix_d,
    margins_3,
    section_2,
    section_3,
    section_4,
    theorem_d_6,
)
from tapegrad_papers.claims.wei.paper import PAPER

__all__ = [
    "PAPER",
    "appendix_c",
    "appendix_c_search",
    "appendix_d",
    "margins_3",
    "section_2",
    "section_3",
    "section_4",
    "theorem_d_6",
]
