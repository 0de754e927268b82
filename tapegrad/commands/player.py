"""Pages on which a run can be watched: `tapegrad show ... -o page.html` and `tapegrad studio`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tapegrad._compile import Compiled
from tapegrad._files import content_of, write_atomically
from tapegrad._sources import find, parse_options
from tapegrad.commands.output import (
    DISAGREED,
    check_target_of,
    console,
    file_name,
    print_json,
    saved_net,
    steps_progress,
)
from tapegrad.errors import InputError
from tapegrad.show.recorder import EXAMPLE, SECONDS, compiled_example, compiled_source, inputs_for

PAGE_OF_A_RUN = re.compile(rb"<title>[^<]* on \w+</title>")
LONGEST_HEAD = 4096
"""Bytes of a page before which its title stands."""


def write_page(
    source: str,
    target: str | None,
    output: Path | None,
    input: Sequence[str] | None,
    steps: int,
    settings: Sequence[str] | None,
    as_json: bool,
) -> None:
    """Runs a source on a target, or a saved net, and writes the page of the run, or an animation of it."""
    from tapegrad.show.animation import MOST_FRAMES, gif  # all of them bring what draws: only pages need that
    from tapegrad.show.page import page
    from tapegrad.show.recorder import record
    from tapegrad.show.video import CODECS, encoder, video

    output = _own_page(source, target) if output is None else output
    kind = output.suffix.lower()
    if kind not in (".html", ".htm", ".gif", *CODECS):
        raise InputError(
            f"{output.name} is neither a page nor an animation",
            advice="Use a name that ends in .html, .gif, .mp4 or .webm.",
        )
    animated = kind not in (".html", ".htm")
    if kind in CODECS:
        encoder()  # before the run, which may take long, and would be in vain
    compiled, inputs = _opened(source, target, input, settings, steps)
    with steps_progress("recording", steps) as progress:
        recording = record(compiled, *inputs, steps=steps, seconds=SECONDS, progress=progress)
    if animated:
        with steps_progress("drawing", min(len(recording.frames), MOST_FRAMES)) as progress:
            made = (
                video(recording, kind, progress=progress)
                if kind in CODECS
                else gif(recording, progress=progress)
            )
        content = made
    else:
        content = page(recording).encode()
    write_atomically(output, content)
    if as_json:
        print_json(
            {
                "source": recording.title,
                "target": recording.target,
                "passes": recording.passes,
                "steps": recording.steps,
                "frames": len(recording.frames),
                "halted": recording.ended,
                "verified": recording.agreed,
                "bytes": len(content),
                "page": str(output),
            }
        )
    else:
        cut = "" if recording.ended else " (its end is further on)"
        console.print(
            f"{recording.title} on {recording.target}: {recording.steps:,} steps{cut} in "
            f"{len(recording.frames):,} frames, {len(content) / 1024:.0f} KiB",
            markup=False,
        )
        use = "put it on a slide" if animated else "open it in a browser"
        console.print(f"written to {output}; {use}", markup=False)
    if not recording.agreed:
        raise typer.Exit(DISAGREED)


def _own_page(source: str, target: str | None) -> Path:
    """A name for a page where none is given: that of the source and the target. Only an earlier page of a run
    is written over."""
    path = Path("-".join([file_name(source), *([target] if target else [])]) + ".html")
    if (there := content_of(str(path))) is not None and not PAGE_OF_A_RUN.search(there[:LONGEST_HEAD]):
        raise InputError(f"{path} is there, and no page of a run", advice="Name another, as in -o page.html.")
    return path


def _opened(
    source: str,
    target: str | None,
    input: Sequence[str] | None,
    settings: Sequence[str] | None,
    steps: int,
) -> tuple[Compiled, tuple[Any, ...]]:
    if (compiled := saved_net(source, target, settings)) is not None:
        return compiled, inputs_for(compiled.source, input)
    check_target_of(source, target)
    if source == EXAMPLE:
        return compiled_example(str(target))
    return compiled_source(find(source), str(target), input, parse_options(settings), steps)


def studio(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    seconds: Annotated[float, typer.Option(min=1, help="Most time for one run.")] = SECONDS,
    python: Annotated[
        bool, typer.Option("--python", help="Also take Python functions: this runs the code that you write.")
    ] = False,
) -> None:
    """Serve the player on this machine, with a gallery and an editor.

    Example: tapegrad studio
    """
    from tapegrad.show.studio import Studio  # a server: only this command needs it

    with Studio(port, seconds, python) as server:
        said = "\nIt runs the Python code that is written there." if python else ""
        console.print(
            f"Open {server.url}\nOnly this machine can reach it. Ctrl-C stops it.{said}", markup=False
        )
        server.serve_forever()
