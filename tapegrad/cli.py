"""The command line: `tapegrad COMMAND ...`. Commands live in `tapegrad/commands/`, or in other packages that
attach them."""

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command

import tapegrad
from tapegrad.commands import campaign, demo, listing, nets, player, run, search, train_with
from tapegrad.commands.output import BAD_INPUT, console, errors, print_json
from tapegrad.errors import InputError, TapegradError

ATTACHED = "tapegrad.commands"
"""The entry point group through which installed packages attach commands: functions or Typer apps."""


class Commands(TyperGroup):
    """The compiler's own commands, then the attached ones, loaded when one is called or all are listed."""

    def list_commands(self, ctx):
        return [*super().list_commands(ctx), *(entry.name for entry in entry_points(group=ATTACHED))]

    def get_command(self, ctx, cmd_name):
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        attached = entry_points(group=ATTACHED)
        if cmd_name in attached.names:
            found = attached[cmd_name].load()
            if not isinstance(found, typer.Typer):
                function, found = found, typer.Typer(add_completion=False)
                found.command(cmd_name)(function)
            command = get_command(found)
            command.name = cmd_name
            return command
        if not attached:
            raise InputError(
                f"there is no command {cmd_name!r}, and no installed package attaches any",
                advice="Entry points are read from the installed distribution: try `pip install -e .`.",
            )
        return None


app = typer.Typer(
    name="tapegrad",
    cls=Commands,
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
    nets.compile,
    nets.verify,
    nets.check,
    nets.export,
    listing.show,
    listing.estimate,
    listing.explain,
    listing.targets,
    listing.formats,
    demo.demo,
    train_with.train_with,
    search.search,
    campaign.campaign,
    player.studio,
):
    app.command()(command)


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
