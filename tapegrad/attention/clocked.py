"""Circuits with state as machines with a memory: a cycle of the one is a step of the other.

Latches and the outputs of the last cycle are registers, and so is the number of the cycle. The trace is a
memory that is only read: the word of a cycle has the inputs, and a bit that says whether it is the last.
Cycles in which all inputs are 0 take no token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegrad._sources import source_from_json, source_to_json
from tapegrad.circuits import UInt, concat
from tapegrad.circuits.clocked.model import SequentialCircuit, SequentialState
from tapegrad.circuits.model import GATES
from tapegrad.circuits.replay import replayed
from tapegrad.circuits.types import IntType
from tapegrad.circuits.values import IntValue
from tapegrad.errors import BrokenNet, Refused
from tapegrad.programs.model import Effect, Memory, Read, Step

CLOCK = "clock"
Words = list[int] | dict[int, int]


@dataclass(frozen=True, eq=False)
class ClockPorts:
    """A circuit with state, for runs of at most so many cycles."""

    source: SequentialCircuit
    cycles: int

    @property
    def registers(self) -> Mapping[str, IntType]:
        """The number of cycles taken so far is in `taken`."""
        sizes = {
            "latches": len(self.source.latches),
            "outputs": len(self.source.outputs),
            "taken": self.cycles.bit_length(),
            "trap": 1,
        }
        return {name: UInt(size) for name, size in sizes.items() if size}

    @property
    def memories(self) -> Mapping[str, Memory]:
        return {"input": Memory(1 + len(self.source.inputs), self.cycles)}

    def step(self, registers: Mapping[str, IntValue], /) -> Step:
        (word,) = yield (Read("input", registers["taken"]),)
        last, *inputs = word.bits()
        latches = registers["latches"].bits() if "latches" in registers else []
        found = replayed(self.source.logic, [*inputs, *latches])
        outputs, after = found[: len(self.source.outputs)], found[len(self.source.outputs) :]
        new = {"outputs": outputs, "latches": after, "trap": [last]}
        return Effect(
            {name: concat(*bits) for name, bits in new.items() if bits} | {"taken": registers["taken"] + 1},
            [],
        )

    def contents(self, state: SequentialState, /) -> tuple[dict[str, int], dict[str, Words]]:
        """What registers and the memory hold in a state."""
        if len(state.trace) > self.cycles:
            raise Refused(
                f"a trace of {len(state.trace):,} cycles is given, and the net is for {self.cycles:,}",
                advice=f"Compile with steps={len(state.trace)}.",
            )
        outputs = state.outputs[-1].tolist() if len(state.outputs) else []
        values = {"latches": state.latches, "outputs": outputs, "trap": [state.cycle == len(state.trace)]}
        registers = {
            name: sum(int(bit) << place for place, bit in enumerate(values[name]))
            for name in self.registers
            if name in values
        }
        weights = 1 << np.arange(1, 1 + len(self.source.inputs), dtype=object)
        words = [int(number) for number in state.trace.astype(object) @ weights]
        if words:
            words[-1] |= 1
        return registers | {"taken": state.cycle}, {"input": words}

    def state(
        self, registers: Mapping[str, int], memories: Mapping[str, Words], first: SequentialState, /
    ) -> SequentialState:
        """The state in which registers hold this. Of the outputs it knows the last."""
        count = len(self.source.outputs)
        row = np.array([[registers.get("outputs", 0) >> place & 1 for place in range(count)]], np.uint8)
        latches = registers.get("latches", 0)
        bits = tuple(latches >> place & 1 for place in range(len(self.source.latches)))
        cycle = registers["taken"]
        return SequentialState(bits, cycle, row.reshape(1, count)[: min(1, cycle)], first.trace)

    def to_json(self) -> dict[str, Any]:
        data, arrays = source_to_json(self.source)
        lists = {name: array.tolist() for name, array in arrays.items()}
        return {"kind": CLOCK, "cycles": self.cycles, "source": data, "arrays": lists}


def clock_ports(data: Mapping[str, Any]) -> ClockPorts:
    """The source again, from its JSON."""
    arrays = {name: np.array(values, _TYPES[name]) for name, values in data["arrays"].items()}
    source = source_from_json(data["source"], arrays)
    if not isinstance(source, SequentialCircuit):
        raise BrokenNet("the machine of the network is no circuit with state")
    return ClockPorts(source, int(data["cycles"]))


_TYPES = {**GATES, "resets": np.uint8}
