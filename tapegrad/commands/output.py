"""What commands print: JSON for scripts on request, text for people otherwise."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tapegrad._compile import Progress as Report

console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)
errors = Console(stderr=True, highlight=False)

SUCCESS, DISAGREED, BAD_INPUT, UNFINISHED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: done and verified; net and source disagree; bad input; stopped at the step limit; by Ctrl-C."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def print_json(data: Any) -> None:
    """One JSON value on standard output."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def progress_bar() -> Progress:
    """A bar on standard error that goes away when done; none where that is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


@contextmanager
def steps_progress(what: str, limit: int) -> Iterator[Report]:
    """A progress bar over steps on standard error, where that is a terminal; a limit of 0 is unknown."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=limit or None)
        yield lambda steps: bar.update(task, completed=steps)


# Arguments and options that several commands share.


SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A file, a text in any format, or a ready name.")
]
TargetOption = Annotated[
    str, typer.Option("--target", "-t", help="The construction; `tapegrad targets` lists them.")
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        help="A word (once for each tape), bits in order, or name=number. Default: the source's own.",
    ),
]
StepsOption = Annotated[int, typer.Option("--steps", "-n", min=1, help="Most steps of the network.")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="reference, or a faster one with the same results.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="An option of the target or of a lowering; repeatable."
    ),
]
