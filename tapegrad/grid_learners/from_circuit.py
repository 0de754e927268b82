"""A circuit as a machine on the grid: the straight-line machine of one tape, its cells dealt out anew.

The straight-line machine is oblivious and never comes back to a state, so for every state the cell under the
head is known. Hence its tape need not be a line. Each of its cells is given a cell of the grid: an input the
one where its bit lies, a work cell the nearest free one when it is first needed. A step that merely travels
is left out; between two that do something the head takes a shortest way on the grid.
"""

from collections.abc import Iterator, Sequence
from itertools import count, pairwise, product

import numpy as np

from tapegrad.circuits.model import Circuit
from tapegrad.grid_learners.layout import BLANK, MINUS, PLUS, SIGNS, Frame, GridLearner
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.lowering.straight_line import DONE, straight_line
from tapegrad.machines.grid import MOVES, Cell, GridMachine, GridRule
from tapegrad.machines.model import Configuration, Rule, TuringMachine

READ = {BLANK: "0", MINUS: "0", PLUS: "1"}
WRITTEN = {"0": MINUS, "1": PLUS}


def from_circuit(
    circuit: Circuit, cells: Sequence[Cell], rows: int, columns: int, carried: int
) -> GridLearner:
    """The machine that evaluates a circuit with one output on a main grid of this size, where input i lies in
    `cells[i]`, + for 1. It starts on the last cell and ends as learners do. It carries about `carried`
    wires in its state."""
    program = _Program(straight_line(circuit, carried=carried), len(cells))
    needed = len({program.cells[state] for state in program.order} - set(program.inputs))
    thickness = next(k for k in count(1) if (rows + 2 * k) * (columns + 2 * k) - len(cells) >= needed)
    framed = product(range(-thickness, rows + thickness), range(-thickness, columns + thickness))
    place = program.placed(cells, set(framed) - set(cells))

    rules = _Rules()
    first = program.order[0]
    for symbol in READ:
        rules.add("start", symbol, symbol, ((rows - 1, columns - 1), place[first]), first)
    for state, (symbol, bit) in product(program.order, READ.items()):
        write, to = program.step(state, bit)
        kept = write == bit
        rules.add(state, symbol, symbol if kept else WRITTEN[write], (place[state], place[to]), to)
    for symbol, bit in READ.items():
        rules.clear_up(symbol, WRITTEN[bit], place[DONE], rows, columns)
    machine = GridMachine(rules, "start", BLANK, circuit.name, SIGNS)
    return GridLearner(machine, Frame(*[thickness] * 4))


class _Program:
    """The straight-line machine without its travel."""

    def __init__(self, lowered: Rewriting, inputs: int) -> None:
        assert isinstance(lowered.after, TuringMachine)
        self.machine = lowered.after
        self.cells = dict(_heads(self.machine))
        """For each state the tape cell under the head; for the last one the cell of the output."""
        self.inputs = [next(iter(lowered.encode(row[None]).tapes[0])) for row in np.eye(inputs, dtype=bool)]
        self.cells[DONE] = next(
            cell
            for cell in {*self.inputs, *self.cells.values()}
            if np.any(lowered.decode(Configuration(DONE, ({cell: "1"},), (0,))))
        )
        self.order = [state for state in self.cells if state != DONE and not self._travels(state)]
        """The states that do something, as they come."""

    def step(self, state: str, read: str) -> tuple[str, str]:
        """What is written, and the next state that does something."""
        rule = self._rule(state, read)
        to = rule.state
        while to != DONE and self._travels(to):
            to = self._rule(to, "0").state
        return rule.write[0], to

    def placed(self, inputs: Sequence[Cell], free: set[Cell]) -> dict[str, Cell]:
        """Where on the grid the head is in each state. A work cell takes the free cell next to where the head
        came from."""
        place = dict(zip(self.inputs, inputs, strict=True))
        here = inputs[-1]
        for state in self.order:
            cell = self.cells[state]
            if cell not in place:
                place[cell] = min(free, key=lambda there: (len(_way(here, there)), there))
                free.remove(place[cell])
            here = place[cell]
        return {state: place[self.cells[state]] for state in (*self.order, DONE)}

    def _rule(self, state: str, read: str) -> Rule:
        return self.machine.rules[state, (read,)]

    def _travels(self, state: str) -> bool:
        rules = {bit: self._rule(state, bit) for bit in "01"}
        return rules["0"].state == rules["1"].state and all(r.write == (b,) for b, r in rules.items())


def _heads(machine: TuringMachine) -> Iterator[tuple[str, int]]:
    """Each state with the one cell where the head is in it, as they come."""
    layer, cell = [machine.start_state], 0
    while layer:
        yield from ((state, cell) for state in layer)
        rules = [machine.rules[state, (bit,)] for state in layer for bit in "01" if state != DONE]
        cell += rules[0].moves[0] if rules else 0
        layer = list(dict.fromkeys(rule.state for rule in rules))


class _Rules(dict[tuple[str, str], GridRule]):
    """The table of the grid machine, written walk by walk."""

    def add(self, state: str, read: str, write: str, walk: tuple[Cell, Cell], to: str) -> None:
        """A step and the walk to the cell of the next one. What is left of a walk depends on its end and on
        the cell alone, so walks to the same state share their states."""
        (row, column), there = walk
        written = {read: write}
        for move in _way(*walk) or ["stay"]:
            row, column = row + MOVES[move][0], column + MOVES[move][1]
            following = to if (row, column) == there else f"{to} from {row},{column}"
            self.update({(state, old): GridRule(new, move, following) for old, new in written.items()})
            state, written = following, {symbol: symbol for symbol in READ}

    def clear_up(self, read: str, answer: str, here: Cell, rows: int, columns: int) -> None:
        """From the cell of the output: blanks in all of the main grid, row by row upwards and to and fro such
        that the top left cell is the last, where the answer is written."""
        cells = [(r, c) for r in reversed(range(rows)) for c in sorted(range(columns), reverse=r % 2 == 0)]
        names = [f"clear {row},{column} {answer}" for row, column in cells]
        self.add(DONE, read, read, (here, cells[0]), names[0])
        for name, following, walk in zip(names, names[1:], pairwise(cells), strict=False):
            for symbol in READ:
                self.add(name, symbol, BLANK, walk, following)
        for symbol in READ:
            self[names[-1], symbol] = GridRule(answer, "stay", "answered")


def _way(here: Cell, there: Cell) -> list[str]:
    """The moves between two cells, first up or down."""
    down, right = there[0] - here[0], there[1] - here[1]
    return ["down" if down > 0 else "up"] * abs(down) + ["right" if right > 0 else "left"] * abs(right)
