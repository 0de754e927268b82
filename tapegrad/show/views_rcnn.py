"""The target `rcnn` at work: the grid, what the filter sees of it, and the channels that change."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.machines.model import GridConfiguration, GridMachine, TuringMachine
from tapegrad.show.drawing import grid
from tapegrad.show.drawing.grid import Plane, PlaneMoment
from tapegrad.show.views import Heights
from tapegrad.targets.rcnn.encoding import COMPUTE, HEAD
from tapegrad.targets.rcnn.net import RcnnNet, Sheet

WHERE = "The head is in row {}, column {}, in state {}, on {}. {}"
NO_HEAD = "There is no head on the grid, or more than one."
APPLIED = "Applied to the framed cells, the filter makes it write {}, move {} and enter {}."
AT_REST = "No rule applies: the grid stays as it is from here on."
"""Captions; the page fills them in as well."""
MOST_CHANNELS = 32
"""Channels that have a panel of their own."""
MOST_LIVE_WEIGHTS = 20_000
"""Weights other than 0 of a filter up to which the page can run it."""


class RcnnView:
    """One plane of numbers for each channel, in the coordinates of the machine."""

    step_name = "layer"
    curves = ("cells that hold a symbol", "column of the head", "row of the head")
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: Sheet) -> None:
        net = compiled.net
        assert isinstance(net, RcnnNet)
        self.net, self.machine, self.compiled = net, compiled.lowered, compiled
        self.defaults = np.asarray(carry.grid)[:, 0, 0].tolist()
        self.largest = max(1.0, float(np.abs(net.encoding.table()).max()))
        self.names = [self._title(name) for name in net.names.get("channels") or ["value"]]
        self.panels: list[Panel] = [Plane("The grid, as the network's numbers have it", net.states)]
        self.notes = ["Channels that never change during the run are not shown."]
        self.channels = list(range(len(self.names)))
        if len(self.names) > MOST_CHANNELS:
            # Nearly all are those of states; which of them is on, the grid shows as well.
            others = [n for n, name in enumerate(self.names) if not name.startswith("head ")]
            self.channels = others[:MOST_CHANNELS]
            left = len(self.names) - len(self.channels)
            self.notes.append(f"{left:,} channels, most of them for a state each, are not shown.")
        self.panels += [
            Cells(
                f"Channel {self.names[n]}",
                "signed",
                default=(self.defaults[n] / self.largest,),
                explain=lambda r, c, n=n: self._word(n, r, c),
                hide_if_constant=True,
            )
            for n in self.channels
        ]
        if self.largest > 1:
            self.notes.append(f"Numbers are divided by {self.largest:.4g}, the largest that occurs.")

    def frame(self, carry: Sheet) -> tuple[list[Any], Heights]:
        grid, (down, right) = np.asarray(carry.grid), carry.corner
        # Every channel lists two corners of what any of them uses, so that all show the same window.
        used = np.argwhere((grid != np.array(self.defaults)[:, None, None]).any(axis=0))
        corners = {(int(used[end, 0]), int(used[:, 1].min() if end else used[:, 1].max())) for end in (0, -1)}
        shown = []
        for n in self.channels:
            own = {*map(tuple, np.argwhere(grid[n] != self.defaults[n]).tolist())} | corners
            cells = [(r + down, c + right, float(grid[n, r, c]) / self.largest) for r, c in sorted(own)]
            shown.append(CellsFrame(cells))
        facts = self.net.encoding.cells.facts[self.net.encoding.decode(grid)]
        moment = self._moment(carry)
        row, column = (None, None) if moment.head is None else map(float, moment.head)
        return [moment, *shown], (float((facts[:, :, 1] > 0).sum()), column, row)

    def _moment(self, carry: Sheet) -> PlaneMoment:
        """The plane, as it is decoded from the numbers."""
        state = self.net.decode(carry)
        if state is None:
            return PlaneMoment(NO_HEAD, {}, None, "", carry.steps)
        most = max(1, len(self.net.symbols) - 1)
        cells = {
            spot: (self.net.symbols.index(symbol) / most, symbol) for spot, symbol in state.cells.items()
        }
        return PlaneMoment(self._caption(state), cells, state.head, state.state, carry.steps)

    def _caption(self, state: GridConfiguration) -> str:
        reads = state.cells.get(state.head, self.net.symbols[0])
        return WHERE.format(*state.head, state.state, reads, self._says(state.state, reads)).strip()

    def _says(self, state: str, reads: str) -> str:
        if not isinstance(self.machine, GridMachine):
            return ""
        rule = self.machine.rules.get((state, reads))
        return AT_REST if rule is None else APPLIED.format(rule.write, rule.move, rule.state)

    def live(self) -> dict[str, Any] | None:
        """The filter, what cells hold and how a word stands on the grid, if symbol by symbol."""
        net, source = self.net, self.compiled.source
        filter, cells = net.filter, net.encoding.cells
        layers = [(layer.map.entries(), layer.activation) for layer in filter.layers]
        weights = sum(int(np.count_nonzero(own.values)) for own, _ in layers)
        if weights > MOST_LIVE_WEIGHTS or not self._symbol_by_symbol():
            return None
        rows: list[list[list[float]]] = []
        for own, _ in layers:
            reads: list[list[float]] = [[float(bias)] for bias in own.bias]
            for row, column, value in zip(own.rows, own.columns, own.values, strict=True):
                if value:
                    reads[int(row)] += [int(column), float(value)]
            rows.append(reads)
        activations = [activation for _, activation in layers]
        possible = np.flatnonzero(cells.possible)
        line = isinstance(source, TuringMachine)
        example = "".join(symbol for symbol in net.symbols if symbol != net.symbols[0])[:8]
        return {
            "kind": "rcnn",
            "example": example if line else f"{example}/{example}",
            "rows": not line,
            "symbols": list(net.symbols),
            "states": list(net.states),
            "start": net.states.index(self.compiled.encode(source.start()).state),
            "margin": net.margin,
            "channels": filter.channels,
            "padding": filter.padding,
            "patch": list(filter.cells),
            "layers": [[a, own] for a, own in zip(activations, rows, strict=True)],
            "deciding": filter.deciding,
            "rules": filter.rule_units.tolist(),
            "contents": [
                [*map(int, cells.facts[number]), net.encoding.table()[number].tolist()] for number in possible
            ],
            "modes": {"compute": COMPUTE, "head": HEAD},
            "names": self.names,
            "largest": self.largest,
            "says": [[self._says(state, symbol) for symbol in net.symbols] for state in net.states],
            "captions": {"where": WHERE, "none": NO_HEAD},
            "plane": {
                "sizes": grid.SIZES,
                "largest": grid.LARGEST,
                "most": grid.MOST,
                "font": grid.STATE_FONT,
                "longest": grid.LONGEST_STATE,
                "glyph": grid.text_width("m", 1.0),
            },
        }

    def _symbol_by_symbol(self) -> bool:
        """Whether each symbol of an input stands as itself in its cell of the grid."""
        source, symbols = self.compiled.source, self.net.symbols
        if not isinstance(source, GridMachine | TuringMachine) or any(len(s) != 1 for s in symbols):
            return False
        if any(passed.covers for passed in self.compiled.passes) or source.alphabet != symbols:
            return False
        if isinstance(source, TuringMachine) and source.tapes != 1:
            return False
        word = list(symbols) * 2
        first = source.start(word) if isinstance(source, TuringMachine) else source.start([word])
        expected = {(0, place): symbol for place, symbol in enumerate(word) if symbol != symbols[0]}
        found = self.compiled.encode(first)
        return isinstance(found, GridConfiguration) and (found.cells, found.head) == (expected, (0, 0))

    def _title(self, name: str) -> str:
        """`head 2` and `symbol 1` by the names that the machine uses."""
        kind, _, number = name.partition(" ")
        if kind == "head" and number.isdecimal():
            return f"{name}: state {self.net.states[int(number)]}"
        if kind == "symbol" and number.isdecimal():
            return f"{name}: {self.net.symbols[int(number)]}"
        return name

    def _word(self, channel: int, row: int, column: int) -> str:
        what = "coded content"
        if "channels" in self.net.names:
            what = self.net.explain(f"channels[{channel}]")
        return f"Activation of the cell in row {row}, column {column}: {what}"
