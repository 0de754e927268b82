"""tapegrad compiles algorithms into neural networks that run them exactly.

import tapegrad as tg

net = tg.compile(tg.read("1RB1LB_1LA1RZ"), "tape")
print(tg.verify(net))
"""

from importlib import metadata

from tapegrad._compile import Compiled, compile, estimate
from tapegrad._saved import check, load, save
from tapegrad._sources import read, register
from tapegrad._verify import Report, verify
from tapegrad.circuits import (
    Array,
    BFloat16,
    Bit,
    Circuit,
    Fixed,
    Float,
    Float16,
    Float32,
    Float64,
    Int,
    Traced,
    UFixed,
    UInt,
    all_of,
    any_of,
    array,
    concat,
    count_ones,
    largest,
    parity,
    smallest,
    sort,
    total,
    trace,
    where,
)
from tapegrad.circuits.clocked.library import clocked
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.errors import TapegradError
from tapegrad.interop.exporting import to_equinox, to_layer, to_onnx, to_torch
from tapegrad.learners import FunctionLearner, Learner
from tapegrad.machines import GridBuilder, GridMachine, MachineBuilder, TuringMachine
from tapegrad.show.page import watch
from tapegrad.source import SourceKind
from tapegrad.targets import all_targets

__version__ = metadata.version("tapegrad")

__all__ = [
    "Array",
    "BFloat16",
    "Bit",
    "Circuit",
    "Compiled",
    "Fixed",
    "Float",
    "Float16",
    "Float32",
    "Float64",
    "FunctionLearner",
    "GridBuilder",
    "GridMachine",
    "Int",
    "Learner",
    "MachineBuilder",
    "Report",
    "SequentialCircuit",
    "SourceKind",
    "TapegradError",
    "Traced",
    "TuringMachine",
    "UFixed",
    "UInt",
    "all_of",
    "all_targets",
    "any_of",
    "array",
    "check",
    "clocked",
    "compile",
    "concat",
    "count_ones",
    "estimate",
    "largest",
    "load",
    "parity",
    "read",
    "register",
    "save",
    "smallest",
    "sort",
    "to_equinox",
    "to_layer",
    "to_onnx",
    "to_torch",
    "total",
    "trace",
    "verify",
    "watch",
    "where",
]
