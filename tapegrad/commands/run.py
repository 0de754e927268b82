"""`tapegrad run`: compile a source, run the network, and check every step against the source."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from tapegrad._compile import AUTO, Compiled, Progress, compile_for, refuse_early
from tapegrad._lockstep import Ahead, at_the_pace_of_the_net, engine_for, looked_ahead
from tapegrad._sizing import SIGHT
from tapegrad._sources import Found, find, inputs_for, kind_of, parse_options
from tapegrad._verify import run_and_verify
from tapegrad.commands.output import (
    DISAGREED,
    SUCCESS,
    UNFINISHED,
    AsJson,
    EngineOption,
    InputOption,
    SetOption,
    ValuesArgument,
    check_target_of,
    console,
    errors,
    horizon_of,
    print_heading,
    print_json,
    saved_net,
    sources_from,
    steps_progress,
    targets_from,
    with_values,
)
from tapegrad.errors import InputError, Refused
from tapegrad.source import Source, State
from tapegrad.targets import Target

RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file, `file.py:function`, a text in any format, a ready name, or a folder with a saved net "
        "(./NAME, if NAME is a ready one).",
        autocompletion=sources_from,
    ),
]
TARGET_HELP = "The construction; `tapegrad targets` lists them. A saved net has its own."
DRAWN = 2_000
"""Most steps in a figure."""

STEPS_HELP = (
    f"Most steps of the network. Default: to its end; {Target.blind:,} at most where that is not in sight."
)
LOOK, PATIENCE = 5.0, 1800.0
"""Seconds after which the pace of a run is known, and that it may take if nobody asked for its length."""
ROWS = 12
"""Different outputs in a row that are printed."""
LAST_STEPS = 16
"""More than a net takes beyond the steps of its machine, to read its labels."""
LONG = 20_000
"""Runs longer than this are compared some times instead of at every step, and the report says so."""
READ = 2_000_000_000
"""Numbers of a net that are read at most to compare every step, where all of them must be."""


def run(
    source: RunArgument,
    values: ValuesArgument = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help=TARGET_HELP, autocompletion=targets_from)
    ] = None,
    input: InputOption = None,
    steps: Annotated[int | None, typer.Option("--steps", "-n", min=1, help=STEPS_HELP)] = None,
    engine: EngineOption = None,
    settings: SetOption = None,
    check: bool = typer.Option(True, "--verify/--no-verify", help="Compare every step with the source."),
    every: int = typer.Option(
        0, min=0, help=f"Compare every so many steps; by default all, in runs of up to {LONG:,} steps."
    ),
    figure: Annotated[
        Path | None, typer.Option(help="Draw loss and tape weights over time (simplex and tape only).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile SOURCE, run the network on an input and compare every step with the source.

    Examples: tapegrad run increment --target tape --input 1011

    tapegrad run my.py:function --target relu 200 100    (runs your own my.py)

    Exit code: 0 ran and agreed, 1 network and source disagree, 2 bad input, 3 stopped at the step limit.
    """
    texts, whole = with_values(input, values), steps is None
    saved, given = saved_net(source, target, settings), parse_options(settings)
    if saved is not None:
        found = Found(saved.source, "saved net")
    else:
        found = find(source)
        check_target_of(source, target)
        refuse_early(found.source, str(target), None, given)
    words = inputs_for(found.source, texts, found.inputs)
    if saved is None:
        refuse_early(found.source, str(target), found.source.start(*words), given)
    with errors.status("compiling"):
        if saved is not None:
            compiled, horizon = saved, steps or SIGHT
        else:
            horizon = steps or horizon_of(found.source, words, str(target), given)
            compiled = compile_for(found.source, str(target), words, horizon, **given)
            if any(rewriting.covers is not None for rewriting in compiled.passes):
                steps, horizon = None, SIGHT  # so many of the source are in the net; it has more of its own
            elif steps is None and kind_of(found.source).compiled_run is None:
                horizon = SIGHT  # a circuit or a learner ends, however long the machine is that it became
        target, first = compiled.target.name, compiled.encode(compiled.source.start(*words))
        ahead = looked_ahead(compiled, words, horizon)
        if steps is None:
            steps = min(horizon, compiled.target.blind)
            if ahead is not None and ahead.halted:
                steps = ahead.steps + LAST_STEPS
            room = compiled.net.room(first)
            if saved is None and room is not None and ahead is not None and ahead.halted:
                _refuse_too_long(compiled, ahead.steps, room, given)
            steps = steps if saved is not None or room is None else min(steps, max(1, room))
        if check:
            every = every or _leap(compiled, words, steps, ahead)
        asked, engine = engine, AUTO if engine is None else engine
        if engine == AUTO:
            asked, engine = None, engine_for(compiled, first, steps, ahead)
    own = {} if saved is not None else compiled.options
    chosen = {name: value for name, value in own.items() if name not in {"inputs", *given}}
    if compiled.source is not found.source:
        chosen |= kind_of(found.source).sizes(compiled.source)
    if figure is not None:
        _draw(compiled, words, min(steps, DRAWN), figure)
    passes = [rewriting.name for rewriting in compiled.passes]
    kind, output = kind_of(found.source), None
    if not as_json:
        print_heading(found.source.name, f"({found.origin}) on target {target}")
        console.print(f"passes      {' -> '.join(passes) or 'none'}", markup=False)
        for name, value in chosen.items():
            console.print(f"{name:<11} {value:,}, chosen for this input", markup=False)
        console.print(f"weights     {compiled.counts}")
        if asked is None and engine != "reference":
            console.print(f"engine      {engine}, chosen for the length of the run")
    if kind.written is not None:
        output = _Output(found.source, kind.written, prints=not as_json)
    rows = None if kind.history is None else _Rows(found.source, kind.history)
    watch = output or rows
    limit = min(steps, chosen.get("steps", steps))
    with steps_progress("running", limit) as report_steps:
        known = "steps" in chosen or (ahead is not None and ahead.halted)
        progress = in_reason(report_steps, limit) if whole and known else report_steps
        if check:
            outcome, report = run_and_verify(
                compiled, *words, steps=steps, engine=engine, every=every, progress=progress, watch=watch
            )
        else:
            report = None
            carry = compiled.net.begin(compiled.encode(compiled.source.start(*words)), engine)
            kept = None if output is None else compiled.options.get("output")  # a step writes a byte at most
            outcome = compiled.resume(
                carry, steps=steps, engine=engine, progress=progress, watch=watch, every=kept
            )
    if rows is not None and outcome.state is not None:
        rows(outcome.state)
    if output is not None:
        output.end(outcome.state)
    agreed = None if report is None else report.agreed
    if as_json:
        reached = None if outcome.state is None else kind.state_json(found.source, outcome.state)
        if reached is not None and output is not None:
            reached["output"] = output.text
        print_json(
            {
                "source": found.source.name,
                "origin": found.origin,
                "target": target,
                "engine": engine,
                "passes": passes,
                "chosen": chosen,
                "weights": asdict(compiled.counts),
                "steps": outcome.steps,
                "halted": outcome.halted,
                "output": reached,
                **({} if rows is None else {"trace": rows.complete()}),
                "verified": agreed,
                "checked": None if report is None else report.to_json(),
                "max_deviation": outcome.deviation
                if report is None
                else max(outcome.deviation, report.deviation),
                "seconds": outcome.seconds,
            }
        )
    else:
        by_sgd = compiled.target.name == "emulator"
        in_step = by_sgd and bool(compiled.passes) and compiled.passes[-1].in_step
        what = f"of SGD, one for each {kind.step}," if in_step else "of the network"
        ended = "done" if outcome.halted else "stopped at the step limit"
        rate = f" ({outcome.steps / outcome.seconds:,.0f} a second)" if in_step and outcome.steps > 1 else ""
        console.print(f"steps       {outcome.steps:,} {what} in {outcome.seconds:.3g} s{rate}, {ended}")
        for line in () if rows is None else rows.lines():
            console.print(f"gives       {line}", markup=False)
        if outcome.state is not None:
            for line in kind.state_text(found.source, outcome.state).splitlines():
                if output is None or not line.startswith("output "):
                    console.print(f"result      {line}", markup=False)
        console.print(f"verified    {'not asked for' if report is None else report}", markup=False)
    if agreed is False:
        raise typer.Exit(DISAGREED)
    raise typer.Exit(SUCCESS if outcome.halted else UNFINISHED)


def in_reason(report: Progress, steps: int) -> Progress:
    """Tells of the steps as `report` does, and refuses to go on with a run that nobody asked for at this
    length, once it is known to take longer than anyone waits. The first report starts the clock, for code is
    compiled before it."""
    first: list[tuple[float, int]] = []

    def told(taken: int) -> None:
        report(taken)
        now = time.monotonic()
        if not first:
            first.append((now, taken))
        began, before = first[0]
        if taken > before and now - began > LOOK:
            left = (steps - taken) * (now - began) / (taken - before)
            if left > PATIENCE:
                raise Refused(
                    f"at this pace, {steps:,} steps of this run take {left / 3600:,.1f} hours",
                    advice=f"Take a part of it, as in `--steps 100`; `--steps {steps}` takes the time.",
                )

    return told


class _Output:
    """Gathers what a program writes, and prints it line by line as it comes."""

    def __init__(
        self, source: Source, written: Callable[[Any, State], tuple[int, bytes]], *, prints: bool = True
    ) -> None:
        self.source, self.written, self.prints = source, written, prints
        self.count, self.printed, self.whole = 0, 0, bytearray()

    def __call__(self, state: State) -> None:
        count, last = self.written(self.source, state)
        new, self.count = count - self.count, max(count, self.count)
        if new > len(last):
            self.whole += f"[{new - len(last):,} bytes that were written over]".encode()
        self.whole += last[max(0, len(last) - new) :]
        while (end := self.whole.find(b"\n", self.printed)) >= 0:
            self._print(end)
            self.printed = end + 1

    def end(self, state: State | None) -> None:
        """Prints what is left."""
        if state is not None:
            self(state)
        if self.printed < len(self.whole):
            self._print(len(self.whole))
            self.printed = len(self.whole)

    @property
    def text(self) -> str:
        """All of it."""
        return self.whole.decode("utf-8", "replace")

    def _print(self, end: int) -> None:
        if self.prints:
            line = self.whole[self.printed : end].decode("utf-8", "replace")
            console.print(f"prints      {line}", markup=False)
            console.file.flush()


class _Rows:
    """Gathers what a source gives at every step, as long as no step is missed."""

    def __init__(self, source: Source, history: Callable[[Any, State, int], tuple[int, list[Any]]]) -> None:
        self.source, self.history = source, history
        self.count, self.rows = 0, []

    def __call__(self, state: State) -> None:
        self.count, new = self.history(self.source, state, self.count)
        self.rows += new

    def complete(self) -> list[Any] | None:
        """All of them; None where some were missed."""
        return self.rows if len(self.rows) == self.count else None

    def lines(self) -> Iterator[str]:
        """Where all are known, those of the first steps, each with how often it came in a row."""
        groups = [(own, sum(1 for _ in same)) for own, same in groupby(self.complete() or [])]
        for row, times in groups[:ROWS]:
            shown = " ".join(f"{name}={value}" for name, value in row.items())
            yield f"{shown}  *{times:,}" if times > 1 else shown
        if len(groups) > ROWS:
            yield f"... and so on; --json has all {self.count:,}"


def _refuse_too_long(compiled: Compiled, length: int, room: int, given: Mapping[str, Any]) -> None:
    """A run to its end for which the largest net has no room, before the net has run for a minute."""
    if length > room and not given:
        raise Refused(
            f"this run of {compiled.source.name!r} takes {length:,} steps, and the largest net of the target "
            f"{compiled.target.name!r} has room for {room:,}",
            advice="Take a part of it, as in `--steps 1000`, or use the target `tape`.",
        )


def _leap(compiled: Compiled, words: tuple[Any, ...], steps: int, ahead: Ahead | None) -> int:
    """Every step is compared, unless there are very many, or, where the source was rewritten for the net, so
    many that not all weights could be read at every step."""
    source, inner = at_the_pace_of_the_net(compiled)
    rewritten = bool(inner) or source is not compiled.source
    longest = min(LONG, READ // compiled.net.parameters) if rewritten else LONG
    length = 0 if ahead is None else min(ahead.steps, steps)
    if length <= longest:
        return 1
    return max(1, length // compiled.net.looks(compiled.encode(compiled.source.start(*words))))


def _draw(compiled: Compiled, words: tuple[Any, ...], steps: int, path: Path) -> None:
    """Trains once more, by the reference engine, keeping what is drawn."""
    from tapegrad.targets.descent.net import DescentNet, plot_history, record

    if not isinstance(compiled.net, DescentNet):
        raise InputError(
            f"target {compiled.target.name!r} does not train", advice="Use --target tape or simplex."
        )
    plot_history(record(compiled.net, compiled.start(*words), steps), path)
