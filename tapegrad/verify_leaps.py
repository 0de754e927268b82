"""Verifying runs of millions of steps: net and compiled interpreter compared every so many steps."""

from typing import Any

from tapegrad.compile import Compiled
from tapegrad.errors import InputError
from tapegrad.lockstep import ENDED, STOPPED
from tapegrad.lowering.rewriting import State
from tapegrad.machines import compiled as interpreter
from tapegrad.machines.grid import GridMachine
from tapegrad.machines.model import TuringMachine


class Leaps:
    """One input, followed in leaps of `every` steps, `limit` at most. Between two comparisons nothing is
    looked at; at the halt the user's own source is run to its end as well, and its last state compared."""

    def __init__(
        self, compiled: Compiled, inputs: tuple[Any, ...], engine: str, every: int, limit: int
    ) -> None:
        if not isinstance(compiled.lowered, TuringMachine | GridMachine):
            raise InputError("only nets of machines are verified in leaps", advice="Leave out `every`.")
        self.compiled, self.engine, self.every, self.limit = compiled, engine, every, limit
        self.first = compiled.source.start(*inputs)
        self.lowered: TuringMachine | GridMachine = compiled.lowered
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
        leap = interpreter.run(self.lowered, self.reached, self.steps - before)
        if leap.steps < self.steps - before:
            self.parted = ENDED, net.decode(self.carry)
            return
        self.reached = leap.final
        self._look()

    def _look(self) -> None:
        net = self.compiled.net
        found = net.decode(self.carry)
        self.states += 1
        self.deviation = max(self.deviation, net.deviation(self.carry))
        if found != self.reached:
            self.parted = self.reached, found
            return
        self.ended = net.done(self.carry)
        if self.ended:
            self.parted = self._left_over()

    def _left_over(self) -> tuple[State, State] | None:
        """The net is done: then both machines must have halted, in states that decode to each other."""
        if self.lowered.step(self.reached) is not None:
            return self.lowered.step(self.reached), STOPPED
        source = self.compiled.source
        if isinstance(source, TuringMachine | GridMachine):
            own = interpreter.run(source, self.first)
            decoded = self.compiled.decode(self.reached)
            if decoded != own.final:
                return own.final, decoded
        return None
