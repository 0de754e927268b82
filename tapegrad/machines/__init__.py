"""Turing machines: the model, text formats, interpreters, rewriting passes, a builder and ready machines."""

from tapegrad.machines.builder import GridBuilder, MachineBuilder
from tapegrad.machines.model import (
    LEFT,
    RIGHT,
    STAY,
    Configuration,
    GridConfiguration,
    GridMachine,
    GridRule,
    Rule,
    TuringMachine,
)

__all__ = [
    "LEFT",
    "RIGHT",
    "STAY",
    "Configuration",
    "GridBuilder",
    "GridConfiguration",
    "GridMachine",
    "GridRule",
    "MachineBuilder",
    "Rule",
    "TuringMachine",
]
