"""A folder of instances, as the competition of verifiers (VNN-COMP) has them: networks, properties, and a
list of pairs with a time for each; and apart from these the answers.

    instances.csv           onnx/NAME.onnx,vnnlib/NAME.vnnlib,SECONDS for each instance onnx/, vnnlib/
    networks, and properties in VNN-LIB 1.0 vnnlib2/                the same properties in VNN-LIB 2.0
    answers.jsonl           for each instance its answer, its witness and how it is known, and sums of its
    files vnn.json                what was asked for

What is made depends on `vnn.json` alone. The files of an instance are in place before its line is written,
and `instances.csv` comes last: a program that was killed goes on where it was, and a folder without that list
is not finished.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from tapegrad._files import line_sum, only_writer, write_atomically
from tapegrad._vnn.clauses import circuit as formula_circuit
from tapegrad._vnn.clauses import from_dimacs
from tapegrad._vnn.confirm import answered, solver_answer
from tapegrad._vnn.families import asker, draws_for, family_named, fitting
from tapegrad._vnn.guard import FORMS, MARGIN, PAPER, THRESHOLD, guarded
from tapegrad._vnn.question import Question
from tapegrad._vnn.vnnlib import decimal, written, written_in_2
from tapegrad.circuits.formats import read as read_circuit
from tapegrad.errors import FormatError, InputError, Refused

FORMAT = 1
PLAN, ANSWERS, INSTANCES = "vnn.json", "answers.jsonl", "instances.csv"
FOLDERS = {"onnx": "onnx", "vnnlib": "vnnlib", "vnnlib2": "vnnlib"}
"""Folders of files, and how their names end."""
ATTEMPTS = 20
"""Draws for a question that is not there yet."""
DIMACS, CIRCUIT = "dimacs", "circuit"
"""The families of formulas and circuits that users bring."""


@dataclass(frozen=True)
class Plan:
    """What a folder holds."""

    families: tuple[str, ...]
    sizes: tuple[int, ...]
    """ReLUs, at most, unless the smallest network of a family has more; about so many where machines are
    drawn, whose tables differ."""
    count: int
    """Instances of each family and size; fewer where there are not so many."""
    seed: int = 0
    seconds: int = 60
    confirmed: bool = False
    """Whether a solver was asked too."""
    formulas: tuple[str, ...] = ()
    """Texts in DIMACS format."""
    circuits: tuple[str, ...] = ()
    """Circuits with one output, as texts in BLIF."""
    form: str = PAPER
    """Of the networks."""

    def tasks(self) -> Iterator["Task"]:
        """Instances in order, by what they are drawn from."""
        for name in self.families:
            for relus in self.sizes:
                yield from (Task(name, relus, number) for number in range(self.count))
        yield from (Task(DIMACS, 0, number) for number in range(len(self.formulas)))
        yield from (Task(CIRCUIT, 0, number) for number in range(len(self.circuits)))


class Task(NamedTuple):
    """One instance."""

    family: str
    relus: int
    number: int

    @property
    def name(self) -> str:
        """Of its files."""
        size = f"-{self.relus}" if self.relus else ""
        return f"{self.family}{size}-{self.number}"


Progress = Callable[[int], None]
"""Called with the instances that there are."""


def make(plan: Plan, folder: Path, progress: Progress | None = None) -> list[dict[str, Any]]:
    """The whole folder, or what is left of it; gives the lines of all instances."""
    for name in plan.families:
        family_named(name)
    if plan.form not in FORMS:
        raise InputError(f"there is no form {plan.form!r}", advice=f"Choose from {', '.join(FORMS)}.")
    if not plan.sizes and plan.families:
        raise InputError("no sizes were given", advice="Give numbers of ReLUs, such as 100,1000.")
    identity = {"format": FORMAT, "tapegrad": metadata.version("tapegrad"), **asdict(plan)}
    identity = json.loads(json.dumps(identity))
    with only_writer(folder):
        _same_or_new(folder, identity)
        lines = _lines(folder, finished=False)
        known = {entry["question_sha256"] for entry in lines if "answer" in entry}
        tasks = list(plan.tasks())
        if [entry["name"] for entry in lines] != [task.name for task in tasks[: len(lines)]]:
            raise FormatError("the answers are not those of this plan", where=str(folder / ANSWERS))
        for task in tasks[len(lines) :]:
            entry = _made(plan, task, folder, known)
            known.add(entry.get("question_sha256", ""))
            lines.append(entry)
            _append(folder / ANSWERS, entry)
            if progress is not None:
                progress(len(lines))
        entries = [entry for entry in lines if "answer" in entry]
        write_atomically(folder / INSTANCES, instances(entries, plan.seconds))
    return entries


def instances(entries: list[dict[str, Any]], seconds: int) -> bytes:
    """The list of the competition."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows([f"onnx/{e['name']}.onnx", f"vnnlib/{e['name']}.vnnlib", seconds] for e in entries)
    return text.getvalue().encode()


def asked(plan: Plan, task: Task, attempt: int) -> Question:
    """The question of an instance. Answers alternate, and a coin decides which comes first."""
    if task.family == DIMACS:
        variables, clauses = from_dimacs(plan.formulas[task.number])
        return answered(formula_circuit(variables, clauses, f"formula {task.number}"), clauses)
    if task.family == CIRCUIT:
        return answered(read_circuit(plan.circuits[task.number].encode()))
    first = draws_for(plan.seed, task.family, task.relus).one_below(2)
    draws = draws_for(plan.seed, *task, attempt)
    size = fitting(task.family, task.relus, plan.form)
    return asker(task.family, task.relus)(size, (task.number + first) % 2 == 0, draws)


def _made(plan: Plan, task: Task, folder: Path, known: set[str]) -> dict[str, Any]:
    """The files of an instance, written, and its line; or why there is none."""
    from tapegrad._vnn.adapters.instance import read_instance  # the extra `onnx`
    from tapegrad.interop.onnx import plain_model

    for attempt in range(ATTEMPTS if task.relus else 1):
        try:
            question = asked(plan, task, attempt)
            layers = guarded(question.parts, plan.form)
            model = plain_model(layers, {"inputs": json.dumps(question.circuit.inputs)})
        except Refused as error:
            return {"name": task.name, "left_out": error.what}
        onnx = model.SerializeToString(deterministic=True)
        prose = [f"tapegrad vnn: {question.circuit.name}", "sat: some input of the box has Y_0 >= 1/2"]
        texts = [form(question.region, THRESHOLD, prose) for form in (written, written_in_2)]
        files = dict(zip(FOLDERS, (onnx, *(text.encode() for text in texts)), strict=True))
        question_sum = hashlib.sha256(onnx + files["vnnlib"]).hexdigest()
        if question_sum not in known:
            break
    else:
        return {"name": task.name, "left_out": "all questions of this size that were drawn are there already"}
    if plan.confirmed and solver_answer(question) != question.satisfiable:
        raise AssertionError(f"the solver does not agree on {task.name}")
    for own, content in files.items():
        write_atomically(folder / own / f"{task.name}.{FOLDERS[own]}", content)
    if question.witness is not None:  # the files themselves; witnesses are exact in double precision
        instance = read_instance(
            *(folder / own / f"{task.name}.{FOLDERS[own]}" for own in ("onnx", "vnnlib"))
        )
        if instance.value([float(own) for own in question.witness]) != 1:
            raise AssertionError(f"the witness of {task.name} does not have the value 1")
    relus = [len(layer.map) for layer in layers[:-1]]
    return {
        "name": task.name,
        "family": task.family,
        "relus": sum(relus),
        "layers": len(relus),
        "inputs": len(question.circuit.inputs),
        "answer": "sat" if question.satisfiable else "unsat",
        "margin": decimal(MARGIN),
        "witness": None if question.witness is None else [decimal(own) for own in question.witness],
        "why": question.why,
        "about": dict(question.about),
        "confirmed": plan.confirmed,
        "question_sha256": question_sum,
        "sha256": {own: hashlib.sha256(content).hexdigest() for own, content in files.items()},
    }


def _same_or_new(folder: Path, identity: dict[str, Any]) -> None:
    """Refuses a folder that holds something else."""
    plan = folder / PLAN
    if plan.exists():
        there = _plan(folder)
        for name, value in identity.items():
            if there.get(name) != value:
                raise InputError(
                    f"the folder was made with another {name}",
                    where=str(plan),
                    advice="Give another folder, or the options that it was made with.",
                )
        return
    if any(folder.iterdir()):
        raise InputError(f"{folder} holds something else than instances", advice="Choose a new folder.")
    for own in FOLDERS:
        (folder / own).mkdir()
    write_atomically(plan, (json.dumps(identity, indent=1) + "\n").encode())


def _plan(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / PLAN).read_bytes())
    except OSError as error:
        raise InputError(
            f"{folder} is no folder of instances: {error.strerror}", advice="Make it first."
        ) from error
    except ValueError as error:
        raise FormatError(f"{folder / PLAN} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise FormatError(f"{folder / PLAN} holds no plan")
    return found


def _append(path: Path, entry: dict[str, Any]) -> None:
    """One more line, whole: the file is small, and is written anew."""
    entry["line_sha256"] = line_sum(entry)
    before = path.read_bytes() if path.exists() else b""
    write_atomically(path, before + json.dumps(entry, ensure_ascii=False).encode() + b"\n")


def _lines(folder: Path, *, finished: bool) -> list[dict[str, Any]]:
    """The lines of all instances, once every file has its sum."""
    path = folder / ANSWERS
    if not path.exists() and not finished:
        return []
    lines, advice = [], "Make the instances again, elsewhere."
    try:
        for number, text in enumerate(path.read_bytes().splitlines()):
            entry = json.loads(text)
            if entry["line_sha256"] != line_sum(entry):
                raise FormatError(f"line {number + 1} was altered", where=str(path), advice=advice)
            for own, wanted in entry.get("sha256", {}).items():
                file = folder / own / f"{entry['name']}.{FOLDERS[own]}"
                if hashlib.sha256(file.read_bytes()).hexdigest() != wanted:
                    raise FormatError(f"{file} was altered", advice=advice)
            lines.append(entry)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"the answers cannot be read: {error}", where=str(path), advice=advice) from error
    return lines


def opened(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The plan and the lines of a folder that is finished, of this version, and as it was made."""
    plan, again = _plan(folder), "Give the command that made it once more."
    own = {"format": FORMAT, "tapegrad": metadata.version("tapegrad")}
    for name, value in own.items():
        if plan.get(name) != value:
            raise InputError(
                f"the folder has {name} {plan.get(name)!r}, and this is {value!r}",
                where=str(folder / PLAN),
                advice="Make the instances again, elsewhere.",
            )
    entries = [entry for entry in _lines(folder, finished=True) if "answer" in entry]
    try:
        listed = (folder / INSTANCES).read_bytes()
    except OSError as error:
        raise FormatError("the folder is not finished", where=str(folder), advice=again) from error
    if listed != instances(entries, plan["seconds"]):
        raise FormatError(f"{folder / INSTANCES} was altered", advice=again)
    return plan, entries


def witness_of(entry: dict[str, Any]) -> list[Fraction] | None:
    """The witness of a line."""
    return None if entry["witness"] is None else [Fraction(own) for own in entry["witness"]]
