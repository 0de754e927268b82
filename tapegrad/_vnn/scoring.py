"""Scores of a verifier on a folder of instances: what it says beside what is true.

A `sat` counts as right only where the instance is satisfiable and the input that comes with it, if one does,
is one: in the box, with an output at the threshold, up to the tolerance of the competition.
"""

import hashlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tapegrad._files import only_writer, write_atomically
from tapegrad._limits import WAITING, Ended, run_limited
from tapegrad._vnn.folder import ANSWERS, opened
from tapegrad.errors import FormatError, InputError

RIGHT, WRONG, UNKNOWN, TIMEOUT, CRASH, ABSENT = "right", "wrong", "unknown", "timeout", "crash", "absent"
OUTCOMES = (RIGHT, WRONG, UNKNOWN, TIMEOUT, CRASH, ABSENT)
SCORES = "scores"
"""The folder of scores inside that of the instances."""
TOLERANCE = 1e-4
SCRIPT = Path(__file__).parent / "adapters" / "verifiers.py"
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '([\w.]{1,100})'")
_VALUE = re.compile(r"\(X_([0-9]{1,7})\s+([-+0-9.eE]{1,40})\)")


TOOLS = {
    "marabou": "maraboupy",
    "neuralsat": "neuralsat",
    "never2": "pynever",
    "never2-sslp": "pynever",
    "auto_lirpa": "auto_LiRPA",
}
"""Verifiers that the script knows, and the package that each comes in."""


@dataclass(frozen=True)
class Limits:
    """Of one instance."""

    seconds: float
    memory: int


Progress = Callable[[int], None]


def score(
    folder: Path,
    name: str,
    limits: Limits,
    *,
    python: str = sys.executable,
    command: str | None = None,
    most_relus: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Asks a tool about every instance that it was not asked about yet under these limits, and keeps the
    scores in the folder. A command of the user's own takes the place of a script."""
    _, entries = opened(folder)
    if command is None and name not in TOOLS:
        raise InputError(
            f"there is no tool {name!r}", advice=f"Choose from {', '.join(TOOLS)}, or give --command."
        )
    if not re.fullmatch(r"[A-Za-z0-9_.+-]{1,64}", name):
        raise InputError("the name of a tool has letters, digits, dots and dashes")
    chosen = [entry for entry in entries if most_relus is None or entry["relus"] <= most_relus]
    version = None if command else installed(TOOLS[name], python)
    head = {
        "tool": name,
        "version": version,
        "command": command,
        "seconds": limits.seconds,
        "memory": limits.memory,
        "answers_sha256": hashlib.sha256((folder / ANSWERS).read_bytes()).hexdigest(),
    }
    with only_writer(folder):
        (folder / SCORES).mkdir(exist_ok=True)
        path = folder / SCORES / f"{name}.json"
        rows = _earlier(path, head)
        known = {row["name"] for row in rows}
        for count, entry in enumerate(entry for entry in chosen if entry["name"] not in known):
            if command is None and version is None:
                reason = f"pip install {TOOLS[name]}"
                rows.append(_row(entry, ABSENT, reason, None))
            else:
                words = _words(name, python, command)
                rows.append(asked(folder, entry, words, limits))
            _write(path, {**head, "rows": rows})
            if progress is not None:
                progress(count + 1)
    names = {entry["name"] for entry in chosen}
    return {**head, "rows": [row for row in rows if row["name"] in names]}


def installed(package: str, python: str) -> str | None:
    """The version of a package in that Python; None where it is not there."""
    # Nothing is imported from the current folder, which any Python of the user's has first on its path.
    code = "import sys; sys.path[:] = filter(None, sys.path); from importlib.metadata import version; "
    code += f"print(version({package!r}))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{python} cannot be run as a Python: {error}") from error
    return done.stdout.strip() or None


def _words(name: str, python: str, command: str | None) -> list[str]:
    """The command, with places for the four files and numbers."""
    places = ["{onnx}", "{vnnlib}", "{seconds}", "{result}"]
    if command is None:
        return [python, str(SCRIPT), name, *places]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"the command cannot be read: {error}") from error
    return words if any("{" in word for word in words) else [*words, *places]


def asked(folder: Path, entry: dict[str, Any], words: Sequence[str], limits: Limits) -> dict[str, Any]:
    """The row of one instance."""
    with tempfile.TemporaryDirectory() as own:
        result = Path(own) / "result"
        given = {
            "{onnx}": str((folder / "onnx" / f"{entry['name']}.onnx").resolve()),
            "{vnnlib}": str((folder / "vnnlib" / f"{entry['name']}.vnnlib").resolve()),
            # A tool's own limit is on the clock, where it must not be the first to end it on a busy machine.
            "{seconds}": f"{WAITING * limits.seconds:g}",
            "{result}": str(result),
        }
        filled = [given.get(word, word) for word in words]
        try:
            single = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            ended = run_limited(filled, seconds=limits.seconds, memory=limits.memory, environment=single)
        except OSError as error:
            return _row(entry, CRASH, f"{filled[0]} cannot be run: {error.strerror}", None)
        text = result.read_bytes()[: 64 << 20].decode(errors="replace") if result.is_file() else ""
    return _row(entry, *judged(folder, entry, text, ended), ended)


def judged(folder: Path, entry: dict[str, Any], text: str, ended: Ended) -> tuple[str, str]:
    """What an answer is worth, and why."""
    said = (text.split() or [""])[0].lower()
    if ended.stopped == "time" or said == "timeout":
        return TIMEOUT, ""
    if ended.stopped == "memory":
        return CRASH, f"more than {ended.memory >> 20} MiB of memory"
    if said == UNKNOWN:
        return UNKNOWN, ""
    if said not in ("sat", "unsat"):
        last = (ended.printed.strip().splitlines() or ["nothing was printed"])[-1]
        if missing := _MISSING.search(last):
            return ABSENT, f"its Python has no module {missing[1]!r}"
        return CRASH, f"exit code {ended.code}: {last[:200]}" if not said else f"it answered {said[:40]!r}"
    if said != entry["answer"]:
        return WRONG, f"it says {said}, and the answer is {entry['answer']}: {entry['why']}"
    if said == "unsat" or not (found := _VALUE.findall(text)):
        return RIGHT, ""
    return _witness(folder, entry, found)


def _witness(folder: Path, entry: dict[str, Any], found: list[tuple[str, str]]) -> tuple[str, str]:
    """Whether the input that a tool gives is a counterexample."""
    from tapegrad._vnn.adapters.instance import read_instance  # the extra `onnx`

    instance = read_instance(*(folder / own / f"{entry['name']}.{own}" for own in ("onnx", "vnnlib")))
    try:
        values = {int(place): float(value) for place, value in found}
        point = [values[place] for place in range(len(instance.box))]
    except (KeyError, ValueError):
        return WRONG, "its input does not have a number for every X"
    for place, (value, (low, high)) in enumerate(zip(point, instance.box, strict=True)):
        if not float(low) - TOLERANCE <= value <= float(high) + TOLERANCE:
            return WRONG, f"its input has X_{place} = {value:g}, outside the box"
    output = instance.value(point)
    if not output >= float(instance.threshold) - TOLERANCE:
        return WRONG, f"its input gives {output:g}, less than {float(instance.threshold):g}"
    return RIGHT, ""


def _row(entry: dict[str, Any], outcome: str, reason: str, ended: Ended | None) -> dict[str, Any]:
    return {
        "name": entry["name"],
        "family": entry["family"],
        "relus": entry["relus"],
        "answer": entry["answer"],
        "outcome": outcome,
        "reason": reason,
        "seconds": None if ended is None else round(ended.seconds, 2),
        "memory": None if ended is None else ended.memory,
    }


def _earlier(path: Path, head: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the same tool, limits and instances; those of others are made again."""
    if not path.exists():
        return []
    found = read_scores(path)
    same = all(found.get(name) == value for name, value in head.items())
    return [row for row in found["rows"] if row["outcome"] != ABSENT] if same else []


def read_scores(path: Path) -> dict[str, Any]:
    """The scores of one tool."""
    try:
        found = json.loads(path.read_bytes())
        for row in found["rows"]:
            if (
                row["outcome"] not in OUTCOMES
                or type(row["relus"]) is not int
                or type(row["family"]) is not str
            ):
                raise ValueError(f"a row has the outcome {row['outcome']!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"the scores cannot be read: {error}", where=str(path), advice="Remove the file."
        ) from error
    return found


def _write(path: Path, scores: dict[str, Any]) -> None:
    write_atomically(path, (json.dumps(scores, indent=1, ensure_ascii=False) + "\n").encode())
