"""A net and the interpreters of its source, stepped side by side: what `verify` and the player stand on."""

import math
from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._sources import kind_of
from tapegrad.errors import InputError, Refused
from tapegrad.source import Rewriting, Source, State, imported
from tapegrad.targets import Carry

ENDED = "the source has halted"
STOPPED = "the net has stopped"
FINITE = "finite values"
NOTHING = "no state of the source"
"""What is found in place of a state where one side goes on and the other does not."""


class _Followed:
    """A run of the net on one input: where it stands, and what has been seen of it."""

    def __init__(self, compiled: Compiled, engine: str, first: State) -> None:
        self.compiled, self.engine = compiled, engine
        self.carry: Carry = compiled.net.begin(first, engine)
        self.states = 0
        """How many states were compared."""
        self.deviation = 0.0
        """The largest so far."""
        self.parted: tuple[State, State] | None = None
        """Expected and found, where they differed first."""
        self.ended = False
        """Whether the net says that it is done."""

    def _finite(self) -> bool:
        """Takes note of the deviation, and says whether it is a number: `max` would pass over it."""
        deviation = self.compiled.net.deviation(self.carry)
        self.deviation = max(deviation, self.deviation)
        if math.isfinite(deviation):
            return True
        self._part(FINITE, f"a deviation of {deviation}")
        return False

    def _part(self, expected: State, found: State) -> None:
        self.parted = self.parted or (expected, found)


class Lockstep(_Followed):
    """One input, followed through the net, the lowered source and the user's source at once. An interpreter
    goes on when the decoded net does; the states kept here are the interpreters' own, never the net's."""

    def __init__(self, compiled: Compiled, inputs: tuple[Any, ...], engine: str = "reference") -> None:
        self.rules: set[Hashable] = set()
        """The rules of the user's own source that were exercised, where it has rules."""
        self.source_state: State = compiled.source.start(*inputs)
        self.lowered_state: State = compiled.encode(self.source_state)
        super().__init__(compiled, engine, self.lowered_state)
        self._lowered: Iterator[State] = compiled.lowered.run(self.lowered_state)
        self._source: Iterator[State] = self._noted(compiled.source.run(self.source_state))
        covered = [p.covers for p in compiled.passes if p.covers is not None]
        self._whole_run_at_once = bool(covered)
        if covered:  # a rewriting of this kind shows only where the source stands at its end
            self._source = iter([_last(islice(self._source, covered[0] + 1))])
        self.steps = 0
        """Steps of the net so far."""
        self.agrees = True
        """Whether the net, as it decoded last, was where the interpreters are."""
        self._look()

    def step(self, most: int = 1) -> None:
        """One step of the net, and of the interpreters if it decodes to a new state; or several, at most so
        many, up to the next state that can be compared."""
        net = self.compiled.net
        count = min(most, net.silent(self.carry))
        self.carry = net.advance(self.carry, count, self.engine)
        self.steps += count
        self._look()

    def _look(self) -> None:
        net = self.compiled.net
        found = net.decode(self.carry)
        own = None if found is None else self._compare(found)
        self.agrees &= self._finite()
        self.ended = net.done(self.carry)
        if self.ended and self._whole_run_at_once and not self.states and self.agrees:
            raise Refused(
                "the net ends between two steps of the source, so there is no state to compare",
                advice="Compile with more steps, or take `tape` or `emulator`, which need no number of them.",
            )
        if self.ended:  # then both interpreters must have halted too
            for run in (self._lowered, self._source):
                expected = next(run, ENDED)
                if expected is not ENDED:
                    self._part(expected, STOPPED)
            if own is None:  # between two steps of the source, whose last state can still be read
                own = self.compiled.decode(found, last=True)
                if not same(own, self.source_state):
                    self._part(self.source_state, NOTHING if own is None else own)

    def _noted(self, states: Iterator[State]) -> Iterator[State]:
        """The states of the user's own source; a rule is exercised when the state after it is asked for."""
        source, rules = self.compiled.source, kind_of(self.compiled.source).rules
        before = None
        for state in states:
            if rules is not None and before is not None:
                self.rules.add(rules.at(source, before))
            before = state
            yield state

    def _compare(self, found: State) -> State | None:
        """Gives back the state of the user's source that was compared, if there was one."""
        expected = next(self._lowered, ENDED)
        self.agrees = same(found, expected)
        if not self.agrees:
            self._part(expected, found)
        if expected is not ENDED:
            self.lowered_state = expected
        # A net that has gone wrong is not decoded further; the interpreters still go on together.
        own = self.compiled.decode(found if self.agrees else self.lowered_state)
        if own is None:
            return None
        expected = next(self._source, ENDED)
        self.states += 1
        if not same(own, expected):
            self.agrees = False
            self._part(expected, own)
        if expected is not ENDED:
            self.source_state = expected
        return own


def same(a: State, b: State) -> bool:
    """Whether two states, or parts of them, are equal."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return a == b


def _last(states: Iterable[State]) -> State:
    *_, last = states
    return last


# Verifying runs of millions of steps: net and compiled interpreter compared every so many steps.


def at_the_pace_of_the_net(compiled: Compiled) -> tuple[Source, tuple[Rewriting, ...]]:
    """The source with a compiled interpreter that a net is in step with, if there is one: the one that it was
    built from, or one before it; and the passes that lead on from there."""
    source, inner = compiled.lowered, ()
    for rewriting in reversed(compiled.passes):
        if kind_of(source).compiled_run is not None or not rewriting.in_step:
            break
        source, inner = rewriting.before, (rewriting, *inner)
    return source, inner


class Leaps(_Followed):
    """One input, followed in leaps of `every` steps, `limit` at most. Between two comparisons nothing is
    looked at; at the halt the user's own source is run to its end as well, and its last state compared."""

    def __init__(
        self, compiled: Compiled, inputs: tuple[Any, ...], engine: str, every: int, limit: int
    ) -> None:
        self.followed, self.inner = at_the_pace_of_the_net(compiled)
        interpreter = kind_of(self.followed).compiled_run
        if interpreter is None:
            raise InputError(
                "only nets of machines and programs are verified in leaps", advice="Leave out `every`."
            )
        self.interpreter = imported(interpreter)
        self.every, self.limit = every, limit
        self.first = compiled.source.start(*inputs)
        self.outer = compiled.passes[: len(compiled.passes) - len(self.inner)]
        self.reached: State = self.first
        for rewriting in self.outer:
            self.reached = rewriting.encode(self.reached)
        self.halted = False
        """Whether the interpreter has; a net that is in step with it may go on."""
        super().__init__(compiled, engine, compiled.encode(self.first))
        while compiled.net.decode(self.carry) is None:  # before the first state of the machine
            self.carry = compiled.net.advance(self.carry, 1, engine)
        self._look()

    @property
    def source_state(self) -> State | None:
        """Where the user's own source stands, if that can be told."""
        state: State | None = self.reached
        for rewriting in reversed(self.outer):
            state = None if state is None else rewriting.decode(state)
        return state

    @property
    def agrees(self) -> bool:
        """Whether the net has been where the interpreter was, whenever it was looked at."""
        return self.parted is None

    @property
    def steps(self) -> int:
        """Steps of the net so far."""
        return self.compiled.net.steps_taken(self.carry)

    def step(self) -> None:
        """One leap of the net, and of the interpreter of the source that goes at its pace."""
        net, before = self.compiled.net, self.steps
        self.carry = net.advance(self.carry, min(self.every, self.limit - before), self.engine)
        leap = self.interpreter(self.followed, self.reached, self.steps - before)
        if leap.steps < self.steps - before and not self.inner:
            self.parted = ENDED, net.decode(self.carry)
            return
        self.reached, self.halted = leap.final, leap.halted
        self._look()

    def _look(self) -> None:
        net = self.compiled.net
        found = net.decode(self.carry)
        for rewriting in reversed(self.inner):
            found = None if found is None else rewriting.decode(found)
        if found is None and self.halted and not net.done(self.carry):
            return
        self.states += 1
        if found != self.reached:
            self._part(self.reached, found)
        if self._finite() and self.parted is None:
            self.ended = net.done(self.carry)
        if self.ended:
            self.parted = self._left_over()

    def _left_over(self) -> tuple[State, State] | None:
        """The net is done: then both machines must have halted, in states that decode to each other."""
        further = self.interpreter(self.followed, self.reached, 1)
        if further.steps:
            return further.final, STOPPED
        source = self.compiled.source
        interpreter = kind_of(source).compiled_run
        if interpreter is not None:
            own = imported(interpreter)(source, self.first)
            decoded: State | None = self.reached
            for rewriting in reversed(self.outer):
                decoded = None if decoded is None else rewriting.decode_last(decoded)
            if decoded != own.final:
                return own.final, NOTHING if decoded is None else decoded
        return None


class Ahead(Protocol):
    """What a compiled interpreter says of a run."""

    @property
    def steps(self) -> int: ...

    @property
    def halted(self) -> bool: ...


def looked_ahead(compiled: Compiled, words: tuple[Any, ...], horizon: int) -> Ahead | None:
    """The run of the source that the net is in step with, in a fraction of the time that the net will take;
    None where there is no compiled interpreter of it, or where it takes too much memory."""
    source, inner = at_the_pace_of_the_net(compiled)
    interpreter = kind_of(source).compiled_run
    if interpreter is None:
        return None
    first = compiled.source.start(*words)
    for rewriting in compiled.passes[: len(compiled.passes) - len(inner)]:
        first = rewriting.encode(first)
    try:
        return imported(interpreter)(source, first, horizon)
    except Refused:
        return None


def engine_for(compiled: Compiled, first: State, steps: int, ahead: Ahead | None) -> str:
    """The engine for a run of at most so many steps from this first state of the lowered source, where none
    is asked for: the fast one, where there is one, if the run is long, as the compiled interpreter has
    found."""
    net = compiled.net
    length = 0 if ahead is None else min(ahead.steps, steps)
    if "fast" in net.engines and length > net.short_run:
        return "fast"
    known = ahead is not None and ahead.halted
    return net.engine_for(net.start(first), length if known else steps)
