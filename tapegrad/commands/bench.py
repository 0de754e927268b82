"""`tapegrad bench`: the experiments that are worth a figure."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tapegrad.commands.output import AsJson, console, errors, print_json

app = typer.Typer(
    help="Experiments: what compiled networks learn, and ordinary ones do not.", no_args_is_help=True
)

FigureOption = Annotated[Path | None, typer.Option("--figure", help="A PNG file to draw the result to.")]


@app.command()
def parity(
    side: Annotated[int, typer.Option(min=2, max=16, help="Images have side x side squares.")] = 13,
    images: Annotated[int, typer.Option(min=50, help="As many to train on as to test on.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of the ordinary network.")] = 80,
    seed: Annotated[int, typer.Option(help="Seed of images, hidden subset and guesses.")] = 0,
    figure: FigureOption = None,
    as_json: AsJson = False,
) -> None:
    """Parity of black squares: a compiled network trained by plain SGD beside the paper's MLP (section 6.1).

    Example: tapegrad bench parity --side 5 --images 500 --epochs 40 --figure parity.png
    """
    from tapegrad_papers.experiments import parity as experiment  # compiles JAX programs: not needed to start

    with errors.status("training both networks"):
        result = experiment.headline(side, images, epochs, seed)
    if figure is not None:
        experiment.figure(result, figure)
    _print(experiment.report(result), as_json)


@app.command()
def limits(
    long: Annotated[bool, typer.Option("--long", help="Larger sizes.")] = False,
    figures: Annotated[Path | None, typer.Option(help="A folder for the figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """What noisy gradient descent cannot learn, beside the bounds and beside compiled networks.

    Example: tapegrad bench limits
    """
    from tapegrad_papers.experiments import limits as experiment

    with errors.status("running the experiments"):
        found = experiment.limits(long)
    if figures is not None:
        experiment.figure(found, figures)
    _print(experiment.rows(found), as_json)


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    table = Table("what", "value", "rival", "rival's value", box=None)
    for row in rows:
        value = "" if row.get("value") is None else f"{row['value']:.4g} {row['unit']}"
        other = row.get("rival_value")
        shown = "" if other is None else f"{other:.4g} {row['unit']}"
        table.add_row(row["what"], value, str(row.get("rival") or ""), shown)
    console.print(table)
