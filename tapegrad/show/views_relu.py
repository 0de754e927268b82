"""The target `relu` at work: its layers as they are computed. In the paper's form a step is a layer of the
circuit, and its gates are drawn with the network's values; in the compact form a step is a layer of units,
and these are drawn."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.circuits.inputs import BUS, named_bits
from tapegrad.circuits.model import Gate
from tapegrad.show.drawing.layers import MOST_NODES, Units, skyline
from tapegrad.show.drawing.scene import HERE, LATER, Drawing, Node, Picture
from tapegrad.show.views import Heights
from tapegrad.targets.relu import Activations, LayeredNet, ReluNet
from tapegrad.targets.relu.build import relu_layers

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
LEGEND = (("here", "computed in this step"), ("later", "not computed yet"))
OF_GATES = (
    ("plus", "the network's value is 1"),
    *LEGEND,
    ("flow", "carries a 1"),
    ("dot", "passes a value on; ∧ ∨ ⊕ ¬ are and, or, exclusive or, not"),
)
OF_UNITS = (
    ("plus", "holds a value other than 0"),
    *LEGEND,
    ("flow", "carries something, with a positive weight"),
    ("against", "with a negative one"),
)
OF_LAYERS = (
    ("plus", "a column for each layer, as high as it has units; the more of them are on, the darker"),
    LEGEND[0],
)
INPUTS_IN = "The inputs are in: {}. No layer has been computed yet."
OUTPUTS_READ = "All layers are computed, and the outputs are read: {}."
LAYER_COMPUTED = (
    "Layer {} of {}: the circled units ({}) are computed, each as max(0, weighted sum). Coloured lines carry "
    "something to them. Units above 0: {}."
)
"""Captions; the page fills them in as well."""
GATES_COMPUTED = "Layer {} of {} of the circuit, as {} layers of ReLU units: {} of {} values are on."


class LayersView:
    """The values of what is drawn, as they are computed, all units of the step, and at the end the outputs;
    for the first pattern of a batch."""

    curves = ("values that are on",)
    sees_every_step = True

    def __init__(self, compiled: Compiled, carry: Activations) -> None:
        net = compiled.net
        assert isinstance(net, LayeredNet)
        self.net, self.before = net, carry
        gates = net if isinstance(net, ReluNet) else None
        self.each = relu_layers(gates.correction) if gates else 1
        """ReLU layers of a step."""
        self.of_gates = gates is not None
        self.step_name = "circuit layer" if gates else "ReLU layer"
        self.values: list[NDArray[np.floating]] = []
        """Of the inputs, and of the last layer of each step so far."""
        self.explained = net.bounds[-1] <= MOST_EXPLAINED
        drawn = range(-1, net.depth, self.each)
        sizes = [*map(net.size, drawn), net.size(net.depth)]
        widest = max(net.size(layer) for layer in range(net.depth + 1))
        self.notes = (
            [f"Of every layer the first {MOST_UNITS} units are shown."] if widest > MOST_UNITS else []
        )
        self.units = None
        if sum(sizes) <= MOST_NODES:
            made = Units(*_gates_of(gates)) if gates else Units(*_units_of(net))
            self.units = made if made.drawable else None
        if self.units is not None:
            name, legend = ("The circuit", OF_GATES) if gates else ("The network", OF_UNITS)
            drawing = Drawing(name, self.units.nodes, self.units.edges(), self.units.arrangements(), legend)
        else:
            numbers = range(int(self.of_gates), len(drawn) - 1 + int(self.of_gates))
            named = [f"{self.step_name[0].upper()}{self.step_name[1:]} {number}" for number in numbers]
            words = ["The inputs", *named, "The outputs"]
            nodes, arrangements = skyline(
                sizes, [f"{name}: {size:,} values." for name, size in zip(words, sizes, strict=True)]
            )
            title = f"The layers of the {'circuit' if gates else 'network'}"
            drawing = Drawing(title, nodes, (), arrangements, OF_LAYERS)
        self.rows = ROWS[: 1 + self.each] if gates else ("units",)
        self.panels: list[Panel] = [
            drawing,
            Cells(
                "ReLU layers of this circuit layer" if gates else "Units of this layer",
                "unit",
                rows=self.rows,
                column_name="unit",
                row_words=ROW_WORDS[: len(self.rows)] if gates else ("Unit of this ReLU layer",),
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
        """The layers that were computed last; before the first step the inputs."""
        net, before = self.net, self.before
        layers = range(before.steps * self.each, min(carry.steps * self.each, net.depth))
        found = [net.after(net.between(before, layer + 1), layer)[:, 0] for layer in layers]
        if not self.values:
            self.values = [carry.values[: len(net.input_names), 0].astype(net.dtype)]
        shown = [(self._words(-1 if not layers else layers[0] - 1), self.values[-1])] if self.of_gates else []
        shown += [(self._words(layer), values) for layer, values in zip(layers, found, strict=True)]
        if not shown:
            shown = [(self._words(net.depth - 1 if carry.steps else -1), self.values[-1])]
        self.values += found[-1:]
        self.before = carry
        cells = [
            (row, column, value)
            for row, (_, values) in enumerate(shown)
            for column, value in enumerate(values[:MOST_UNITS].tolist())
            if value
        ]
        missing = len(self.rows) - len(shown)
        widths = [min(len(values), MOST_UNITS) for _, values in shown] + [0] * missing
        outputs = [] if carry.signs is None else carry.signs[:, 0].tolist()
        read = [(0, column, value) for column, value in enumerate(outputs[:MOST_UNITS])]
        panels = [
            self._picture(carry.steps, outputs),
            CellsFrame(cells, widths=widths, words=[words for words, _ in shown] + [[]] * missing),
            CellsFrame(read, widths=[len(read)]),
        ]
        return panels, (float((self.values[-1] > 0.5).sum()),)

    def _words(self, layer: int) -> list[str]:
        """What is said of the units of a layer; of a circuit layer before, of its values."""
        net = self.net
        size = min(net.size(layer), MOST_UNITS)
        if layer < 0 and not self.of_gates:
            return [f"Input {name!r}." for name in net.input_names[:size]]
        if (layer + 1) % self.each == 0 and self.of_gates and layer < self.before.steps * self.each:
            return [f"Value {c} of circuit layer {(layer + 1) // self.each}." for c in range(size)]
        return [net.explain(f"{layer}.{unit}") for unit in range(size)] if self.explained else []

    def _picture(self, step: int, outputs: list[float]) -> Picture:
        caption, shown = self._caption(step, outputs), [values.tolist() for values in self.values]
        shown += [outputs] if outputs else []
        last = len(shown) - 1
        if self.units is None:
            shares = [sum(value > 0.5 for value in values) / max(1, len(values)) for values in shown]
            return Picture(caption, [(n, share, HERE if n == last else 0) for n, share in enumerate(shares)])
        flat = [value for values in shown for value in values]
        first = len(flat) - len(shown[-1])
        nodes: list[Any] = []
        for number, value in enumerate(flat):
            own = self.units.nodes[number]
            now = bool(step) and number >= first and own.shape != "dot"
            if value or now:
                strength = max(-1.0, min(1.0, value))
                text = () if self.of_gates else (own.text if own.shape == "box" else f"{value:g}",)
                nodes.append((number, strength, HERE if now else 0, *text))
        nodes += [(later, 0.0, LATER) for later in range(len(flat), len(self.units.nodes))]
        edges = [
            (edge, 1.0 if weight > 0 else -1.0, 0)
            for edge, ((a, b), weight) in enumerate(zip(self.units.ends, self.units.weights, strict=True))
            if step and first <= b < len(flat) and flat[a] * weight
        ]
        return Picture(caption, nodes, edges)

    def _caption(self, step: int, outputs: list[float]) -> str:
        net, values = self.net, self.values[-1]
        if outputs:
            return OUTPUTS_READ.format(_listed(net.output_names, np.array(outputs) > 0))
        if step == 0:
            return INPUTS_IN.format(_listed(net.input_names, values > 0.5))
        on = int((values > 0.5).sum())
        if self.of_gates:
            return GATES_COMPUTED.format(step, net.depth // self.each, self.each, on, len(values))
        return LAYER_COMPUTED.format(step, net.depth, len(values), on)

    def live(self) -> dict[str, Any] | None:
        """Units as bias, places and weights; names and widths of the inputs. The page runs what is drawn unit
        by unit."""
        if self.units is None or self.of_gates:
            return None
        net, wiring = self.net, self.net.wiring
        rows = [(int(bias), wiring.reads(row)) for row, bias in enumerate(wiring.biases)]
        units, outputs = rows[: net.bounds[-2]], rows[net.bounds[-2] :]
        bits = [_bit(name) for name in net.input_names]
        widths: dict[str, int] = {}
        for name, place in bits:
            widths[name] = max(widths.get(name, 0), place + 1)
        ends = zip(self.units.ends, self.units.weights, strict=True)
        return {
            "kind": "relu",
            "example": " ".join(f"{name}=1" for name in widths),
            "units": [[bias, *(int(number) for read in reads for number in read)] for bias, reads in units],
            "outputs": [[bias, *map(int, (*reads, (0, 0))[0])] for bias, reads in outputs],
            "bounds": net.bounds[:-1],
            "bits": bits,
            "widths": widths,
            "results": [_bit(name) for name in net.output_names],
            "ends": [[a, b, weight] for (a, b), weight in ends],
            "captions": {"inputs": INPUTS_IN, "outputs": OUTPUTS_READ, "layer": LAYER_COMPUTED},
        }


def _bit(name: str) -> tuple[str, int]:
    """`a[3]` as bit 3 of a."""
    bus = BUS.fullmatch(name)
    return (bus[1], int(bus[2])) if bus else (name, 0)


def _listed(names: tuple[str, ...], bits: np.ndarray) -> str:
    """Some of the values that these bits are."""
    return ", ".join(f"{name} = {value}" for name, value in list(named_bits(names, bits).items())[:4])


Drawn = tuple[list[Node], list[int], list[tuple[int, int]], list[float]]
"""What is drawn: nodes, the layer of each, edges and their weights."""


def _boxes(names: Sequence[str], words: Iterator[str]) -> list[Node]:
    return [Node(name, said, "box") for name, said in zip(names, words, strict=True)]


def _ends_of(net: LayeredNet) -> tuple[list[Node], list[Node]]:
    """Inputs and outputs."""
    inputs = _boxes(net.input_names, (f"Input {name!r}." for name in net.input_names))
    said = (net.explain(f"{net.depth}.{output}") for output in range(len(net.output_names)))
    return inputs, _boxes(net.output_names, said)


def _gates_of(net: ReluNet) -> Drawn:
    """Inputs, the gates of every circuit layer, outputs: numbered layer by layer."""
    nodes, outputs = _ends_of(net)
    layer_of, ends = [0] * len(nodes), list[tuple[int, int]]()
    before = gate = 0
    for step in range(net.circuit_layers):
        first = len(nodes)
        for place in range(net.layer_width(step + 1)):
            kind = Gate(int(net.gates.kinds[gate]))
            ends += [(before + read, len(nodes)) for read in dict.fromkeys(net.operands(step, place))]
            shape = "dot" if kind == Gate.ID else "gate"
            said = "passes a value on" if kind == Gate.ID else f"a gate {kind.name}"
            nodes.append(Node(SIGNS.get(kind, ""), f"Circuit layer {step + 1}: {said}.", shape))
            gate += 1
        layer_of += [step + 1] * (len(nodes) - first)
        before = first
    ends += [(before + output, len(nodes) + output) for output in range(len(outputs))]
    layer_of += [net.circuit_layers + 1] * len(outputs)
    return [*nodes, *outputs], layer_of, ends, [1.0] * len(ends)


def _units_of(net: LayeredNet) -> Drawn:
    """Inputs stand just before the first layer that reads them, outputs just behind the unit they read."""
    inputs, outputs = _ends_of(net)
    wiring, total = net.wiring, len(inputs) + net.bounds[-2]
    layer = wiring.layer_of_place.tolist()
    reads = [
        (place, wiring.inputs + row, weight)
        for row in range(net.bounds[-1])
        for place, weight in wiring.reads(row)
    ]
    for place, reader, _ in reads:
        if reader >= total:
            layer[reader] = layer[place] + 1
    for place in range(wiring.inputs):
        readers = [reader for read, reader, _ in reads if read == place]
        layer[place] = min((layer[reader] for reader in readers if reader < total), default=1) - 1
        for reader in readers:  # an output that is an input
            if reader >= total:
                layer[reader] = layer[place] + 1
    units = [Node("", net.explain(unit), "gate") for unit in net.units()][: net.bounds[-2]]
    ends = [(place, reader) for place, reader, _ in reads]
    return [*inputs, *units, *outputs], layer, ends, [weight for *_, weight in reads]
