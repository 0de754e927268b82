"""The command line: `tapegrad COMMAND ...`. Commands live in `tapegrad/commands/`, or in other packages that
attach them."""

import os
import sys
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import tapegrad
from tapegrad._kept import keep_compiled
from tapegrad.commands.output import BAD_INPUT, console
from tapegrad.errors import InputError, TapegradError
from tapegrad.source import imported
from tapegrad_check.boundary import TRACEBACK, complain, guarded

ATTACHED = "tapegrad.commands"
"""The entry point group through which installed packages attach commands: functions or Typer apps."""


OWN = {
    "run": "tapegrad.commands.run:run",
    "compile": "tapegrad.commands.nets:compile",
    "verify": "tapegrad.commands.nets:verify",
    "check": "tapegrad.commands.nets:check",
    "export": "tapegrad.commands.nets:export",
    "disguise": "tapegrad.commands.disguise:disguise",
    "show": "tapegrad.commands.listing:show",
    "estimate": "tapegrad.commands.listing:estimate",
    "explain": "tapegrad.commands.listing:explain",
    "targets": "tapegrad.commands.listing:targets",
    "formats": "tapegrad.commands.listing:formats",
    "demo": "tapegrad.commands.demo:demo",
    "train-with": "tapegrad.commands.train:train_with",
    "search": "tapegrad.commands.search:search",
    "campaign": "tapegrad.commands.campaign:campaign",
    "zoo": "tapegrad.commands.zoo:zoo",
    "studio": "tapegrad.commands.player:studio",
    "vnn": "tapegrad.commands.vnn:app",
    "conformance": "tapegrad.commands.conformance:app",
}
"""The compiler's own commands and their places: `run` loads nothing of `zoo`."""


class PastTyper(BaseException):
    """Carries what Typer would end without a word, or with exit code 1, to the boundary."""


def _command(name: str, found: Any):
    """Of a function or a Typer app."""
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False)
        found.command(name)(function)
    command = get_command(found)
    command.name = name
    return command


class Commands(TyperGroup):
    """The compiler's own commands, then the attached ones, loaded when one is called or all are listed."""

    def list_commands(self, ctx):
        return [*OWN, *(entry.name for entry in entry_points(group=ATTACHED))]

    def get_command(self, ctx, cmd_name):
        if cmd_name in OWN:
            return _command(cmd_name, imported(OWN[cmd_name]))
        attached = entry_points(group=ATTACHED)
        if cmd_name in attached.names:
            return _command(cmd_name, attached[cmd_name].load())
        if not attached:
            raise InputError(
                f"there is no command {cmd_name!r}, and no installed package attaches any",
                advice="Entry points are read from the installed distribution: try `pip install -e .`.",
            )
        return None

    def resolve_command(self, ctx, args):
        # Typer suggests one of these names for one that does not exist.
        self.commands = {name: TyperCommand(name) for name in self.list_commands(ctx)}
        return super().resolve_command(ctx, args)

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
