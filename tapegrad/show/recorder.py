"""Recording a run: the net and the interpreter of its source in lockstep, a frame for each step."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from tapegrad._compile import Compiled, Progress, compile, compile_for
from tapegrad._lockstep import Leaps, Lockstep, at_the_pace_of_the_net, looked_ahead
from tapegrad._panels import Panel, plain
from tapegrad._sources import Found, inputs_for, kind_of, route
from tapegrad.show.plain_words import plain_words
from tapegrad.show.views import Follows, Heights, InStages, RunsInThePage, described, net_view
from tapegrad.show.views_network import Listing, NetworkValues
from tapegrad.source import Source
from tapegrad.targets import target_named

# A run as plain data: what the page needs to show it, and nothing else.


@dataclass(frozen=True)
class Recording:
    """A run of a compiled net beside the plain interpreter of its source.

    `panels` describe what is drawn, on the left (side `source`: the interpreter) and on the right (side
    `network`); frame i of `frames` holds, for each panel, what to draw at one step of the net.
    """

    title: str
    target: str
    summary: str
    paper: str
    lead: str
    """What the run is, in a sentence or two for everybody."""
    undrawn: str
    """Why there is no drawing; nothing where there is one."""
    answers: list[tuple[str, str]]
    """Questions of a newcomer, with their answers."""
    link: str
    """The paper's address."""
    passes: list[str]
    weights: str
    """How many are trained and how many are fixed, and the memory of both, as everywhere."""
    steps: int
    """Steps of the net, including those between two frames."""
    step_name: str
    curve_name: str
    ended: bool
    agreed: bool
    """Whether every decoded state, also those looked at between frames, was the interpreter's."""
    leaps: bool
    """Whether only the steps that are shown were compared."""
    live: dict[str, Any] | None
    """What the page needs to run another input by itself; None where it cannot."""
    notes: list[str]
    panels: list[dict[str, Any]]
    frames: list[dict[str, Any]]
    """Each: `step` of the net, `source_step`, `curve`, `agrees`, and `panels`, one entry for each."""

    def to_json(self) -> dict[str, Any]:
        """The recording as plain JSON, as its parts are: `asdict` would copy millions of numbers."""
        return dict(vars(self))


# How far a run is followed to be shown, unless more is asked for.


MOST_STEPS = 2_000
"""Steps of the net."""

SECONDS = 60.0
"""Time for one run of the studio."""


MOST_UNROLLED = 100
"""Steps of a machine that is written out as a circuit, so that the net has layers for each of them."""


UNDRAWN = (
    "The tables show what the network's numbers mean at every step, beside the source, and the list every "
    "value of it."
)


MOST_FRAMES = 400
"""A longer run is thinned: every second frame is dropped, as often as needed."""


MOST_DATA, LEAST_FRAMES = 4_000_000, 24
"""Characters of all frames beyond which they are thinned too, and how many remain at least."""


def record(
    compiled: Compiled,
    *inputs: Any,
    steps: int = MOST_STEPS,
    frames: int = MOST_FRAMES,
    seconds: float = math.inf,
    engine: str | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Runs the net for at most `steps` steps, and so many seconds, and keeps at most `frames` frames of it.
    Without an `engine`, the net chooses for the length of the run. Steps between two frames are compared as
    well, unless the net is large and the run long, and its source can be followed in leaps."""
    first = compiled.start(*inputs)
    engine = engine or compiled.net.engine_for(first, steps)
    network = net_view(compiled, first)
    stride = _stride(compiled, inputs, steps, frames) if engine == "fast" else 1
    in_leaps = not network.sees_every_step and at_the_pace_of_the_net(compiled)[0] is compiled.source
    leaps = stride > 1 and in_leaps
    run = Leaps(compiled, inputs, engine, stride, steps) if leaps else Lockstep(compiled, inputs, engine)
    views = [("source", kind_of(compiled.source).view(compiled.source))]
    in_step = all(rewriting.in_step for rewriting in compiled.passes)
    if type(compiled.lowered) is not type(compiled.source) and not in_step:
        lowered = kind_of(compiled.lowered).view(compiled.lowered)
        if type(lowered) is not type(views[0][1]):  # else it would show a function and its circuit alike
            views.append(("source", lowered))
    values = NetworkValues(compiled, first)
    listing = None if values.network is None else Listing(compiled.net.explained)
    kept: list[_Moment] = []
    end = time.monotonic() + seconds
    while True:
        late = time.monotonic() > end and not run.ended and run.steps < steps
        last = late or run.ended or run.steps >= steps or (leaps and not run.agrees)
        keep = last or run.steps % stride == 0
        if keep or network.sees_every_step:
            staged = isinstance(network, InStages)
            stages = network.stages(run.carry) if staged else [network.frame(run.carry)]
            if keep:
                states = [run.source_state, *([run.lowered_state] if isinstance(run, Lockstep) else ())]
                shown = [view.frame(state) for (_, view), state in zip(views, states, strict=False)]
                source_step = run.steps if leaps else max(0, run.states - 1)
                own = network.network_values if isinstance(network, Follows) else None
                listed = [] if listing is None else [[listing.frame(values.at(run.carry, own))]]
                kept += [
                    _Moment(run.steps, source_step, heights, run.agrees, [*shown, drawn, *listed])
                    for drawn, heights in stages
                ]
        if last:
            break
        if len(kept) > frames:
            kept, stride = kept[::2], 2 * stride
        run.step()
        if progress is not None:
            progress(run.steps)
    listings = [] if listing is None else [("network", [listing])]
    drawn = [(side, view.panels) for side, view in [*views, ("network", network)]]
    panels, collected = _finished([*drawn, *listings], kept)
    chosen = _livelier(kept)
    thinned = _thinned(collected)
    shown = sorted({*range(0, len(kept), thinned), len(kept) - 1})
    kept, collected, stride = [kept[i] for i in shown], [collected[i] for i in shown], thinned * stride
    notes = list(network.notes)
    if stride > 1:
        compared = " and compared" if leaps else "; all of them were compared"
        notes.append(f"Every {_ordinal(stride)} of {run.steps:,} steps is shown{compared}.")
    if not run.ended:
        why = f", for it had taken {seconds:g} seconds" if late else ""
        notes.append(f"The run was cut off after {run.steps:,} steps, before its end{why}.")
    summary, paper = described(compiled)
    words = plain_words(compiled)
    return Recording(
        title=compiled.source.name,
        target=compiled.target.name,
        summary=summary,
        paper=paper,
        lead=words.lead,
        undrawn="" if any(panel["kind"] == "drawing" for panel in panels) else UNDRAWN,
        answers=list(words.answers),
        link=words.link,
        passes=[rewriting.name for rewriting in compiled.passes],
        weights=str(compiled.counts),
        steps=run.steps,
        step_name=network.step_name,
        curve_name=network.curves[chosen],
        ended=run.ended,
        agreed=run.parted is None,
        leaps=leaps,
        live=network.live() if isinstance(network, RunsInThePage) else None,
        notes=notes,
        panels=panels,
        frames=[
            {
                "step": moment.step,
                "source_step": moment.source_step,
                "curve": None if (height := moment.heights[chosen]) is None else plain(height),
                "agrees": moment.agrees,
                "panels": list(values),
            }
            for moment, values in zip(kept, collected, strict=True)
        ],
    )


def _stride(compiled: Compiled, inputs: tuple[Any, ...], steps: int, frames: int) -> int:
    """That of which the run will have at most so many frames: in a large net a frame takes longer than the
    compiled interpreter takes for all steps."""
    ahead, stride = looked_ahead(compiled, inputs, steps), 1
    while ahead is not None and ahead.steps > frames * stride:
        stride *= 2
    return stride


def _thinned(collected: list[tuple[Any, ...]]) -> int:
    """Every so many frames are kept, for the page to stay small: a power of two, found from a few frames."""
    sample = collected[:: max(1, len(collected) // 16)]
    size = sum(len(json.dumps(values)) for values in sample) / len(sample) * len(collected)
    every = 1
    while size > MOST_DATA * every and len(collected) > LEAST_FRAMES * every:
        every *= 2
    return every


@dataclass(frozen=True)
class _Moment:
    """A frame while it is being recorded: for each view what its panels show."""

    step: int
    source_step: int
    heights: Heights
    agrees: bool
    shown: list[list[Any]]


def _livelier(kept: list[_Moment]) -> int:
    """The first curve that is not flat; where all are, the first."""
    curves = zip(*(moment.heights for moment in kept), strict=True)
    return next((n for n, own in enumerate(curves) if len({*own} - {None}) > 1), 0)


def _finished(
    views: Sequence[tuple[str, Sequence[Panel]]], kept: list[_Moment]
) -> tuple[list[dict], list[tuple[Any, ...]]]:
    """The panels as JSON, and for each frame what they show."""
    panels, columns = [], []
    for number, (side, own) in enumerate(views):
        for place, panel in enumerate(own):
            finished = panel.finish([moment.shown[number][place] for moment in kept])
            if finished is not None:
                panels.append({"side": side, **finished[0]})
                columns.append(finished[1])
    return panels, list(zip(*columns, strict=True))


def _ordinal(number: int) -> str:
    # Strides are powers of two: 2, 4, 8, 16, 32, ..., so that "th" is right for all but those ending in 2.
    return f"{number:,}nd" if number % 10 == 2 and number % 100 != 12 else f"{number:,}th"


# What a run that is to be shown starts from: a source, as found, compiled, and the input for it.


TO_ITS_END = 100_000_000
"""Steps of a run for a net that is made of all of them, however few are shown."""
EXAMPLE = "example"
"""In place of a source: the target's own first example, with its input."""


def compiled_example(target: str) -> tuple[Compiled, tuple[Any, ...]]:
    """The first example of a target."""
    example = target_named(target).examples()[0]
    return compile(example.source, target, **example.options), example.inputs


def compiled_source(
    found: Found, target: str, texts: Sequence[str] | None, settings: Mapping[str, Any], steps: int
) -> tuple[Compiled, tuple[Any, ...]]:
    """The source on its target, with the input as typed, or else the one that came with it, or else one of
    its kind's own; made for at most this many steps on it, and for fewer where each of them adds layers."""
    inputs = found.inputs
    if texts is not None or not kind_of(found.source).input_needed:
        inputs = inputs_for(found.source, texts, inputs)
    elif not inputs:
        inputs = _example_inputs(found.source)
    if "steps" not in settings and _is_unrolled(found.source, target, settings):
        steps = min(steps, MOST_UNROLLED)
    if target_named(target).built_for_inputs:
        steps = max(steps, TO_ITS_END)
    return compile_for(found.source, target, inputs, steps, **settings), inputs


def _example_inputs(source: Source) -> tuple[Any, ...]:
    """One that says something: the first few of a kind may be all zeros and all ones."""
    tried, _ = kind_of(source).default_inputs(source, np.random.default_rng(0), False)
    return list(islice(tried, 12))[-1]


def _is_unrolled(source: Source, target: str, settings: Mapping[str, Any]) -> bool:
    """Whether a machine is written out as a circuit on the way to a target."""
    chosen = target_named(target)
    lowerings = route(source, *chosen.kinds, names=set(settings) - set(chosen.options))
    return any("steps" in lowering.options and "circuit" in lowering.after for lowering in lowerings)
