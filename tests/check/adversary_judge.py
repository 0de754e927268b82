"""What becomes of a forged folder: it is checked, and where the checker believes it, run beside its source.

The source that a folder names is run by its plain interpreter. Nothing that the checker found out is used.
"""

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from tapegrad._compile import Compiled
from tapegrad._saved import load
from tapegrad._sources import source_from_json, source_to_json
from tapegrad._verify import default_inputs, verify
from tapegrad.circuits.clocked.kind import random_trace
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.errors import InputError, Refused, TapegradError
from tapegrad.interop.disguised import DisguisedNet, load_disguised
from tapegrad.learners import Learner
from tapegrad.machines.model import TuringMachine
from tapegrad.networks.saving import to_json
from tapegrad.programs.model import Program
from tapegrad.rasp.program import RaspProgram
from tapegrad.sklearn import EmulatedClassifier, RCNNClassifier
from tapegrad.targets.extended import load as load_extended
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE, CONFIG, MODEL
from tests.check.forging import bounded
from tests.interop.stock_in_numpy import logits

STEPS = 300
"""Of a net on one input, where the user's own default would be 10,000."""
LONGEST = 30
"""Seconds of the processor that a run may take."""
LONG = 2_000
"""Samples of a long training."""


class Outcome(NamedTuple):
    """What the checker said of a folder in one word, in a sentence, and what is wrong with that."""

    end: str
    said: str
    finding: str | None = None


class Judge:
    """Of the folders of one case."""

    def __init__(self, kind: str, genuine: Path) -> None:
        self.genuine = genuine
        self.of = genuine.with_suffix(".net") if kind == "stock" else None
        verdict = COMPUTES_SOURCE if kind == "classifier" else check(genuine, self.of).verdict
        self.full = _of_any_number(verdict)
        """The verdict of the genuine net; but what a classifier was trained to say is not compared."""
        self.read, self.wrong = {
            "compiled": (load, self._compiled),
            "extended": (load_extended, self._extended),
            "disguised": (_disguise, self._disguised),
            "stock": (_files, self._stock),
            "classifier": (_classifier, self._classifier),
        }[kind]
        self.own: Any = self.read(genuine)
        """The genuine net."""
        jax.devices()  # What JAX loads when it is first needed is no fault of a folder.

    def outcome(self, folder: Path) -> Outcome:
        """What became of a folder. What is refused may be loaded as well, but must not do harm at that."""
        said, believed = "", True
        try:
            with bounded("check"):
                report = check(folder, self.of)
            said, believed = report.verdict, _of_any_number(report.verdict) == self.full
        except CheckError as refusal:
            said, believed = str(refusal), None
        except AssertionError as slow:
            return Outcome("slow", "", str(slow))
        except Exception as crash:
            return Outcome("crash", "", f"check: {type(crash).__name__}: {crash}")
        if believed and (twice := _two_readings(folder)):
            return Outcome("harmful", said, twice)
        loaded = None
        try:
            with bounded("load"), quiet():
                loaded = self.read(folder)
        except TapegradError as refusal:
            said = str(refusal) if believed else said
        except AssertionError as slow:
            return Outcome("slow", said, str(slow))
        except Exception as crash:
            return Outcome("crash", said, f"load: {type(crash).__name__}: {crash}")
        if not believed:
            return Outcome("refused" if believed is None else "said to be less", said)
        return self._run(loaded, said) if loaded is not None else Outcome("unloadable", said)

    def _run(self, loaded: Any, said: str) -> Outcome:
        """What a net does that the checker believes. It may take the time and memory that it says it takes:
        then it is not judged."""
        first = re.search("first ([0-9,]+) samples", said)
        self.samples = int(first[1].replace(",", "")) if first else LONG
        try:
            with bounded("a run", LONGEST), quiet():
                finding = self.wrong(loaded)
        except AssertionError as slow:
            return Outcome("not judged", f"{said}: {slow}")
        except Unchanged:
            return Outcome("unchanged", said)
        except TapegradError as refusal:
            return Outcome("unloadable", str(refusal))
        except Exception as crash:
            if "RESOURCE_EXHAUSTED" in str(crash):  # as JAX says it
                return Outcome("not judged", f"{said}: {crash}")
            return Outcome("harmful", said, f"a run fails: {type(crash).__name__}: {crash}")
        return Outcome("harmful" if finding else "harmless", said, finding)

    # Nets that are compiled

    def _compiled(self, loaded: Compiled) -> str | None:
        if _same(loaded, self.own):
            raise Unchanged
        learns = isinstance(loaded.source, Learner)
        for engine in loaded.net.engines:
            for inputs in _inputs(loaded):
                inputs = [self._shortened(one) for one in inputs] if learns else inputs
                try:
                    report = verify(loaded, inputs, engine=engine, steps=STEPS)
                    if not report.agreed:
                        return f"{engine}: {report}"
                except (InputError, Refused) as refusal:  # limits may be lower than they were
                    if isinstance(loaded.source, RaspProgram) and verify(self.own, inputs).agreed:
                        return f"{engine}: on {inputs} {refusal}"
            if learns and (found := _trained_for_long(loaded, engine, self.samples)):
                return found
        return None

    def _shortened(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Samples, as many as the verdict is about."""
        x, y, *rest = inputs
        return x[: self.samples], y[: self.samples], *rest

    # Others

    def _extended(self, loaded: tuple[Any, Any]) -> str | None:
        net, run = loaded
        again = net.train()
        same = np.array_equal(again.theta, run.theta) and again.steps == run.steps
        return None if same else "training gives something else"

    def _disguised(self, loaded: tuple[DisguisedNet, Any]) -> str | None:
        """Beside the program of the answer key, and the one that the folder names, if it does."""
        net, named = loaded
        assert net.key is not None
        for said in (net.key.data["plain"]["machine"]["source"], named):
            program: Any = source_from_json(said, {}) if said else None
            for length in range(1, 1 + (program.length if said else 0)):
                for tokens in product(program.vocabulary, repeat=length):
                    wanted = tuple(program.evaluate(tokens)[program.output])
                    try:
                        found = net.run(tokens)
                    except Refused as refusal:  # no program here has values that are mixed
                        found = refusal
                    if found != wanted:
                        return f"on {tokens} the net gives {found}, its source {wanted}"
        return None

    def _stock(self, files: dict[str, bytes]) -> str | None:
        """The same logits as the genuine checkpoint, which is what the saved net is exported as."""
        settings = [name for name in self.own if name.endswith(".json") and name != "labels.json"]
        changed = [name for name in settings if json.loads(files[name]) != json.loads(self.own[name])]
        if not changed and files[MODEL] == self.own[MODEL]:
            raise Unchanged
        words = len(json.loads(self.own["tokenizer.json"])["model"]["vocab"])
        for text in np.random.default_rng(0).integers(2, words, (3, 12)).tolist():
            if not np.array_equal(logits(files, [1, *text]), logits(self.own, [1, *text])):
                return f"other logits on {text}"
        return f"other settings in {changed}" if changed else None

    def _classifier(self, made: Any) -> str | None:
        points = np.array(list(product((0, 1), repeat=2)))
        wanted, found = self.own.predict(points), made.predict(points)
        return (
            None
            if np.array_equal(found, wanted)
            else f"it answers {found}, and was trained to answer {wanted}"
        )


def _of_any_number(verdict: str) -> str:
    return re.sub("[0-9,]+", "#", verdict)


def _disguise(folder: Path) -> tuple[DisguisedNet, Any]:
    """And the source that the folder names, which the net does not know of."""
    return load_disguised(folder), json.loads((folder / CONFIG).read_bytes())["source"]


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def _classifier(folder: Path) -> Any:
    target = json.loads((folder / CONFIG).read_bytes()).get("target")
    return (EmulatedClassifier if target == "emulator" else RCNNClassifier).load(folder)


class Unchanged(Exception):
    """The folder loads as the genuine one does."""


@contextmanager
def quiet() -> Iterator[None]:
    """Forged numbers overflow, which NumPy tells."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _two_readings(folder: Path) -> str | None:
    """A key that stands twice: one reader takes the first, another the last. Of labels.json the checker says
    that it was not read."""
    found: list[str] = []

    def pairs(own: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in own:
            if key in seen and seen[key] != value:
                found.append(key)
            seen[key] = value
        return seen

    for file in sorted(set(folder.glob("*.json")) - {folder / "labels.json"}):
        json.loads(file.read_bytes(), object_pairs_hook=pairs)
        if found:
            return f"{found[0]!r} stands in {file.name} twice, with two values"
    return None


def _same(a: Compiled, b: Compiled) -> bool:
    """Whether two compiled nets are the same, source and all."""
    own = [
        (
            c.net.config(),
            *source_to_json(c.source)[:1],
            c.options,
            to_json(c.net.network) if c.net.saves_network else None,
        )
        for c in (a, b)
    ]
    arrays = [
        c.net.all_arrays() | {f"source.{n}": one for n, one in source_to_json(c.source)[1].items()}
        for c in (a, b)
    ]
    return json.dumps(own[0]) == json.dumps(own[1]) and _identical(*arrays)


def _identical(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(
        np.asarray(a[name]).dtype == np.asarray(b[name]).dtype
        and np.shape(a[name]) == np.shape(b[name])
        and np.asarray(a[name]).tobytes() == np.asarray(b[name]).tobytes()
        for name in a
    )


def _inputs(loaded: Compiled) -> Iterator[list[tuple[Any, ...]]]:
    """What `verify` would take, and more that is likely to tell; a batch at a time, since a net may have no
    room for one of them."""
    random = np.random.default_rng(0)
    given, _ = default_inputs(loaded, random)
    for one in given:
        yield [one]
    source = loaded.source
    if isinstance(source, TuringMachine) and source.tapes == 1:
        letters = source.alphabet[:3]
        yield from ([(list(word),)] for size in range(4) for word in product(letters, repeat=size))
    elif isinstance(source, SequentialCircuit):
        yield from ([random_trace(source, random, cycles)] for cycles in (0, 1, 2, 3, 5, 8, 11, 12))
    elif isinstance(source, Program):
        yield from ([(text,)] for text in (b"a", b"hi", b"\0\xff", b"10", b"abcdefgh"))
    elif isinstance(source, Learner):
        rows = random.integers(0, 2, (6, source.inputs), np.uint8)
        yield from (
            [(rows, random.integers(0, 2, 6, np.uint8), seed, guessing)]
            for seed in (1, 2)
            for guessing in (True, False)
        )


def _trained_for_long(loaded: Compiled, engine: str, count: int) -> str | None:
    """The learner itself, on many samples, beside the net: any labels, or always the same, which push all
    weights the same way; with guesses, or always the wrong one."""
    source: Any = loaded.source
    if engine != "fast" or loaded.net.config().get("memory") != "practical":
        return None
    count, random = min(count, LONG), np.random.default_rng(1)
    rows, labels = (
        random.integers(0, 2, (count, source.inputs), np.uint8),
        random.integers(0, 2, count, np.uint8),
    )
    for x, y, guessing in ((rows, labels, True), (rows, labels | 1, False), (rows & 0, labels & 0, False)):
        first = source.start(x, y, 3, guessing)
        with suppress(InputError, Refused):
            run = loaded.resume(loaded.net.begin(loaded.encode(first), engine), steps=count, engine=engine)
            *_, wanted = source.run(first)
            if run.state != wanted:
                return f"{engine}: after {count:,} samples the net is at {run.state}, the learner at {wanted}"
    return None
