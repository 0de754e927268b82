"""What commands share: arguments, saved nets, and what they print, JSON for scripts on request and text for
people otherwise."""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from tapegrad._compile import Compiled
from tapegrad._compile import Progress as Report
from tapegrad._sizing import SHORT_RUN, SIGHT, ends, left_open
from tapegrad._sources import ready_names
from tapegrad.errors import InputError, Refused
from tapegrad.source import Source
from tapegrad.targets import check_target, target_named, target_names
from tapegrad_check.boundary import print_json as print_json  # commands have it from here
from tapegrad_check.boundary import printable, silence
from tapegrad_check.folder import CONFIG


class SafeConsole(Console):
    """Names come from files that anyone may have written: nothing in a string reaches the terminal's own
    controls. Where nobody reads on, the program goes on silently to its exit code."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Every string that is printed comes this way, also those in tables."""
        return super().render_str(printable(text, keep="\n\t"), **options)

    def on_broken_pipe(self) -> None:
        """The stream was closed by its reader."""
        self.quiet = True
        silence(self.file)


_on_terminal = sys.stdout is not None and sys.stdout.isatty()
console = SafeConsole(highlight=False, emoji=False, soft_wrap=True, width=None if _on_terminal else 120)
errors = SafeConsole(stderr=True, highlight=False, emoji=False, soft_wrap=True)

SUCCESS, DISAGREED, BAD_INPUT, UNFINISHED = 0, 1, 2, 3
"""Exit codes: done and verified; net and source disagree; bad input; stopped at the step limit. Those
of other ends are in `tapegrad_check.boundary`."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def print_heading(name: str, rest: str) -> None:
    """The name of a source in bold, whatever characters it has, and what there is to say of it."""
    console.print(Text.assemble((printable(name), "bold"), " ", printable(rest)))


class _RateColumn(ProgressColumn):
    """Steps a second, of late."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


def progress_bar() -> Progress:
    """A bar on standard error that goes away when done; none where that is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, _RateColumn(), console=errors, transient=True, disable=not errors.is_terminal)


SILENCE = 30.0
"""Seconds without a word, where there is no terminal for a bar."""


@contextmanager
def steps_progress(what: str, limit: int) -> Iterator[Report]:
    """A progress bar over steps on standard error; where that is no terminal, a line now and then. A limit of
    0 is unknown."""
    began = spoken = time.monotonic()

    def now_and_then(steps: int) -> None:
        nonlocal spoken
        if not errors.is_terminal and time.monotonic() > spoken + SILENCE:
            spoken = time.monotonic()
            extent = f" of at most {limit:,}" if limit else ""
            errors.print(f"{what}: {steps:,} steps{extent}, {steps / (spoken - began):,.3g} a second")

    with progress_bar() as bar:
        task = bar.add_task(what, total=limit or None)

        def report(steps: int) -> None:
            bar.update(task, completed=steps)
            now_and_then(steps)

        yield report


# Arguments and options that several commands share.


def targets_from(typed: str) -> list[str]:
    """For the shell: targets that begin so."""
    return [name for name in target_names() if name.startswith(typed)]


def sources_from(typed: str) -> list[str]:
    """For the shell: ready sources and files that begin so."""
    folder, _, begin = typed.rpartition("/")
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        entries = []
    paths = [f"{folder}/{e.name}" if folder else e.name for e in entries if e.name.startswith(begin)]
    hidden = begin.startswith(".")
    files = [path for path in paths if hidden or not os.path.basename(path).startswith(".")]
    return [*(name for name in ready_names() if name.startswith(typed)), *files]


SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file, `file.py:function`, a text in any format, or a ready name.",
        autocompletion=sources_from,
    ),
]
ValuesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[INPUT]...", help="The same as --input, for each.")
]


def with_values(input: Sequence[str] | None, values: Sequence[str] | None) -> list[str] | None:
    """All that was typed as input: `--input 200 100` is the option with one value, and one more."""
    return [*(input or ()), *(values or ())] if input is not None or values else None


TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        help="The construction; `tapegrad targets` lists them.",
        autocompletion=targets_from,
    ),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        help="A word (once for each tape), a value for each parameter, bits in order, or name=number. "
        "Default: the source's own.",
    ),
]
StepsOption = Annotated[int, typer.Option("--steps", "-n", min=1, help="Most steps of the network.")]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="auto, reference, or a faster one with the same results. auto, the default, takes the fast one "
        "for long runs.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="An option of the target or of a lowering; repeatable."
    ),
]


LONGEST_NAME = 60


def file_name(source: str) -> str:
    """A name for a file about a source: of a file its own without the ending, of `file.py:f` the function's,
    of a text its first line."""
    name = Path(source.strip()).stem if "\n" not in source else source.split("\n", 1)[0]
    name = source.rpartition(":")[2] if ".py:" in source else name
    return re.sub(r"[^\w.-]+", "-", name)[:LONGEST_NAME].strip("-.") or "source"


def horizon_of(source: Source, words: tuple[Any, ...], target: str, given: Mapping[str, Any]) -> int:
    """How far to look: as far as one can, if the source ends there, else not so far; and for few steps where
    the net has room for all cells at every one of them."""
    chosen = target_named(target)
    blind = SHORT_RUN if {"steps", "cells"} <= left_open(source, chosen, given) else chosen.blind
    return SIGHT if ends(source, words) else blind


def is_net(source: str) -> bool:
    """Whether SOURCE is the folder of a net. A name of the library is not, whatever lies here by that name:
    the folder is then ./NAME."""
    return _holds_net(source) and source not in ready_names()


def _holds_net(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, CONFIG))  # of a name that cannot be one, `is_file` raises


def saved_net(source: str, target: str | None, settings: Sequence[str] | None) -> Compiled | None:
    """The net, if SOURCE is a folder that `compile` wrote; target and options are in it."""
    if not is_net(source):
        return None
    if target is not None or settings:
        raise InputError(f"{source} is a compiled net already", advice="Leave out --target and --set.")
    from tapegrad._saved import load  # which few runs need

    return load(source)


def check_target_of(source: str, target: str | None) -> None:
    """Refuses a source without a target. Who has a folder by the name of a ready source may mean that."""
    if target is None and _holds_net(source):
        raise Refused(
            f"{source!r} is a ready source, for which there is no target",
            advice=f"Add one, as in --target tape; for the folder here write {os.path.join('.', source)}",
        )
    check_target(target)
