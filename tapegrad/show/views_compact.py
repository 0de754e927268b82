"""The target `relu` in its compact form, at work: the units of every layer, and the outputs."""

from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.targets.relu.compact.net import CompactNet, RunningState

MOST_UNITS = 128
"""Units of a layer that are shown."""
MOST_EXPLAINED = 3000
"""Units of a net that are explained one by one."""


class CompactView:
    """The values of the units of a layer, once they are computed, and at the end the outputs; for the first
    pattern of a batch."""

    step_name = "ReLU layer"
    curve_name = "values in the running state that are on"
    sees_every_step = False

    def __init__(self, net: CompactNet, carry: RunningState) -> None:
        self.net = net
        self.explained = len(net.holds) <= MOST_EXPLAINED
        self.notes = [] if net.width <= MOST_UNITS else [f"Of every layer {MOST_UNITS} units are shown."]
        outputs = len(net.output_names)
        self.panels: list[Panel] = [
            Cells(
                "Units of this layer",
                "unit",
                rows=("units",),
                column_name="unit",
                row_words=("Unit of this ReLU layer",),
            ),
            Cells(
                "Outputs",
                "signed",
                rows=("outputs",),
                column_name="output",
                explain=lambda _, c: net.explain(f"{net.depth}.{c}") if c < outputs else "",
                columns=(0, max(0, min(outputs, MOST_UNITS) - 1)),
            ),
        ]

    def frame(self, carry: RunningState) -> tuple[list[Any], float | None]:
        """The layer that was computed last; before the first step the inputs."""
        net, values = self.net, np.asarray(carry.values)[:, 0]
        layer = min(carry.steps, net.depth) - 1
        if layer < 0:
            places = range(min(net.own.inputs, MOST_UNITS))
            words = [f"Input {net.input_names[place]!r}." for place in places]
        else:
            begin, end = (net.own.inputs + int(bound) for bound in net.own.bounds[layer : layer + 2])
            places = range(begin, min(end, begin + MOST_UNITS))
            words = [net.explain(net.place_name(place)) for place in places] if self.explained else []
        found = values[net.slots.of_place[list(places)]].tolist() if len(places) else []
        cells = [(0, column, value) for column, value in enumerate(found) if value]
        shown = CellsFrame(cells, widths=[len(found)], words=[words])
        outputs = net.read_out(carry)[:MOST_UNITS, 0].tolist() if net.done(carry) else []
        read = CellsFrame([(0, c, v) for c, v in enumerate(outputs)], widths=[len(outputs)])
        return [shown, read], float((values[: net.slots.total] > 0.5).sum())
