"""Configurations of a machine on wires of a circuit, and one step of the machine as gates.

A configuration lies on wires as one flag for each state, one flag for each cell that a head may be on, and
the symbols of all cells in binary. In one step

    read      bit j under the head = OR over cells of (head flag AND bit j of the cell)
    rule      fires = state flag AND one flag for the symbol read on each tape
    write     bit j of a cell ^= head flag AND (some rule that changes bit j fires)
    move      head flag = OR over moves of (a rule with this move fires AND the neighbour's flag)

so a step costs about 4 log2(symbols) + 5 gates a cell, and three a rule. A halted configuration fires no
rule and stays. A head that leaves the window leaves no flag behind, which `configuration` reports.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import Bits
from tapegrad.errors import InputError, Refused
from tapegrad.learners.model import CircuitLearner, LearnerState
from tapegrad.machines.model import MOVES, Configuration, GridConfiguration, GridMachine, TuringMachine
from tapegrad.machines.room import look_ahead, look_ahead_on_grid
from tapegrad.source import Rewriting

Cell = tuple[int, ...]
"""The coordinates of a cell: one number on a tape, row and column on a grid."""


@dataclass(frozen=True)
class _Firing:
    """A rule in the common form of both kinds of machine."""

    state: str
    read: tuple[str, ...]
    write: tuple[str, ...]
    moves: tuple[Cell, ...]
    next_state: str


@dataclass
class Wires:
    """A configuration on wires."""

    states: dict[str, Wire]
    heads: list[dict[Cell, Wire]]
    tapes: list[dict[Cell, list[Wire]]]


def window_of(machine: TuringMachine | GridMachine, cells: Any, first: Any = None) -> list[Cell]:
    dimensions = 2 if isinstance(machine, GridMachine) else 1
    lengths = [cells] * dimensions if isinstance(cells, int) else list(cells)
    if len(lengths) != dimensions or min(lengths) < 1:
        raise InputError("a window needs one cell or more in each direction")
    if first is None:
        first = [-(length // 2) for length in lengths]
    corner = [first] * dimensions if isinstance(first, int) else list(first)
    window = list(product(*(range(f, f + n) for f, n in zip(corner, lengths, strict=True))))
    if (0,) * dimensions not in window:
        raise InputError("the window does not contain cell 0, where the heads start")
    return window


class ConfigurationWires:
    """How a machine's configurations lie on wires, and how they step."""

    def __init__(self, machine: TuringMachine | GridMachine, window: list[Cell]) -> None:
        self.machine, self.window = machine, window
        self.grid = isinstance(machine, GridMachine)
        self.tapes = 1 if isinstance(machine, GridMachine) else machine.tapes
        self.symbols = {symbol: code for code, symbol in enumerate(machine.alphabet)}
        self.bits = max(1, (len(self.symbols) - 1).bit_length())
        self.firings = _firings(machine)

    @property
    def input_bits(self) -> int:
        """Bits of all tapes."""
        return self.tapes * len(self.window) * self.bits

    def _name(self, cell: Cell) -> str:
        return ",".join(map(str, cell))

    def start(self, build: CircuitBuilder) -> Wires:
        """The start state, heads at 0, and inputs for the tapes."""
        off, on = build.constant(False), build.constant(True)
        origin = (0,) * len(self.window[0])
        return Wires(
            {state: on if state == self.machine.start_state else off for state in self.machine.states},
            [{cell: on if cell == origin else off for cell in self.window} for _ in range(self.tapes)],
            [
                {
                    cell: [build.input(f"tape{tape}[{self._name(cell)}][{j}]") for j in range(self.bits)]
                    for cell in self.window
                }
                for tape in range(self.tapes)
            ],
        )

    def names(self) -> list[str]:
        """State flags in the order of the machine's states, then all head flags, then all symbols."""
        tapes, bits = range(self.tapes), range(self.bits)
        cells = [self._name(cell) for cell in self.window]
        return [
            *(f"state[{i}]" for i in range(len(self.machine.states))),
            *(f"head{tape}[{cell}]" for tape in tapes for cell in cells),
            *(f"tape{tape}[{cell}][{j}]" for tape in tapes for cell in cells for j in bits),
        ]

    def inputs(self, build: CircuitBuilder) -> Wires:
        """A whole configuration as inputs."""
        wire = iter([build.input(name) for name in self.names()])
        return Wires(
            {state: next(wire) for state in self.machine.states},
            [{cell: next(wire) for cell in self.window} for _ in range(self.tapes)],
            [
                {cell: [next(wire) for _ in range(self.bits)] for cell in self.window}
                for _ in range(self.tapes)
            ],
        )

    def outputs(self, build: CircuitBuilder, wires: Wires) -> None:
        """A whole configuration as outputs, in the order of `names`."""
        flags = [*wires.states.values(), *(flag for heads in wires.heads for flag in heads.values())]
        symbols = [bit for tape in wires.tapes for symbol in tape.values() for bit in symbol]
        for name, wire in zip(self.names(), [*flags, *symbols], strict=True):
            build.output(name, wire)

    def step(self, build: CircuitBuilder, wires: Wires) -> Wires:
        """One step of the machine."""
        fires = self._firing(build, wires)
        after = [self._tape_after(build, wires, tape, fires) for tape in range(self.tapes)]
        return Wires(
            self._states_after(build, wires, fires), [heads for heads, _ in after], [t for _, t in after]
        )

    def running(self, build: CircuitBuilder, wires: Wires) -> Wire:
        """Whether some rule fires, that is, the machine has not halted."""
        return words.any_of(build, [flag for _, flag in self._firing(build, wires)])

    def _firing(self, build: CircuitBuilder, wires: Wires) -> list[tuple[_Firing, Wire]]:
        """Every rule that can fire, with the flag that says whether it does."""
        seen = [self._symbol_flags(build, wires, tape) for tape in range(self.tapes)]
        fires: list[tuple[_Firing, Wire]] = []
        for rule in self.firings:
            reads = words.all_of(build, [seen[t][self.symbols[s]] for t, s in enumerate(rule.read)])
            flag = build.and_(reads, wires.states[rule.state])
            if build.known(flag) is not False:
                fires.append((rule, flag))
        return fires

    def _symbol_flags(self, build: CircuitBuilder, wires: Wires, tape: int) -> list[Wire]:
        """One flag for each symbol: whether it is under the head."""
        heads, cells = wires.heads[tape], wires.tapes[tape]
        possible = [cell for cell, flag in heads.items() if build.known(flag) is not False]
        read = [
            words.any_of(build, [build.and_(heads[cell], cells[cell][j]) for cell in possible])
            for j in range(self.bits)
        ]
        return words.decode(build, read, len(self.symbols))

    def _states_after(
        self, build: CircuitBuilder, wires: Wires, fires: list[tuple[_Firing, Wire]]
    ) -> dict[str, Wire]:
        entering: dict[str, list[Wire]] = {state: [] for state in wires.states}
        own: dict[str, list[Wire]] = {state: [] for state in wires.states}
        for rule, fired in fires:
            entering[rule.next_state].append(fired)
            own[rule.state].append(fired)
        rules, after = Counter(rule.state for rule in self.firings), {}
        for state, flag in wires.states.items():
            halted = build.and_(flag, build.not_(words.any_of(build, own[state])))
            if rules[state] < len(self.symbols) ** self.tapes:  # else some rule always fires
                entering[state].append(halted)
            after[state] = words.any_of(build, entering[state])
        return after

    def _tape_after(
        self, build: CircuitBuilder, wires: Wires, tape: int, fires: list[tuple[_Firing, Wire]]
    ) -> tuple[dict[Cell, Wire], dict[Cell, list[Wire]]]:
        changed: list[list[Wire]] = [[] for _ in range(self.bits)]
        moved: dict[Cell, list[Wire]] = {}
        for rule, fired in fires:
            difference = self.symbols[rule.read[tape]] ^ self.symbols[rule.write[tape]]
            for j in range(self.bits):
                if difference >> j & 1:
                    changed[j].append(fired)
            if any(rule.moves[tape]):
                moved.setdefault(rule.moves[tape], []).append(fired)
        flips = [words.any_of(build, flags) for flags in changed]
        moves = {offset: words.any_of(build, flags) for offset, flags in moved.items()}
        stays = build.not_(words.any_of(build, list(moves.values())))

        heads, off = wires.heads[tape], build.constant(False)
        heads_after = {}
        for cell, head in heads.items():
            sources = [build.and_(head, stays)]
            for offset, flag in moves.items():
                neighbour = tuple(c - o for c, o in zip(cell, offset, strict=True))
                sources.append(build.and_(flag, heads.get(neighbour, off)))
            heads_after[cell] = words.any_of(build, [s for s in sources if build.known(s) is not False])
        tape_after = {
            cell: [
                build.xor(bit, build.and_(heads[cell], flip)) for bit, flip in zip(symbol, flips, strict=True)
            ]
            for cell, symbol in wires.tapes[tape].items()
        }
        return heads_after, tape_after

    def encode(self, configuration: Configuration | GridConfiguration) -> Bits:
        """The tapes of a start configuration as one row of bits."""
        state, heads, _ = _parts(configuration)
        if state != self.machine.start_state or any(any(head) for head in heads):
            raise InputError("the circuit begins in the start state with every head at cell 0")
        return self.row(configuration)[:, -self.input_bits :]

    def row(self, configuration: Configuration | GridConfiguration) -> Bits:
        """A whole configuration as one row of bits, in the order of `names`."""
        state, heads, tapes = _parts(configuration)
        inside = set(self.window)
        for tape, head in zip(tapes, heads, strict=True):
            if outside := [cell for cell in (head, *tape) if cell not in inside]:
                raise InputError(
                    f"the input reaches cell {self._name(outside[0])}, outside the window of "
                    f"{self._name(self.window[0])} to {self._name(self.window[-1])}",
                    advice="Ask for more cells, or another first cell.",
                )
        codes = [self.symbols[tape.get(cell, self.machine.blank)] for tape in tapes for cell in self.window]
        flags = [state == own for own in self.machine.states]
        flags += [head == cell for head in heads for cell in self.window]
        return np.array([[*flags, *(code >> j & 1 for code in codes for j in range(self.bits))]], bool)

    def decode(self, bits: Bits) -> Configuration | GridConfiguration | None:
        """The configuration that the circuit's outputs stand for; None for its inputs."""
        if bits.shape[1] == self.input_bits:
            return None
        row = bits[0]
        states, cells = self.machine.states, len(self.window)
        flags = row[len(states) : len(states) + self.tapes * cells].reshape(self.tapes, cells)
        if not flags.any(axis=1).all():
            raise Refused(
                "a head left the window within the steps the circuit takes",
                advice=f"Ask for more than {cells} cells, or for fewer steps.",
            )
        codes = row[-self.input_bits :].reshape(self.tapes, cells, self.bits) @ (1 << np.arange(self.bits))
        heads = [self.window[int(np.argmax(flag))] for flag in flags]
        tapes = [
            {cell: self.machine.alphabet[code] for cell, code in zip(self.window, tape, strict=True) if code}
            for tape in codes.tolist()
        ]
        state = states[int(np.argmax(row[: len(states)]))]
        if self.grid:
            return GridConfiguration(state, tapes[0], heads[0])  # type: ignore[arg-type]
        return Configuration(
            state,
            tuple({cell[0]: symbol for cell, symbol in tape.items()} for tape in tapes),
            tuple(head[0] for head in heads),
        )


def _firings(machine: TuringMachine | GridMachine) -> list[_Firing]:
    if isinstance(machine, GridMachine):
        return [
            _Firing(state, (read,), (rule.write,), (MOVES[rule.move],), rule.state)
            for (state, read), rule in machine.rules.items()
        ]
    return [
        _Firing(state, read, rule.write, tuple((move,) for move in rule.moves), rule.state)
        for (state, read), rule in machine.rules.items()
    ]


def _parts(
    configuration: Configuration | GridConfiguration,
) -> tuple[str, list[Cell], list[Mapping[Cell, str]]]:
    if isinstance(configuration, GridConfiguration):
        return configuration.state, [configuration.head], [configuration.cells]  # type: ignore[list-item]
    tapes = [{(cell,): symbol for cell, symbol in tape.items()} for tape in configuration.tapes]
    return configuration.state, [(head,) for head in configuration.heads], list(tapes)


# Machine to circuit: `steps` steps on a window of `cells` cells, written out one after the other.
#
# Flags that cannot be set yet are constants and fold away: after t steps only 2t + 1 cells have logic.


MOST_GATES, MOST_WRITTEN = 10_000_000, 4_000_000
"""Gates of the circuit, and cells that are written out, one row of them for each step."""


def unroll(
    machine: TuringMachine | GridMachine,
    steps: int,
    cells: int | Sequence[int],
    first: int | Sequence[int] | None = None,
) -> Rewriting:
    """The circuit that takes the tapes of a start configuration to the configuration after `steps` steps.

    The window is `first` to `first + cells - 1` on every tape (by default cell 0 is in its middle); on a
    grid both are given for rows and columns. The heads start at cell 0.
    """
    window = window_of(machine, cells, first)
    if steps < 0:
        raise InputError("unrolling needs a number of steps, 0 or more")
    code = ConfigurationWires(machine, window)
    if (written := steps * len(window) * code.tapes) > MOST_WRITTEN:
        raise Refused(
            f"a circuit of {steps:,} steps on {len(window):,} cells writes out {written:,} of them; "
            f"the limit is {MOST_WRITTEN:,}",
            advice="Ask for fewer steps, as in `--steps 100`, or use the target `tape`.",
        )
    build = CircuitBuilder()
    wires = code.start(build)
    for step in range(steps):
        before, wires = wires, code.step(build, wires)
        if wires == before:  # the machine has halted, whatever its input
            break
        if build.size > MOST_GATES:
            raise Refused(
                f"unrolling takes more than {MOST_GATES:,} gates",
                where=f"step {step + 1}",
                advice="Ask for fewer steps or cells.",
            )
    code.outputs(build, wires)
    circuit = build.circuit(f"{machine.name}, {steps} steps")
    return Rewriting("unroll", machine, circuit, code.encode, code.decode, covers=steps)


def suiting(machine: TuringMachine | GridMachine, first: Any, steps: int) -> dict[str, int]:
    """Options for a run: as many steps as it takes, `steps` at most, and the cells that it needs."""
    if isinstance(machine, GridMachine):
        ahead, _ = look_ahead_on_grid(machine, first, steps)
    else:
        ahead = look_ahead(machine, first, steps)
    return {} if ahead is None else {"steps": ahead.steps, "cells": ahead.window}


# Machine to learner: the configuration is the memory, and each sample is a step.


def machine_learner(machine: TuringMachine, steps: int, cells: int) -> Rewriting:
    """The learner whose memory is a configuration on a window of `cells` cells, and whose way to learn from a
    sample is to take one step. The samples are empty, and their labels 1; every guess is wrong, so every
    sample is learned from. Once the machine has halted the learner has finished, its memory stays as it is,
    and it answers whether the machine accepts; that last configuration decodes after the last sample.
    """
    code = ConfigurationWires(machine, window_of(machine, cells))
    build = CircuitBuilder()
    wires = code.inputs(build)
    build.input("random")
    guess = build.input("guess")
    accepting = [wires.states[state] for state in sorted(machine.accept)]
    accepted = build.constant(False)
    for flag in accepting:
        accepted = build.or_(accepted, flag)
    running = code.running(build, wires)
    build.output("answer", build.where(running, guess, accepted))
    build.output("finished", build.not_(running))
    code.outputs(build, code.step(build, wires))
    learner = CircuitLearner(build.circuit(f"{machine.name} as a learner"), inputs=0)

    def encode(configuration: Configuration) -> LearnerState:
        samples = learner.start(np.zeros((steps, 0), np.uint8), np.ones(steps, np.uint8), guessing=False)
        memory = tuple(code.row(configuration)[0].astype(int).tolist())
        return LearnerState(memory, 0, None, samples.samples)

    def decode(state: LearnerState) -> Configuration | None:
        configuration = code.decode(np.array([state.memory], bool))
        assert isinstance(configuration, Configuration)
        halted, last = machine.step(configuration) is None, state.position == steps
        if last and not halted:
            raise Refused(
                f"the machine has not halted after {steps} samples", advice="Lower it with more steps."
            )
        return configuration if last or not halted else None

    return Rewriting("configuration as memory", machine, learner, encode, decode)


def suiting_learner(machine: TuringMachine, first: Any, steps: int) -> dict[str, int]:
    """`suiting`, and a sample more: the learner has finished when it is shown one in its last state."""
    return {name: value + (name == "steps") for name, value in suiting(machine, first, steps).items()}
