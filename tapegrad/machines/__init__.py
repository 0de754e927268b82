"""Turing machines: the model, text formats, interpreters, rewriting passes, a builder and ready machines."""

from tapegrad.machines.grid import GridConfiguration, GridMachine, GridRule
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, Rule, TuringMachine

__all__ = [
    "LEFT",
    "RIGHT",
    "STAY",
    "Configuration",
    "GridConfiguration",
    "GridMachine",
    "GridRule",
    "Rule",
    "TuringMachine",
]
