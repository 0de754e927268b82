"""Welper: Universality of gradient descent neural network training, statement by statement."""

from tapegrad.claims.welper.paper import PAPER

__all__ = ["PAPER"]
