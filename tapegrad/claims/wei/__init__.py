"""Wei, Chen, Ma: Statistically meaningful approximation, statement by statement."""

from tapegrad.claims.wei.paper import PAPER

__all__ = ["PAPER"]
