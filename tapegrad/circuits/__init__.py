"""Boolean circuits: the model, file formats, the evaluator, the tracer and rewriting passes."""

from tapegrad.circuits.arrays import array, total, where
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.circuits.reductions import (
    all_of,
    any_of,
    concat,
    count_ones,
    largest,
    parity,
    smallest,
    sort,
)
from tapegrad.circuits.tracer import Traced, trace
from tapegrad.circuits.types import Array, Bit, Int, UInt

__all__ = [
    "Array",
    "Bit",
    "Circuit",
    "CircuitBuilder",
    "Gate",
    "Int",
    "Traced",
    "UInt",
    "all_of",
    "any_of",
    "array",
    "concat",
    "count_ones",
    "largest",
    "parity",
    "smallest",
    "sort",
    "total",
    "trace",
    "where",
]
