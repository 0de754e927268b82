"""The target `emulator` at work: the weights that are the learner's memory, and the loss on each sample."""

from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad.circuits.view import MOST_BITS
from tapegrad.learners.model import Samples
from tapegrad.learners.view import BITS_IN_A_ROW, bit_rows, bit_widths
from tapegrad.targets.emulator.net import EmulatorCarry, EmulatorNet


class EmulatorView:
    """Each memory cell as a weight in units of its size w0 where the net has one weight for a cell, else as
    the bit it decodes to; the output beside the label."""

    step_name = "SGD step"
    curve_name = "loss (output - label)²"
    sees_every_step = False

    def __init__(self, net: EmulatorNet, carry: EmulatorCarry) -> None:
        self.net = net
        self.units = net.unit_table()
        cells = len(self._values(carry))
        self.count = min(cells, MOST_BITS)
        self.notes = [] if cells <= MOST_BITS else [f"{MOST_BITS} of {cells:,} memory cells are shown."]
        self.panels: list[Panel] = [
            Fields("Output", words={"output": "The last vertex: the learner's answer, or its guess."}),
            Cells(
                "Memory cells as weights",
                "signed",
                rows=bit_rows(self.count),
                default=(1,),
                columns=(0, min(BITS_IN_A_ROW, max(1, self.count)) - 1),
                note="A negative weight is a 1, a positive one a 0; in units of their common size.",
                column_name="cell",
                explain=self._word,
            ),
        ]

    def frame(self, carry: EmulatorCarry) -> tuple[list[Any], float | None]:
        fields, loss = {"output": "·", "label": "·", "loss": "·"}, None
        if carry.steps:
            label = _label(carry.samples, carry.steps - 1)
            loss = (float(carry.output) - label) ** 2
            fields = {"output": f"{float(carry.output):+.4f}", "label": f"{label:+d}", "loss": f"{loss:.4g}"}
        values = enumerate(self._values(carry)[: self.count])
        cells = [(*divmod(number, BITS_IN_A_ROW), value) for number, value in values if value != 1]
        return [fields, CellsFrame(cells, widths=bit_widths(self.count))], loss

    def _values(self, carry: EmulatorCarry) -> list[float]:
        net: Any = self.net
        if net.memory == "practical":
            return (np.asarray(carry.weights)[net.cells] / net.constants.w0).tolist()
        state = net.decode(carry)
        return [1.0 - 2.0 * bit for bit in state.memory]

    def _word(self, row: int, column: int) -> str:
        name = f"cell {row * BITS_IN_A_ROW + column}"
        return f"{name}: {self.units[name]}" if name in self.units else name


def _label(samples: Samples, number: int) -> int:
    return 2 * int(samples.y[number]) - 1


VIEW = EmulatorView
