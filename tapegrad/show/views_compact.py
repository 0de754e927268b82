"""The target `relu` in its compact form, at work: the network with the values of its units."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.circuits.inputs import BUS, named_bits
from tapegrad.show.drawing.layers import Units, skyline
from tapegrad.show.drawing.scene import HERE, LATER, Drawing, Node, Picture
from tapegrad.show.views import Heights
from tapegrad.targets.relu.compact.net import Activations, CompactNet

MOST_UNITS = 128
"""Units of a layer that are shown."""
MOST_EXPLAINED = 3000
"""Units of a net that are explained one by one."""
LEGEND = (
    ("plus", "holds a value other than 0"),
    ("here", "computed in this step"),
    ("later", "not computed yet"),
    ("flow", "carries something, with a positive weight"),
    ("against", "with a negative one"),
)
INPUTS_IN = "The inputs are in: {}. No layer has been computed yet."
OUTPUTS_READ = "All layers are computed, and the outputs are read: {}."
LAYER_COMPUTED = (
    "Layer {} of {}: the circled units ({}) are computed, each as max(0, weighted sum). Coloured lines carry "
    "something to them. Units above 0: {}."
)
"""Captions; the page fills them in as well."""
LARGE_LEGEND = (
    ("plus", "a column for each layer, as high as it has units; the more of them are on, the darker"),
    ("here", "computed in this step"),
)


class CompactView:
    """The values of all units, as they are computed, and at the end the outputs; for the first pattern of a
    batch."""

    step_name = "ReLU layer"
    curves = ("values that are on",)
    sees_every_step = True

    def __init__(self, compiled: Compiled, carry: Activations) -> None:
        net = compiled.net
        assert isinstance(net, CompactNet)
        self.net = net
        self.explained = len(net.holds) <= MOST_EXPLAINED
        self.notes = [] if net.width <= MOST_UNITS else [f"Of every layer {MOST_UNITS} units are shown."]
        self.known: dict[int, float] = {}
        """What each place held when it was computed."""
        outputs = len(net.output_names)
        self.units = _units(net) if self.explained else None
        if self.units is not None and self.units.drawable:
            drawing = Drawing(
                "The network", self.units.nodes, self.units.edges(), self.units.arrangements(), LEGEND
            )
        else:
            self.units = None
            sizes = [net.own.inputs, *np.diff(net.own.bounds).tolist(), outputs]
            names = ["The inputs", *(f"ReLU layer {i}" for i in range(net.depth)), "The outputs"]
            words = [f"{name}: {size:,} values." for name, size in zip(names, sizes, strict=True)]
            nodes, arrangements = skyline(sizes, words)
            drawing = Drawing("The layers of the network", nodes, (), arrangements, LARGE_LEGEND)
        self.panels: list[Panel] = [
            drawing,
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

    def frame(self, carry: Activations) -> tuple[list[Any], Heights]:
        """The layer that was computed last; before the first step the inputs."""
        net, values = self.net, carry.values[:, 0]
        layer = min(carry.steps, net.depth)
        places = self._places(layer)
        if carry.steps <= net.depth:
            found = values[net.slots.of_place[places]].tolist() if places else []
            self.known.update(zip(places, found, strict=True))
        shown = places[:MOST_UNITS]
        words = [f"Input {net.input_names[place]!r}." for place in shown] if layer == 0 else []
        if layer and self.explained:
            words = [net.explain(net.place_name(place)) for place in shown]
        cells = [(0, column, self.known[place]) for column, place in enumerate(shown) if self.known[place]]
        units = CellsFrame(cells, widths=[len(shown)], words=[words])
        outputs = [] if carry.signs is None else carry.signs[:, 0].tolist()
        read = CellsFrame(list(_row(outputs[:MOST_UNITS])), widths=[len(outputs[:MOST_UNITS])])
        on = float((values[: net.slots.total] > 0.5).sum())
        return [self._picture(carry, places, outputs), units, read], (on,)

    def _places(self, step: int) -> list[int]:
        """What a step computes; step 0 are the inputs."""
        net = self.net
        if step == 0:
            return list(range(net.own.inputs))
        begin, end = (net.own.inputs + int(bound) for bound in net.own.bounds[step - 1 : step + 1])
        return list(range(begin, end))

    def _picture(self, carry: Activations, places: list[int], outputs: list[float]) -> Picture:
        caption = self._caption(carry, places, outputs)
        if self.units is None:
            return Picture(caption, self._shares(carry, outputs))
        total, step = self.net.own.inputs + len(self.net.holds), carry.steps
        values = [self.known.get(node, 0.0) for node in range(total)] + (
            outputs or [0.0] * len(self.net.output_names)
        )
        nodes: list[Any] = []
        for node, value in enumerate(values):
            known = node in self.known if node < total else bool(outputs)
            now = known and (node >= total if outputs else node in set(places))
            if not known:
                nodes.append((node, 0.0, LATER))
            elif value or now:
                text = (
                    self.units.nodes[node].text
                    if node < self.net.own.inputs or node >= total
                    else f"{value:g}"
                )
                strength = max(-1.0, min(1.0, value))
                nodes.append((node, strength, HERE if now and step else 0, text))
        lit = set(range(total, len(values)) if outputs else places) if step else set()
        edges = [
            (number, 1.0 if weight > 0 else -1.0, 0)
            for number, ((a, b), weight) in enumerate(zip(self.units.ends, self.units.weights, strict=True))
            if b in lit and values[a] * weight
        ]
        return Picture(caption, nodes, edges)

    def _shares(self, carry: Activations, outputs: list[float]) -> list[Any]:
        last = self.net.depth + 1 if outputs else min(carry.steps, self.net.depth)
        nodes: list[Any] = []
        for step in range(last + 1):
            values = outputs if step > self.net.depth else [self.known[place] for place in self._places(step)]
            share = sum(value > 0.5 for value in values) / max(1, len(values))
            nodes.append((step, share, HERE if step == last else 0))
        return nodes

    def _caption(self, carry: Activations, places: list[int], outputs: list[float]) -> str:
        net = self.net
        if outputs:
            return OUTPUTS_READ.format(listed(net.output_names, np.array(outputs) > 0))
        if carry.steps == 0:
            bits = np.array([self.known[place] for place in places]) > 0.5
            return INPUTS_IN.format(listed(net.input_names, bits))
        on = sum(self.known[place] > 0.5 for place in places)
        return LAYER_COMPUTED.format(carry.steps, net.depth, len(places), on)

    def live(self) -> dict[str, Any] | None:
        """Units as bias, places and weights; names and widths of the inputs."""
        if self.units is None:
            return None
        net, own = self.net, self.net.own
        units = [
            [int(bias), *(number for read in net.reads(unit) for number in read)]
            for unit, bias in enumerate(own.biases.tolist())
        ]
        bits = [_bit(name) for name in net.input_names]
        widths: dict[str, int] = {}
        for name, place in bits:
            widths[name] = max(widths.get(name, 0), place + 1)
        outputs = zip(own.out_biases.tolist(), own.out_places.tolist(), own.out_weights.tolist(), strict=True)
        return {
            "kind": "relu",
            "example": " ".join(f"{name}=1" for name in widths),
            "units": units,
            "outputs": [list(output) for output in outputs],
            "bounds": own.bounds.tolist(),
            "bits": bits,
            "widths": widths,
            "results": [_bit(name) for name in net.output_names],
            "ends": [
                [a, b, weight] for (a, b), weight in zip(self.units.ends, self.units.weights, strict=True)
            ],
            "captions": {"inputs": INPUTS_IN, "outputs": OUTPUTS_READ, "layer": LAYER_COMPUTED},
        }


def _bit(name: str) -> tuple[str, int]:
    """`a[3]` as bit 3 of a."""
    bus = BUS.fullmatch(name)
    return (bus[1], int(bus[2])) if bus else (name, 0)


def listed(names: tuple[str, ...], bits: np.ndarray) -> str:
    """Some of the values that these bits are."""
    return ", ".join(f"{name} = {value}" for name, value in list(named_bits(names, bits).items())[:4])


def _row(values: list[float]) -> Any:
    return ((0, column, value) for column, value in enumerate(values))


def _units(net: CompactNet) -> Units:
    """Inputs stand just before the first layer that reads them, outputs just behind the unit they read."""
    own = net.own
    layer = own.layer_of_place.tolist()
    ends = [(place, own.inputs + unit) for unit in range(len(net.holds)) for place, _ in net.reads(unit)]
    weights = [float(weight) for unit in range(len(net.holds)) for _, weight in net.reads(unit)]
    total = len(layer)
    for output, (place, weight) in enumerate(
        zip(own.out_places.tolist(), own.out_weights.tolist(), strict=True)
    ):
        layer.append(layer[place] + 1 if weight else net.depth + 1)
        if weight:
            ends.append((place, total + output))
            weights.append(float(weight))
    for place in range(own.inputs):
        readers = [layer[b] for a, b in ends if a == place]
        layer[place] = min(readers, default=1) - 1
        for output, read in enumerate(own.out_places.tolist()):  # an output that is an input
            if read == place and own.out_weights[output]:
                layer[total + output] = layer[place] + 1
    nodes = [
        *(Node(name, f"Input {name!r}.", "box") for name in net.input_names),
        *(Node("", net.explain(net.place_name(own.inputs + unit)), "gate") for unit in range(len(net.holds))),
        *(
            Node(name, net.explain(f"{net.depth}.{output}"), "box")
            for output, name in enumerate(net.output_names)
        ),
    ]
    return Units(nodes, layer, ends, weights)
