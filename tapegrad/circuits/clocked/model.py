"""Circuits with state: latches that all take their next values at once, at every tick of one clock; and the
plain interpreter, the oracle.

In a cycle the outputs and the next values of the latches are functions of the inputs and of the latches as
they are. So a circuit with state is a circuit without, its `logic`, whose last inputs are the latches and
whose last outputs are what they become.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.circuits.model import Circuit, batch_of_bits
from tapegrad.errors import InputError, SourceError

ANY = 2
"""The reset value of a latch that the circuit leaves open: a run begins with what it is told, else with 0."""
MOST_TRACED = 1 << 28
"""Bits of inputs of one run."""


@dataclass(frozen=True, eq=False)
class SequentialState:
    """Where a circuit stands after so many cycles: what the latches hold, and what the outputs were, a row
    for each cycle that is known, the last ones. An interpreter knows them all, a network perhaps the last."""

    latches: tuple[int, ...]
    cycle: int
    outputs: NDArray[np.uint8]
    trace: NDArray[np.uint8] = field(repr=False)
    """The inputs of all cycles, those to come included: a row each."""

    def __eq__(self, other: object) -> bool:
        """Outputs are compared as far as both states know them."""
        if not isinstance(other, SequentialState):
            return NotImplemented
        known = min(len(self.outputs), len(other.outputs))
        mine, theirs = (state.outputs[len(state.outputs) - known :] for state in (self, other))
        return (self.latches, self.cycle) == (other.latches, other.cycle) and np.array_equal(mine, theirs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        latches = "".join(map(str, self.latches))
        last = "".join(map(str, self.outputs[-1].tolist())) if len(self.outputs) else "none yet"
        return f"<after {self.cycle:,} cycles, latches {latches}, outputs {last}>"


@dataclass(frozen=True, eq=False)
class SequentialCircuit:
    """The logic, and for every latch its value at reset: 0, 1 or ANY."""

    logic: Circuit
    resets: tuple[int, ...]

    def __post_init__(self) -> None:
        count = len(self.resets)
        if count > min(len(self.logic.inputs), len(self.logic.outputs)):
            raise SourceError(
                f"the circuit {self.name!r} has {count} latches, but its logic has {len(self.logic.inputs)} "
                f"inputs and {len(self.logic.outputs)} outputs",
                advice="The latches are the last inputs, and their next values the last outputs.",
            )
        if not set(self.resets) <= {0, 1, ANY}:
            raise SourceError(f"a latch of {self.name!r} is reset to something else than 0, 1 or {ANY} (any)")

    @property
    def name(self) -> str:
        """That of the logic."""
        return self.logic.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """Inputs, without latches."""
        return self.logic.inputs[: len(self.logic.inputs) - len(self.resets)]

    @property
    def latches(self) -> tuple[str, ...]:
        """Latches by name."""
        return self.logic.inputs[len(self.inputs) :]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs, without what latches become."""
        return self.logic.outputs[: len(self.logic.outputs) - len(self.resets)]

    @property
    def open_latches(self) -> tuple[str, ...]:
        """Latches whose value at reset is open."""
        return tuple(name for name, reset in zip(self.latches, self.resets, strict=True) if reset == ANY)

    def start(self, trace: ArrayLike, first: ArrayLike = ()) -> SequentialState:
        """Before the first cycle. The trace has a row of bits for each cycle; of a circuit without inputs it
        may be the number of cycles. `first` are the values of the latches that the circuit leaves open, in
        their order; without it they are 0."""
        rows = self._rows(trace)
        given = np.asarray(first, np.int64).ravel() if np.size(first) else np.zeros(0, np.int64)
        open_latches = len(self.open_latches)
        if len(given) not in (0, open_latches) or not np.isin(given, (0, 1)).all():
            raise InputError(
                f"{len(given)} first values were given for {self.name!r}",
                advice=f"It leaves {open_latches} latches open; give a bit for each, or none.",
            )
        values = iter(given.tolist() or [0] * open_latches)
        latches = tuple(next(values) if reset == ANY else reset for reset in self.resets)
        return SequentialState(latches, 0, np.zeros((0, len(self.outputs)), np.uint8), rows)

    def _rows(self, trace: ArrayLike) -> NDArray[np.uint8]:
        if np.ndim(trace) == 0:
            cycles = int(np.asarray(trace))
            if self.inputs or not 0 <= cycles <= MOST_TRACED:
                raise InputError(
                    f"{cycles:,} cycles of {self.name!r} have no inputs",
                    advice=f"Give a row of {len(self.inputs)} bits for each cycle.",
                )
            return np.zeros((cycles, 0), np.uint8)
        if np.size(trace) == 0:
            return np.zeros((len(np.asarray(trace)), len(self.inputs)), np.uint8)
        if np.size(trace) > MOST_TRACED:
            raise InputError(f"a trace of {np.size(trace):,} bits is longer than {MOST_TRACED:,}")
        return batch_of_bits(trace, self.inputs, self.name).astype(np.uint8)

    def run(self, state: SequentialState) -> Iterator[SequentialState]:
        """The state before each cycle, and the last one."""
        yield state
        rows = np.zeros((len(state.trace), len(self.outputs)), np.uint8)
        known = len(state.outputs)
        rows[state.cycle - known : state.cycle] = state.outputs
        first = state.cycle - known
        for cycle in range(state.cycle, len(state.trace)):
            outputs, latches = self.after(state.trace[cycle].tolist(), state.latches)
            rows[cycle] = outputs
            state = replace(state, latches=latches, cycle=cycle + 1, outputs=rows[first : cycle + 1])
            yield state

    def after(self, inputs: list[int], latches: tuple[int, ...]) -> tuple[list[int], tuple[int, ...]]:
        """The outputs of a cycle, and what the latches become: gate by gate."""
        values = [*inputs, *latches]
        for kind, left, right in self._gates:
            values.append(kind >> (2 * values[left] + values[right]) & 1 if values else kind & 1)
        found = [values[wire] for wire in self._wires]
        return found[: len(self.outputs)], tuple(found[len(self.outputs) :])

    @cached_property
    def _gates(self) -> list[tuple[int, int, int]]:
        logic = self.logic
        return list(zip(logic.kinds.tolist(), logic.left.tolist(), logic.right.tolist(), strict=True))

    @cached_property
    def _wires(self) -> list[int]:
        return self.logic.output_wires.tolist()


def with_latches(logic: Circuit, resets: tuple[int, ...]) -> Circuit | SequentialCircuit:
    """The circuit with these latches; as it is, where there are none."""
    return SequentialCircuit(logic, resets) if resets else logic


def next_names(outputs: tuple[str, ...], latches: tuple[str, ...]) -> list[str]:
    """Names for what latches become, which no output has."""
    taken, names = set(outputs), []
    for latch in latches:
        name = f"{latch}'"
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(name)
    return names


@dataclass(frozen=True)
class Ahead:
    """What is known of a run before a network takes it."""

    steps: int
    halted: bool
    final: SequentialState


def look_ahead(source: SequentialCircuit, state: SequentialState, steps: int = 1 << 62) -> Ahead:
    """The run from a state, for at most so many cycles."""
    last = min(len(state.trace), state.cycle + steps)
    *_, final = source.run(replace(state, trace=state.trace[:last]))
    return Ahead(last - state.cycle, last == len(state.trace), replace(final, trace=state.trace))
