"""Boolean circuits: the model, file formats, the evaluator, the tracer and rewriting passes."""

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit, Gate

__all__ = ["Circuit", "CircuitBuilder", "Gate"]
