"""The command line: `tapegrad COMMAND ...`. Commands live in `tapegrad/commands/`, or in other packages that
attach them."""

import os
import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command

import tapegrad
from tapegrad._kept import keep_compiled
from tapegrad.commands import (
    campaign,
    conformance,
    demo,
    disguise,
    listing,
    nets,
    player,
    run,
    search,
    train,
    vnn,
    zoo,
)
from tapegrad.commands.output import BAD_INPUT, console
from tapegrad.errors import InputError, TapegradError
from tapegrad_check.boundary import TRACEBACK, complain, guarded

ATTACHED = "tapegrad.commands"
"""The entry point group through which installed packages attach commands: functions or Typer apps."""


class PastTyper(BaseException):
    """Carries what Typer would end without a word, or with exit code 1, to the boundary."""


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

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, OSError) as error:
            raise PastTyper from error


app = typer.Typer(
    name="tapegrad",
    cls=Commands,
    help="Compile algorithms into neural networks that run them exactly.",
    epilog="Exit codes: 0 success, 1 network and source disagree, 2 bad input, 3 stopped at the step limit, "
    "4 to 7 checked but not all proved (`tapegrad check --help`), 70 internal error, 71 no memory or disk "
    "space left, 130 interrupted, 143 terminated.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        console.print(f"tapegrad {tapegrad.__version__}")
        raise typer.Exit


def _ask_for_tracebacks(asked: bool) -> None:
    if asked:
        os.environ[TRACEBACK] = "1"


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback",
            is_eager=True,
            callback=_ask_for_tracebacks,
            help=f"Show tracebacks of errors, as {TRACEBACK}=1 does.",
        ),
    ] = False,
) -> None:
    """What can be said without a command."""


for command in (
    run.run,
    nets.compile,
    nets.verify,
    nets.check,
    nets.export,
    disguise.disguise,
    listing.show,
    listing.estimate,
    listing.explain,
    listing.targets,
    listing.formats,
    demo.demo,
    train.train_with,
    search.search,
    campaign.campaign,
    zoo.zoo,
    player.studio,
):
    app.command()(command)
app.add_typer(vnn.app, name="vnn")
app.add_typer(conformance.app, name="conformance")


def main() -> None:
    """Runs the command line, behind the one boundary that no exception passes."""
    keep_compiled()
    sys.exit(guarded(_run, as_json="--json" in sys.argv))


def _run() -> int:
    try:
        app()
    except TapegradError as error:
        complain(error, as_json="--json" in sys.argv)
        return BAD_INPUT
    except PastTyper as carried:
        raise carried.__cause__ or carried from None
    return 0


if __name__ == "__main__":
    main()
