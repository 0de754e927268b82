"""`tapegrad zoo`: a data set of RASP programs with their networks and answer keys."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tapegrad._zoo.run import Disagreed, Plan, run
from tapegrad.commands.output import DISAGREED, AsJson, console, errors, print_json, progress_bar
from tapegrad.errors import InputError
from tapegrad_check.boundary import INTERRUPTED, complain


def zoo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder; a zoo that was stopped goes on from there."),
    ],
    pairs: Annotated[
        int,
        typer.Option("--pairs", "--count", "-c", min=1, max=1_000_000, help="Programs with their networks."),
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=(1 << 31) - 1, help="Of the random programs.")] = 0,
    split: Annotated[
        str, typer.Option(help="Parts of a hundred for training, validation and test.")
    ] = "80,10,10",
    proved: Annotated[
        int, typer.Option(min=0, max=100, help="Of a hundred, how many the checker proves.")
    ] = 100,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: all cores.")] = None,
    ray: Annotated[bool, typer.Option("--ray", help="On a Ray cluster (extra ray).")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a data set of RASP programs and their transformers, with answer keys.

    Ready programs first, then random ones; no two of them do the same. Every network is compared with its
    program and proved. The same command goes on with a zoo that was stopped, or makes it larger.

    Example: tapegrad zoo --pairs 10000 -o rasp.zoo

    Exit code: 0 if all were made, 1 if a network and its program do not agree.
    """
    plan = Plan(seed, _split(split), proved)
    try:
        with progress_bar() as bar:
            shown = bar.add_task("pairs", total=pairs)
            summary = run(
                plan,
                output,
                pairs,
                workers=workers,
                ray=ray,
                progress=lambda done: bar.update(shown, completed=done),
            )
    except KeyboardInterrupt:
        errors.print(f"interrupted; the same command goes on from {output}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    except Disagreed as error:
        complain(error, as_json=as_json)
        raise typer.Exit(DISAGREED) from None
    if as_json:
        print_json(summary)
    else:
        _print(summary, output)


def _split(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isascii() and part.strip().isdecimal() for part in parts):
        raise InputError(f"{text!r} is no split", advice="Give three parts of a hundred, such as 80,10,10.")
    return tuple(int(part) for part in parts)


def _print(summary: dict[str, Any], folder: Path) -> None:
    def listed(name: str) -> str:
        return ", ".join(f"{key} {number:,}" for key, number in summary[name].items())

    console.print(
        f"{summary['pairs']:,} pairs in {folder}, of {summary['candidates']:,} programs; "
        f"{listed('by_split')}\n"
        f"layers      {listed('by_layers')}\n"
        f"verified    on {summary['verified_inputs']:,} inputs in all; {summary['proved_pairs']:,} proved "
        "for all inputs",
        markup=False,
    )
    if summary["new_pairs"]:
        console.print(
            f"made now    {summary['new_pairs']:,} in {summary['seconds']:.1f} s, "
            f"{summary['processor_seconds_a_pair']:.3f} s of a processor each",
            markup=False,
        )
