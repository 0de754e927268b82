"""The view of a target that has none of its own: the state that the net decodes to."""

from typing import Any

from tapegrad.compile import Compiled
from tapegrad.show.panels import Fields, Panel
from tapegrad.show.text import state_text
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
        shown = "between two steps" if state is None else state_text(self.compiled.lowered, state)
        return [{"state": shown}], self.compiled.net.deviation(carry)
