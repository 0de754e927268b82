"""Passes to circuits and learners, proved by symbolic execution."""

from collections.abc import Callable

from tapegrad_check.folder import require
from tapegrad_check.sources import Circuit, Function, Model
from tapegrad_check.step import Step


def _gates(before: Model, step: Step) -> Model:
    """A function is saved as its circuit."""
    require(isinstance(before, Function), "only a function has gates")
    return before.circuit  # type: ignore[union-attr]


def _in_the_net(before: Model, step: Step) -> Model:
    """Layers are the net's own arrays; its checker shows that they compute the circuit."""
    require(isinstance(before, Circuit), "only a circuit has layers")
    return before


PASSES: dict[str, Callable[[Model, Step], Model]] = {
    "gates": _gates,
    "layers": _in_the_net,
    "identity layers": _in_the_net,
}
