"""`tapegrad conformance`: whether runtimes compute networks exactly that have one right answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tapegrad._conformance import FORMAT_NAMES, NET_NAMES, RUNTIME_NAMES
from tapegrad._files import write_atomically
from tapegrad.commands.output import DISAGREED, SUCCESS, UNFINISHED, AsJson, console, print_json, progress_bar
from tapegrad.errors import InputError

app = typer.Typer(
    help="Run networks with one right answer in a runtime, and name the first layer and unit that is wrong.",
    invoke_without_command=True,
)

MIB = 1 << 20


@app.callback(invoke_without_command=True)
def conformance(
    context: typer.Context,
    runtime: Annotated[
        str, typer.Option("--runtime", "-r", help=f"One or more of {', '.join(RUNTIME_NAMES)}; or all.")
    ] = "all",
    level: Annotated[
        str | None,
        typer.Option("--level", "-l", help="Levels of the runtime; or all. Default: its first."),
    ] = None,
    number_format: Annotated[
        str, typer.Option("--format", "-f", help=f"One or more of {', '.join(FORMAT_NAMES)}; or all.")
    ] = "float32",
    net: Annotated[
        str, typer.Option("--net", help=f"One or more of {', '.join(NET_NAMES)}; or all.")
    ] = "all",
    speed: Annotated[
        bool, typer.Option("--speed", help="Measure patterns a second of processor time instead.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=1, max=86_400, help="Of the processor, for the process of a level.")
    ] = 300,
    memory: Annotated[int, typer.Option(min=64, help="MiB, for the process of a level.")] = 4096,
    kit: Annotated[Path | None, typer.Option(help="A kit made by `make`. Default: a fresh one.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the outcomes (SVG).")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the kit in runtimes, each in a process of its own, and compare every layer to the bit.

    Exit code 1: a runtime is wrong where its format owes the exact result. 3: one crashed or was stopped.

    Example: tapegrad conformance --runtime onnxruntime --level all
    """
    if context.invoked_subcommand is not None:
        return
    from tapegrad._conformance.judging import CRASH, FAULT, OUTCOMES, TIMEOUT  # brings JAX
    from tapegrad._conformance.report import plotted, said, speed_table, table
    from tapegrad._conformance.running import jobs_of, run_all

    runtimes = _chosen(runtime, RUNTIME_NAMES, "runtime")
    levels = None if level is None else [own.strip() for own in level.split(",")]
    nets = _chosen(net, NET_NAMES, "network")
    if speed:
        nets = [name for name in nets if name in SPEED_NETS]
    groups = jobs_of(runtimes, levels, _chosen(number_format, FORMAT_NAMES, "format"), nets)
    with progress_bar() as bar:
        shown = bar.add_task("networks", total=sum(map(len, groups)))
        rows = run_all(
            groups,
            seconds=seconds,
            memory=memory * MIB,
            speed=speed,
            kit=kit,
            progress=lambda done, _: bar.update(shown, completed=done),
        )
    if plot is not None:
        write_atomically(plot, plotted(rows))
    if as_json:
        counts = {own: sum(row["outcome"] == own for row in rows) for own in OUTCOMES}
        print_json({"rows": rows, "counts": counts})
    else:
        console.print(speed_table(rows) if speed else table(rows))
        for line in said(rows):
            console.print(line, markup=False)
    outcomes = {row["outcome"] for row in rows}
    broken = UNFINISHED if outcomes & {CRASH, TIMEOUT} else SUCCESS
    raise typer.Exit(DISAGREED if FAULT in outcomes else broken)


SPEED_NETS = ("adder", "sha256", "sha256-compact")
"""Networks whose rows are independent patterns, of which there may be any number."""


@app.command("make")
def make_kit(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder.")],
    net: Annotated[
        str, typer.Option("--net", help=f"One or more of {', '.join(NET_NAMES)}; or all.")
    ] = "all",
    as_json: AsJson = False,
) -> None:
    """Write the kit as files, to test a runtime that is not in the list.

    Example: tapegrad conformance make -o kit
    """
    from tapegrad._conformance.kit import write_kit  # brings JAX

    members = write_kit(output, _chosen(net, NET_NAMES, "network"))
    if as_json:
        listed = [
            {"name": own.name, "layers": len(own.names), "bits": own.bits, "shortfalls": own.shortfalls}
            for own in members
        ]
        print_json({"folder": str(output), "networks": listed})
        return
    console.print(f"{len(members)} networks in {output}", markup=False)
    for own in members:
        console.print(f"    {own.name:<17} {len(own.names):>4} layers: {own.about}", markup=False)


@app.command("read")
def read_outputs(
    kit: Annotated[Path, typer.Argument(metavar="KIT", help="A folder that `make` wrote.")],
    outputs: Annotated[
        Path, typer.Argument(metavar="OUTPUTS", help="Layers in safetensors, by their names.")
    ],
    net: Annotated[str, typer.Option("--net", help="The network that they are of.")],
    as_json: AsJson = False,
) -> None:
    """Compare what a runtime gave with what it must give, and name the first layer and unit that is wrong.

    Example: tapegrad conformance read kit outputs.safetensors --net sha256
    """
    from tapegrad._conformance.kit import read_arrays, read_kit  # brings JAX
    from tapegrad._conformance.reading import first_fault

    found = read_kit(kit, _chosen(net, NET_NAMES, "network")[:1])
    if not found:
        raise InputError(f"the kit has no network {net!r}")
    own, given = found[0], read_arrays(outputs)
    unknown = sorted(set(given) - set(own.names))
    if unknown:
        raise InputError(f"{net} has no layer {unknown[0]!r}", where=str(outputs))
    if own.names[-1] not in given:
        raise InputError(f"the last layer, {own.names[-1]!r}, is missing", where=str(outputs))
    fault = first_fault(own.names, own.expected, given, own.units)
    if as_json:
        answer = {"net": net, "compared": len(given), "layers": len(own.names)}
        print_json({**answer, "fault": None if fault is None else fault.to_json()})
    elif fault is None:
        console.print(f"{len(given)} of {len(own.names)} layers compared: exact", markup=False)
    else:
        console.print(f"fault: {fault}", markup=False)
    raise typer.Exit(SUCCESS if fault is None else DISAGREED)


def _chosen(text: str, names: Sequence[str], what: str) -> list[str]:
    """Names separated by commas, or all."""
    if text == "all":
        return list(names)
    found = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in found:
        if name not in names:
            raise InputError(f"there is no {what} {name!r}", advice=f"Choose from {', '.join(names)}.")
    return found
