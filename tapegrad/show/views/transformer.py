"""The target `transformer` at work: where each attention looks, and what the decoder puts out."""

from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.errors import BrokenNet
from tapegrad.networks.backends.numpy import WatchedDecoder
from tapegrad.targets.transformer.net import Decoding, TransformerNet

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


VIEW = TransformerView
