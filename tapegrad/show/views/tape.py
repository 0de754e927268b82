"""The target `tape` at work: the state on its simplex, tapes and heads as weights, and the loss."""

from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Panel, Simplex
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.tape.explain import state_of, symbols
from tapegrad.targets.tape.net import TapeNet

FIRST_STEP = "The first gradient step reads the labels; every later one is a step of the machine."


class TapeView:
    """s as a point among the vertices; T and H of each tape, cell by cell."""

    step_name = "gradient step"
    curve_name = "loss"
    sees_every_step = False

    def __init__(self, net: TapeNet, carry: Descent) -> None:
        self.net = net
        self.notes = [FIRST_STEP]
        edges = zip(net.graph.edge_from.tolist(), net.graph.edge_to.tolist(), strict=True)
        simplex = Simplex(
            "State weights s", len(net.graph.down), list(edges), self._name, lambda v: net.explain(f"s/{v}")
        )
        last = net.first_cell + net.cells - 1
        tapes = [
            Cells(
                f"Weights of tape {tape + 1}",
                "signed",
                rows=("T", "H"),
                default=(-1, 0),
                note=f"The net has cells {net.first_cell:,} to {last:,}; those in use are shown.",
                explain=lambda row, cell, tape=tape: self._word(tape, row, cell),
                room=2,
            )
            for tape in range(net.tapes)
        ]
        self.panels: list[Panel] = [simplex, *tapes]

    def frame(self, carry: Descent) -> tuple[list[Any], float | None]:
        s, H, T = np.asarray(carry.weights.s), np.asarray(carry.weights.H), self.net.all_tapes(carry)
        shown: list[Any] = [[(int(v), float(s[v])) for v in np.flatnonzero(s)]]
        for tape in range(self.net.tapes):
            cells = [
                (row, int(cell) + self.net.first_cell, float(weights[cell]))
                for row, weights, default in ((0, T[:, tape], -1.0), (1, H[:, tape], 0.0))
                for cell in np.flatnonzero(weights != default)
            ]
            head = int(H[:, tape].argmax()) + self.net.first_cell
            shown.append(CellsFrame(cells, [(0, head), (1, head)]))
        return shown, self.net.loss(carry)

    def _name(self, vertex: int) -> str:
        return f"{state_of(self.net, vertex)} {symbols(self.net, self.net.graph.down[vertex])}"

    def _word(self, tape: int, row: int, cell: int) -> str:
        inside = self.net.first_cell <= cell < self.net.first_cell + self.net.cells
        if not inside:
            return f"Cell {cell} is beyond the end of the tape."
        if row == 0 and tape < self.net.read_only:
            return f"Read-only tape {tape + 1}, cell {cell}: filled by the data, no weight."
        return self.net.explain(f"{'TH'[row]}/{tape}/{cell}")


VIEW = TapeView
