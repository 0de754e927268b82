"""`tapegrad compile`, `verify` and `check`: nets in folders; `export`."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tapegrad._compile import Compiled, compile_for
from tapegrad._compile import compile as compile_source
from tapegrad._files import read_net, what_is_broken, write_atomically, write_folder
from tapegrad._saved import load, save
from tapegrad._sources import find, parse_inputs, parse_options
from tapegrad._verify import verify as verify_net
from tapegrad._witness import sum_of
from tapegrad.commands.output import (
    DISAGREED,
    AsJson,
    EngineOption,
    InputOption,
    SetOption,
    SourceArgument,
    TargetOption,
    ValuesArgument,
    console,
    file_name,
    horizon_of,
    is_net,
    print_json,
    saved_net,
    steps_progress,
    with_values,
)
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.interop.exporting import EXECUTABLES, FORMS, HUGGINGFACE, Subject, check_form, exported
from tapegrad.learners import on_grid
from tapegrad.machines.model import GridConfiguration, GridMachine
from tapegrad_check.__main__ import checked
from tapegrad_check.folder import CONFIG, DISGUISED, LIMITS, bytes_of, parsed

POINTS = 4
"""That a classifier is asked for, to verify it."""
FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A folder that `tapegrad compile` wrote.")
]


def compile(
    source: SourceArgument,
    target: TargetOption,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write. Default: SOURCE.net.")
    ] = None,
    values: ValuesArgument = None,
    input: InputOption = None,
    settings: SetOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a network that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile SOURCE and save the network with its certificate.

    How many steps and cells it has room for is found by running SOURCE: on the input that is given, or on
    typical ones.

    Example: tapegrad compile adder8 --target relu -o adder8.net
    """
    output = Path(f"{file_name(source)}.net") if output is None else output
    if os.path.lexists(output) and not overwrite:  # False of a name that cannot be; `save` says what is wrong
        raise InputError(f"{output} exists", advice="Choose another name, or add --overwrite.")
    found, given = find(source), parse_options(settings)
    if (texts := with_values(input, values)) is None:
        compiled = compile_source(found, target, **given)
    else:
        words = parse_inputs(found.source, texts)
        compiled = compile_for(
            found.source, target, words, horizon_of(found.source, words, target, given), **given
        )
    chosen = {name: v for name, v in compiled.options.items() if name not in {"inputs", *given}}
    save(compiled, output)
    names = [rewriting.name for rewriting in compiled.passes]
    if as_json:
        print_json(
            {
                "source": found.source.name,
                "target": target,
                "passes": names,
                "chosen": chosen,
                "weights": asdict(compiled.counts),
                "folder": str(output),
            }
        )
        return
    console.print(
        f"{found.source.name} -> {' -> '.join([*names, target])}: {compiled.counts}",
        markup=False,
    )
    for name, value in chosen.items():
        why = "typical inputs" if texts is None else "this input"
        console.print(f"    {name} {value:,}, chosen for {why}", markup=False)
    console.print(f"written to {output}; now try: tapegrad check {output}", markup=False)


def verify(
    folder: FolderArgument,
    values: ValuesArgument = None,
    input: InputOption = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            "-n",
            min=1,
            help="Most steps of the network. Default: 10,000, or to a circuit's outputs.",
        ),
    ] = None,
    engine: EngineOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the sampled inputs, where none are given.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Step a saved network and its source side by side and compare every state.

    Example: tapegrad verify adder8.net

    Exit code: 0 agreed, 1 disagreed, 2 bad input.
    """
    compiled = load(folder)
    texts = with_values(input, values)
    inputs = _memorised(folder, compiled, seed) if texts is None else [parse_inputs(compiled.source, texts)]
    if engine is None and texts is None and inputs is not None:
        engine = "fast"  # of thousands of layers, most change one cell
    with steps_progress("verifying", steps or 0) as progress:
        report = verify_net(compiled, inputs, steps=steps, engine=engine, seed=seed, progress=progress)
    if as_json:
        print_json({"source": compiled.source.name, "target": compiled.target.name, **report.to_json()})
    else:
        console.print(f"{compiled.source.name} on {compiled.target.name}: {report}", markup=False)
    if not report.agreed:
        raise typer.Exit(DISAGREED)


def _memorised(folder: Path, compiled: Compiled, seed: int) -> list[tuple[GridConfiguration]] | None:
    """For a classifier on a grid: the samples that SGD has written into its memory, with a few points to be
    classified. None for all other nets."""
    machine = compiled.source
    memory = read_net(folder).arrays.get("memory") if isinstance(machine, GridMachine) else None
    if memory is None or not isinstance(machine, GridMachine):
        return None
    rows = np.rint(3 * memory[:-1])  # the last row is the dummy sample's
    if memory.ndim != 2 or 0 in rows.shape or not (np.abs(rows) == 1).all():
        raise BrokenNet("the memory of this classifier holds no samples", where=str(folder))
    labels = rows[:, -1].astype(np.int64)
    samples = rows[:, :-1].astype(np.int64) * labels[:, None]
    points = np.random.default_rng(seed).choice([-1, 1], (POINTS, samples.shape[1]))
    return [(on_grid.start(machine, samples, labels, point),) for point in np.unique(points, axis=0)]


def check(
    folder: FolderArgument,
    of: Annotated[
        Path | None,
        typer.Option(
            "--of", help="A saved net of target decoder: FOLDER is the stock model exported from it."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            help="A source of your own, as `compile` takes it: the network must be of this one, but for its "
            "name."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that a saved network computes its source, from its files alone, without the compiler.

    Examples: tapegrad check adder8.net

    tapegrad check my.net --source my.yaml

    Exit code: 0 proved that it computes this source, for all inputs; 1 something does not hold; 2 bad input;
    4 it computes its own table, source not checked; 5 it was tested, not proved; 6 it computes this source
    for so many samples; 7 it does, but what a classifier was trained to was not compared.
    """
    own = None if source is None else sum_of(find(source).source)
    raise typer.Exit(checked(str(folder), None if of is None else str(of), as_json, own))


# `tapegrad export`: a net, circuit or machine in the form of another tool.


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
    family: Annotated[
        str | None,
        typer.Option(help="Class of a checkpoint, for --to huggingface: gpt2, llama, gpt-neox, mobilebert."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a network, circuit, machine or program in the form of another tool.

    Example: tapegrad export adder8 --target relu --to onnx -o adder8.onnx
    """
    check_form(to)
    name, files = _in_disguise(source, to) or (source, None)
    if files is None:
        subject = _subject(source, target, settings)
        name, files = subject.source.name, exported(subject, to, family)
    if isinstance(files, bytes):
        write_atomically(output, files, executable=to in EXECUTABLES)
        sizes = {output.name: len(files)}
    else:
        write_folder(output, files)
        sizes = {name: len(content) for name, content in files.items()}
    if as_json:
        print_json({"source": name, "to": to, "output": str(output), "bytes": sizes})
        return
    console.print(f"{name} as {to}: written to {output}", markup=False)
    for name, size in sizes.items():
        console.print(f"    {name}  {size:,} bytes", markup=False)


def _in_disguise(source: str, to: str) -> tuple[str, dict[str, bytes]] | None:
    """The name and the files of a net in disguise, if that is what the folder holds."""
    config = Path(source, CONFIG)
    if not is_net(source):
        return None
    with what_is_broken(source):
        if parsed(bytes_of(config, LIMITS[CONFIG]), config).get("target") != DISGUISED:
            return None
    if to != HUGGINGFACE:
        raise Refused(
            "a net in disguise is written as a stock checkpoint only",
            advice=f"Use --to {HUGGINGFACE}; tapegrad.interop.sequences_lens opens it in TransformerLens.",
        )
    from tapegrad.interop.disguised import checkpoint_files, load_disguised  # brings JAX

    return os.path.basename(os.path.normpath(source)), checkpoint_files(load_disguised(source))


def _subject(source: str, target: str | None, settings: list[str] | None) -> Subject:
    if (compiled := saved_net(source, target, settings)) is not None:
        return Subject(compiled.source, compiled)
    found = find(source)
    if target is None:
        return Subject(found.source)
    return Subject(found.source, compile_source(found, target, **parse_options(settings)))
