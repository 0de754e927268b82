"""tapegrad compiles algorithms into neural networks that run them exactly.

import tapegrad as tg

net = tg.compile(tg.read("1RB1LB_1LA1RZ"), "tape")
print(tg.verify(net))
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

    __version__: str

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

_PLACES = {
    "_compile": "Compiled compile estimate",
    "_saved": "check load save",
    "_sources": "read register",
    "_verify": "Report verify",
    "circuits": "Array BFloat16 Bit Circuit Fixed Float Float16 Float32 Float64 Int Traced UFixed UInt "
    "all_of any_of array concat count_ones largest parity smallest sort total trace where",
    "circuits.clocked.library": "clocked",
    "circuits.clocked.model": "SequentialCircuit",
    "errors": "TapegradError",
    "interop.exporting": "to_equinox to_layer to_onnx to_torch",
    "learners": "FunctionLearner Learner",
    "machines": "GridBuilder GridMachine MachineBuilder TuringMachine",
    "show.page": "watch",
    "source": "SourceKind",
    "targets": "all_targets",
}
"""Where each name is defined. It is imported when it is asked for: a start loads only what it needs."""
_PACKAGES = ("circuits", "errors", "learners", "machines", "programs", "rasp", "source", "targets")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return metadata.version("tapegrad")
    if name in _PACKAGES:
        return import_module(f"tapegrad.{name}")
    for module, names in _PLACES.items():
        if name in names.split():
            found = globals()[name] = getattr(import_module(f"tapegrad.{module}"), name)
            return found
    raise AttributeError(f"module 'tapegrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES, "__version__"})
