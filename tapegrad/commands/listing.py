"""`tapegrad targets`, `formats`, `show`, `estimate` and `explain`: looking before leaping."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tapegrad._compile import compile as compile_source
from tapegrad._compile import estimate as estimate_source
from tapegrad._compile import estimate_for
from tapegrad._sources import (
    all_formats,
    all_kinds,
    find,
    kind_of,
    parse_inputs,
    parse_options,
    ready_names,
    source_to_json,
)
from tapegrad.commands.output import (
    AsJson,
    InputOption,
    SetOption,
    SourceArgument,
    StepsOption,
    TargetOption,
    ValuesArgument,
    console,
    horizon_of,
    print_heading,
    print_json,
    sources_from,
    targets_from,
    with_values,
)
from tapegrad.commands.player import write_page
from tapegrad.show.recorder import MOST_STEPS
from tapegrad.targets import Target, all_targets, target_named


def _kinds(target: Target) -> str:
    return " or ".join(kind.__name__ for kind in target.kinds)


def targets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", help="This one alone.", autocompletion=targets_from),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the targets, what they take and their options; or those of one target.

    Example: tapegrad targets tape
    """
    found = all_targets() if name is None else [target_named(name)]
    if as_json:
        print_json(
            [
                {
                    "name": target.name,
                    "summary": target.summary,
                    "paper": target.paper,
                    "takes": _kinds(target),
                    "engines": list(target.net.engines),
                    "options": {n: {"default": o.default, "help": o.help} for n, o in target.options.items()},
                }
                for target in found
            ]
        )
        return
    for target in found:
        console.print(f"[bold]{target.name}[/bold]  {target.summary}")
        console.print(
            f"    takes a {_kinds(target)}; engines {', '.join(target.net.engines)}; {target.paper}",
            markup=False,
        )
        for option_name, option in target.options.items():
            console.print(f"    --set {option_name}={option.default}  {option.help}", markup=False)
    if name is not None:
        return
    console.print("\nLowerings, taken where a source is of another kind:")
    for kind in all_kinds():
        for lowering in kind.lowerings:
            console.print(f"    {kind.name} -> {lowering.after}")
            for name, option in lowering.options.items():
                default = "" if option.default is ... else f"={option.default}"
                console.print(f"        --set {name}{default}  {option.help}", markup=False)


def formats(as_json: AsJson = False) -> None:
    """List the formats that can be read and the ready machines and circuits."""
    if as_json:
        print_json(
            {
                "formats": [
                    {
                        "name": f.name,
                        "summary": f.summary,
                        "example": f.example,
                        "written": f.write is not None,
                    }
                    for f in all_formats()
                ],
                "ready": ready_names(),
            }
        )
        return
    for known in all_formats():
        written = "read and written" if known.write is not None else "read"
        console.print(f"[bold]{known.name}[/bold]  {known.summary} ({written})")
        shown = known.example if known.example.isprintable() or "\n" in known.example else repr(known.example)
        for line in shown.splitlines()[:6]:
            console.print(f"    {line}", markup=False)
    table = Table("ready name", "what it is", box=None)
    for name, what in ready_names().items():
        table.add_row(name, what)
    console.print(table)


def show(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A source, a folder with a compiled net, or `example`.",
            autocompletion=sources_from,
        ),
    ],
    values: ValuesArgument = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="Show a run on this target, as a page.", autocompletion=targets_from
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The page to write; with .gif, .mp4 or .webm an animation. Default: SOURCE-TARGET.html.",
        ),
    ] = None,
    input: InputOption = None,
    steps: StepsOption = MOST_STEPS,
    settings: SetOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a source as text, or a run of it on a target as a page to watch in a browser.

    Examples: tapegrad show 1RB1LB_1LA1RZ

    tapegrad show increment --target tape --input 1011 -o page.html
    """
    if target is not None or output is not None:
        write_page(source, target, output, with_values(input, values), steps, settings, as_json)
        return
    found = find(source)
    if as_json:
        data, arrays = source_to_json(found.source)
        print_json({"origin": found.origin, **data, **{name: a.tolist() for name, a in arrays.items()}})
        return
    print_heading(found.source.name, f"({found.origin})")
    console.print(kind_of(found.source).describe(found.source), markup=False)


def estimate(
    source: SourceArgument,
    target: TargetOption,
    values: ValuesArgument = None,
    input: InputOption = None,
    settings: SetOption = None,
    as_json: AsJson = False,
) -> None:
    """Say what a network would cost, without building it; for an input, or for typical ones.

    Example: tapegrad estimate adder8 --target relu
    """
    found, given = find(source), parse_options(settings)
    if (texts := with_values(input, values)) is None:
        said = estimate_source(found, target, **given)
    else:
        words = parse_inputs(found.source, texts)
        said = estimate_for(
            found.source, target, words, horizon_of(found.source, words, target, given), **given
        )
    cost = asdict(said)
    if as_json:
        print_json(cost)
        return
    del cost["parameters"]  # what a file consists of, for scripts
    for name, value in cost.items():
        for item in value if isinstance(value, list | tuple) else [] if value is None else [value]:
            shown = f"{item:,}" if isinstance(item, int) else str(item)
            console.print(f"{name:<11} {shown}", markup=False)


def explain(
    source: SourceArgument,
    target: TargetOption,
    unit: Annotated[
        str | None, typer.Argument(help="A unit or weight; left out, their names are listed.")
    ] = None,
    settings: SetOption = None,
    limit: Annotated[int, typer.Option(min=1, help="How many names to list.")] = 40,
) -> None:
    """Say in words what a weight or unit of the network stands for.

    Example: tapegrad explain adder8 --target relu
    """
    compiled = compile_source(find(source), target, **parse_options(settings))
    if unit is not None:
        console.print(compiled.explain(unit), markup=False)
        return
    for number, name in enumerate(compiled.units()):
        if number == limit:
            console.print("... and more: --limit shows them", markup=False)
            break
        console.print(f"{name:<24} {compiled.explain(name)}", markup=False)
