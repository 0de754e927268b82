"""Verifying runs of millions of steps: net and compiled interpreter compared every so many steps."""

from collections.abc import Callable
from typing import Any

from tapegrad.compile import Compiled
from tapegrad.errors import InputError
from tapegrad.lowering.rewriting import State
from tapegrad.machines import compiled as interpreter
from tapegrad.machines.grid import GridMachine
from tapegrad.machines.model import TuringMachine


class Leaps:
    """One input, followed in leaps of `every` steps. Between two comparisons nothing is looked at; at the
    halt the user's own source is run to its end as well, and its last state compared."""

    def __init__(self, compiled: Compiled, inputs: tuple[Any, ...], engine: str, every: int) -> None:
        if not isinstance(compiled.lowered, TuringMachine | GridMachine):
            raise InputError("only nets of machines are verified in leaps", advice="Leave out `every`.")
        self.compiled, self.engine, self.every = compiled, engine, every
        self.first = compiled.source.start(*inputs)
        self.lowered: TuringMachine | GridMachine = compiled.lowered
        self.reached: State = compiled.encode(self.first)
        self.carry = compiled.net.start(self.reached)
        self.states = 0
        self.deviation = 0.0
        self.ended = False

    @property
    def steps(self) -> int:
        """Steps of the net so far."""
        return self.compiled.net.steps_taken(self.carry)

    def follow(self, limit: int, progress: Callable[[int], None] | None) -> tuple[State, State] | None:
        """Leaps until the net is done or the limit is reached; expected and found where they differ."""
        net = self.compiled.net
        while net.decode(self.carry) is None:  # before the first state of the machine
            self.carry = net.advance(self.carry, 1, self.engine)
        while True:
            found = net.decode(self.carry)
            self.states += 1
            self.deviation = max(self.deviation, net.deviation(self.carry))
            if found != self.reached:
                return self.reached, found
            if net.done(self.carry):
                self.ended = True
                return self._ends()
            if self.steps >= limit:
                return None
            before = self.steps
            self.carry = net.advance(self.carry, min(self.every, limit - before), self.engine)
            leap = interpreter.run(self.lowered, self.reached, self.steps - before)
            if leap.steps < self.steps - before:
                return "the source has halted", net.decode(self.carry)
            self.reached = leap.final
            if progress is not None:
                progress(self.steps)

    def _ends(self) -> tuple[State, State] | None:
        """The net is done: then both machines must have halted, in states that decode to each other."""
        if self.lowered.step(self.reached) is not None:
            return self.lowered.step(self.reached), "the net has stopped"
        source = self.compiled.source
        if isinstance(source, TuringMachine | GridMachine):
            own = interpreter.run(source, self.first)
            decoded = self.compiled.decode(self.reached)
            if decoded != own.final:
                return own.final, decoded
        return None
