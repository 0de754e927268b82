"""Abbe, Sandon: On the universality of deep learning, statement by statement."""

from tapegrad_papers.claims.abbe_sandon import emulation, hard_functions, limits, memory, noise
from tapegrad_papers.claims.abbe_sandon.paper import PAPER

__all__ = ["PAPER", "emulation", "hard_functions", "limits", "memory", "noise"]
