"""The target `relu` in the form of the paper, at work: the circuit with the network's values on its gates,
and every unit of the ReLU layers that make up one layer of the circuit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.circuits.model import ARITY, Gate
from tapegrad.show.drawing.layers import Units, skyline
from tapegrad.show.drawing.scene import HERE, LATER, Drawing, Node, Picture
from tapegrad.show.views import Heights
from tapegrad.show.views_compact import INPUTS_IN, LARGE_LEGEND, OUTPUTS_READ, listed
from tapegrad.targets.relu.build import relu_layers
from tapegrad.targets.relu.layered import Activations
from tapegrad.targets.relu.net import ReluNet

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


SIGNS = {
    Gate.AND: "∧", Gate.OR: "∨", Gate.XOR: "⊕", Gate.NOT: "¬", Gate.NAND: "⊼", Gate.NOR: "⊽", Gate.XNOR: "≡",
    Gate.FALSE: "0", Gate.TRUE: "1",
}  # fmt: skip
LEGEND = (
    ("plus", "the network's value is 1"),
    ("here", "computed in this step"),
    ("later", "not computed yet"),
    ("flow", "carries a 1"),
    ("dot", "passes a value on; ∧ ∨ ⊕ ¬ are and, or, exclusive or, not"),
)


class ReluView:
    """The values before a circuit layer, those of its two or four ReLU layers, at the end the outputs."""

    step_name = "circuit layer"
    curves = ("values that are on",)
    sees_every_step = True

    def __init__(self, compiled: Compiled, carry: Activations) -> None:
        net = compiled.net
        assert isinstance(net, ReluNet)
        self.net = net
        self.each = relu_layers(net.correction)
        self.explained = len(net.stack.biases) <= MOST_EXPLAINED
        self.before = carry
        widest = int(np.diff(net.stack.bounds).max(initial=0))
        self.notes = (
            [] if widest <= MOST_UNITS else [f"Of every layer the first {MOST_UNITS} units are shown."]
        )
        rows = ROWS[: 1 + self.each]
        self.values: list[NDArray[np.floating]] = []
        """Those of each circuit layer so far."""
        self.units = _units(net) if len(net.gates.kinds) <= MOST_EXPLAINED else None
        self.panels: list[Panel] = [
            self._drawing(),
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

    def frame(self, carry: Activations) -> tuple[list[Any], Heights]:
        layers = [self.net.values(self.before)[:, 0]]
        words = [[f"Value {c} of circuit layer {self.before.steps}." for c in range(len(layers[0]))]]
        if carry.steps > self.before.steps:
            first = self.before.steps * self.each
            for part in range(1, self.each + 1):
                layers.append(self.net.partly(self.before, part)[:, 0])
                names = [f"{first + part - 1}.{c}" for c in range(min(len(layers[-1]), MOST_UNITS))]
                words.append([self.net.explain(name) for name in names] if self.explained else [])
        values = self.net.values(carry)[:, 0]
        on = float((values > 0.5).sum())
        self.values = [*self.values[: carry.steps], values]
        self.before = carry
        cells = [
            (r, c, v) for r, row in enumerate(layers) for c, v in enumerate(row[:MOST_UNITS].tolist()) if v
        ]
        rows = 1 + self.each
        widths = [min(len(row), MOST_UNITS) for row in layers] + [0] * (rows - len(layers))
        shown = CellsFrame(cells, widths=widths, words=words + [[]] * (rows - len(layers)))
        return [self._picture(carry), shown, self._outputs(carry)], (on,)

    def _drawing(self) -> Drawing:
        net = self.net
        if self.units is not None and self.units.drawable:
            units = self.units
            return Drawing("The circuit", units.nodes, units.edges(), units.arrangements(), LEGEND)
        self.units = None
        sizes = [net.layer_width(step) for step in range(net.circuit_layers + 1)]
        words = [f"Circuit layer {step}: {size:,} values." for step, size in enumerate(sizes)]
        nodes, arrangements = skyline(sizes, words)
        return Drawing("The layers of the circuit", nodes, (), arrangements, LARGE_LEGEND)

    def _picture(self, carry: Activations) -> Picture:
        outputs = [] if carry.signs is None else carry.signs[:, 0].tolist()
        caption, last = self._caption(carry, outputs), len(self.values) - 1
        nodes: list[Any] = []
        if self.units is None:
            for step, values in enumerate(self.values):
                nodes.append((step, float((values > 0.5).mean()), HERE if step == last else 0))
            return Picture(caption, nodes)
        layers = [*(values.tolist() for values in self.values), *([outputs] if outputs else [])]
        number = 0
        flat: list[float] = []
        for step, row in enumerate(layers):
            for value in row:
                now = step == len(layers) - 1 and step and self.units.nodes[number].shape != "dot"
                if value or now:
                    nodes.append((number, max(-1.0, min(1.0, value)), HERE if now else 0))
                number += 1
            flat += row
        nodes += [(later, 0.0, LATER) for later in range(number, len(self.units.nodes))]
        first = number - len(layers[-1])
        edges = [
            (edge, 1.0, 0)
            for edge, (a, b) in enumerate(self.units.ends)
            if len(layers) > 1 and first <= b < number and flat[a] > 0.5
        ]
        return Picture(caption, nodes, edges)

    def _caption(self, carry: Activations, outputs: list[float]) -> str:
        net = self.net
        if outputs:
            return OUTPUTS_READ.format(listed(net.output_names, np.array(outputs) > 0))
        if carry.steps == 0:
            return INPUTS_IN.format(listed(net.input_names, self.values[0] > 0.5))
        on, all_, of = int((self.values[-1] > 0.5).sum()), len(self.values[-1]), net.circuit_layers
        return (
            f"Layer {carry.steps} of {of} of the circuit, as {self.each} layers of ReLU units: "
            f"{on} of {all_} values are on."
        )

    def _outputs(self, carry: Activations) -> CellsFrame:
        if carry.signs is None:
            return CellsFrame([], widths=[0])
        outputs = carry.signs[:MOST_UNITS, 0].tolist()
        return CellsFrame([(0, c, v) for c, v in enumerate(outputs)], widths=[len(outputs)])


def _units(net: ReluNet) -> Units:
    """Inputs, the gates of every circuit layer, outputs: numbered layer by layer."""
    nodes = [Node(name, f"Input {name!r}.", "box") for name in net.input_names]
    layer_of, ends = [0] * len(nodes), []
    before, gate = 0, 0
    for step in range(1, net.circuit_layers + 1):
        first = len(nodes)
        for _ in range(net.layer_width(step)):
            kind = Gate(int(net.gates.kinds[gate]))
            operands = (net.gates.left[gate], net.gates.right[gate])[: ARITY[kind]]
            ends += [(before + int(operand), len(nodes)) for operand in dict.fromkeys(operands)]
            shape = "dot" if kind == Gate.ID else "gate"
            said = "passes a value on" if kind == Gate.ID else f"a gate {kind.name}"
            nodes.append(Node(SIGNS.get(kind, ""), f"Circuit layer {step}: {said}.", shape))
            layer_of.append(step)
            gate += 1
        before = first
    for output, name in enumerate(net.output_names):
        ends.append((before + output, len(nodes)))
        nodes.append(Node(name, net.explain(f"{net.depth}.{output}"), "box"))
        layer_of.append(net.circuit_layers + 1)
    return Units(nodes, layer_of, ends, [1.0] * len(ends))
