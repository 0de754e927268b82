"""The target `transformer` at work: where each attention looks, and what the decoder puts out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.nets.transformer.layers import Attention, FeedForward
from tapegrad.nets.transformer.net import Decoding, TransformerNet
from tapegrad.show.panels import Cells, CellsFrame, Panel

Array = NDArray[np.float32]
NULL = -1
"""The column of the null key, which every attention has besides the steps."""
SHOWN = {"st": "state", "sym1": "symbol", "pos2": "head"}
"""Groups of coordinates of the output, as the rows are labelled."""


class TransformerView:
    """Self-attention over past steps, encoder attention over the input, and the coordinates of the output
    that hold state, symbol and head. A decoder of its own, written plainly after section 4.1, recomputes each
    step to see the attention, and must arrive at the output of the net."""

    step_name = "decoder step"
    curve_name = "position of the head"
    sees_every_step = True

    def __init__(self, net: TransformerNet, carry: Decoding) -> None:
        self.net, self.decoder = net, _WatchedDecoder(net, carry)
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
        past, given = self.decoder.step(carry)
        step = carry.steps - 1
        cells = [
            (self.rows[layer], NULL if at == 0 else step if at == 1 else at - 2, float(weights[at]))
            for layer, weights in past.items()
            for at in np.flatnonzero(weights > 1e-6).tolist()
        ]
        inputs = [
            (0, carry.cells[at - 1] if at else min(carry.cells, default=0) - 1, float(given[at]))
            for at in np.flatnonzero(given > 1e-6).tolist()
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


class _WatchedDecoder:
    """Section 4.1 in NumPy, one step after the other, handing out the weights of every attention."""

    def __init__(self, net: TransformerNet, carry: Decoding) -> None:
        self.net, self.tokens, self.output = net, carry.tokens, carry.output
        self.past: dict[int, tuple[list[Array], list[Array]]] = {}

    def step(self, carry: Decoding) -> tuple[dict[int, Array], Array]:
        """Weights of each self-attention over (null, own step, steps 0, 1, ...), and of the attention to the
        encoder over (null, cells)."""
        number, layout = carry.steps - 1, self.net.layout
        hidden = self.output.copy()
        times = layout.group("pos1")
        hidden[times] += (number >> np.arange(len(times)) & 1).astype(np.float32)
        looked, given = {}, np.zeros(1, np.float32)
        for n, layer in enumerate(self.net.layers):
            if (attention := layer.self_attention) is not None:
                keys, values = self.past.setdefault(n, ([], []))
                own = attention.W_K @ hidden + attention.b_K, attention.W_V @ hidden + attention.b_V
                looked[n], hidden = self._attend(attention, hidden, [own[0], *keys], [own[1], *values])
                keys.append(own[0])
                values.append(own[1])
            if (attention := layer.encoder_attention) is not None:
                keys, values = (
                    list(self.tokens @ W.T + b)
                    for W, b in ((attention.W_K, attention.b_K), (attention.W_V, attention.b_V))
                )
                given, hidden = self._attend(attention, hidden, keys, values)
            hidden = _feed_forward(layer.feed_forward, hidden)
        if not np.allclose(hidden, carry.output, atol=1e-4):
            raise AssertionError(f"the watched decoder disagrees with the net at decoder step {number}")
        self.output = hidden
        return looked, given

    def _attend(
        self, attention: Attention, hidden: Array, keys: list[Array], values: list[Array]
    ) -> tuple[Array, Array]:
        query = attention.W_Q @ hidden + attention.b_Q
        scores = np.stack([attention.K_0, *keys]) @ query
        if self.net.attention == "softmax":
            weights = np.exp(self.net.temperature * (scores - scores.max()))
        else:
            weights = (scores == scores.max()).astype(np.float32)
        weights = (weights / weights.sum()).astype(np.float32)
        return weights, hidden + weights @ np.stack([attention.V_0, *values])


def _feed_forward(feed: FeedForward, hidden: Array) -> Array:
    computed = np.maximum(feed.W_1 @ hidden + feed.b_1, 0)
    cut = np.maximum(computed - feed.low, 0) - np.maximum(computed - feed.high, 0)
    return np.maximum(feed.gain * cut, 0).astype(np.float32)


VIEW = TransformerView
