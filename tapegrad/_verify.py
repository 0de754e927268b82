"""Is the net right? It and the interpreters of its source in lockstep, over many inputs, and the report."""

import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tapegrad._compile import Compiled, Progress, Run, Watch, check_compiled
from tapegrad._lockstep import FINITE, Leaps, Lockstep, same
from tapegrad._sources import kind_of
from tapegrad.errors import InputError, Refused, TapegradError, described
from tapegrad.source import imported

Inputs = tuple[Any, ...]
"""The arguments of `source.start`: one word for each tape, or one batch of bits, or samples."""

MOST_STEPS = 10_000
MOST_BUILT_FOR = 64
"""Of the inputs that a net was built for, most that are tried where none are given."""


@dataclass(frozen=True)
class Mismatch:
    """The first place where net and source part company."""

    input: str
    step: int
    expected: str
    found: str


@dataclass(frozen=True)
class Coverage:
    """How much of the source's table the inputs exercised."""

    exercised: int
    rules: int

    def __str__(self) -> str:
        return f"{self.exercised:,} of {self.rules:,} rules exercised"


@dataclass(frozen=True)
class Report:
    """What `verify` saw. `complete` says that every run was followed to its end; `exhaustive`, that there
    are no other inputs."""

    agreed: bool
    inputs: int
    steps: int
    states: int
    """How many states of the user's own source were compared, over all inputs."""
    complete: bool
    exhaustive: bool
    deviation: float
    mismatch: Mismatch | None
    engine: str
    every: int
    """States were compared every so many steps, 1 being all of them."""
    seconds: float
    coverage: Coverage | None = None
    """Where `verify` chose the inputs itself, for a source that has rules."""

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.mismatch is not None:
            m = self.mismatch
            return (
                f"MISMATCH at step {m.step} on input {m.input}:\n  source  {m.expected}\n  network {m.found}"
            )
        extent = "all inputs" if self.exhaustive else f"{self.inputs:,} input(s)"
        end = "" if self.complete else " (stopped at the step limit)"
        compared = "every one of" if self.every == 1 else f"every {_ordinal(self.every)} of"
        covered = "" if self.coverage is None else f"; {self.coverage}"
        return (
            f"agreed at {compared} {self.steps:,} steps on {extent}{end}; "
            f"largest deviation {self.deviation:.3g}{covered}"
        )


def verify(
    compiled: Compiled,
    inputs: Iterable[Inputs] | None = None,
    *,
    steps: int | None = None,
    engine: str | None = "reference",
    seed: int = 0,
    every: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Runs the net and the plain interpreters in lockstep and compares every decoded state, both with the
    lowered source (at every step of the net) and with the user's own (at every step of that).

    Without `inputs`, a circuit of at most 20 inputs is checked on all of them, a machine on words that
    exercise its rules, a program on inputs that take it to other instructions, a net that was built for
    certain inputs on those, everything else on a seeded sample; inputs for which the net has no room are left
    out. At most `steps` steps of the net are taken for each input; if no number is given 10,000, or as many
    as lead to the outputs of a circuit. For runs of millions
    of steps, `every` compares only every so many steps, with the compiled interpreter, and at the end.
    Without an `engine`, each net chooses for the length of its runs.
    """
    check_compiled(compiled, "verify")
    exhaustive, chosen = False, inputs is None
    if inputs is None:
        inputs, exhaustive = default_inputs(compiled, np.random.default_rng(seed))
    seen = _Seen(every)
    if (poison := not_finite(compiled)) is not None:
        seen.mismatch = Mismatch("of any kind", 0, FINITE, poison)
        return seen.report()
    no_room: TapegradError | None = None
    for one in inputs if isinstance(inputs, Iterable) else [inputs]:
        if not isinstance(one, tuple | list):
            raise InputError(
                f"the inputs of a run are a tuple, and this is {described(one)}",
                advice="Give a list with a tuple for each run, as in tg.verify(net, [(3, 5), (0, 1)]).",
            )
        try:
            seen.add(one, _followed(compiled, one, steps, engine, every, progress))
        except (InputError, Refused) as refused:
            if not chosen:
                raise
            no_room, exhaustive = no_room or refused, False
        if seen.mismatch is not None:
            break
    if seen.inputs == 0:
        raise no_room or InputError("there was no input to verify", advice="Give at least one.")
    report = seen.report(exhaustive)
    rules = kind_of(compiled.source).rules
    if not chosen or rules is None or every > 1:
        return report
    return replace(report, coverage=Coverage(len(seen.rules), rules.count(compiled.source)))


def not_finite(compiled: Compiled) -> str | None:
    """Words about the first array of a net that holds NaN or infinity, if one does. No net that is compiled
    or loaded has one. A run need not show it: an engine that looks for the steepest edge, or leaves out what
    it need not add, passes over a weight that is no number."""
    for name, array in compiled.net.all_arrays().items():
        if not np.isfinite(array).all():
            return f"the array {name!r} holds numbers that are not finite"
    return None


def default_inputs(compiled: Compiled, random: np.random.Generator) -> tuple[Iterable[Inputs], bool]:
    """The inputs where none are given, and whether there are no others."""
    built_for = compiled.built_for()
    if built_for is None:
        if compiled.passes and (own := compiled.passes[0].default_inputs) is not None:
            return own(random)
        kind = kind_of(compiled.source)
        if kind.covering is not None:
            return imported(kind.covering)(compiled.source, random, partial(_room, compiled)), False
        return kind.default_inputs(compiled.source, random, not compiled.one_by_one)
    count = min(len(built_for), MOST_BUILT_FOR)
    return [built_for[i] for i in sorted(random.choice(len(built_for), count, replace=False))], False


def _room(compiled: Compiled, *inputs: Any) -> int | None:
    """Within how many steps a run on an input has to end in a net; 0 if it has no room for the input, None if
    it may go on."""
    try:
        room = compiled.net.room(compiled.encode(compiled.source.start(*inputs)))
    except (InputError, Refused):
        return 0
    found: list[int] = [most for most in (room, compiled.options.get("steps")) if most is not None]
    return min(found, default=None)


def run_and_verify(
    compiled: Compiled,
    *inputs: Any,
    steps: int = 100_000,
    engine: str = "reference",
    every: int = 1,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> tuple[Run, Report]:
    """`compiled.run` and `verify` of one input in a single pass. Where net and source part, the net runs on
    alone, so that its result can be seen; the time of the run is that of the whole pass."""
    seen = _Seen(every)
    pair = _followed(compiled, inputs, steps, engine, every, progress, watch)
    seen.add(inputs, pair)
    if (poison := not_finite(compiled)) is not None:
        seen.mismatch = seen.mismatch or Mismatch(_brief(inputs), 0, FINITE, poison)
    report = seen.report()
    run = compiled.resume(pair.carry, steps=steps, engine=engine, progress=progress, watch=watch)
    return replace(run, seconds=run.seconds + report.seconds), report


def _followed(
    compiled: Compiled,
    inputs: Inputs,
    steps: int | None,
    engine: str | None,
    every: int,
    progress: Progress | None,
    watch: Watch | None = None,
) -> Lockstep | Leaps:
    """Net and source side by side, until they part, the net is done or the limit is reached."""
    most = MOST_STEPS if steps is None else steps
    engine = engine or compiled.net.engine_for(compiled.start(*inputs), most)
    pair = Leaps(compiled, inputs, engine, every, most) if every > 1 else Lockstep(compiled, inputs, engine)
    if steps is None:
        most = max(most, compiled.net.silent(pair.carry))
    while pair.parted is None and not pair.ended and pair.steps < most:
        if isinstance(pair, Lockstep):
            pair.step(most - pair.steps)
        else:
            pair.step()
        if progress is not None:
            progress(pair.steps)
        state = None if watch is None or pair.parted is not None else pair.source_state
        if watch is not None and state is not None:
            watch(state)
    return pair


class _Seen:
    """What goes into the report, added up over the inputs."""

    def __init__(self, every: int) -> None:
        self.began = time.perf_counter()
        self.every = every
        self.engines: list[str] = []
        self.inputs = self.steps = self.states = 0
        self.complete, self.deviation = True, 0.0
        self.mismatch: Mismatch | None = None
        self.rules: set[Hashable] = set()

    def add(self, inputs: Inputs, pair: Lockstep | Leaps) -> None:
        """One input that was followed."""
        if pair.parted is not None:
            self.mismatch = Mismatch(_brief(inputs), pair.steps, *_told_apart(*pair.parted))
        self.engines += [pair.engine] if pair.engine not in self.engines else []
        self.inputs += _patterns(inputs)
        self.steps += pair.steps
        self.states += pair.states
        if isinstance(pair, Lockstep):
            self.rules |= pair.rules
        self.complete &= pair.ended
        self.deviation = max(self.deviation, pair.deviation)

    def report(self, exhaustive: bool = False) -> Report:
        """The report, for inputs that were all there are or not."""
        return Report(
            agreed=self.mismatch is None,
            inputs=self.inputs,
            steps=self.steps,
            states=self.states,
            complete=self.complete,
            exhaustive=exhaustive and self.mismatch is None,
            deviation=self.deviation,
            mismatch=self.mismatch,
            engine=" and ".join(self.engines),
            every=self.every,
            seconds=time.perf_counter() - self.began,
        )


def _ordinal(number: int) -> str:
    teens = 10 <= number % 100 < 20
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _brief(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = np.array_repr(value.astype(int)) if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 500 else f"{text[:480]} ... ({len(text):,} characters)"


def _told_apart(a: Any, b: Any) -> tuple[str, str]:
    """Two values that differ, in words; where these say the same, with the first place where they differ."""
    one, other = _brief(a), _brief(b)
    if one != other:
        return one, other
    place, here, there = _first_difference(a, b)
    return f"{one}, where {place} is {_brief(here)}", f"{other}, where {place} is {_brief(there)}"


def _first_difference(a: Any, b: Any, place: str = "") -> tuple[str, Any, Any]:
    """Where, and what is there: in fields, entries and items, as deep as they have any."""
    parts: Iterable[tuple[str, Any, Any]] = ()
    if is_dataclass(a) and type(a) is type(b):
        parts = ((f".{own.name}", getattr(a, own.name), getattr(b, own.name)) for own in fields(a))
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        parts = ((f"[{key!r}]", a.get(key), b.get(key)) for key in {**a, **b})
    elif isinstance(a, bytes) and isinstance(b, bytes) and len(a) != len(b):  # of one, the end alone is known
        known = min(len(a), len(b))
        return _first_difference(a[len(a) - known :], b[len(b) - known :], place)
    elif isinstance(a, bytes | tuple | list | np.ndarray) and type(a) is type(b) and len(a) == len(b):
        parts = ((f"[{at}]", *pair) for at, pair in enumerate(zip(a, b, strict=True)))
    for step, x, y in parts:
        if not same(x, y):
            return _first_difference(x, y, (place + step).removeprefix("."))
    return place, a, b


def _patterns(inputs: Inputs) -> int:
    """A batch of bits counts as many inputs as it has rows."""
    return len(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], np.ndarray) else 1
