"""`tapegrad campaign`: random programs through a target, compared with their interpreters at every step."""

from typing import Annotated

import typer

from tapegrad._campaign import STEPS
from tapegrad._campaign import campaign as run_campaign
from tapegrad._sources import parse_options
from tapegrad.commands.output import (
    DISAGREED,
    AsJson,
    SetOption,
    TargetOption,
    console,
    print_json,
    steps_progress,
)


def campaign(
    kind: Annotated[str, typer.Argument(help="The kind of source, such as 'turing machine' or circuit.")],
    target: TargetOption,
    count: Annotated[int, typer.Option("--count", "-c", min=1, help="How many random programs.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first; the next have the next ones.")] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Most steps of the network on one input.")] = STEPS,
    settings: SetOption = None,
    as_json: AsJson = False,
) -> None:
    """Compile random programs and compare each network with its source at every step.

    Example: tapegrad campaign circuit --target relu --count 1000

    Exit code: 0 if all that were not refused agreed, 1 if one did not.
    """
    with steps_progress("programs", count) as progress:
        found = run_campaign(
            kind, target, count, seed=seed, steps=steps, options=parse_options(settings), progress=progress
        )
    if as_json:
        print_json(found.to_json())
    else:
        rate = found.programs / found.seconds
        console.print(
            f"{found.programs:,} programs on target {target} in {found.seconds:.3g} s ({rate:.3g} a second): "
            f"{found.agreed:,} agreed at all of {found.steps:,} steps, {len(found.mismatches):,} did not",
            markup=False,
        )
        for reason, many in found.refused.items():
            console.print(f"refused {many:,}: {reason}", markup=False)
        for number, where in found.mismatches.items():
            console.print(f"seed {number}: {where}", markup=False)
    if found.mismatches:
        raise typer.Exit(DISAGREED)
