"""tapegrad compiles algorithms into neural networks that run them exactly.

import tapegrad as tg

net = tg.compile(tg.read("1RB1LB_1LA1RZ"), "tape")
print(tg.verify(net))
"""

from tapegrad.circuits import Array, Bit, Circuit, Int, UInt, trace, where
from tapegrad.compile import Compiled, compile, estimate
from tapegrad.errors import TapegradError
from tapegrad.learners import Learner
from tapegrad.machines import GridBuilder, GridMachine, MachineBuilder, TuringMachine
from tapegrad.saved import load, save
from tapegrad.sources import read
from tapegrad.targets import all_targets
from tapegrad.verify import Report, verify
from tapegrad_check import check

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Bit",
    "Circuit",
    "Compiled",
    "GridBuilder",
    "GridMachine",
    "Int",
    "Learner",
    "MachineBuilder",
    "Report",
    "TapegradError",
    "TuringMachine",
    "UInt",
    "all_targets",
    "check",
    "compile",
    "estimate",
    "load",
    "read",
    "save",
    "trace",
    "verify",
    "where",
]
