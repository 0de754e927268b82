"""The recurrent convolution of a grid machine, as a net: one step is one application of the filter."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad._trees import static, tree
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.model import MOVES, Cell, GridConfiguration, GridMachine
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Network
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.build import Filter, build_filter
from tapegrad.targets.rcnn.encoding import COMPUTE, ENCODINGS, HEAD, Cells, Encoding, Grid, clauses_of
from tapegrad.targets.rcnn.exactness import claims
from tapegrad.targets.rcnn.fast import Rolled, Roller, around, inside
from tapegrad.targets.rcnn.network import ENGINES

_PLACES = {
    "V1": "first ReLU, Lemma 5 part (i)",
    "V2": "questions about one cell, Lemma 5 part (i)",
    "V3": "second ReLU: the clauses of f_msg and f_TM, B.2",
    "V4": "digits of the new value, B.1",
    "V5": "the new value, B.1",
    "units": "ReLU: the clauses of f_msg and f_TM, B.2",
    "channels": "one fact of a cell, B.1",
}
"""What the units of each layer are in the paper."""


AT_ONCE = 1 << 25
"""Numbers of the widest layer that the reference engine computes together."""
MOST_PRODUCTS = 10**11
"""Steps times cells times weights that are left to the reference engine: some seconds."""
LARGEST_GRID = 1 << 25
"""Most numbers (cells times channels) on a grid that is written out; on a larger one only `fast` runs."""
MOST_CELLS = 1 << 23
"""Of any grid: `fast` keeps half a dozen words for each."""


class Sheet(NamedTuple):
    """Activations: the grid of numbers, and which cell of the machine's plane its top left corner is."""

    grid: Grid
    corner: Cell
    steps: int = 0
    """How many layers led here."""


@dataclass(frozen=True, eq=False)
class Tracked:
    """A sheet as the engine `fast` has it: contents by number, and which cells changed last. So a step, and
    what it leads to, cost as much as has changed."""

    rolled: Rolled
    corner: Cell
    steps: int
    encoding: Encoding
    marks: dict[Cell, str] | None = None
    """The symbols on the grid, where they are known."""

    @cached_property
    def grid(self) -> Grid:
        """The numbers, as on every sheet."""
        numbers, (rows, columns) = self.rolled.numbers, self.rolled.numbers.shape
        channels = self.encoding.table().shape[-1]
        if numbers.size * channels > LARGEST_GRID:
            raise Refused(
                f"a grid of {rows:,} x {columns:,} cells has {channels} numbers for each, and the "
                f"limit is {LARGEST_GRID:,} numbers",
                advice="Use the engine fast, which computes only what changes.",
            )
        return self.encoding.encode(numbers)

    def cell(self, place: int) -> Cell:
        """Of a place of the padded grid, the cell of the machine's plane."""
        row, column = divmod(place, self.rolled.padded.shape[1])
        return row - 1 + self.corner[0], column - 1 + self.corner[1]


@tree
class RcnnNet(Net[GridConfiguration, Sheet | Tracked]):
    """A filter that runs a grid machine (Goel et al., B.2): every layer is one step of the machine."""

    target: ClassVar[str] = "rcnn"
    engines: ClassVar[tuple[str, ...]] = ENGINES
    saves_network: ClassVar[bool] = True

    network: Network = static()  # pyright: ignore[reportIncompatibleVariableOverride]
    """One application of the filter to a grid."""
    encoding: Encoding = static()
    symbols: tuple[str, ...] = static()
    states: tuple[str, ...] = static()
    margin: int = static()
    rules: NDArray[np.int64]
    """The machine's table: written symbol, move and new state for each state and symbol, -1 where it halts.
    Provenance: nothing here is used to run the net."""
    names: Mapping[str, list[str]] = static()

    @cached_property
    def filter(self) -> Filter:
        """The layers of the network."""
        return Filter.of(self.network)

    @cached_property
    def roller(self) -> Roller:
        """The filter made ready for the engine `fast`; keeps the patches it has met."""
        return Roller(self.filter, self.encoding)

    def given(self, carry: Sheet | Tracked) -> dict[str, NDArray[Any]]:
        return {"grid": np.asarray(carry.grid)}

    def start(self, state: GridConfiguration) -> Sheet | Tracked:
        """The least rectangle that holds the marks and the head, with `margin` blank cells around it; all
        cells are computing already. Where the numbers of all channels would fill too much, only the contents
        are kept."""
        for cell, symbol in state.cells.items():
            if symbol not in self.symbols:
                raise InputError(f"the net knows no symbol {symbol!r}", where=f"cell {cell}")
        if state.state not in self.states:
            raise InputError(f"the net knows no state {state.state!r}")
        marked = np.array([*state.cells, state.head])
        corner, end = marked.min(axis=0) - self.margin, marked.max(axis=0) + self.margin + 1
        rows, columns = (int(n) for n in end - corner)
        if rows * columns > MOST_CELLS:
            raise Refused(
                f"a grid of {rows:,} x {columns:,} cells is too large; the limit is {MOST_CELLS:,} cells",
                advice="Bring the marks closer together, take fewer steps, or use the target `tape`.",
            )
        cells = self.encoding.cells
        numbers = np.full((rows, columns), cells.number(False, 0, COMPUTE))
        for (r, c), symbol in state.cells.items():
            numbers[r - corner[0], c - corner[1]] = cells.number(False, self.symbols.index(symbol), COMPUTE)
        r, c = state.head[0] - corner[0], state.head[1] - corner[1]
        under = self.symbols.index(state.cells.get(state.head, self.symbols[0]))
        numbers[r, c] = cells.number(False, under, HEAD + self.states.index(state.state))
        place = int(corner[0]), int(corner[1])
        if numbers.size * self.filter.channels > LARGEST_GRID:
            rolled = Rolled(np.pad(numbers, 1), inside(numbers), 0, (int(r), int(c)), False, False)
            return Tracked(rolled, place, 0, self.encoding)
        return Sheet(self.encoding.encode(numbers), place)

    def step(self, carry: Sheet | Tracked) -> Sheet:
        """One application of the filter to every cell."""
        grid, _ = self.layer(carry.grid)
        if not self._heads(grid) and (before := self._heads(carry.grid)):
            raise self._left(carry, before[0])
        return Sheet(grid, carry.corner, carry.steps + 1)

    def layer(self, grid: Grid) -> tuple[Grid, bool]:
        """The grid after one application of the filter, and whether a rule applied; in strips of rows, if its
        units would fill too much."""
        rows, columns = grid.shape[1:]
        height = max(1, AT_ONCE // (columns * max(map(len, self.filter.maps))))
        if height >= rows:
            after, applied = self._strip(grid)
            return after, bool(applied.any())
        around = ((0, 0), (1, 1), (1, 1))
        padded = np.pad(grid, around, constant_values=self.filter.padding)
        found = [self._strip(padded[:, row : row + height + 2]) for row in range(0, rows, height)]
        after = np.concatenate([strip[:, 1:-1, 1:-1] for strip, _ in found], axis=1)
        return after, any(bool(applied[1:-1, 1:-1].any()) for _, applied in found)

    def _strip(self, grid: Grid) -> tuple[Grid, NDArray[np.bool_]]:
        """The same at once, and the cells where a rule applies."""
        outputs, state = self._backend.run({"grid": grid})
        return state["grid"], outputs["running"] > 0

    @cached_property
    def _backend(self) -> NumPy:
        return NumPy(self.network)

    def advance(self, carry: Sheet | Tracked, steps: int, engine: str = "reference") -> Sheet | Tracked:
        """With `fast`, only the cells whose 3x3 patch has changed are computed."""
        if engine != "fast":
            return super().advance(carry, steps, engine)
        if isinstance(carry, Tracked):
            rolled = self.roller.go_on(carry.rolled.padded, carry.rolled.changed, steps)
        else:
            rolled = self.roller.run(self.encoding.decode(carry.grid), steps)
        if rolled.lost:
            raise self._left(carry, rolled.head)
        taken = rolled.layers - rolled.settled  # the layer that changed nothing is no step
        after = Tracked(rolled, carry.corner, carry.steps + taken, self.encoding)
        if isinstance(carry, Tracked) and carry.marks is not None and taken == 1:
            after = replace(after, marks=self._remarked(carry.marks, after))
        return after

    def _remarked(self, before: dict[Cell, str], carry: Tracked) -> dict[Cell, str]:
        """The symbols after one step: only changed cells are looked at."""
        marks, flat = dict(before), carry.rolled.padded.reshape(-1)
        for place in carry.rolled.changed.tolist():
            symbol, cell = self.encoding.cells.facts[flat[place], 1], carry.cell(place)
            if symbol > 0:
                marks[cell] = self.symbols[symbol]
            else:
                marks.pop(cell, None)
        return marks

    def decode(self, carry: Sheet | Tracked) -> GridConfiguration | None:
        """Symbols, head and state, read off the numbers."""
        if isinstance(carry, Tracked) and carry.marks is not None:
            modes = self.encoding.cells.facts[:, 2]
            heads = np.flatnonzero(modes[carry.rolled.padded.reshape(-1)] >= HEAD)
            if len(heads) != 1:
                return None
            mode = modes[carry.rolled.padded.reshape(-1)[heads[0]]]
            return GridConfiguration(self.states[mode - HEAD], carry.marks, carry.cell(int(heads[0])))
        numbers = carry.rolled.numbers if isinstance(carry, Tracked) else self.encoding.decode(carry.grid)
        facts = self.encoding.cells.facts[numbers]
        heads = np.argwhere(facts[:, :, 2] >= HEAD)
        down, right = carry.corner
        marks = {
            (int(i) + down, int(j) + right): self.symbols[facts[i, j, 1]]
            for i, j in np.argwhere(facts[:, :, 1] > 0)
        }
        if isinstance(carry, Tracked):
            object.__setattr__(carry, "marks", marks)
        if len(heads) != 1:
            return None
        r, c = (int(i) for i in heads[0])
        return GridConfiguration(self.states[facts[r, c, 2] - HEAD], marks, (r + down, c + right))

    def done(self, carry: Sheet | Tracked) -> bool:
        """Whether no unit of a rule is active: the machine has halted, and the grid is a fixed point. A rule
        applies where the head is, and that has just come there, or all is as it was."""
        if isinstance(carry, Tracked) and len(carry.rolled.changed):
            padded = carry.rolled.padded
            return not self.roller.running(padded, around(padded, carry.rolled.changed))
        numbers = carry.rolled.numbers if isinstance(carry, Tracked) else self.encoding.decode(carry.grid)
        return not self.roller.running(np.pad(numbers, 1), inside(numbers))

    def engine_for(self, carry: Sheet | Tracked, steps: int) -> str:
        """`fast` where the other, which computes every cell at every step, would take minutes."""
        cells = carry.rolled.numbers.size if isinstance(carry, Tracked) else carry.grid[0].size
        written_out = cells * self.filter.channels <= LARGEST_GRID
        products = steps * cells * self.parameters
        return "reference" if written_out and products <= MOST_PRODUCTS else "fast"

    def looks(self, state: GridConfiguration) -> int:
        """Ten times at least; less than elsewhere on a large grid, of which every cell is compared."""
        return max(10, min(super().looks(state), MOST_CELLS // max(1, len(state.cells))))

    def deviation(self, carry: Sheet | Tracked) -> float:
        """The engine `fast` has compared every number with the one that it stands for, and keeps that."""
        return 0.0 if isinstance(carry, Tracked) else self.encoding.deviation(carry.grid)

    def _heads(self, grid: Grid) -> list[Cell]:
        modes = self.encoding.cells.facts[self.encoding.decode(grid)][:, :, 2]
        return [(int(r), int(c)) for r, c in np.argwhere(modes >= HEAD)]

    def _left(self, carry: Sheet | Tracked, last: Cell) -> Refused:
        rows, columns = carry.rolled.numbers.shape if isinstance(carry, Tracked) else carry.grid.shape[1:]
        cell = (last[0] + carry.corner[0], last[1] + carry.corner[1])
        return Refused(
            f"the head left the grid of {rows:,} x {columns:,} cells",
            where=f"after cell {cell}",
            advice=f"Compile with a larger margin, as in `--set margin={2 * self.margin}`.",
        )

    def units(self) -> Iterator[str]:
        """Every unit as LAYER[NUMBER]."""
        for layer, own in self.names.items():
            yield from (f"{layer}[{number}]" for number in range(len(own)))

    def explain(self, unit: str) -> str:
        """The reason for a unit, and its place in the paper."""
        layer, _, rest = unit.partition("[")
        number = rest.removesuffix("]")
        if layer not in self.names or not number.isdigit() or int(number) >= len(self.names[layer]):
            raise InputError(f"there is no unit {unit!r}", advice=f"Layers are {', '.join(self.names)}.")
        return f"{self.names[layer][int(number)]} ({_PLACES[layer]})"

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"rules": self.rules}

    def config(self) -> dict[str, Any]:
        return {
            "encoding": self.encoding.name,
            "symbols": list(self.symbols),
            "states": list(self.states),
            "margin": self.margin,
            "names": dict(self.names),
            "inputs": "a grid of cells, coded as in the encoding",
            "outputs": "the same grid, one step of the machine later",
        }

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        if config["encoding"] not in ENCODINGS:
            raise BrokenNet(f"there is no encoding {config['encoding']!r}")
        if network is None:
            raise BrokenNet("the folder has no network", advice="Compile and save the net again.")
        symbols, states = tuple(config["symbols"]), tuple(config["states"])
        encoding = Encoding(config["encoding"], Cells(len(symbols), len(states)))
        rules, names = np.asarray(arrays["rules"]), config["names"]
        made = cls(network, encoding, symbols, states, config["margin"], rules, names)
        if made.filter.channels != len(encoding.line()):
            raise BrokenNet("the filter has another number of channels than the encoding")
        _ = made.roller  # refuses what it cannot run
        return made

    @classmethod
    def of(cls, machine: GridMachine, encoding: str, margin: int) -> Self:
        """The net of a machine."""
        coded = Encoding(encoding, Cells(len(machine.alphabet), len(machine.states)))
        built, names = build_filter(coded, clauses_of(machine))
        rules = rule_table(machine)
        return cls(built.network(), coded, machine.alphabet, machine.states, margin, rules, names)

    def certificate(self) -> dict[str, Any]:
        return claims(self.filter, self.encoding)


def rule_table(machine: GridMachine) -> NDArray[np.int64]:
    """The rules as numbers, in the order of the machine's states and symbols."""
    table = np.full((len(machine.states), len(machine.alphabet), 3), -1)
    for (state, symbol), rule in machine.rules.items():
        place = machine.states.index(state), machine.alphabet.index(symbol)
        written, new = machine.alphabet.index(rule.write), machine.states.index(rule.state)
        table[place] = written, list(MOVES).index(rule.move), new
    return table
