"""`tapegrad search`: looking through all small machines for one that learns."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tapegrad.commands.output import (
    DISAGREED,
    SUCCESS,
    AsJson,
    console,
    errors,
    print_json,
    progress_bar,
)
from tapegrad.errors import InputError
from tapegrad_check.boundary import INTERRUPTED

if TYPE_CHECKING:
    from tapegrad.search.family import Family

NEEDS = {"single-coordinate": (4, 1, 2)}
"""States, pairs and errors allowed where the user says nothing; all others: 2, 0, 0."""

TaskName = Annotated[str | None, typer.Argument(help="What to learn; left out, the tasks are listed.")]
States = Annotated[int | None, typer.Option(min=1, max=12, help="States in all.")]
Pairs = Annotated[
    int | None,
    typer.Option(min=0, max=5, help="Pairs among them: machines unchanged if + and - change places."),
]
Writes = Annotated[bool, typer.Option("--writes", help="Machines may replace a sign by the other.")]
Exponent = Annotated[int, typer.Option("--exponent", "-k", min=1, max=4, help="A run has (2dm)^k steps.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")]


def search(
    task: TaskName = None,
    states: States = None,
    pairs: Pairs = None,
    writes: Writes = False,
    exponent: Exponent = 2,
    errors_allowed: Annotated[
        int | None, typer.Option("--errors", min=0, help="Errors a candidate may make.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Random candidates, instead of every machine there is.")
    ] = None,
    seed: Seed = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; default: all cores.")] = None,
    engine: Annotated[str, typer.Option(help="threads, gpu (extra cuda) or ray (extra ray).")] = "threads",
    file: Annotated[
        Path | None, typer.Option(help="SQLite file: a stopped search goes on from there.")
    ] = None,
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Train the winner's network by SGD too.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Search all machines of a family for one that solves a learning task, then train its network by SGD.

    Example: tapegrad search parity-of-all
    """
    if task is None:
        list_tasks(as_json)
        return
    from tapegrad.search import SearchOptions, run, task_named  # compiled loops: not needed to start
    from tapegrad.search.confirm import confirm

    task_named(task)
    usual = NEEDS.get(task, (2, 0, 0))
    given = (states, pairs, errors_allowed)
    states, pairs, allowed = (old if new is None else new for new, old in zip(given, usual, strict=True))
    family = family_of(states, pairs, writes)
    options = SearchOptions(
        **asdict(family), exponent=exponent, samples=samples, seed=seed, workers=workers, engine=engine,
        file=file, allowed_errors=allowed,
    )  # fmt: skip
    try:
        with progress_bar() as bar:
            shown = bar.add_task(task, total=None)
            result = run(
                task,
                options,
                lambda now: bar.update(
                    shown,
                    completed=now.shards_done,
                    total=now.shards,
                    description=f"{task}: {now.per_second:,.0f} candidates/s, fewest errors "
                    f"{now.fewest_errors}",
                ),
            )
    except KeyboardInterrupt:
        later = "give a --file to go on later" if file is None else f"the same command goes on from {file}"
        errors.print(f"interrupted; {later}", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    confirmed = confirm(result) if train else None
    disagreed = confirmed is not None and not confirmed.agrees
    if as_json:
        print_json(result.to_json() | {"confirmed": None if confirmed is None else confirmed.to_json()})
        raise typer.Exit(DISAGREED if disagreed else SUCCESS)
    console.print(str(result), markup=False)
    rate = result.candidates / result.seconds
    console.print(
        f"searched    {result.candidates:,} machines in {result.seconds:.3g} s, {rate:,.0f} a second"
    )
    if confirmed is not None:
        console.print(
            f"trained     by SGD on {confirmed.samples} samples of {confirmed.features} features; "
            f"memory within {confirmed.memory_error:.2g} of Lemma 2"
        )
        console.print(
            f"verified    {confirmed.layers_compared} of {confirmed.layers} layers and {confirmed.agreed} of "
            f"{confirmed.points} test points agree with the machine; its answer is "
            f"{'right' if confirmed.right else 'wrong'}"
        )
    raise typer.Exit(DISAGREED if disagreed else SUCCESS)


def family_of(states: int, pairs: int, writes: bool) -> "Family":
    """The family with so many states in all."""
    from tapegrad.search.family import Family

    if states <= 2 * pairs:
        raise InputError(
            f"{states} states cannot hold {pairs} pairs and one state more", advice="Take more --states."
        )
    return Family(states - 2 * pairs, pairs, mirrored=pairs > 0, writes=writes)


def list_tasks(as_json: bool) -> None:
    """The tasks there are."""
    from tapegrad.search.tasks import TASKS

    listed = {name: entry.summary for name, entry in TASKS.items()}
    if as_json:
        print_json(listed)
        return
    for name, summary in listed.items():
        console.print(f"[bold]{name:<18}[/bold] {summary}")
