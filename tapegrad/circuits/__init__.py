"""Boolean circuits: the model, file formats, the evaluator, the tracer and rewriting passes."""

from tapegrad.circuits.arrays import array, total, where
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.fixed import FixedValue
from tapegrad.circuits.floats import FloatValue
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
from tapegrad.circuits.types import (
    Array,
    BFloat16,
    Bit,
    Fixed,
    Float,
    Float16,
    Float32,
    Float64,
    Int,
    UFixed,
    UInt,
)

__all__ = [
    "Array",
    "BFloat16",
    "Bit",
    "Circuit",
    "CircuitBuilder",
    "Fixed",
    "FixedValue",
    "Float",
    "Float16",
    "Float32",
    "Float64",
    "FloatValue",
    "Gate",
    "Int",
    "Traced",
    "UFixed",
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
