"""Recording a run: the net and the interpreter of its source in lockstep, a frame for each step."""

from dataclasses import dataclass
from typing import Any

from tapegrad.compile import Compiled, Progress
from tapegrad.lockstep import Lockstep
from tapegrad.show.limits import MOST_STEPS
from tapegrad.show.panels import plain
from tapegrad.show.recording import Recording
from tapegrad.show.source_views import source_view
from tapegrad.show.views import net_view

MOST_FRAMES = 400
"""A longer run is thinned: every second frame is dropped, as often as needed."""


def record(
    compiled: Compiled,
    *inputs: Any,
    steps: int = MOST_STEPS,
    frames: int = MOST_FRAMES,
    engine: str = "reference",
    progress: Progress | None = None,
) -> Recording:
    """Runs the net for at most `steps` steps and keeps at most `frames` frames of it."""
    run = Lockstep(compiled, inputs, engine)
    views = [("source", source_view(compiled.source))]
    if type(compiled.lowered) is not type(compiled.source):
        views.append(("source", source_view(compiled.lowered)))
    network = net_view(compiled, run.carry)
    kept: list[_Moment] = []
    stride = 1
    while True:
        last = run.ended or run.steps >= steps
        keep = last or run.steps % stride == 0
        states = (run.source_state, run.lowered_state)
        shown = [view.frame(state) for (_, view), state in zip(views, states, strict=False)]
        if keep or network.sees_every_step:
            values, curve = network.frame(run.carry)
            if keep:
                kept.append(_Moment(run.steps, max(0, run.states - 1), curve, run.agrees, [*shown, values]))
        if last:
            break
        if len(kept) > frames:
            kept, stride = kept[::2], 2 * stride
        run.step()
        if progress is not None:
            progress(run.steps)
    panels, collected = _finished([*views, ("network", network)], kept)
    notes = list(network.notes)
    if stride > 1:
        notes.append(f"Every {_ordinal(stride)} of {run.steps:,} steps is shown; all of them were compared.")
    if not run.ended:
        notes.append(f"The run was cut off after {run.steps:,} steps, before its end.")
    return Recording(
        title=compiled.source.name,
        target=compiled.target.name,
        summary=compiled.target.summary,
        paper=compiled.target.paper,
        passes=[rewriting.name for rewriting in compiled.passes],
        parameters=compiled.net.parameters,
        steps=run.steps,
        step_name=network.step_name,
        curve_name=network.curve_name,
        ended=run.ended,
        agreed=run.parted is None,
        notes=notes,
        panels=panels,
        frames=[
            {
                "step": moment.step,
                "source_step": moment.source_step,
                "curve": None if moment.curve is None else plain(moment.curve),
                "agrees": moment.agrees,
                "panels": list(values),
            }
            for moment, values in zip(kept, collected, strict=True)
        ],
    )


@dataclass(frozen=True)
class _Moment:
    """A frame while it is being recorded: for each view what its panels show."""

    step: int
    source_step: int
    curve: float | None
    agrees: bool
    shown: list[list[Any]]


def _finished(views: list[tuple[str, Any]], kept: list[_Moment]) -> tuple[list[dict], list[tuple[Any, ...]]]:
    """The panels as JSON, and for each frame what they show."""
    panels, columns = [], []
    for number, (side, view) in enumerate(views):
        for place, panel in enumerate(view.panels):
            finished = panel.finish([moment.shown[number][place] for moment in kept])
            if finished is not None:
                panels.append({"side": side, **finished[0]})
                columns.append(finished[1])
    return panels, list(zip(*columns, strict=True))


def _ordinal(number: int) -> str:
    # Strides are powers of two: 2, 4, 8, 16, 32, ..., so that "th" is right for all but those ending in 2.
    return f"{number:,}nd" if number % 10 == 2 and number % 100 != 12 else f"{number:,}th"
