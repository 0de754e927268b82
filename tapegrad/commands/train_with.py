"""`tapegrad train-with`: ordinary training of an extended network that carries out an algorithm."""

from pathlib import Path
from typing import Annotated

import typer

from tapegrad.commands.output import AsJson, console, print_json, steps_progress


def train_with(
    example: Annotated[str | None, typer.Argument(help="A ready example; left out, they are listed.")] = None,
    engine: Annotated[
        str, typer.Option(help="fast or reference (automatic differentiation at every step).")
    ] = "fast",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the trained network.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a primary network inside an extended one, whose gradient descent runs an algorithm.

    Example: tapegrad train-with xor -o xor.net
    """
    from tapegrad.targets.extended import save  # brings JAX
    from tapegrad.targets.extended.examples import EXAMPLES, example_named

    if example is None:
        listed = {name: entry.summary for name, entry in EXAMPLES.items()}
        if as_json:
            print_json(listed)
        else:
            for name, summary in listed.items():
                console.print(f"[bold]{name:<12}[/bold] {summary}")
        return
    chosen = example_named(example)
    with steps_progress(f"gradient descent, {example}", 0) as progress:
        extended = chosen.build()
        run = extended.train(engine=engine, progress=progress)
    if output is not None:
        save(extended, run, output)
    if as_json:
        print_json({"example": example, **run.to_json(), "folder": None if output is None else str(output)})
        return
    console.print(f"[bold]{example}[/bold]: {chosen.summary}")
    console.print(
        f"steps       {run.steps:,} of gradient descent in {run.seconds:.3g} s, stopped by the loss"
    )
    console.print(f"theta       {' '.join(f'{value:g}' for value in run.theta.ravel())}")
    console.print(f"final loss  {run.loss:g} of the primary network with these weights")
    console.print(f"deviation   {run.deviation:.3g} of tape and heads from their ideal values, at most")
    if output is not None:
        console.print(f"written to {output}; now try: tapegrad check {output}", markup=False)
