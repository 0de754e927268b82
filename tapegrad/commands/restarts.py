"""`tapegrad restarts`: Corollary 2 of Goel et al., every filter trained by SGD."""

from typing import Annotated, Any

import typer

from tapegrad.commands.output import AsJson, console, print_json, progress_bar
from tapegrad.commands.search import Exponent, Pairs, Seed, States, TaskName, Writes, family_of, list_tasks
from tapegrad.errors import InputError, Refused

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
        int | None, typer.Option(min=1, max=MOST_RESTARTS, help="Restarts; default: what the corollary asks.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Draw every weight of the filter from U_s.")] = False,
    encoding: Annotated[str, typer.Option(help="channels or ternary.")] = "channels",
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
    from tapegrad_papers.goel.corollary2 import best_machine_filter, best_raw_filter, sizes

    chosen = task_named(task)
    family = family_of(states or 1, pairs or 0, writes)
    if raw and (writes or pairs or exponent != 2 or encoding != "channels"):
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
                data, family, number, exponent=exponent, encoding=encoding, seed=seed, progress=report
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
    from tapegrad_papers.goel.raw import success

    chance = success(states)
    return {
        "drawn": f"{chance.parameters:,} weights for each filter, from {chance.values} values",
        "log10_chance": chance.log10_probability,
        "meaning": f"a draw is one given filter with probability 10^{chance.log10_probability:,.0f}",
    }


def _about_machine(table: Any, family: Any, chance: float) -> dict[str, Any]:
    from tapegrad.search import table_text

    return {
        "drawn": f"machines, states: {family.states}; each machine with probability 1 in {1 / chance:,.0f}",
        "chance": chance,
        "table": table_text(table, family),
    }
