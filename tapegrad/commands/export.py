"""`tapegrad export`: a net, circuit or machine in the form of another tool."""

from pathlib import Path
from typing import Annotated

import typer

from tapegrad._compile import compile as compile_source
from tapegrad._files import write_atomically, write_folder
from tapegrad._saved import load
from tapegrad._sources import find, parse_options
from tapegrad.commands.output import AsJson, SetOption, console, print_json
from tapegrad.errors import InputError
from tapegrad.interop.exporting import FORMS, Subject, check_form, exported
from tapegrad_check.folder import CONFIG


def export(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A folder that `compile` wrote, or any source.")
    ],
    to: Annotated[str, typer.Option("--to", help=f"One of {', '.join(FORMS)}.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file or folder to write.")],
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The construction, where SOURCE is no folder.")
    ] = None,
    settings: SetOption = None,
    context: Annotated[int, typer.Option(help="Longest run of tokens, for --to transformer-lens.")] = 256,
    as_json: AsJson = False,
) -> None:
    """Write a network, circuit or machine in the form of another tool.

    Example: tapegrad export adder8 --target relu --to onnx -o adder8.onnx
    """
    check_form(to)
    subject = _subject(source, target, settings)
    files = exported(subject, to, context)
    if isinstance(files, bytes):
        write_atomically(output, files)
        sizes = {output.name: len(files)}
    else:
        write_folder(output, files)
        sizes = {name: len(content) for name, content in files.items()}
    if as_json:
        print_json({"source": subject.source.name, "to": to, "output": str(output), "bytes": sizes})
        return
    console.print(f"{subject.source.name} as {to}: written to {output}", markup=False)
    for name, size in sizes.items():
        console.print(f"    {name}  {size:,} bytes", markup=False)


def _subject(source: str, target: str | None, settings: list[str] | None) -> Subject:
    folder = Path(source)
    if "\n" not in source and len(source) < 4096 and folder.is_dir():
        if target is not None or settings:
            raise InputError(
                f"{source} is a network already", where=CONFIG, advice="Leave out --target and --set."
            )
        compiled = load(folder)
        return Subject(compiled.source, compiled)
    found = find(source).source
    if target is None:
        return Subject(found)
    return Subject(found, compile_source(found, target, **parse_options(settings)))
