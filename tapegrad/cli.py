"""The command line: `tapegrad COMMAND ...`. Each command lives in `tapegrad/commands/`."""

import sys
from typing import Annotated

import typer

import tapegrad
from tapegrad.commands import (
    bench,
    campaign,
    claims,
    demo,
    export,
    listing,
    margins,
    net_folder,
    player,
    restarts,
    run,
    search,
    train_with,
)
from tapegrad.commands.output import BAD_INPUT, console, errors, print_json
from tapegrad.errors import TapegradError

app = typer.Typer(
    name="tapegrad",
    help="Compile algorithms into neural networks that run them exactly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        console.print(f"tapegrad {tapegrad.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """What can be said without a command."""


for command in (
    run.run,
    net_folder.compile,
    net_folder.verify,
    net_folder.check,
    export.export,
    listing.show,
    listing.estimate,
    listing.explain,
    listing.targets,
    listing.formats,
    demo.demo,
    train_with.train_with,
    search.search,
    campaign.campaign,
    restarts.restarts,
    margins.margins,
    claims.claims,
    player.studio,
):
    app.command()(command)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Runs the command line. What the user can mend is said in a paragraph, without a traceback."""
    try:
        app()
    except TapegradError as error:
        if "--json" in sys.argv:
            print_json({"error": error.what, "where": error.where, "advice": error.advice})
        errors.print(f"[bold red]error:[/bold red] {type(error).__name__}: ", end="")
        errors.print(str(error), markup=False)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)


if __name__ == "__main__":
    main()
