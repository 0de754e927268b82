"""Which conversions lead from a kind of source to the kind that a target takes."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.learners.model import Learner
from tapegrad.lowering.rewriting import Rewriting, Source
from tapegrad.machines.grid import GridMachine
from tapegrad.machines.model import TuringMachine
from tapegrad.targets.target import Option, Target


@dataclass(frozen=True)
class Conversion:
    """An edge between two kinds of source. The module is imported when the edge is taken."""

    before: type
    after: type
    module: str
    function: str
    options: Mapping[str, Option] = field(default_factory=dict)

    def convert(self, source: Source, **options: Any) -> Rewriting:
        """The rewriting for this source."""
        missing = [
            name for name, option in self.options.items() if option.default is ... and name not in options
        ]
        if missing:
            listed = "; ".join(f"{name}: {self.options[name].help}" for name in missing)
            raise Refused(
                f"lowering a {self.before.__name__} to a {self.after.__name__} needs {' and '.join(missing)}",
                advice=f"Give {listed}.",
            )
        return getattr(import_module(self.module), self.function)(source, **options)


_UNROLLING = {
    "steps": Option(..., "how many steps of the machine the circuit takes"),
    "cells": Option(..., "how many cells of each tape, or rows and columns of the grid, the circuit keeps"),
    "first": Option(None, "the first of those cells; by default cell 0 is in the middle"),
}

_SAMPLES = {
    "steps": Option(..., "how many samples are shown: more than the machine takes steps"),
    "cells": Option(..., "how many cells of each tape the memory holds"),
}

CONVERSIONS = (
    Conversion(TuringMachine, Circuit, "tapegrad.lowering.configurations", "unroll", _UNROLLING),
    Conversion(GridMachine, Circuit, "tapegrad.lowering.configurations", "unroll", _UNROLLING),
    Conversion(
        Circuit,
        TuringMachine,
        "tapegrad.lowering.circuit_machine",
        "circuit_machine",
        {
            "machine": Option("straight-line", "a machine made for the circuit, or the fixed evaluator"),
            "tapes": Option(1, "tapes of the straight-line machine: more of them make it quicker"),
            "carried": Option(4, "bits that the straight-line machine carries in its state"),
        },
    ),
    Conversion(TuringMachine, Learner, "tapegrad.lowering.configurations", "machine_learner", _SAMPLES),
    Conversion(TuringMachine, GridMachine, "tapegrad.lowering.grid", "on_grid"),
    Conversion(
        Learner,
        TuringMachine,
        "tapegrad.lowering.learner_machine",
        "learner_machine",
        {"carried": Option(2, "bits that the machine carries in its state")},
    ),
)


def route(source: Source, target: Target) -> list[Conversion]:
    """The shortest chain of conversions from the source's kind to the target's."""
    start = type(source)
    waiting: deque[tuple[type, list[Conversion]]] = deque([(start, [])])
    seen = {start}
    while waiting:
        kind, chain = waiting.popleft()
        if issubclass(kind, target.takes):
            return chain
        for conversion in CONVERSIONS:
            if issubclass(kind, conversion.before) and conversion.after not in seen:
                seen.add(conversion.after)
                waiting.append((conversion.after, [*chain, conversion]))
    raise Refused(
        f"target {target.name!r} takes a {target.takes.__name__}, and no lowering leads there "
        f"from a {start.__name__}"
    )
