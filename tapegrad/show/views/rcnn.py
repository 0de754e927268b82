"""The target `rcnn` at work: the channels of the grid that change during the run."""

from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.targets.rcnn.net import RcnnNet, Sheet


class RcnnView:
    """One plane of numbers for each channel, in the coordinates of the machine."""

    step_name = "layer"
    curve_name = "cells that hold a symbol"
    sees_every_step = False

    def __init__(self, net: RcnnNet, carry: Sheet) -> None:
        self.net = net
        self.defaults = np.asarray(carry.grid)[:, 0, 0].tolist()
        self.largest = max(1.0, float(np.abs(net.encoding.table()).max()))
        names = net.names.get("channels") or ["value"]
        self.panels: list[Panel] = [
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
        return shown, float((facts[:, :, 1] > 0).sum())

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


VIEW = RcnnView
