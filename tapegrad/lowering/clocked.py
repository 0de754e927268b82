"""Circuits with state as learners, and as circuits without; and circuits without state as circuits with one.

A learner has a state already: its memory. So latches are memory, a cycle is a sample, and the outputs of the
last cycle are kept beside the latches, that they can be seen. Every guess is wrong, so that every sample is
learned from: what is learned is the next state.

Without state, cycles come one after the other: the logic as often as there are cycles, each copy reading what
the one before has made of the latches.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapegrad.circuits.builder import CircuitBuilder, copied, simplified
from tapegrad.circuits.clocked.kind import random_trace
from tapegrad.circuits.clocked.model import ANY, SequentialCircuit, SequentialState
from tapegrad.circuits.inputs import BUS
from tapegrad.circuits.layered import LARGEST, layered_widths
from tapegrad.circuits.model import Bits, Circuit
from tapegrad.circuits.tracer import Traced
from tapegrad.errors import InputError, Refused
from tapegrad.learners.model import CircuitLearner, LearnerState, Memory, Response, Samples
from tapegrad.source import Inputs, Rewriting


class ClockedLearner(CircuitLearner):
    """The learner whose memory is the latches and the last outputs. Its interpreter is the circuit's."""

    def __init__(self, source: SequentialCircuit, circuit: Circuit, first: tuple[int, ...]) -> None:
        super().__init__(circuit, len(source.inputs), first)
        self.source = source

    def respond(self, memory: Memory, x: Sequence[int], random: int, guess: int) -> Response:
        outputs, latches = self.source.after(list(x), memory[: len(self.source.latches)])
        return Response(guess, 0, (*latches, *outputs))


def clocked_learner(source: SequentialCircuit) -> Rewriting:
    """The learner whose memory is the latches and the last outputs."""
    build = CircuitBuilder()
    latches = [build.input(f"latch {name}") for name in source.latches]
    for name in source.outputs:
        build.input(f"output {name}")
    inputs = [build.input(f"input {name}") for name in source.inputs]
    build.input("random")
    guess = build.input("guess")
    found = copied(source.logic, build, [*inputs, *latches])
    outputs, after = found[: len(source.outputs)], found[len(source.outputs) :]
    build.output("answer", guess)
    build.output("finished", build.constant(False))
    for name, wire in zip(source.latches, after, strict=True):
        build.output(f"latch {name}", wire)
    for name, wire in zip(source.outputs, outputs, strict=True):
        build.output(f"output {name}", wire)
    first = [0 if reset == ANY else reset for reset in source.resets] + [0] * len(source.outputs)
    learner = ClockedLearner(source, build.circuit(f"{source.name} as a learner"), tuple(first))

    def encode(state: SequentialState) -> LearnerState:
        ones = np.ones(len(state.trace), np.uint8)
        samples = Samples(state.trace, ones, 1 - ones, 1 - ones)
        last = state.outputs[-1].tolist() if len(state.outputs) else [0] * len(source.outputs)
        return LearnerState((*state.latches, *last), state.cycle, None, samples)

    def decode(state: LearnerState) -> SequentialState:
        count, known = len(source.latches), min(1, state.position)
        row = np.array(state.memory[count:], np.uint8).reshape(1, len(source.outputs))
        return SequentialState(state.memory[:count], state.position, row[:known], state.samples.x)

    return Rewriting("latches as memory", source, learner, encode, decode, in_step=True)


def one_cycle(circuit: Circuit) -> Rewriting:
    """The circuit as one with state that has no latches, and whose trace is a single row of inputs. So what
    is built for cycles evaluates gates as they are, without a machine in between."""
    clocked = SequentialCircuit(circuit, ())

    def encode(bits: Bits) -> SequentialState:
        if len(bits) != 1:
            raise InputError(
                f"a cycle takes one row of bits, not {len(bits)}", advice="Give them one by one."
            )
        return clocked.start(bits)

    def decode(state: SequentialState) -> Bits:
        return (state.outputs if state.cycle else state.trace).astype(bool)

    return Rewriting("one cycle", circuit, clocked, encode, decode, in_step=True, one_by_one=True)


def at_cycle(name: str, cycle: int) -> str:
    """The name of a bit in one cycle: `data[3]` in cycle 5 is `data@5[3]`, a bit of the value `data@5`."""
    bus = BUS.fullmatch(name)
    return f"{bus[1]}@{cycle}[{bus[2]}]" if bus else f"{name}@{cycle}"


def unrolled(source: SequentialCircuit, cycles: int) -> Rewriting:
    """The circuit of so many cycles. Its inputs are first the latches that are open, then the inputs cycle by
    cycle; its outputs those of every cycle, and last the latches."""
    if not isinstance(cycles, int) or cycles < 1:
        raise Refused(f"{cycles!r} cycles cannot be unrolled", advice="Ask for at least one.")
    refuse_many_cycles(source, cycles)
    circuit = _cycles(source, cycles)
    open_places = [place for place, reset in enumerate(source.resets) if reset == ANY]

    def encode(state: SequentialState) -> Bits:
        if state.cycle or len(state.trace) != cycles:
            raise InputError(
                f"the circuit is for {cycles:,} cycles from reset on, and {len(state.trace):,} were given",
                advice=f"Compile with cycles={len(state.trace)}.",
            )
        first = [state.latches[place] for place in open_places]
        return np.array([[*first, *state.trace.ravel().tolist()]], bool)

    def decode(row: Bits) -> SequentialState | None:
        if row.shape[1] != len(circuit.outputs):
            return None
        bits = row[0].astype(np.uint8)
        split = cycles * len(source.outputs)
        outputs = bits[:split].reshape(cycles, len(source.outputs))
        latches = bits[split : split + len(source.latches)]
        trace = np.zeros((cycles, len(source.inputs)), np.uint8)
        return SequentialState(tuple(latches.tolist()), cycles, outputs, trace)

    def default_inputs(random: np.random.Generator) -> tuple[Inputs, bool]:
        return iter([random_trace(source, random, cycles) for _ in range(TRACES)]), False

    return Rewriting(
        "cycles one after the other",
        source,
        circuit,
        encode,
        decode,
        covers=cycles,
        default_inputs=default_inputs,
    )


DONE = "done"
"""An output that is always 1, where there would be as many as inputs, so that the two rows are told apart."""
TRACES = 16
"""That an unrolled circuit is verified on."""


def _cycles(source: SequentialCircuit, cycles: int) -> Circuit:
    build = CircuitBuilder()
    latches = [
        build.input(at_cycle(name, 0)) if reset == ANY else build.constant(bool(reset))
        for name, reset in zip(source.latches, source.resets, strict=True)
    ]
    for cycle in range(1, cycles + 1):
        inputs = [build.input(at_cycle(name, cycle)) for name in source.inputs]
        found = copied(source.logic, build, [*inputs, *latches])
        for name, wire in zip(source.outputs, found, strict=False):
            build.output(at_cycle(name, cycle), wire)
        latches = found[len(source.outputs) :]
    for name, wire in zip(source.latches, latches, strict=True):
        build.output(at_cycle(name, cycles + 1), wire)
    if cycles * len(source.inputs) + len(source.open_latches) == cycles * len(source.outputs) + len(latches):
        build.output(DONE, build.constant(True))
    return build.circuit(f"{source.name}, {cycles:,} cycles")


def suiting(source: SequentialCircuit, first: SequentialState, steps: int) -> dict[str, Any]:
    """As many cycles as the trace has."""
    return {"cycles": len(first.trace)}


# What is known before anything is built.


VIA_MACHINE = {"machine", "tapes", "carried"}
"""Options of whoever asks for another way than the shortest."""
LARGE, MOST_WRITTEN = 1 << 12, 1 << 16
"""Gates from which on it is seen early whether they fit, which takes the same time once more; and beyond
which nobody looks how many they would be without those that are repeated or not needed."""
FEW = 64
"""Cycles that are unrolled in any case, to see what they take."""


def refuse_circuit(circuit: Circuit, target: str, first: Bits | None, options: Mapping[str, Any]) -> None:
    """Refuses what is too large for a machine, a drawing or a program, as they would, in the same words."""
    if not VIA_MACHINE.isdisjoint(options):
        return
    if target in ("tape", "simplex"):
        from tapegrad.lowering.schedule import refuse_many_gates

        refuse_many_gates(circuit)
    elif target in ("rcnn", "decoder"):
        _refuse_many_written(circuit.name, circuit.size, target)
        if circuit.size > LARGE and target == "rcnn":
            from tapegrad.lowering.circuit_grid import drawing_of

            drawing_of(simplified(circuit))
        elif circuit.size > LARGE:
            from tapegrad.lowering.circuit_rasp import refuse_many_expressions

            refuse_many_expressions(simplified(circuit), circuit.name)


def refuse_function(traced: Traced, target: str, first: Bits | None, options: Mapping[str, Any]) -> None:
    """The same for a function, by its circuit."""
    refuse_circuit(traced.circuit, target, first, options)


def _refuse_many_written(name: str, gates: int, target: str) -> None:
    if gates > MOST_WRITTEN:
        form = "drawn on a grid" if target == "rcnn" else "made a program"
        raise Refused(
            f"{name!r} has {gates:,} gates as it is written; {MOST_WRITTEN:,} at most are {form}",
            advice="Use the target relu, transformer or emulator, which take gates as they are.",
        )


def refuse(
    source: SequentialCircuit, target: str, first: SequentialState | None, options: Mapping[str, Any]
) -> None:
    """Refuses what cannot fit the target of this name; with a first state, for a run from there."""
    if target == "relu" and first is not None:
        refuse_many_cycles(source, len(first.trace))
    elif target == "rcnn" and first is not None:
        cycles = len(first.trace)
        _refuse_many_written(f"{source.name}, {cycles:,} cycles", cycles * source.logic.size, target)


def refuse_many_cycles(source: SequentialCircuit, cycles: int) -> None:
    """Refuses more cycles than fit a circuit in layers. The inputs of a late cycle are carried past all that
    come before it, and the outputs of an early one past all that come after, so that it is the square of
    their number that counts. Fewer cycles take fewer gates: so a few are tried, and then as many as
    would be too many if gates grow as the square does."""
    tried = FEW
    while tried < cycles:
        gates = int(layered_widths(_cycles(source, tried))[1:].sum())
        if gates > LARGEST:
            raise Refused(
                f"{cycles:,} cycles of {source.name!r}, one after the other, do not fit: {tried:,} of them "
                f"would take {gates:,} gates in layers, and the limit is {LARGEST:,}",
                advice=f"Ask for fewer than {tried:,}, or use the target transformer or emulator, where a "
                "cycle is one step.",
            )
        just_too_many = int(tried * math.sqrt(1.2 * LARGEST / max(1, gates)))
        tried = min(max(2 * tried, just_too_many), 4 * tried)
