"""Stepping a net and the interpreter of its source side by side, comparing decoded states."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from tapegrad.compile import Compiled, Progress
from tapegrad.errors import InputError
from tapegrad.lowering.rewriting import State
from tapegrad.verify_inputs import default_inputs
from tapegrad.verify_leaps import Leaps

Inputs = tuple[Any, ...]
"""The arguments of `source.start`: one word for each tape, or one batch of bits, or samples."""


@dataclass(frozen=True)
class Mismatch:
    """The first place where net and source part company."""

    input: str
    step: int
    expected: str
    found: str


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
        compared = "every one of" if self.every == 1 else f"every {self.every:,}th of"
        return (
            f"agreed at {compared} {self.steps:,} steps on {extent}{end}; "
            f"largest deviation {self.deviation:.3g}"
        )


def verify(
    compiled: Compiled,
    inputs: Iterable[Inputs] | None = None,
    *,
    steps: int = 10_000,
    engine: str = "reference",
    seed: int = 0,
    every: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Runs the net and the plain interpreters in lockstep and compares every decoded state, both with the
    lowered source (at every step of the net) and with the user's own (at every step of that).

    Without `inputs`, a circuit of at most 20 inputs is checked on all of them, everything else on a seeded
    sample. At most `steps` steps of the net are taken for each input. For runs of millions of steps, `every`
    compares only every so many steps, with the compiled interpreter, and at the end.
    """
    began = time.perf_counter()
    exhaustive = False
    if inputs is None:
        inputs, exhaustive = default_inputs(compiled, seed)
    count = total = states = 0
    complete, deviation = True, 0.0
    mismatch: Mismatch | None = None
    for one in inputs:
        lockstep = Leaps(compiled, one, engine, every) if every > 1 else _Lockstep(compiled, one, engine)
        parted = lockstep.follow(steps, progress)
        if parted is not None:
            mismatch = Mismatch(_brief(one), lockstep.steps, *map(_brief, parted))
        count += _patterns(one)
        total += lockstep.steps
        states += lockstep.states
        complete &= lockstep.ended
        deviation = max(deviation, lockstep.deviation)
        if mismatch is not None:
            break
    if count == 0:
        raise InputError("there was no input to verify", advice="Give at least one.")
    return Report(
        agreed=mismatch is None,
        inputs=count,
        steps=total,
        states=states,
        complete=complete,
        exhaustive=exhaustive and mismatch is None,
        deviation=deviation,
        mismatch=mismatch,
        engine=engine,
        every=every,
        seconds=time.perf_counter() - began,
    )


class _Lockstep:
    """One input, followed through the net, the lowered source and the user's source at once."""

    def __init__(self, compiled: Compiled, inputs: Inputs, engine: str) -> None:
        self.compiled, self.engine = compiled, engine
        first = compiled.source.start(*inputs)
        lowered = compiled.encode(first)
        self.carry = compiled.net.start(lowered)
        self.lowered: Iterator[State] = compiled.lowered.run(lowered)
        self.source: Iterator[State] = compiled.source.run(first)
        covered = [p.covers for p in compiled.passes if p.covers is not None]
        if covered:  # a rewriting of this kind shows only where the source stands at its end
            self.source = iter([_last(islice(self.source, covered[0] + 1))])
        self.steps = self.states = 0
        self.deviation = 0.0
        self.ended = False

    def follow(self, limit: int, progress: Progress | None) -> tuple[State, State] | None:
        """Steps until the net is done or the limit is reached; expected and found where they differ."""
        net = self.compiled.net
        while True:
            parted = self._compare()
            self.deviation = max(self.deviation, net.deviation(self.carry))
            if parted is not None:
                return parted
            if net.done(self.carry):
                self.ended = True
                return self._leftover()
            if self.steps >= limit:
                return None
            self.carry = net.advance(self.carry, 1, self.engine)
            self.steps += 1
            if progress is not None:
                progress(self.steps)

    def _compare(self) -> tuple[State, State] | None:
        state = self.compiled.net.decode(self.carry)
        if state is None:
            return None
        expected = next(self.lowered, _ENDED)
        if not _equal(state, expected):
            return expected, state
        own = self.compiled.decode(state)
        if own is None:
            return None
        expected = next(self.source, _ENDED)
        self.states += 1
        return None if _equal(own, expected) else (expected, own)

    def _leftover(self) -> tuple[State, State] | None:
        """The net says it is done: then both interpreters must have halted too."""
        for run in (self.lowered, self.source):
            expected = next(run, _ENDED)
            if not (isinstance(expected, str) and expected == _ENDED):
                return expected, "the net has stopped"
        return None


_ENDED = "the source has halted"


def _equal(a: State, b: State) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return a == b


def _brief(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = np.array_repr(value.astype(int)) if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 500 else f"{text[:480]} ... ({len(text):,} characters)"


def _patterns(inputs: Inputs) -> int:
    """A batch of bits counts as many inputs as it has rows."""
    return len(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], np.ndarray) else 1


def _last(states: Iterable[State]) -> State:
    *_, last = states
    return last
