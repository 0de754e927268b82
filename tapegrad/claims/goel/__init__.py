"""Goel, Kakade, Kalai, Zhang: Recurrent convolutional neural networks learn succinct learning algorithms."""

from tapegrad.claims.goel import definitions, turing_optimal, restarts, network, computation, lemma_5  # isort: skip
from tapegrad.claims.goel.paper import PAPER

__all__ = ["PAPER", "computation", "definitions", "lemma_5", "network", "restarts", "turing_optimal"]
