"""The target `decoder` at work: the text, and where heads looked while the last record was written."""

from itertools import zip_longest
from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad.networks.texts import Reading, Seen
from tapegrad.show.drawing.tokens import Moment, Text
from tapegrad.show.views import Heights
from tapegrad.targets.decoder.net import DecoderNet, Generation

COLOURS = 6
"""Heads with a colour of their own; those after them share the last."""


class DecoderView:
    """The last record in words, and for every head the tokens that it looked at on the way. The text is read
    once more to see that, token by token."""

    step_name = "record"
    curves = ("tokens",)
    sees_every_step = True

    def __init__(self, compiled: Compiled, carry: Generation) -> None:
        net = compiled.net
        assert isinstance(net, DecoderNet)
        self.net, self.reading = net, Reading(net.network)
        heads = [
            (f"head {number}.{place}", head.name)
            for number, layer in enumerate(net.parts.layers)
            for place, head in enumerate(layer.heads)
        ]
        self.notes: list[str] = []
        self.network_values: dict[str, Any] | None = None
        said = [f"{name}: {does}" for name, does in heads]
        colours = said if len(said) <= COLOURS else [*said[: COLOURS - 1], "other heads"]
        self.panels: list[Panel] = [
            Text(
                "The text that the model has written, and where it looked",
                colours,
                new="the newest record",
                record=net.words.record,
            ),
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

    def frame(self, carry: Generation) -> tuple[list[Any], Heights]:
        words = self.net.words
        # The last record may have been cut short by the token that ends the run.
        first = 1 + (len(carry.tokens) - 2) // words.record * words.record
        self.reading.feed(carry.tokens[self.reading.count : first])
        places: dict[tuple[int, int], float] = {}
        arcs: list[tuple[int, int, float, int]] = []
        for at_token, token in enumerate(carry.tokens[first:-1], first):
            looks: list[Seen] = []
            self.reading.feed([token], looks)
            for row, look in enumerate(looks):
                for at in np.flatnonzero(look.weights > 1e-6).tolist():
                    places[row, at] = max(places.get((row, at), 0.0), float(look.weights[at]))
                    if at and at < at_token:
                        # What is looked at decides what comes after the token that looks.
                        arcs.append((at_token + 1, at, float(look.weights[at]), min(row, COLOURS - 1)))
        if first < len(carry.tokens) - 1:
            self.network_values = self.reading.values
        shown = [words.program.tokens[number].word for number in carry.tokens[first:]]
        cells = [(row, at, weight) for (row, at), weight in places.items()]
        record = dict(zip_longest(words.program.slots, shown, fillvalue=""))
        moment = self._moment(carry, first, arcs)
        return [moment, record, CellsFrame(cells, focus=first)], (float(len(carry.tokens)),)

    def _moment(self, carry: Generation, first: int, arcs: list[tuple[int, int, float, int]]) -> Moment:
        tokens = self.net.words.program.tokens
        texts = [tokens[number].word for number in carry.tokens]
        if carry.steps == 0:
            said = "The prompt: the input, as tokens. The model has written nothing yet."
            return _without_first(Moment(said, texts, range(0), arcs))
        record = " ".join(texts[first:])
        said = f"The model has written: {record}. The arrows show which earlier tokens it looked at for that."
        if self.net.done(carry):
            said = f"{said} The run ends here."
        return _without_first(Moment(said, texts, range(first, len(texts)), arcs))


def _without_first(moment: Moment) -> Moment:
    """The token that begins every text is not shown: records stand in lines below each other."""
    looks = [(a - 1, b - 1, weight, colour) for a, b, weight, colour in moment.looks]
    new = range(moment.new.start - 1, moment.new.stop - 1)
    return Moment(moment.caption, moment.texts[1:], new, looks)
