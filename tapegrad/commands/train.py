"""`tapegrad train-with`: ordinary training of an extended network that carries out an algorithm."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
import typer
from numpy.typing import NDArray

from tapegrad._files import content_of
from tapegrad.commands.output import AsJson, console, print_json, steps_progress
from tapegrad.errors import DataError, InputError

if TYPE_CHECKING:
    from tapegrad.targets.extended import TrainingRun
    from tapegrad.targets.extended.classifier import TrainedClassifier

PERCEPTRON = "perceptron"
MOST_ROWS = 10_000
"""Of a table: training goes over the tape of all samples again and again."""
MOST_SHOWN = 24
"""Numbers of theta that are printed; --json has all of them."""
TRAINED_ON = 0.8
"""The part of the rows that training gets, where nothing else is said."""


def train_with(
    example: Annotated[
        str | None,
        typer.Argument(
            help="A ready example, or a table, FILE.csv, or a learner with a table behind it; left out, "
            "examples are listed."
        ),
    ] = None,
    file: Annotated[str | None, typer.Argument(help="The table, behind a learner.")] = None,
    learner: Annotated[
        str,
        typer.Option(
            help="For a table: what training carries out: perceptron, naive-bayes, winnow, nearest, stump or "
            "tree."
        ),
    ] = PERCEPTRON,
    label: Annotated[
        str | None,
        typer.Option(help="For a table: the column of labels, a name or number; default: the last."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="For a table: a column to leave out, a name or number; repeatable."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="For a table: the label to tell from all others, if there are several.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="For a table: rows to train on; default four fifths.")
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=1, help="For perceptron (at most) and winnow: rounds over these rows.")
    ] = 10,
    bits: Annotated[int, typer.Option(min=2, max=16, help="For perceptron: bits of a feature.")] = 8,
    cuts: Annotated[
        int, typer.Option(min=1, max=16, help="For other learners: cuts of a feature, a bit for each.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="For a table: how rows are drawn.")] = 0,
    engine: Annotated[
        str, typer.Option(help="fast or reference (automatic differentiation at every step).")
    ] = "fast",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the trained network.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a network by gradient descent that carries out an algorithm, such as a perceptron, on a table.

    Examples: tapegrad train-with naive-bayes iris.csv --positive setosa

    tapegrad train-with iris.csv --label kind --without name --learner tree

    tapegrad train-with xor -o xor.net    (a ready example)
    """
    if file is not None and example is not None:
        learner, example = example, file
    if example is not None and example.endswith(".csv"):
        table = Table.read(example, label, positive, without or ()).split(rows, seed)
        return _trained_on(table, learner, (epochs, bits, cuts), engine, output, as_json)
    if learner != PERCEPTRON:
        raise InputError("--learner is for a table", advice="Give a FILE.csv with it.")
    return _example(example, engine, output, as_json)


def _example(name: str | None, engine: str, output: Path | None, as_json: bool) -> None:
    from tapegrad.targets.extended import save  # brings JAX
    from tapegrad.targets.extended.examples import EXAMPLES, example_named

    if name is None:
        listed = {name: entry.summary for name, entry in EXAMPLES.items()}
        if as_json:
            print_json(listed)
        else:
            for name, summary in listed.items():
                console.print(f"[bold]{name:<12}[/bold] {summary}")
        return
    chosen = example_named(name)
    with steps_progress(f"gradient descent, {name}", 0) as progress:
        training = chosen.build()
        run = training.train(engine=engine, progress=progress)
    if output is not None:
        save(training, run, output)
    if as_json:
        print_json({"example": name, **run.to_json(), "folder": None if output is None else str(output)})
        return
    console.print(f"[bold]{name}[/bold]: {chosen.summary}")
    _print_run(run)
    console.print(f"final loss  {run.loss:g} of the primary network with these weights")
    _print_end(run, output)


def _trained_on(
    table: "Table",
    learner: str,
    sizes: tuple[int, int, int],
    engine: str,
    output: Path | None,
    as_json: bool,
) -> None:
    from tapegrad.targets.extended import save  # brings JAX
    from tapegrad.targets.extended.classifier import LearnerClassifier, PerceptronClassifier, learner_named

    epochs, bits, cuts = sizes
    if learner != PERCEPTRON:
        learner_named(learner)
    with steps_progress(f"gradient descent, {table.name}", 0) as progress:
        if learner == PERCEPTRON:
            model = PerceptronClassifier(epochs, bits, engine=engine, progress=progress)
        else:
            model = LearnerClassifier(learner, cuts, epochs, engine=engine, progress=progress)
        model.fit(table.features, table.labels)
    run, others = model.run_, table.others
    if output is not None:
        save(model.training_, run, output)
    found = _found(model, table)
    if as_json:
        shown = {"table": table.name, "learner": learner, **found, **run.to_json()}
        print_json({**shown, "folder": None if output is None else str(output)})
        return
    count = _counted(len(table.columns), "feature")
    width = model.training_.x.shape[1]
    features = f"{count} of {bits} bits" if learner == PERCEPTRON else f"{count} as {_counted(width, 'bit')}"
    console.print(
        f"{table.name}: {model.classes_[1]} or {model.classes_[0]}, {features} ({learner}); "
        f"{len(table.labels):,} rows to train on, {found['test_rows']:,} to test",
        markup=False,
    )
    if constant := found["constant"]:
        console.print(f"constant    {', '.join(constant)}: one value in the rows trained on", markup=False)
    console.print(
        f"network     {found['vertices']:,} vertices, for {found['states']} states of the machine, whatever "
        "the data"
    )
    _print_run(run)
    for name, words, scores in (
        ("right", " of the rows trained on", found["accuracy"]),
        ("plainly", "", found["accuracy_plainly"]),
    ):
        tested = "" if others is None else f", {scores['test']:.1%} of the others"
        without = ": the same algorithm, no network" if name == "plainly" else ""
        console.print(f"{name:<11} {scores['train']:.1%}{words}{tested}{without}")
    _print_end(run, output)


def _found(model: "TrainedClassifier", table: "Table") -> dict[str, Any]:
    """Sizes, and how many rows the network gets right beside the algorithm run plainly."""
    training = model.training_
    plainly = model.plainly(table.features, table.labels)

    def scores(predict: Callable[..., NDArray[Any]]) -> dict[str, float | None]:
        parts = {"train": table, "test": table.others}
        return {
            name: None if part is None else float(np.mean(predict(part.features) == part.labels))
            for name, part in parts.items()
        }

    return {
        "classes": [str(one) for one in model.classes_],
        "states": len(training.algorithm.procedure.machine.states),
        "vertices": training.net.vertex_count,
        "rows": len(table.labels),
        "constant": table.constant,
        "test_rows": 0 if table.others is None else len(table.others.labels),
        "accuracy": scores(model.predict),
        "accuracy_plainly": scores(plainly),
    }


def _print_run(run: "TrainingRun") -> None:
    console.print(
        f"steps       {run.steps:,} of gradient descent in {run.seconds:.3g} s, stopped by the loss"
    )
    console.print(f"engine      {run.engine}; the end is that of the machine, run plainly")
    if run.engine == "fast":
        console.print(
            f"gradients   those of automatic differentiation, compared at {run.compared} of the steps"
        )
    numbers = [f"{value:g}" for value in run.theta.ravel()]
    more = f" ... ({len(numbers)} numbers)" if len(numbers) > MOST_SHOWN else ""
    console.print(f"theta       {' '.join(numbers[:MOST_SHOWN])}{more}")


def _print_end(run: "TrainingRun", output: Path | None) -> None:
    console.print(f"deviation   {run.deviation:.3g} of tape and heads from their ideal values, at most")
    if output is not None:
        console.print(f"written to {output}; now try: tapegrad check {output}", markup=False)


# Tables


@dataclass(frozen=True)
class Table:
    """Rows of features with a label each; two labels occur."""

    name: str
    columns: tuple[str, ...]
    """What the features are called."""
    features: NDArray[np.float64]
    labels: NDArray[Any]
    others: "Table | None" = None
    """Rows that are not trained on."""

    @classmethod
    def read(
        cls, file: str, label: str | None = None, positive: str | None = None, without: Sequence[str] = ()
    ) -> Self:
        """A file of values between commas, semicolons or tabs; a first row without numbers has the names of
        the columns, of which those `without` are left out. With `positive`, every other label becomes
        "other"."""
        content = content_of(file)
        if content is None:
            raise InputError(f"there is no file {file}")
        try:
            text = content.decode("utf-8-sig")
            between = next((mark for mark in ";\t" if mark in text.partition("\n")[0]), ",")
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=between) if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{file} is no table of comma-separated values: {error}") from error
        named = bool(rows) and not any(_number(entry) is not None for entry in rows[0])
        names = [entry.strip() for entry in rows.pop(0)] if named else []
        if not 2 <= len(rows) <= MOST_ROWS:
            raise DataError(
                f"{file} has {_counted(len(rows), 'row')}", advice=f"Training takes 2 to {MOST_ROWS:,}."
            )
        width = len(names or rows[0])
        if width < 2:
            raise DataError(f"{file} has one column", advice="A table has features and labels.")
        at = width - 1 if label is None else _column(file, names, width, label)
        left_out = {at, *(_column(file, names, width, column) for column in without)}
        if len(left_out) == width:
            raise InputError(f"{file} has no features left", advice="Leave fewer columns out.")
        titles = names or [str(number) for number in range(1, width + 1)]
        features = [
            _features(file, row, titles, at, left_out, line) for line, row in enumerate(rows, 1 + named)
        ]
        labels = np.array([row[at].strip() for row in rows])
        columns = tuple(title for column, title in enumerate(titles) if column not in left_out)
        return cls(Path(file).name, columns, np.array(features), _two_labels(file, labels, positive))

    def split(self, rows: int | None, seed: int) -> "Table":
        """So many rows drawn at random, and the others."""
        count = len(self.labels)
        rows = max(2, int(TRAINED_ON * count)) if rows is None else rows
        if rows > count:
            raise InputError(f"the table has {count:,} rows, so that {rows:,} cannot be trained on")
        order = np.random.default_rng(seed).permutation(count)
        first, rest = (
            Table(self.name, self.columns, self.features[at], self.labels[at])
            for at in (order[:rows], order[rows:])
        )
        return replace(first, others=rest if count > rows else None)

    @property
    def constant(self) -> list[str]:
        """The features that tell nothing, since they have one value in all rows."""
        same = (self.features == self.features[0]).all(axis=0)
        return [name for name, alike in zip(self.columns, same, strict=True) if alike]


def _features(
    file: str, row: list[str], titles: list[str], label_at: int, left_out: set[int], line: int
) -> list[float]:
    if len(row) != len(titles):
        raise DataError(f"{file} has {len(row)} entries in a row, not {len(titles)}", where=f"line {line}")
    if not row[label_at].strip():
        raise DataError(f"{file} has a row without a label", where=f"line {line}")
    entries = [(title, row[at]) for at, title in enumerate(titles) if at not in left_out]
    for title, entry in entries:
        if not _is_finite(_number(entry)):
            raise DataError(
                f"{file} has {entry!r} in column {title!r}, where a feature should be a finite number",
                where=f"line {line}",
                advice=f"Leave the column out with --without {title!r}, or name the labels' with --label.",
            )
    return [float(entry) for _, entry in entries]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _is_finite(number: float | None) -> bool:
    return number is not None and bool(np.isfinite(number))


def _number(entry: str) -> float | None:
    try:
        return float(entry)
    except ValueError:
        return None


def _column(name: str, names: list[str], width: int, label: str) -> int:
    """Which column is meant, by its name or number."""
    if label in names:
        return names.index(label)
    if label.isdecimal() and 1 <= int(label) <= width:
        return int(label) - 1
    known = f"its columns are {', '.join(names)}" if names else f"it has columns 1 to {width}"
    raise InputError(f"{name} has no column {label!r}: {known}")


def _two_labels(name: str, labels: NDArray[Any], positive: str | None) -> NDArray[Any]:
    found = sorted(set(labels.tolist()))
    if positive is not None:
        if positive not in found:
            raise InputError(f"{name} has no label {positive!r}", advice=f"It has {', '.join(found[:10])}.")
        labels = np.where(labels == positive, positive, "other")
        found = sorted(set(labels.tolist()))
    if len(found) != 2:
        choose = f"Choose one to tell from the others, as in --positive {found[0]!r}."
        raise DataError(
            f"{name} has {_counted(len(found), 'label')}, and training tells two apart",
            advice=choose if len(found) > 2 else "Name the column of labels with --label.",
        )
    return labels
