"""The targets that compute forward, at work: `relu`, `transformer`, `decoder` and `rcnn`."""

from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad._precision import in_double
from tapegrad.errors import BrokenNet
from tapegrad.networks.jax import room, run_stack
from tapegrad.networks.language import Reading, Seen
from tapegrad.networks.numpy import WatchedDecoder
from tapegrad.targets.decoder.net import DecoderNet, Generation
from tapegrad.targets.rcnn.net import RcnnNet, Sheet
from tapegrad.targets.relu.build import relu_layers
from tapegrad.targets.relu.net import Activations, ReluNet
from tapegrad.targets.transformer.net import Decoding, TransformerNet

# The target `relu`: every unit of the ReLU layers that make up one layer of the circuit.

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


# The target `transformer`: where each attention looks, and what the decoder puts out.


NULL = -1
"""The column of the null key, which every attention has besides the steps."""
SHOWN = {"st": "state", "sym1": "symbol", "pos2": "head"}
"""Groups of coordinates of the output, as the rows are labelled."""


class TransformerView:
    """Self-attention over past steps, encoder attention over the input, and the coordinates of the output
    that hold state, symbol and head. A plain decoder recomputes each step to see the attention, and must
    arrive at the output of the net."""

    step_name = "decoder step"
    curve_name = "position of the head"
    sees_every_step = True

    def __init__(self, net: TransformerNet, carry: Decoding) -> None:
        self.net, self.decoder = net, WatchedDecoder(net.decoder, carry.tokens)
        searching = [n for n, layer in enumerate(net.layers) if layer.self_attention is not None]
        self.rows = {layer: row for row, layer in enumerate(searching)}
        self.groups = [net.layout.group(group) for group in SHOWN]
        self.notes: list[str] = []
        self.panels: list[Panel] = [
            Cells(
                "Attention to past steps",
                "unit",
                rows=tuple(f"layer {n}" for n in searching),
                column_name="step",
                row_words=tuple(f"Layer {n} ({net.layers[n].purpose})" for n in searching),
                note=f"Column {NULL} is the null key: nothing found.",
                room=0,
            ),
            Cells(
                "Attention to the input",
                "unit",
                rows=("input",),
                column_name="cell",
                row_words=("Encoder-decoder attention: the input at the head's new cell",),
                room=0,
            ),
            Cells(
                "Decoder output",
                "unit",
                rows=tuple(SHOWN.values()),
                column_name="coordinate",
                explain=self._word,
            ),
        ]

    def frame(self, carry: Decoding) -> tuple[list[Any], float | None]:
        if carry.steps == 0:
            return [CellsFrame([(0, NULL, 0)]), CellsFrame([]), self._output(carry)], None
        looks = self.decoder.step().looks
        if not np.allclose(self.decoder.output, carry.output, atol=1e-4):
            raise BrokenNet(f"the attention of decoder step {carry.steps - 1} cannot be recomputed")
        step = carry.steps - 1
        cells = [
            (self.rows[look.block], at + NULL, float(look.weights[at]))
            for look in looks
            if look.kind == "self"
            for at in np.flatnonzero(look.weights > 1e-6).tolist()
        ]
        inputs = [
            (0, carry.cells[at - 1] if at else min(carry.cells, default=0) - 1, float(look.weights[at]))
            for look in looks
            if look.kind == "encoder"
            for at in np.flatnonzero(look.weights > 1e-6).tolist()
        ]
        state = self.net.decode(carry)
        head = None if state is None else float(state.heads[0])
        return [CellsFrame(cells, focus=step), CellsFrame(inputs), self._output(carry)], head

    def _output(self, carry: Decoding) -> CellsFrame:
        cells = [
            (row, place, float(carry.output[coordinate]))
            for row, group in enumerate(self.groups)
            for place, coordinate in enumerate(group)
            if carry.output[coordinate]
        ]
        return CellsFrame(cells, widths=[len(group) for group in self.groups])

    def _word(self, row: int, place: int) -> str:
        if place >= len(self.groups[row]):
            return ""
        coordinate = self.groups[row][place]
        return self.net.explain(self.net.layout.names[coordinate])


# The target `decoder`: the words of a record, and where heads looked while it was written.


class DecoderView:
    """The last record in words, and for every head the tokens that it looked at on the way. The text is read
    once more to see that, token by token."""

    step_name = "record"
    curve_name = "tokens"
    sees_every_step = True

    def __init__(self, net: DecoderNet, carry: Generation) -> None:
        self.net, self.reading = net, Reading(net.model)
        heads = [
            (f"head {number}.{place}", head.name)
            for number, layer in enumerate(net.model.layers)
            for place, head in enumerate(layer.heads)
        ]
        self.notes: list[str] = []
        self.panels: list[Panel] = [
            Fields("The last record"),
            Cells(
                "Where heads looked",
                "unit",
                rows=tuple(name for name, _ in heads),
                column_name="token",
                row_words=tuple(does for _, does in heads),
                note="Token 0 is the first one: nothing found.",
                room=0,
            ),
        ]

    def frame(self, carry: Generation) -> tuple[list[Any], float | None]:
        words = self.net.words
        # The last record may have been cut short by the token that ends the run.
        first = 1 + (len(carry.tokens) - 2) // words.record * words.record
        self.reading.feed(carry.tokens[self.reading.count : first])
        places: dict[tuple[int, int], float] = {}
        for token in carry.tokens[first:-1]:
            looks: list[Seen] = []
            self.reading.feed([token], looks)
            for row, look in enumerate(looks):
                for at in np.flatnonzero(look.weights > 1e-6).tolist():
                    places[row, at] = max(places.get((row, at), 0.0), float(look.weights[at]))
        shown = [words.program.tokens[number].word for number in carry.tokens[first:]]
        cells = [(row, at, weight) for (row, at), weight in places.items()]
        record = dict(zip_longest(words.program.slots, shown, fillvalue=""))
        return [record, CellsFrame(cells, focus=first)], float(len(carry.tokens))


# The target `rcnn`: the channels of the grid that change during the run.


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
