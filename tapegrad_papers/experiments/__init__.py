"""Experiments on what gradient descent learns and what it does not (Abbe, Sandon, sections 5 and 6)."""
