"""Nets of RASP programs at work: what every sequence is at every position, read from the residual stream, and
where every head looks."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.errors import Refused
from tapegrad.rasp.functions import Value
from tapegrad.rasp.kind import titled, word_of
from tapegrad.show.drawing.tokens import RowsOfPositions
from tapegrad.show.views import Heights
from tapegrad.targets.decoder.sequences import Pass, SequenceNet

MOST_HEADS = 16
MANY = 3
"""Values from which on a sequence is shown by the first and the last of those that are possible."""


class SequencesView:
    """Sequences as the net has them, heads, and the output. A sequence has bits only where something depends
    on them, so that sometimes several values are possible."""

    step_name = "forward run"
    curves = ("deviation of the output",)
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: Pass) -> None:
        net = compiled.net
        assert isinstance(net, SequenceNet)
        self.net, self.count = net, len(carry.tokens)
        program = net.program
        self.bits = _bits_of(net)
        """For every sequence that has bits: coordinate, and for which of its values that is 1."""
        self.heads = [
            (f"{number}.{place}", net.explain(f"head {number}.{place}").partition(": ")[2])
            for number, layer in enumerate(net.parts.layers)
            for place in range(len(layer.heads))
        ]
        self.notes = (
            [f"Of {len(self.heads)} heads the first {MOST_HEADS} are shown."]
            if len(self.heads) > MOST_HEADS
            else []
        )
        positions = tuple(f"{n} {word_of(token)}" for n, token in enumerate(carry.tokens, 1))
        self.layers = [number for number, layer in enumerate(net.parts.layers) for _ in layer.heads]
        words = [word_of(token) for token in carry.tokens]
        self.rows = RowsOfPositions(words, self.layers, [f"head {name}: {does}" for name, does in self.heads])
        self.panels: list[Panel] = [
            self.rows.drawing,
            Cells(
                "Sequences in the residual stream",
                "text",
                rows=tuple(titled(program, node) for node in self.bits),
                default=("",),
                column_name="position",
                columns=(1, max(1, self.count)),
                row_words=tuple(f"The value of {titled(program, node)!r}" for node in self.bits),
                note="Read from its bits; where they leave several values open, the first and the last.",
            ),
            *(
                Cells(
                    f"Head {name}",
                    "unit",
                    rows=positions,
                    column_name="position",
                    columns=(0, self.count),
                    row_words=tuple(f"What position {position} looks at" for position in positions),
                    note=f"It {does}. Column 0 is the token before the first.",
                )
                for name, does in self.heads[:MOST_HEADS]
            ),
            Cells(
                "Output of the network",
                "text",
                rows=("output",),
                default=("",),
                column_name="position",
                columns=(1, max(1, self.count)),
            ),
        ]

    def frame(self, carry: Pass) -> tuple[list[Any], Heights]:
        if carry.hidden is None:
            empty = [CellsFrame([], widths=[0] * self.count) for _ in self.heads[:MOST_HEADS]]
            before = self.rows.picture("The tokens are in. One forward run computes all positions.", [], [])
            return [
                before,
                CellsFrame([], widths=[0] * len(self.bits)),
                *empty,
                CellsFrame([], widths=[0]),
            ], (None,)
        found = [
            (row, place, self._text(node, carry.hidden[place]))
            for row, node in enumerate(self.bits)
            for place in range(1, self.count + 1)
        ]
        looked = [look.weights[1:] for look in self.net.watch(carry.tokens)[:MOST_HEADS]]
        heads = [
            CellsFrame([(r, c, float(weights[r, c])) for r, c in np.argwhere(weights > 1e-6).tolist()])
            for weights in looked
        ]
        output = self._output(carry)
        words = [str(word) for _, _, word in output.cells]
        said = (
            f"One forward run: every head looks where its program says, and the output is {' '.join(words)}."
        )
        picture = self.rows.picture(said, [look.weights[1:] for look in self.net.watch(carry.tokens)], words)
        return [picture, CellsFrame(found), *heads, output], (self.net.deviation(carry),)

    def _text(self, node: int, hidden: np.ndarray) -> str:
        values = self.net.program.values[node]
        possible = np.ones(len(values), bool)
        for coordinate, ones in self.bits[node]:
            possible &= ones == (hidden[coordinate] > 0.5)
        left = [word_of(value) for value, own in zip(values, possible, strict=True) if own]
        return "/".join(left) if len(left) < MANY else f"{left[0]}…{left[-1]}"

    def _output(self, carry: Pass) -> CellsFrame:
        try:
            state: tuple[Value, ...] = self.net.decode(carry)
        except Refused:
            return CellsFrame([(0, place, "?") for place in range(1, self.count + 1)])
        return CellsFrame([(0, place, word_of(value)) for place, value in enumerate(state, 1)])


def _bits_of(net: SequenceNet) -> dict[int, list[tuple[int, np.ndarray]]]:
    found: dict[int, list[tuple[int, np.ndarray]]] = {}
    for place, (kind, group, number) in enumerate(net.meanings):
        if kind == "bit" and len(net.groups[group].nodes) == 1:
            labels = np.array(net.groups[group].labels[0])
            found.setdefault(net.groups[group].nodes[0], []).append((place, labels >= number))
    return dict(sorted(found.items()))
