"""The view of a target that has none of its own: the state that the net decodes to."""

from typing import Any, Protocol

from tapegrad._compile import Compiled
from tapegrad._panels import Fields, Panel
from tapegrad._sources import kind_of
from tapegrad.targets import Carry


class DecodedView:
    """The decoded state as text; the curve is how far the net is from its ideal values."""

    step_name = "step"
    curve_name = "deviation"
    sees_every_step = False

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.panels: list[Panel] = [Fields("Decoded from the network")]
        self.notes: list[str] = []

    def frame(self, carry: Carry) -> tuple[list[Any], float | None]:
        state = self.compiled.net.decode(carry)
        lowered = self.compiled.lowered
        shown = "between two steps" if state is None else kind_of(lowered).state_text(lowered, state)
        return [{"state": shown}], self.compiled.net.deviation(carry)


# What a view of a net provides.


class NetView(Protocol):
    """The weights or activations that matter for a target, at every step of one run."""

    step_name: str
    """What a step is called: `gradient step`, `decoder step`, ..."""
    curve_name: str
    sees_every_step: bool
    """Whether `frame` must be called for every step, in order, and not just for those that are kept."""
    panels: list[Panel]
    notes: list[str]

    def frame(self, carry: Carry) -> tuple[list[Any], float | None]:
        """What each panel shows, and the height of the curve."""
        ...
