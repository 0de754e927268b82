"""Goel, Kakade, Kalai, Zhang: Recurrent convolutional neural networks learn succinct learning algorithms."""

from tapegrad_papers.claims.goel import computation, definitions, lemma_5, network, restarts, turing_optimal
from tapegrad_papers.claims.goel.paper import PAPER

__all__ = ["PAPER", "computation", "definitions", "lemma_5", "network", "restarts", "turing_optimal"]
