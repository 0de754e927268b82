"""The target `transformer` at work: where each attention looks, and what the decoder puts out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.errors import BrokenNet
from tapegrad.machines.model import Configuration
from tapegrad.networks.heads import Look, Watching
from tapegrad.show.drawing.scene import cut
from tapegrad.show.drawing.tokens import Moment, Text
from tapegrad.show.views import Heights
from tapegrad.targets.transformer.net import Decoding, TransformerNet

NULL = -1
"""The column of the null key, which every attention has besides the steps."""
SHOWN = {"st": "state", "sym1": "symbol", "pos2": "head"}
"""Groups of coordinates of the output, as the rows are labelled."""


COPIES, SEARCHES, READS = 0, 1, 2
COLOURS = (
    "copies what was written last",
    "searches for that step, a bit of its number at a time",
    "reads the input",
)


class TransformerView:
    """Self-attention over past steps, encoder attention over the input, and the coordinates of the output
    that hold state, symbol and head. Each step is taken once more to see the attention, and must arrive at
    the output of the net."""

    step_name = "decoder step"
    curves = ("position of the head",)
    sees_every_step = True

    def __init__(self, compiled: Compiled, carry: Decoding) -> None:
        net = compiled.net
        assert isinstance(net, TransformerNet)
        self.net, self.watching = net, Watching(net.network, net.reading, net.given(carry))
        self.network_values: dict[str, NDArray[Any]] | None = None
        self.texts: list[str] = []
        """What the decoder wrote at each step: state and symbol."""
        symbols = [
            net.layout.symbols[int(token[net.layout.group("sym1")].argmax())] for token in carry.tokens
        ]
        inputs = [f"{cell}: {symbol}" for cell, symbol in zip(carry.cells, symbols, strict=True)]
        searching = [n for n, layer in enumerate(net.layers) if layer.self_attention is not None]
        self.rows = {layer: row for row, layer in enumerate(searching)}
        self.groups = [net.layout.group(group) for group in SHOWN]
        self.notes: list[str] = []
        self.panels: list[Panel] = [
            Text("The steps that the transformer has written, and where it looks", COLOURS, inputs),
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

    def frame(self, carry: Decoding) -> tuple[list[Any], Heights]:
        if carry.steps == 0:
            said = "The transformer has written nothing yet. Its first position will be the machine's start."
            blank = CellsFrame([(0, NULL, 0)]), CellsFrame([]), self._output(carry)
            return [Moment(said, (), range(0), ()), *blank], (None,)
        seen = self.watching.step()
        looks, self.network_values = seen.looks, seen.values
        if not np.allclose(seen.output, carry.output, atol=1e-4):
            raise BrokenNet(f"the attention of decoder step {carry.steps - 1} cannot be recomputed")
        step = carry.steps - 1
        cells = [
            (self.rows[look.block], at + NULL, float(look.weights[at]))
            for look in looks
            if look.own_steps
            for at in np.flatnonzero(look.weights > 1e-6).tolist()
        ]
        inputs = [
            (0, carry.cells[at - 1] if at else min(carry.cells, default=0) - 1, float(look.weights[at]))
            for look in looks
            if not look.own_steps
            for at in np.flatnonzero(look.weights > 1e-6).tolist()
        ]
        state = self.net.decode(carry)
        head = None if state is None else float(state.heads[0])
        moment = self._moment(carry, looks, state)
        return [moment, CellsFrame(cells, focus=step), CellsFrame(inputs), self._output(carry)], (head,)

    def _moment(self, carry: Decoding, looks: list[Look], state: Configuration | None) -> Moment:
        """The text so far and the looks of this step; the last self-attention is the one that copies."""
        step, copying = carry.steps - 1, max(self.rows)
        symbol = "?" if state is None else state.tapes[0].get(state.heads[0], self.net.blank)
        self.texts = [*self.texts[:step], "?" if state is None else f"{cut(state.state, 13)} {symbol}"]
        found = [
            (step, at - 1 if look.own_steps else -at, float(look.weights[at]), _colour(look, copying))
            for look in looks
            for at in np.flatnonzero(look.weights > 1e-3).tolist()
            if at and (not look.own_steps or at - 1 < step)
        ]
        copied = [place for _, place, _, colour in found if colour == COPIES]
        given = [-place - 1 for _, place, _, colour in found if colour == READS]
        if state is None or step == 0:
            said = "The first position: the machine at its start."
        elif copied:
            said = (
                f"{_where(state, step)} This cell was last written in step {copied[0]}: attention copies "
                f"{symbol} from there."
            )
        elif given:
            said = (
                f"{_where(state, step)} This cell was never written: attention reads {symbol} from the input."
            )
        else:
            said = f"{_where(state, step)} This cell was never written and is not in the input: it is blank."
        if self.net.done(carry):
            said += " No rule applies: the machine halts."
        return Moment(said, self.texts, range(step, step + 1), found)

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


def _colour(look: Look, copying: int) -> int:
    if not look.own_steps:
        return READS
    return COPIES if look.block == copying else SEARCHES


def _where(state: Configuration, step: int) -> str:
    return f"Step {step}: in state {state.state}, the head at cell {state.heads[0]}."
