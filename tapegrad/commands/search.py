"""`tapegrad search`: looking through all small machines for one that learns."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tapegrad.commands.output import AsJson, console, print_json, progress_bar

DEFAULTS: dict[str, dict[str, Any]] = {
    "single-coordinate": {"single": 2, "pairs": 1, "mirrored": True, "allowed_errors": 2}
}
"""What a task needs where the user says nothing; all others: two states, no errors allowed."""

TaskName = Annotated[str | None, typer.Argument(help="What to learn; left out, the tasks are listed.")]
States = Annotated[int | None, typer.Option(min=1, max=12, help="States (single ones, if mirrored).")]
Pairs = Annotated[int | None, typer.Option(min=0, max=5, help="Pairs of states, + and - exchanged.")]
Writes = Annotated[bool, typer.Option("--writes", help="Machines may replace a sign by the other.")]
Exponent = Annotated[int, typer.Option("--exponent", "-k", min=1, max=6, help="A run has (2dm)^k steps.")]
Seed = Annotated[int, typer.Option(help="Seed of what is drawn.")]


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
    chosen: dict[str, Any] = {"allowed_errors": 0} | DEFAULTS.get(task, {})
    given = {"single": states, "pairs": pairs, "allowed_errors": errors_allowed}
    chosen |= {name: value for name, value in given.items() if value is not None}
    chosen["mirrored"] = bool(chosen.get("pairs"))
    options = SearchOptions(
        writes=writes, exponent=exponent, samples=samples, seed=seed, workers=workers, engine=engine,
        file=file, **chosen,
    )  # fmt: skip
    with progress_bar() as bar:
        shown = bar.add_task(task, total=None)
        result = run(
            task,
            options,
            lambda now: bar.update(
                shown,
                completed=now.shards_done,
                total=now.shards,
                description=f"{task}: {now.per_second:,.0f} candidates/s, fewest errors {now.fewest_errors}",
            ),
        )
    confirmed = confirm(result) if train else None
    if as_json:
        print_json(result.to_json() | {"confirmed": None if confirmed is None else confirmed.to_json()})
        return
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
            f"verified    {confirmed.layers_compared} layers and {confirmed.agreed} of {confirmed.points} "
            f"test points agree with the machine; its answer is {'right' if confirmed.right else 'WRONG'}"
        )


def list_tasks(as_json: bool) -> None:
    """The tasks there are."""
    from tapegrad.search.tasks import TASKS

    listed = {name: entry.summary for name, entry in TASKS.items()}
    if as_json:
        print_json(listed)
        return
    for name, summary in listed.items():
        console.print(f"[bold]{name:<18}[/bold] {summary}")
