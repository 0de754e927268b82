"""Recording a run: the net and the interpreter of its source, side by side, a frame for each step."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from tapegrad.compile import Compiled, Progress
from tapegrad.lowering.rewriting import State
from tapegrad.nets import Carry
from tapegrad.show.panels import plain
from tapegrad.show.recording import Recording
from tapegrad.show.source_views import source_view
from tapegrad.show.views import net_view

MOST_STEPS = 2_000
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
    run = _SideBySide(compiled, inputs)
    views = [("source", source_view(compiled.source))]
    if type(compiled.lowered) is not type(compiled.source):
        views.append(("source", source_view(compiled.lowered)))
    network = net_view(compiled, run.carry)
    kept: list[_Moment] = []
    stride = 1
    while True:
        ended = compiled.net.done(run.carry)
        last = ended or run.steps >= steps
        keep = last or run.steps % stride == 0
        shown = [view.frame(state) for (_, view), state in zip(views, run.states, strict=False)]
        if keep or network.sees_every_step:
            values, curve = network.frame(run.carry)
            if keep:
                kept.append(_Moment(run.steps, run.source_step, curve, run.agrees, [*shown, values]))
        if last:
            break
        if len(kept) > frames:
            kept, stride = kept[::2], 2 * stride
        run.step(engine)
        if progress is not None:
            progress(run.steps)
    panels, collected = _finished([*views, ("network", network)], kept)
    notes = list(network.notes)
    if stride > 1:
        notes.append(f"Every {_ordinal(stride)} of {run.steps:,} steps is shown; all of them were compared.")
    if not ended:
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
        ended=ended,
        agreed=run.all_agree and (not ended or run.at_its_end()),
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


class _SideBySide:
    """The net, and the interpreters of the user's source and of the lowered one, each of which goes on
    when the decoded net does. `states` are the interpreters' own, never the net's."""

    def __init__(self, compiled: Compiled, inputs: tuple[Any, ...]) -> None:
        self.compiled = compiled
        first = compiled.source.start(*inputs)
        lowered = compiled.encode(first)
        self.carry: Carry = compiled.net.start(lowered)
        self.states: list[State] = [first, lowered]
        covered = [p.covers for p in compiled.passes if p.covers is not None]
        own: Iterator[State] = compiled.source.run(first)
        if covered:  # such a rewriting shows only where the source stands at its end
            *_, end = islice(own, covered[0] + 1)
            own = iter([end])
        self._runs = [own, compiled.lowered.run(lowered)]
        self.steps = self._taken = 0
        self.agrees = self.all_agree = True
        self._compare()

    @property
    def source_step(self) -> int:
        """Steps that the interpreter of the user's source has taken."""
        return max(0, self._taken - 1)

    def step(self, engine: str) -> None:
        """One step of the net, and of the interpreters if it decodes to a new state."""
        self.carry = self.compiled.net.advance(self.carry, 1, engine)
        self.steps += 1
        self._compare()

    def _compare(self) -> None:
        decoded = self.compiled.net.decode(self.carry)
        if decoded is None:
            return
        found = [self.compiled.decode(decoded), decoded]
        self.agrees = True
        for number, (state, run) in enumerate(zip(found, self._runs, strict=True)):
            if state is None:
                continue
            self._taken += number == 0
            expected = next(run, None)
            self.agrees &= expected is not None and _equal(state, expected)
            if expected is not None:
                self.states[number] = expected
        self.all_agree &= self.agrees

    def at_its_end(self) -> bool:
        """Whether the interpreters have halted too, as they must when the net says that it is done."""
        return all(next(run, None) is None for run in self._runs)


def _equal(a: State, b: State) -> bool:
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
