"""The target `rcnn` at work: the grid, what the filter sees of it, and the channels that change."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.machines.model import GridConfiguration, GridMachine
from tapegrad.show.drawing.grid import Plane, PlaneMoment
from tapegrad.targets.rcnn.net import RcnnNet, Sheet


class RcnnView:
    """One plane of numbers for each channel, in the coordinates of the machine."""

    step_name = "layer"
    curve_name = "cells that hold a symbol"
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: Sheet) -> None:
        net = compiled.net
        assert isinstance(net, RcnnNet)
        self.net, self.machine = net, compiled.lowered
        self.defaults = np.asarray(carry.grid)[:, 0, 0].tolist()
        self.largest = max(1.0, float(np.abs(net.encoding.table()).max()))
        names = net.names.get("channels") or ["value"]
        self.panels: list[Panel] = [Plane("The grid, as the network's numbers have it")]
        self.panels += [
            Cells(
                f"Channel {self._title(name)}",
                "signed",
                default=(default / self.largest,),
                explain=lambda r, c, n=n: self._word(n, r, c),
                hide_if_constant=True,
            )
            for n, (name, default) in enumerate(zip(names, self.defaults, strict=True))
        ]
        self.notes = ["Channels that never change during the run are not shown."]
        if self.largest > 1:
            self.notes.append(f"Numbers are divided by {self.largest:.4g}, the largest that occurs.")

    def frame(self, carry: Sheet) -> tuple[list[Any], float | None]:
        grid, (down, right) = np.asarray(carry.grid), carry.corner
        # Every channel lists the cells in which any of them has something, so that all show the same window.
        used = np.argwhere((grid != np.array(self.defaults)[:, None, None]).any(axis=0)).tolist()
        shown = [
            CellsFrame([(r + down, c + right, float(plane[r, c]) / self.largest) for r, c in used])
            for plane in grid
        ]
        facts = self.net.encoding.cells.facts[self.net.encoding.decode(grid)]
        return [self._moment(carry), *shown], float((facts[:, :, 1] > 0).sum())

    def _moment(self, carry: Sheet) -> PlaneMoment:
        """The plane, as it is decoded from the numbers."""
        state = self.net.decode(carry)
        if state is None:
            return PlaneMoment("There is no head on the grid, or more than one.", {}, None, "", carry.steps)
        most = max(1, len(self.net.symbols) - 1)
        cells = {
            spot: (self.net.symbols.index(symbol) / most, symbol) for spot, symbol in state.cells.items()
        }
        return PlaneMoment(self._caption(state), cells, state.head, state.state, carry.steps)

    def _caption(self, state: GridConfiguration) -> str:
        blank = self.net.symbols[0]
        reads = state.cells.get(state.head, blank)
        where = (
            f"The head is in row {state.head[0]}, column {state.head[1]}, in state {state.state}, on {reads}."
        )
        if not isinstance(self.machine, GridMachine):
            return where
        rule = self.machine.rules.get((state.state, reads))
        if rule is None:
            return f"{where} No rule applies: the grid stays as it is from here on."
        return (
            f"{where} Applied to the framed cells, the filter makes it write {rule.write}, move {rule.move} "
            f"and enter {rule.state}."
        )

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
