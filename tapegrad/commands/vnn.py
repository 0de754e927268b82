"""`tapegrad vnn`: instances with known answers for verifiers of networks, and scores of verifiers on them."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from tapegrad._files import content_of, write_atomically
from tapegrad._sources import find
from tapegrad._vnn import FAMILY_NAMES, TOOL_NAMES
from tapegrad.commands.output import AsJson, console, print_json, progress_bar
from tapegrad.errors import InputError
from tapegrad.interop.exporting import Subject, exported

app = typer.Typer(
    help="Make instances with known answers for verifiers of networks, and score verifiers on them.",
    no_args_is_help=True,
)

LARGEST_SIZE = 10_000_000
MIB = 1 << 20


@app.command("make")
def make_instances(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder; one that was not finished goes on from there.")
    ],
    family: Annotated[
        str,
        typer.Option("--family", "-f", help=f"One or more of {', '.join(FAMILY_NAMES)}; or all, or none."),
    ] = "all",
    sizes: Annotated[str, typer.Option(help="ReLUs of a network, at most.")] = "50,100,300,1000,3000",
    count: Annotated[
        int, typer.Option("--count", "-c", min=1, max=100_000, help="Of each family and size.")
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, max=(1 << 31) - 1, help="Of all that is drawn.")] = 0,
    seconds: Annotated[int, typer.Option(min=1, max=86_400, help="The time in instances.csv.")] = 60,
    form: Annotated[str, typer.Option(help="Of the networks: paper, or practical.")] = "paper",
    cnf: Annotated[
        list[Path] | None, typer.Option(help="A formula in DIMACS format; repeatable. Needs python-sat.")
    ] = None,
    circuit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="A circuit or Python function with one output bit: can it be 1? Needs python-sat.",
        ),
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Ask python-sat too, for every answer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write networks (ONNX), properties (VNN-LIB) and, apart from them, the answers and how they are known.

    Example: tapegrad vnn make --family factoring,sat --sizes 100,1000 -o instances
    """
    from tapegrad._vnn.folder import Plan, make  # brings JAX

    formulas = tuple(_formula(path) for path in cnf or [])
    circuits = tuple(_circuit(source) for source in circuit or [])
    plan = Plan(_families(family), _sizes(sizes), count, seed, seconds, confirm, formulas, circuits, form)
    with progress_bar() as bar:
        shown = bar.add_task("instances", total=sum(1 for _ in plan.tasks()))
        entries = make(plan, output, lambda done: bar.update(shown, completed=done))
    counts = {name: Counter(e["answer"] for e in entries if e["family"] == name) for name in _made(entries)}
    if as_json:
        print_json({"instances": len(entries), "by_family": counts, "folder": str(output)})
        return
    console.print(f"{len(entries)} instances in {output}", markup=False)
    for name, answers in counts.items():
        own = [entry["relus"] for entry in entries if entry["family"] == name]
        told = ", ".join(f"{number} {answer}" for answer, number in sorted(answers.items()))
        console.print(f"    {name:<13} {told}; {min(own):,} to {max(own):,} ReLUs", markup=False)


@app.command("score")
def score_tool(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder that `tapegrad vnn make` wrote.")
    ],
    tool: Annotated[
        str, typer.Option("--tool", help=f"One of {', '.join(TOOL_NAMES)}; or a name for --command.")
    ],
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Of the processor, for each instance.")
    ] = 60,
    memory: Annotated[int, typer.Option(min=1, help="MiB, for each instance.")] = 8192,
    python: Annotated[str, typer.Option(help="The Python that has the tool.")] = sys.executable,
    command: Annotated[
        str | None,
        typer.Option(
            help="Another tool: a command that takes ONNX, VNNLIB, SECONDS and the file for its answer."
        ),
    ] = None,
    most_relus: Annotated[int | None, typer.Option(min=1, help="Leave out larger networks.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw all tools scored so far: solved against size (SVG).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a verifier on every instance, in a process of its own with limits, and compare its answers.

    Scores are kept in FOLDER/scores; the same command goes on where it was stopped.

    Example: tapegrad vnn score instances --tool marabou --seconds 20
    """
    from tapegrad._vnn.report import plotted, table  # brings JAX
    from tapegrad._vnn.scoring import OUTCOMES, WRONG, Limits, score

    limits = Limits(seconds, memory * MIB)
    with progress_bar() as bar:
        shown = bar.add_task(tool, total=None)
        scores = score(
            folder,
            tool,
            limits,
            python=python,
            command=command,
            most_relus=most_relus,
            progress=lambda done: bar.update(shown, completed=done),
        )
    if plot is not None:
        write_atomically(plot, plotted(folder))
    if as_json:
        outcomes = Counter(row["outcome"] for row in scores["rows"])
        print_json({**scores, "counts": {own: outcomes[own] for own in OUTCOMES}})
        return
    about = " ".join(filter(None, (tool, scores["version"])))
    console.print(
        f"{about}: {seconds:g} s of the processor and {memory:,} MiB for each instance", markup=False
    )
    console.print(table(scores))
    for row in scores["rows"]:
        if row["outcome"] == WRONG:
            console.print(f"wrong on {row['name']}: {row['reason']}", markup=False)
    others = Counter(row["reason"] for row in scores["rows"] if row["reason"] and row["outcome"] != WRONG)
    for reason, number in others.most_common(5):
        console.print(f"{number} time(s): {reason}", markup=False)


def _families(text: str) -> tuple[str, ...]:
    if text in ("all", "none"):
        return FAMILY_NAMES if text == "all" else ()
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _sizes(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 9 for part in parts):
        raise InputError(f"{text!r} is no list of sizes", advice="Give numbers of ReLUs, such as 100,1000.")
    sizes = tuple(dict.fromkeys(int(part) for part in parts))
    if not all(0 < size <= LARGEST_SIZE for size in sizes):
        raise InputError(f"a size is a number of ReLUs from 1 to {LARGEST_SIZE:,}")
    return sizes


def _formula(path: Path) -> str:
    content = content_of(str(path))
    if content is None:
        raise InputError(f"there is no file {path}")
    return content.decode("ascii", errors="replace")


def _circuit(text: str) -> str:
    """A circuit with one output, as a text in BLIF."""
    content = exported(Subject(find(text).source), "blif")
    assert isinstance(content, bytes)
    from tapegrad.circuits.formats import read as read_circuit

    outputs = len(read_circuit(content).outputs)
    if outputs != 1:
        raise InputError(
            f"{text} has {outputs} output bits",
            advice="Give one that has a single bit, which is asked to be 1.",
        )
    return content.decode()


def _made(entries: list[dict]) -> list[str]:
    return list(dict.fromkeys(entry["family"] for entry in entries))
