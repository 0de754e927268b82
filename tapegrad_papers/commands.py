"""`tapegrad claims`, `margins`, `restarts` and `bench`: what this package adds to the command line.

The commands are attached by the entry points of pyproject.toml. What they run is imported when they run: the
experiments and constructions load JAX, which a command line that only prints its help can do without.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tapegrad._compile import compile
from tapegrad._files import write_atomically
from tapegrad._sources import find, inputs_for, parse_options
from tapegrad.circuits.model import Circuit
from tapegrad.commands.output import (
    DISAGREED,
    AsJson,
    InputOption,
    SetOption,
    SourceArgument,
    TargetOption,
    console,
    errors,
    print_heading,
    print_json,
    progress_bar,
    steps_progress,
)
from tapegrad.commands.search import Exponent, Pairs, Seed, States, TaskName, Writes, family_of, list_tasks
from tapegrad.errors import InputError, Refused
from tapegrad_papers import abbe_sandon, goel, wei, welper
from tapegrad_papers.ledger import Claim, Entry, Status, page, run_claims

if TYPE_CHECKING:
    from tapegrad.search.family import Family
    from tapegrad.search.family import Table as MachineTable

PAPERS = (welper.PAPER, goel.PAPER, abbe_sandon.PAPER, wei.PAPER)
COLOURS = {
    Status.HOLDS: "green",
    Status.CORRECTED: "cyan",
    Status.IN_PART: "magenta",
    Status.NOT_SHOWN: "white",
    Status.FAILED: "bold red",
}


def claims(
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="welper, goel, abbe-sandon or wei.")
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Larger instances; takes much longer.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only statements whose number or text contains this.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write a Markdown page for each paper.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the numbered statements of the papers on concrete instances, one line for each.

    Example: tapegrad claims welper --only "Lemma A"
    """
    chosen = select(paper, only)
    if write is not None and only is not None:
        raise InputError("pages hold all statements of a paper", advice="Leave out --only or --write.")
    entries: list[Entry] = []
    with errors.status("") as status:

        def show_progress(claim: Claim) -> None:
            status.update(f"{claim.paper.name}: {claim.statement} ({len(entries) + 1}/{len(chosen)})")

        for entry in run_claims(chosen, long, show_progress):
            entries.append(entry)
            if not as_json:
                status.stop()
                _print_row(entry, first=len(entries) == 1)
                status.start()
    if write is not None:
        _write_pages(write, entries, long)
    if as_json:
        print_json([entry.as_json() for entry in entries])
    else:
        counts = Counter(entry.outcome.status for entry in entries)
        summary = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
        console.print(f"\n{len(entries)} statements: {summary}. --json has the values behind them.")
    if any(entry.outcome.status is Status.FAILED for entry in entries):
        raise typer.Exit(DISAGREED)


def select(paper: str | None = None, only: str | None = None) -> list[Claim]:
    """The claims of one paper or of all; `only` keeps those whose number or description contains it."""
    names = [p.name for p in PAPERS]
    if paper is not None and paper not in names:
        raise InputError(f"no paper called {paper!r}", advice=f"There are {', '.join(names)}.")
    found = [claim for p in PAPERS if paper in (None, p.name) for claim in p.claims]
    if only is not None:
        sought = only.casefold()
        found = [c for c in found if sought in f"{c.statement}: {c.description}".casefold()]
        if not found:
            advice = "`tapegrad claims --json` has all of them."
            raise InputError(f"no statement contains {only!r}", advice=advice)
    return found


def _write_pages(folder: Path, entries: Sequence[Entry], long: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made a folder: {error.strerror}") from error
    by_paper: dict[str, list[Entry]] = {}
    for entry in entries:
        by_paper.setdefault(entry.claim.paper.name, []).append(entry)
    for name, own in by_paper.items():
        write_atomically(folder / f"{name}.md", page(own[0].claim.paper, own, long).encode())


def _print_row(entry: Entry, first: bool) -> None:
    """One row as soon as it is known, so columns have widths that do not depend on the others; the headings
    above the first."""
    table = Table(box=SIMPLE_HEAD if first else None, pad_edge=False, padding=(0, 1), show_header=first)
    for heading, width in (("paper", 11), ("statement", 14), ("status", 15)):
        table.add_column(heading, width=width)
    for heading in ("stated", "measured"):
        table.add_column(heading, width=max(12, (console.width - 60) // 2))
    table.add_column("seconds", justify="right", width=7)
    outcome = entry.outcome
    colour = COLOURS[outcome.status]
    table.add_row(
        entry.claim.paper.name,
        entry.claim.statement,
        f"[{colour}]{outcome.status.value}[/{colour}]",
        _escaped(outcome.stated or entry.claim.description),
        _escaped(outcome.measured if outcome.status is not Status.FAILED else outcome.note),
        f"{entry.seconds:.1f}",
    )
    console.print(table)


def _escaped(text: str) -> str:
    """Square brackets are mathematics here, not colours."""
    return text.replace("[", r"\[")


def margins(
    source: SourceArgument,
    target: TargetOption,
    input: InputOption = None,
    settings: SetOption = None,
    attack: Annotated[
        bool, typer.Option("--attack/--no-attack", help="Look for an upper bound, which takes longest.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Bracket the all-layer margin: the least change of the parameters that flips a prediction.

    The lower bounds are proved, for every input; the upper bound is found by attacking one input. A circuit
    without an input is attacked on all patterns, or on 64 random ones if it has more. A net that is too large
    to attack has lower bounds all the same.

    Example: tapegrad margins adder4 --target relu
    """
    from tapegrad_papers.wei.margins import attacked, lower_bounds, patterns

    found = find(source)
    papers = {"form": "paper"} if target in ("relu", "transformer") else {}
    compiled = compile(found.source, target, **(papers | parse_options(settings)))
    if input and not attack:
        raise InputError("only an attack needs an input", advice="Leave out --input or --no-attack.")
    result, skipped = lower_bounds(compiled.net), "" if attack else "as asked"
    if attack:
        own = found.inputs
        if not own and target == "relu" and isinstance(found.source, Circuit):
            own = (patterns(found.source),)
        words = inputs_for(found.source, input, own)
        try:
            with steps_progress("attack", 0) as report:
                result = attacked(result, compiled, *words, progress=report)
        except Refused as refusal:
            skipped = str(refusal)
    if as_json:
        own_json = {"not_attacked": skipped} if skipped else {}
        print_json({"source": found.source.name, "target": target, **result.to_json(), **own_json})
        return
    print_heading(found.source.name, f"({found.origin}) on target {target}")
    console.print(str(result), markup=False)
    if skipped:
        console.print(f"upper bound  not attacked: {skipped}", markup=False)


MOST_RESTARTS = 1_000_000
RAW_RESTARTS = 20
MOST_EXAMPLES = 1_000_000


def restarts(
    task: TaskName = None,
    states: States = None,
    pairs: Pairs = None,
    writes: Writes = False,
    exponent: Exponent = 2,
    accuracy: Annotated[float, typer.Option(help="How far from the best machine the result may be.")] = 0.2,
    failure: Annotated[float, typer.Option(help="Probability with which it may be further.")] = 0.2,
    count: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_RESTARTS, help="Restarts; default: as many as the corollary asks for."),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Draw every weight of the filter from U_s.")] = False,
    form: Annotated[str, typer.Option(help="practical or paper.")] = "practical",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train many random filters by SGD on one training set and keep the best on a validation set.

    The filters are those of random machines; with --raw their weights are random, as in the theorem, and the
    chance of a useful one is stated. Example: tapegrad restarts any-minus --states 1
    """
    if task is None:
        list_tasks(as_json)
        return
    import numpy as np

    from tapegrad.search import task_named
    from tapegrad.targets.rcnn.encoding import encoding_of
    from tapegrad_papers.goel.restarts import best_machine_filter, best_raw_filter, sizes

    chosen = task_named(task)
    family = family_of(states or 1, pairs or 0, writes)
    if raw and (writes or pairs or exponent != 2 or form != "practical"):
        raise InputError("raw filters belong to no machine", advice="With --raw give --states alone.")
    asked = sizes(family, accuracy, failure)
    if asked.validation > MOST_EXAMPLES:
        raise Refused(
            f"the corollary asks for {asked.validation:,} examples to choose by",
            advice="Take a larger --accuracy.",
        )
    number = count or (RAW_RESTARTS if raw else asked.restarts)
    if number > MOST_RESTARTS:
        raise Refused(
            f"the corollary asks for {asked.restarts:,} restarts, each a network to be trained",
            advice="Take fewer states, or give a --count and lose the guarantee.",
        )
    data = chosen.data(np.random.default_rng(seed), asked.validation)
    with progress_bar() as bar:
        shown = bar.add_task(task, total=number)

        def report(done: int, error: float) -> None:
            bar.update(shown, completed=done, description=f"{task}: least error {error:.3f}")

        if raw:
            best = best_raw_filter(data, family.states, number, seed=seed, progress=report)
            about = _about_raw(family.states)
        else:
            best = best_machine_filter(
                data,
                family,
                number,
                exponent=exponent,
                encoding=encoding_of(form),
                seed=seed,
                progress=report,
            )
            about = _about_machine(best.filter.table, family, asked.chance)
            promise = f"within {accuracy:g} of the family's best machine with probability {1 - failure:g}"
            missed = "fewer restarts than the corollary asks for, so nothing is promised"
            about["meaning"] = promise if number >= asked.restarts else missed
    m, d = data.X.shape
    found = {
        "task": task,
        "samples": m,
        "features": d,
        "validation": asked.validation,
        "restarts": number,
        "asked_restarts": asked.restarts,
        "answering": best.answering,
        "error": best.error,
    } | about
    if as_json:
        print_json(found)
        return
    console.print(f"data        {m} samples of {d} features, {asked.validation:,} examples to choose by")
    console.print(f"drawn       {found['drawn']}")
    console.print(f"trained     {number:,} filters by SGD; {best.answering:,} of them answer at all")
    console.print(f"chosen      error {best.error:.4g} on the examples; {found['meaning']}")
    if "table" in found:
        console.print(found["table"], markup=False)


def _about_raw(states: int) -> dict[str, Any]:
    from tapegrad_papers.goel.drawn import success

    chance = success(states)
    return {
        "drawn": f"{chance.parameters:,} weights for each filter, from {chance.values} values",
        "log10_chance": chance.log10_probability,
        "meaning": f"a draw is one given filter with probability 10^{chance.log10_probability:,.0f}",
    }


def _about_machine(table: "MachineTable", family: "Family", chance: float) -> dict[str, Any]:
    from tapegrad.search import table_text

    return {
        "drawn": f"machines, states: {family.states}; each machine with probability 1 in {1 / chance:,.0f}",
        "chance": chance,
        "table": table_text(table, family),
    }


bench = typer.Typer(
    help="Experiments: what compiled networks learn and ordinary ones do not.", no_args_is_help=True
)


@bench.command()
def parity(
    side: Annotated[int, typer.Option(min=2, max=16, help="Images have side x side squares.")] = 13,
    images: Annotated[int, typer.Option(min=50, help="As many to train on as to test on.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of the ordinary network.")] = 80,
    seed: Annotated[int, typer.Option(help="Seed of images, hidden subset and guesses.")] = 0,
    figure: Annotated[Path | None, typer.Option("--figure", help="PNG file to draw the result to.")] = None,
    as_json: AsJson = False,
) -> None:
    """Parity of black squares: a compiled network trained by plain SGD beside the paper's MLP (section 6.1).

    Example: tapegrad bench parity --side 5 --images 500 --epochs 40 --figure parity.png
    """
    from tapegrad_papers.abbe_sandon import parity as experiment

    with errors.status("training both networks"):
        result = experiment.headline(side, images, epochs, seed)
    if figure is not None:
        experiment.figure(result, figure)
    _print_rows(experiment.report(result), as_json)


@bench.command()
def noise(
    bits: Annotated[int, typer.Option(min=2, max=128, help="Of the parity that is learned.")] = 64,
    steps: Annotated[int, typer.Option(min=10, help="Steps of SGD, one for each sample.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of samples, hidden subset and noise.")] = 0,
    figure: Annotated[Path | None, typer.Option("--figure", help="SVG file to draw the result to.")] = None,
    as_json: AsJson = False,
) -> None:
    """Noise on every weight at every step of SGD: the accuracy of a compiled network that learns parity, up
    to the noise that it is proved to bear, and beyond (Theorem 5 of Abbe and Sandon).

    Example: tapegrad bench noise --bits 16 --steps 200
    """
    from tapegrad_papers.abbe_sandon import noisy_parity as experiment

    with errors.status("training with noise"):
        found = list(experiment.curves(bits, steps, experiment.FACTORS, seed))
    if figure is not None:
        experiment.figure(found, figure)
    _print_rows(experiment.report(found), as_json)


@bench.command("margins")
def margins_learned(
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Trainings at each size: seeds 0, 1, ...")] = 5,
    short: Annotated[bool, typer.Option("--short", help="Only the two smallest sizes of each.")] = False,
    figure: Annotated[Path | None, typer.Option("--figure", help="SVG file to draw the result to.")] = None,
    as_json: AsJson = False,
) -> None:
    """Networks learned by minimising the all-layer-margin loss (Wei, Chen and Ma), from 100 samples of a
    circuit and of a machine: test errors against width, size and time, beside the bound of Lemma 2.3.

    Example: tapegrad bench margins --short --seeds 1
    """
    from tapegrad_papers.wei import learned as experiment

    if figure is not None:
        experiment.require_drawable(figure)
    found = []
    with progress_bar() as bar:
        shown = bar.add_task("training", total=experiment.count(seeds, not short))
        for row in experiment.experiments(seeds, not short):
            found.append(row)
            bar.update(shown, advance=1, description=f"training: {row.experiment} {row.size}")
    if figure is not None:
        experiment.figure(found, figure)
    if as_json:
        print_json(experiment.report(found))
        return
    console.print(experiment.table(found), markup=False)


@bench.command()
def limits(
    long: Annotated[bool, typer.Option("--long", help="Larger sizes.")] = False,
    figures: Annotated[Path | None, typer.Option(help="Folder for the figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """What noisy gradient descent cannot learn, beside the bounds and beside compiled networks.

    Example: tapegrad bench limits
    """
    from tapegrad_papers.abbe_sandon import table as experiment

    with errors.status("running the experiments"):
        found = experiment.limits(long)
    if figures is not None:
        experiment.figure(found, figures)
    _print_rows(experiment.rows(found), as_json)


def _print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    table = Table("what", "value", "rival", "rival's value", box=None)
    for row in rows:
        value = "" if row.get("value") is None else f"{row['value']:.4g} {row['unit']}"
        other = row.get("rival_value")
        shown = "" if other is None else f"{other:.4g} {row['unit']}"
        table.add_row(row["what"], value, str(row.get("rival") or ""), shown)
    console.print(table)
