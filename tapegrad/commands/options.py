"""Arguments and options that several commands share."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tapegrad.errors import InputError

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A file, a text in any format, or a ready name.")
]
TargetOption = Annotated[
    str, typer.Option("--target", "-t", help="The construction; `tapegrad targets` lists them.")
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        help="A word (once for each tape), bits in order, or name=number. Default: the source's own.",
    ),
]
StepsOption = Annotated[int, typer.Option("--steps", "-n", min=1, help="Most steps of the network.")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="reference, or a faster one with the same results.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="An option of the target or of a lowering; repeatable."
    ),
]


def parse_settings(texts: Sequence[str] | None) -> dict[str, Any]:
    """`name=value` pairs; numbers and true/false are recognised."""
    settings: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{text!r} is not of the form name=value", advice="Write, say, --set steps=20.")
        settings[name] = _value(value)
    return settings


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0") and text.isdigit() and text != "0":
        return text  # a word on a tape: as a number it would lose its first symbols
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
