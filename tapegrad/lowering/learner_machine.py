"""Learner to machine: a block of cells for every sample, and the memory moves on from block to block.

A block is

    flag    1 if there is a sample
    state   the answer to the sample before, whether it counts, and the memory
    sample  x, y, the random bit and the guess: never written to
    work    whatever the evaluation of the learner's circuit needs

in the order that suits the evaluation. The machine evaluates one step of the learner on the block under its
head, writes the state into the next block, and goes there; in a block without a sample it halts. Where the
head is depends on the time alone, and the number of states on the learner alone. It has two symbols and
never stays. Measured:

    learner                   gates   states   steps for a sample
    majority of 3 labels         19      589     187
    parity of 2 bits             29    1,184     332
    conjunction of 3 bits        79    3,276     997
    parity of 4 bits             76    6,349   1,793
    parity of 8 bits            220   48,592  12,672
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapegrad.circuits.builder import CircuitBuilder, Wire, copied
from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import InputError
from tapegrad.learners.model import Learner, LearnerState, Samples
from tapegrad.lowering.itinerary import Itinerary, Output, Spot, Walks, itinerary
from tapegrad.lowering.schedule import refuse_many_gates
from tapegrad.machines.model import LEFT, RIGHT, Cell, Configuration, Rule, TuringMachine
from tapegrad.source import Rewriting

# What a learner does with one sample, as gates: respond, and learn where the response was wrong.


def learner_step(
    build: CircuitBuilder,
    learner: Learner,
    memory: Sequence[Wire],
    x: Sequence[Wire],
    label: Wire,
    random: Wire,
    guess: Wire,
) -> tuple[Wire, Wire, list[Wire]]:
    """The answer, whether the learner had finished, and its memory afterwards."""
    answer, finished, *if_wrong = copied(learner.circuit, build, [*memory, *x, random, guess])
    return answer, finished, _where_wrong(build, answer, label, if_wrong, memory)


def _where_wrong(
    build: CircuitBuilder, answer: Wire, label: Wire, new: Sequence[Wire], old: Sequence[Wire]
) -> list[Wire]:
    wrong = build.xor(answer, label)
    if build.known(wrong) is True:
        return list(new)
    return [build.where(wrong, after, before) for after, before in zip(new, old, strict=True)]


def unguided_step(
    build: CircuitBuilder,
    learner: Learner,
    memory: Sequence[Wire],
    x: Sequence[Wire],
    label: Wire,
    random: Wire,
) -> list[Wire]:
    """The memory after a sample that comes with a wrong guess, case by case. A learner that has not finished
    says the guess, and so need not answer; then there is less to compute if it never changes its memory once
    it has finished."""
    given = [*memory, *x, random, build.not_(label)]
    _, finished, *_ = copied(learner.circuit, build, given)
    cases: list[list[Wire]] = []
    for case in (True, False):
        answer, _, *if_wrong = _supposing(learner.circuit, build, given, build.constant(case))
        cases.append(_where_wrong(build, answer, label, if_wrong, memory))
    return [build.where(finished, one, other) for one, other in zip(*cases, strict=True)]


def answers_as_finished(build: CircuitBuilder, learner: Learner, given: Sequence[Wire]) -> Wire:
    """The answer of a learner that has finished, from its memory and x."""
    nothing = build.constant(False)
    return _supposing(learner.circuit, build, [*given, nothing, nothing], build.constant(True))[0]


def _supposing(circuit: Circuit, build: CircuitBuilder, inputs: Sequence[Wire], finished: Wire) -> list[Wire]:
    """The learner's outputs in the case that it has finished, or that it has not. A choice that is made
    thereby, `b ^ (a ^ b)`, becomes `a`."""
    says_so = int(circuit.output_wires[1])
    wires = [finished if wire == says_so else given for wire, given in enumerate(inputs)]
    sums: dict[Wire, tuple[Wire, Wire]] = {}
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for own, (kind, *operands) in enumerate(rows, len(wires)):
        a, b, *_ = [*(wires[wire] for wire in operands[: ARITY[kind]]), 0, 0]
        if own == says_so:
            wires.append(finished)
        elif kind == Gate.XOR and a in sums.get(b, ()):
            wires.append(_other(sums[b], a))
        elif kind == Gate.XOR and b in sums.get(a, ()):
            wires.append(_other(sums[a], b))
        else:
            wires.append(build.gate(Gate(kind), a, b))
            if kind == Gate.XOR:
                sums[wires[-1]] = a, b
    return [wires[wire] for wire in circuit.output_wires.tolist()]


def _other(pair: tuple[Wire, Wire], one: Wire) -> Wire:
    return pair[1] if pair[0] == one else pair[0]


NEXT = "next sample"
"""The state in which the machine looks at a flag: the learner is between two samples."""

FLAG: Cell = (0, 0)
_MOVES = {"left": LEFT, "right": RIGHT}


def learner_machine(learner: Learner, carried: int = 2) -> Rewriting:
    """The machine that learns as the learner does. It carries about `carried` wires in its state."""
    if carried < 1:
        raise InputError("the machine of a learner carries at least one wire")
    refuse_many_gates(learner.circuit)
    circuit = _step_circuit(learner)
    states = 2 + learner.cells
    trip = itinerary(circuit, carried, kept=range(states, len(circuit.inputs)))
    block = _Block(trip, states)
    walks = Walks({"0": 0, "1": 1}, ("0", "1"))
    beyond = (0, block.width)
    first, state = walks.evaluate(trip, block.cells, "step", (beyond, NEXT))
    walks.go(NEXT, {"1": "1"}, FLAG, first, state)
    machine = TuringMachine(
        {
            (state, (read,)): Rule((rule.write,), (_MOVES[rule.move],), rule.state)
            for (state, read), rule in walks.items()
        },
        start_state=NEXT,
        blank="0",
        alphabet=("0", "1"),
        name=f"{learner.name} (block by block)",
    )

    def encode(state: LearnerState) -> Configuration:
        marks = {block.width * state.position + cell for cell in block.state_marks(state)}
        for t in range(len(state.samples)):
            marks |= {block.width * t + cell for cell in block.sample_marks(state.samples, t)}
        return Configuration(NEXT, (dict.fromkeys(sorted(marks), "1"),), (block.width * state.position,))

    def decode(configuration: Configuration) -> LearnerState | None:
        return block.read(configuration, learner) if configuration.state == NEXT else None

    def relation() -> tuple[dict[str, Any], dict[str, Any]]:
        return block.to_json(trip), {}

    return Rewriting("block by block", learner, machine, encode, decode, relation=relation)


def _step_circuit(learner: Learner) -> Circuit:
    """From the state and the sample to the state afterwards."""
    build = CircuitBuilder()
    for name in ("answered", "had finished"):
        build.input(name)
    memory = [build.input(f"memory[{i}]") for i in range(learner.cells)]
    x = [build.input(f"x[{i}]") for i in range(learner.inputs)]
    label, random, guess = (build.input(name) for name in ("y", "random", "guess"))
    answer, finished, after = learner_step(build, learner, memory, x, label, random, guess)
    build.output("answered", answer)
    build.output("had finished", finished)
    for i, wire in enumerate(after):
        build.output(f"memory[{i}]", wire)
    return build.circuit(learner.name)


class _Block:
    """Where everything lies in a block."""

    def __init__(self, trip: Itinerary, states: int) -> None:
        used = [*trip.inputs, *(stop.spot for stop in trip.stops if isinstance(stop.spot, int))]
        shift = 1 - min(used)  # the flag comes first
        self.width = max(used) + shift + 1
        inputs = [spot + shift for spot in trip.inputs]
        self.state, self.sample = inputs[:states], inputs[states:]
        self.cells: dict[Spot, Cell] = {spot: (0, spot + shift) for spot in used}
        self.cells |= {Output(i): (0, self.width + cell) for i, cell in enumerate(self.state)}

    def to_json(self, trip: Itinerary) -> dict[str, Any]:
        """Where state and sample lie, and the round trip, stop by stop."""
        return {
            "width": self.width,
            "state": self.state,
            "sample": self.sample,
            "stops": [
                [self.cells[stop.spot][1], *stop.moment.to_json(trip.operations)] for stop in trip.stops
            ],
        }

    def state_marks(self, state: LearnerState) -> set[int]:
        """The cells of a block that hold a 1 when the learner has come to it."""
        bits = (int(state.answer or 0), int(state.answer is not None), *state.memory)
        return {cell for cell, bit in zip(self.state, bits, strict=True) if bit}

    def sample_marks(self, samples: Samples, t: int) -> set[int]:
        """The cells of the block of sample t that hold a 1 from the beginning."""
        x, y, random, guess = samples[t]
        return {0} | {cell for cell, bit in zip(self.sample, (*x, y, random, guess), strict=True) if bit}

    def read(self, configuration: Configuration, learner: Learner) -> LearnerState:
        """The learner's state, the head being on a flag; and all samples, which are still there."""
        tape, here = configuration.tapes[0], configuration.heads[0]
        position = here // self.width
        count = position
        while self.width * count in tape:
            count += 1
        answer, finished, *memory = self._bits(tape, here, self.state)
        rows = [self._bits(tape, self.width * t, self.sample) for t in range(count)]
        table = np.array(rows, np.uint8).reshape(count, learner.inputs + 3)
        x, (y, random, guess) = table[:, : learner.inputs], table[:, learner.inputs :].T
        return LearnerState(
            tuple(memory), position, answer if finished else None, Samples(x, y, random, guess)
        )

    @staticmethod
    def _bits(tape: Mapping[int, str], block: int, cells: Sequence[int]) -> list[int]:
        return [int(tape.get(block + cell) == "1") for cell in cells]
