"""The type of arrays that go through automatic differentiation."""

from typing import Any

Numbers = Any
"""A NumPy array or a plain number at rest, a JAX array while it is differentiated."""
