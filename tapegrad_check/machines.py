"""Passes between machines, and from circuits and learners to machines."""

from collections.abc import Callable

from tapegrad_check.sources import Model
from tapegrad_check.step import Step

PASSES: dict[str, Callable[[Model, Step], Model]] = {}
