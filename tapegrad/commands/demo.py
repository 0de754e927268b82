"""`tapegrad demo`: every target on its own small examples, run and verified, in one table."""

import typer
from rich.table import Table

from tapegrad.commands.output import DISAGREED, AsJson, console, errors, print_json
from tapegrad.compile import compile
from tapegrad.nets import all_targets
from tapegrad.verify import verify


def demo(as_json: AsJson = False) -> None:
    """Compile, run and verify a small example of every target, and print one table."""
    rows = []
    for target in all_targets():
        for example in target.examples():
            with errors.status(f"{target.name}: {example.source.name}"):
                compiled = compile(example.source, target.name, **example.options)
                report = verify(compiled, [example.inputs], steps=example.steps)
            rows.append(
                {
                    "target": target.name,
                    "source": example.source.name,
                    "passes": [rewriting.name for rewriting in compiled.passes],
                    "parameters": compiled.net.parameters,
                    "steps": report.steps,
                    "states": report.states,
                    "inputs": report.inputs,
                    "max_deviation": report.deviation,
                    "verified": report.agreed and report.complete,
                    "seconds": report.seconds,
                }
            )
    if as_json:
        print_json(rows)
    else:
        console.print(_table(rows))
        console.print(
            "Every step of every run above was decoded and compared with the source's own interpreter."
        )
    if not all(row["verified"] for row in rows):
        raise typer.Exit(DISAGREED)


def _table(rows: list[dict]) -> Table:
    table = Table(title="tapegrad: algorithms compiled into networks")
    for heading in ("target", "source", "passes"):
        table.add_column(heading)
    for heading in ("numbers", "steps", "states", "deviation", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("verified")
    for row in rows:
        table.add_row(
            row["target"],
            row["source"],
            ", ".join(row["passes"]) or "-",
            f"{row['parameters']:,}",
            f"{row['steps']:,}",
            f"{row['states']:,}",
            f"{row['max_deviation']:.1g}",
            f"{row['seconds']:.2f}",
            "[green]yes[/green]" if row["verified"] else "[red]NO[/red]",
        )
    return table
