"""What the right side of the page shows: a view of the net, made for its target."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad._panels import Fields, Panel
from tapegrad._sources import kind_of
from tapegrad.source import imported
from tapegrad.targets import Carry

VIEWS = {
    ("relu", ""): "tapegrad.show.views_relu:LayersView",
    ("transformer", ""): "tapegrad.show.views_transformer:TransformerView",
    ("transformer", "memory"): "tapegrad.show.views_memory:MemoryView",
    ("decoder", ""): "tapegrad.show.views_decoder:DecoderView",
    ("decoder", "rasp"): "tapegrad.show.views_sequences:SequencesView",
    ("rcnn", ""): "tapegrad.show.views_rcnn:RcnnView",
    ("simplex", ""): "tapegrad.show.views_simplex:SimplexView",
    ("tape", ""): "tapegrad.show.views_tape:TapeView",
    ("emulator", ""): "tapegrad.show.views_emulator:EmulatorView",
}
"""One line for each target and form of a net with a view of its own: a class made from the net and its first
carry. Imported on first use, for its module loads the target."""


Heights = tuple[float | None, ...]
"""Of each curve of a view, at one step."""


class NetView(Protocol):
    """The weights or activations that matter for a target, at every step of one run."""

    step_name: str
    """What a step is called: `gradient step`, `decoder step`, ..."""
    curves: tuple[str, ...]
    """What the curve may show: the first of these that is not flat is taken."""
    sees_every_step: bool
    """Whether `frame` must be called for every step, in order, and not just for those that are kept."""
    panels: list[Panel]
    notes: list[str]

    def frame(self, carry: Carry) -> tuple[list[Any], Heights]:
        """What each panel shows, and how high each curve is."""
        ...


@runtime_checkable
class InStages(Protocol):
    """A view that may show what happens within a step."""

    def stages(self, carry: Carry) -> list[tuple[list[Any], Heights]]:
        """Frames of one step, in order; the last is what `frame` gives."""
        ...


@runtime_checkable
class RunsInThePage(Protocol):
    """A view of a net that is simple enough for the page to run it on other inputs, from its arrays."""

    def live(self) -> dict[str, Any] | None:
        """All that takes, as JSON; None if this one is too large after all."""
        ...


@runtime_checkable
class Follows(Protocol):
    """A view that computes the network step by step anyway."""

    network_values: Mapping[str, NDArray[Any]] | None
    """All values of the step that led to the last frame; None before the first."""


class DecodedView:
    """The view of a target that has none of its own: the decoded state as text; the curve is
    how far the net is from its ideal values."""

    step_name = "step"
    curves: tuple[str, ...] = ("deviation",)
    sees_every_step = False

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.panels: list[Panel] = [Fields("Decoded from the network")]
        self.notes: list[str] = []

    def frame(self, carry: Carry) -> tuple[list[Any], Heights]:
        state = self.compiled.net.decode(carry)
        lowered = self.compiled.lowered
        shown = "between two steps" if state is None else kind_of(lowered).state_text(lowered, state)
        return [{"state": shown}], (self.compiled.net.deviation(carry),)


def net_view(compiled: Compiled, carry: Carry) -> NetView:
    """The view of the net's target, for one run."""
    net = compiled.net
    place = VIEWS.get((compiled.target.name, net.form))
    if place is None or not (net.form or isinstance(net, compiled.target.net)):
        return DecodedView(compiled)
    return imported(place)(compiled, carry)


def described(compiled: Compiled) -> tuple[str, str]:
    """What the net is, and after whom."""
    net, target = compiled.net, compiled.target
    return net.summary or target.summary, net.paper or target.paper
