"""What a view of a net provides."""

from typing import Any, Protocol

from tapegrad._panels import Panel
from tapegrad.targets import Carry


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
