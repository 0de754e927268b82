"""A net and the interpreters of its source, stepped side by side: what `verify` and the player stand on."""

import math
from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._sources import kind_of
from tapegrad.errors import InputError, Refused
from tapegrad.source import State, imported
from tapegrad.targets import Carry

ENDED = "the source has halted"
STOPPED = "the net has stopped"
FINITE = "finite values"
NOTHING = "no state of the source"
"""What is found in place of a state where one side goes on and the other does not."""


class Lockstep:
    """One input, followed through the net, the lowered source and the user's source at once. An interpreter
    goes on when the decoded net does; the states kept here are the interpreters' own, never the net's."""

    def __init__(self, compiled: Compiled, inputs: tuple[Any, ...], engine: str = "reference") -> None:
        self.compiled, self.engine = compiled, engine
        self.rules: set[Hashable] = set()
        """The rules of the user's own source that were exercised, where it has rules."""
        self.source_state: State = compiled.source.start(*inputs)
        self.lowered_state: State = compiled.encode(self.source_state)
        self.carry: Carry = compiled.net.start(self.lowered_state)
        self._lowered: Iterator[State] = compiled.lowered.run(self.lowered_state)
        self._source: Iterator[State] = self._noted(compiled.source.run(self.source_state))
        covered = [p.covers for p in compiled.passes if p.covers is not None]
        self._whole_run_at_once = bool(covered)
        if covered:  # a rewriting of this kind shows only where the source stands at its end
            self._source = iter([_last(islice(self._source, covered[0] + 1))])
        self.steps = 0
        """Steps of the net so far."""
        self.states = 0
        """How many states of the user's own source were compared."""
        self.deviation = 0.0
        """The largest so far."""
        self.agrees = True
        """Whether the net, as it decoded last, was where the interpreters are."""
        self.parted: tuple[State, State] | None = None
        """Expected and found, where they differed first."""
        self.ended = False
        """Whether the net says that it is done."""
        self._look()

    def step(self) -> None:
        """One step of the net, and of the interpreters if it decodes to a new state."""
        self.carry = self.compiled.net.advance(self.carry, 1, self.engine)
        self.steps += 1
        self._look()

    def _look(self) -> None:
        net = self.compiled.net
        found = net.decode(self.carry)
        own = None if found is None else self._compare(found)
        deviation = net.deviation(self.carry)
        if not math.isfinite(deviation):  # `max` would pass over it
            self.agrees = False
            self._part(FINITE, f"a deviation of {deviation}")
        self.deviation = max(deviation, self.deviation)
        self.ended = net.done(self.carry)
        if self.ended and self._whole_run_at_once and not self.states and self.agrees:
            raise Refused(
                "the net ends between two steps of the source, so there is no state to compare",
                advice="Compile with more steps.",
            )
        if self.ended:  # then both interpreters must have halted too
            for run in (self._lowered, self._source):
                expected = next(run, ENDED)
                if expected is not ENDED:
                    self._part(expected, STOPPED)
            if own is None:  # between two steps of the source, whose last state can still be read
                own = self.compiled.decode(found, last=True)
                if not _equal(own, self.source_state):
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
        self.agrees = _equal(found, expected)
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
        if not _equal(own, expected):
            self.agrees = False
            self._part(expected, own)
        if expected is not ENDED:
            self.source_state = expected
        return own

    def _part(self, expected: State, found: State) -> None:
        self.parted = self.parted or (expected, found)


def _equal(a: State, b: State) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return a == b


def _last(states: Iterable[State]) -> State:
    *_, last = states
    return last


# Verifying runs of millions of steps: net and compiled interpreter compared every so many steps.


class Leaps:
    """One input, followed in leaps of `every` steps, `limit` at most. Between two comparisons nothing is
    looked at; at the halt the user's own source is run to its end as well, and its last state compared."""

    def __init__(
        self, compiled: Compiled, inputs: tuple[Any, ...], engine: str, every: int, limit: int
    ) -> None:
        interpreter = kind_of(compiled.lowered).compiled_run
        if interpreter is None:
            raise InputError("only nets of machines are verified in leaps", advice="Leave out `every`.")
        self.interpreter = imported(interpreter)
        self.compiled, self.engine, self.every, self.limit = compiled, engine, every, limit
        self.first = compiled.source.start(*inputs)
        self.lowered = compiled.lowered
        self.reached: State = compiled.encode(self.first)
        self.carry = compiled.net.start(self.reached)
        self.states = 0
        self.deviation = 0.0
        self.parted: tuple[State, State] | None = None
        self.ended = False
        while compiled.net.decode(self.carry) is None:  # before the first state of the machine
            self.carry = compiled.net.advance(self.carry, 1, engine)
        self._look()

    @property
    def steps(self) -> int:
        """Steps of the net so far."""
        return self.compiled.net.steps_taken(self.carry)

    def step(self) -> None:
        """One leap of the net, and of the interpreter of the source it was built from."""
        net, before = self.compiled.net, self.steps
        self.carry = net.advance(self.carry, min(self.every, self.limit - before), self.engine)
        leap = self.interpreter(self.lowered, self.reached, self.steps - before)
        if leap.steps < self.steps - before:
            self.parted = ENDED, net.decode(self.carry)
            return
        self.reached = leap.final
        self._look()

    def _look(self) -> None:
        net = self.compiled.net
        found = net.decode(self.carry)
        self.states += 1
        deviation = net.deviation(self.carry)
        self.deviation = max(deviation, self.deviation)
        if found != self.reached:
            self.parted = self.reached, found
            return
        if not math.isfinite(deviation):
            self.parted = FINITE, f"a deviation of {deviation}"
            return
        self.ended = net.done(self.carry)
        if self.ended:
            self.parted = self._left_over()

    def _left_over(self) -> tuple[State, State] | None:
        """The net is done: then both machines must have halted, in states that decode to each other."""
        further = self.interpreter(self.lowered, self.reached, 1)
        if further.steps:
            return further.final, STOPPED
        source = self.compiled.source
        interpreter = kind_of(source).compiled_run
        if interpreter is not None:
            own = imported(interpreter)(source, self.first)
            decoded = self.compiled.decode(self.reached, last=True)
            if decoded != own.final:
                return own.final, NOTHING if decoded is None else decoded
        return None
