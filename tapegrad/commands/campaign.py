"""`tapegrad campaign`: random programs through targets, compared with their interpreters at every step."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tapegrad._campaign.run import Plan, run
from tapegrad._sources import parse_options
from tapegrad.commands.output import DISAGREED, AsJson, SetOption, console, errors, print_json, progress_bar
from tapegrad.errors import InputError
from tapegrad.targets import target_named
from tapegrad_check.boundary import INTERRUPTED

ENGINES = ("reference", "fast")


def campaign(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="A kind of source, such as 'turing machine'; default: those that suit the target."
        ),
    ] = None,
    target: Annotated[
        str, typer.Option("--target", "-t", help="A construction, several with commas, or all.")
    ] = "all",
    programs: Annotated[
        int,
        typer.Option(
            "--programs", "--count", "-c", min=1, help="Random programs for each target and engine."
        ),
    ] = 100,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first; the next have the next ones.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: all cores.")] = None,
    ray: Annotated[bool, typer.Option("--ray", help="On a Ray cluster (extra ray).")] = False,
    engine: Annotated[str, typer.Option(help="reference, fast, or all.")] = "reference",
    settings: SetOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A folder for results and failures; a stopped campaign goes on from there."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile random programs and compare each network with its source at every step.

    Example: tapegrad campaign --target tape --programs 1000 -o tape.campaign

    Exit code: 0 if all that were not refused agreed, 1 if one did not.
    """
    plan = Plan(_targets(target), _engines(engine), programs, seed, kind, parse_options(settings))
    total = programs * len(plan.targets) * len(plan.engines)
    try:
        with progress_bar() as bar:
            shown = bar.add_task("programs", total=total)

            def progress(done: int, _: int, mismatches: int) -> None:
                bar.update(shown, completed=done, description=f"programs, {mismatches:,} mismatches")

            summary = run(plan, output, workers=workers, ray=ray, progress=progress)
    except KeyboardInterrupt:
        later = (
            "give --output to go on later" if output is None else f"the same command goes on from {output}"
        )
        errors.print(f"interrupted; {later}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(summary)
    else:
        _print(summary, output)
    if summary["mismatches"]:
        raise typer.Exit(DISAGREED)


def _targets(names: str) -> tuple[str, ...]:
    from tapegrad._campaign.programs import LENGTHS  # brings JAX

    if names == "all":
        return tuple(LENGTHS)
    found = tuple(target_named(name).name for name in dict.fromkeys(names.split(",")))
    if missing := [name for name in found if name not in LENGTHS]:
        raise InputError(
            f"there are no campaigns for target {missing[0]!r}", advice=f"Choose from {', '.join(LENGTHS)}."
        )
    return found


def _engines(name: str) -> tuple[str, ...]:
    if name not in (*ENGINES, "all"):
        raise InputError(f"there is no engine {name!r}", advice=f"Engines are {', '.join(ENGINES)}, or all.")
    return ENGINES if name == "all" else (name,)


def _print(summary: dict[str, Any], folder: Path | None) -> None:
    for row in summary["rows"]:
        console.print(
            f"{row['target']}, {row['engine']}: {row['programs']:,} programs, {row['agreed']:,} agreed "
            f"at all of {row['states']:,} states, {len(row['mismatches']):,} did not; "
            f"{row['programs_per_core_second']:.3g} a second on each core",
            markup=False,
        )
        for reason, many in row["refused"].items():
            console.print(f"    refused {many:,}: {reason}", markup=False)
        for failure in row["mismatches"]:
            console.print(f"    seed {failure['seed']}: {failure['where']}", markup=False)
            if folder is not None:
                console.print(f"    see {folder / 'failures' / failure['file']}", markup=False)
