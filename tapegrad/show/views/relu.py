"""The target `relu` at work: every unit of the ReLU layers that make up one layer of the circuit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad._precision import in_double
from tapegrad.networks.backends.jax import room, run_stack
from tapegrad.targets.relu.constants import relu_layers
from tapegrad.targets.relu.net import Activations, ReluNet

MOST_UNITS = 128
"""Units of a layer that are shown."""
MOST_EXPLAINED = 3000
"""Units of a net that are explained one by one."""
ROWS = ("before", "hidden", "gates", "cut", "rounded")
ROW_WORDS = (
    "Value of the circuit layer before",
    "Hidden unit of a gate, W1 of Lemma B.1",
    "Value of a gate, W2 of Lemma B.1",
    "Unit that cuts at a threshold of the correction, Proposition 3.4",
    "Corrected value of a gate, Proposition 3.4",
)


class ReluView:
    """The values before a circuit layer, those of its two or four ReLU layers, at the end the outputs."""

    step_name = "circuit layer"
    curve_name = "values that are on"
    sees_every_step = True

    def __init__(self, net: ReluNet, carry: Activations) -> None:
        self.net = net
        self.each = relu_layers(net.correction)
        self.explained = len(net.stack.biases) <= MOST_EXPLAINED
        self.before = carry
        widest = int(np.diff(net.stack.bounds).max(initial=0))
        self.notes = (
            [] if widest <= MOST_UNITS else [f"Of every layer the first {MOST_UNITS} units are shown."]
        )
        rows = ROWS[: 1 + self.each]
        self.panels: list[Panel] = [
            Cells(
                "ReLU layers of this circuit layer",
                "unit",
                rows=rows,
                column_name="unit",
                row_words=ROW_WORDS[: len(rows)],
            ),
            Cells(
                "Outputs",
                "signed",
                rows=("outputs",),
                column_name="output",
                explain=lambda _, c: net.explain(f"{net.depth}.{c}") if c < len(net.output_names) else "",
                columns=(0, max(0, min(len(net.output_names), MOST_UNITS) - 1)),
            ),
        ]

    def frame(self, carry: Activations) -> tuple[list[Any], float | None]:
        layers = [self._values(self.before.values, self.net.layer_width(self.before.steps))]
        words = [[f"Value {c} of circuit layer {self.before.steps}." for c in range(len(layers[0]))]]
        if carry.steps > self.before.steps:
            first = self.before.steps * self.each
            for part in range(1, self.each + 1):
                layers.append(self._after(first, part))
                names = [f"{first + part - 1}.{c}" for c in range(min(len(layers[-1]), MOST_UNITS))]
                words.append([self.net.explain(name) for name in names] if self.explained else [])
        on = float((self._values(carry.values, self.net.layer_width(carry.steps)) > 0.5).sum())
        self.before = carry
        cells = [
            (r, c, v) for r, row in enumerate(layers) for c, v in enumerate(row[:MOST_UNITS].tolist()) if v
        ]
        rows = 1 + self.each
        widths = [min(len(row), MOST_UNITS) for row in layers] + [0] * (rows - len(layers))
        shown = CellsFrame(cells, widths=widths, words=words + [[]] * (rows - len(layers)))
        return [shown, self._outputs(carry)], on

    def _outputs(self, carry: Activations) -> CellsFrame:
        if not self.net.done(carry):
            return CellsFrame([], widths=[0])
        outputs = self.net.read_out(carry)[:MOST_UNITS, 0].tolist()
        return CellsFrame([(0, c, v) for c, v in enumerate(outputs)], widths=[len(outputs)])

    @in_double
    def _after(self, first: int, parts: int) -> NDArray[np.floating]:
        """The reference engine, stopped after some of the ReLU layers of a circuit layer."""
        sizes = [self.net.stack.size(layer) for layer in range(first, first + parts)]
        values = run_stack(self.net.stack, self.before.values, first, tuple(map(room, sizes)))
        return self._values(values, sizes[-1])

    def _values(self, values: Any, count: int) -> NDArray[np.floating]:
        """Those of the first pattern of a batch, padding left out."""
        return np.asarray(values)[:count, 0]


VIEW = ReluView
