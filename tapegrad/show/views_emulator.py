"""The target `emulator` at work: the weights that are the learner's memory, and the loss on each sample."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad.circuits.kind import MOST_BITS
from tapegrad.learners.kind import BITS_IN_A_ROW, bit_rows, bit_widths
from tapegrad.learners.model import Learner, Samples
from tapegrad.show.drawing.memory import MemoryDrawing
from tapegrad.show.drawing.scene import Picture, cut
from tapegrad.show.views import Heights
from tapegrad.source import shortened
from tapegrad.targets.emulator import fast
from tapegrad.targets.emulator.net import EmulatorCarry, EmulatorNet, PracticalNet, input_rows

LEARNED = (
    "Training is over: all samples have been seen. What was learned is in the signs of the memory cells."
)
COMPUTED = "Training is over. What the algorithm has computed is in the signs of the memory cells."


class EmulatorView:
    """Each memory cell as a weight in units of its size w0 where the net has one weight for a cell, else as
    the bit it decodes to; the output beside the label; and what the gradient of the next step touches."""

    step_name = "SGD step"
    curves = ("loss (output - label)²", "cells flipped next", "cells that hold 1")
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: EmulatorCarry) -> None:
        net = compiled.net
        assert isinstance(net, EmulatorNet)
        self.net, self.compiled = net, compiled
        self.practical = net if isinstance(net, PracticalNet) else None
        cells = len(_memory(net, carry)) if self.practical is None else len(self.practical.cells)
        self.count = min(cells, MOST_BITS)
        self.notes = [] if cells <= MOST_BITS else [f"{MOST_BITS} of {cells:,} memory cells are shown."]
        names = [self._word(*divmod(cell, BITS_IN_A_ROW)) for cell in range(self.count)]
        weights = net.graph.edges if self.practical else net.parameters
        own = [] if self.practical is None else list(self.practical.names)
        bits = len(carry.samples.x[0]) if len(carry.samples.x) else 0
        self.drawing = MemoryDrawing(bits, names, weights, own)
        self.panels: list[Panel] = [
            self.drawing.drawing,
            Fields("Output", words={"output": "The last vertex: the learner's answer, or its guess."}),
            Cells(
                "Memory cells as weights",
                "signed",
                rows=bit_rows(self.count),
                default=(1,),
                columns=(0, min(BITS_IN_A_ROW, max(1, self.count)) - 1),
                note="A negative weight is a 1, a positive one a 0; in units of their common size."
                + (" Those that flip in the next step are marked." if self.practical else ""),
                column_name="cell",
                explain=self._word,
            ),
        ]
        if self.practical is not None:
            self.panels.append(Fields("Gradient of the next step", words=GRADIENT_WORDS))

    def frame(self, carry: EmulatorCarry) -> tuple[list[Any], Heights]:
        fields, loss = {"output": "·", "label": "·", "loss": "·"}, None
        if carry.steps:
            label = _label(carry.samples, carry.steps - 1)
            loss = (float(carry.output) - label) ** 2
            fields = {"output": f"{float(carry.output):+.4f}", "label": f"{label:+d}", "loss": f"{loss:.4g}"}
        values = self._values(carry)
        cells = [(*divmod(number, BITS_IN_A_ROW), value) for number, value in enumerate(values) if value != 1]
        flips, gradient = ([], []) if self.practical is None else _next_step(self.practical, carry)
        marks = [divmod(cell, BITS_IN_A_ROW) for cell in flips if cell < self.count]
        picture = self._picture(carry, values, flips, fields)
        return [picture, fields, CellsFrame(cells, marks, widths=bit_widths(self.count)), *gradient], (
            loss,
            float(len(flips)),
            float(sum(value < 0 for value in values)),
        )

    def _picture(
        self, carry: EmulatorCarry, values: list[float], flips: list[int], fields: dict[str, str]
    ) -> Picture:
        """The sample that comes next, the memory as it is, and what the gradient will flip in it."""
        if self.net.done(carry):
            learner = isinstance(self.compiled.source, Learner)
            return self.drawing.picture(LEARNED if learner else COMPUTED, [], None, values, [], fields)
        bits, label = np.asarray(carry.samples.x[carry.steps]).tolist(), _label(carry.samples, carry.steps)
        number = f"{carry.steps + 1} of {len(carry.samples.x)}"
        said = f"Sample {number} comes in. " if bits else f"Step {number}. "
        said += "" if self.practical is None else _flipped([self.practical.names[cell] for cell in flips])
        return self.drawing.picture(said, bits, label, values, [f for f in flips if f < self.count], fields)

    def _values(self, carry: EmulatorCarry) -> list[float]:
        if self.practical is not None:
            shown = self.practical.cells[: self.count]
            return (np.asarray(carry.weights)[shown] / self.practical.constants.w0).tolist()
        return [1.0 - 2.0 * bit for bit in _memory(self.net, carry)[: self.count]]

    def _word(self, row: int, column: int) -> str:
        cell = row * BITS_IN_A_ROW + column
        name = f"cell {cell}"
        told = cell < self.count and self.net.memory != "noise-tolerant"  # whose bits are no cells
        return f"{name}: {self.net.explain(name)}" if told else name


def _flipped(names: list[str]) -> str:
    if not names:
        return "The gradient of its loss is too small to change any cell: memory stays as it is."
    cells = "one memory cell" if len(names) == 1 else f"{len(names)} memory cells"
    which = cut("; ".join(_by_word(names)), 60)
    return f"The gradient of its loss will flip {cells} ({which}), and nothing else changes."


GRADIENT_WORDS = {
    "touches": "Weights by which the derivative of the loss on the next sample is not 0.",
    "changes": "Weights that are others afterwards: all other changes round away.",
    "flips": "Bits of the memory that change their sign, and with it their value.",
}


def _next_step(net: PracticalNet, carry: EmulatorCarry) -> tuple[list[int], list[dict[str, str]]]:
    """The cells that flip in the step of SGD that comes next, and fields that describe its gradient."""
    if net.done(carry):
        return [], [dict.fromkeys(GRADIENT_WORDS, "·")]
    row, label = (
        input_rows(carry.samples, carry.steps, carry.steps + 1)[0],
        _label(carry.samples, carry.steps),
    )
    edges, derivatives = fast.gradient(net.graph, carry.weights, row, label)
    before = carry.weights[edges]
    after = before - before.dtype.type(net.constants.rate) * derivatives
    changed = edges[after != before]
    turned = edges[np.signbit(after) != np.signbit(before)]
    flips = np.flatnonzero(np.isin(net.cells, turned)).tolist()
    all_cells = np.isin(changed, net.cells).all()
    fields = {
        "touches": f"{len(edges):,} of {net.graph.edges:,} weights",
        "changes": f"{len(changed):,}" + (", all of them cells" if all_cells else ""),
        "flips": shortened("; ".join(_by_word([net.names[cell] for cell in flips])) or "nothing", WIDEST),
    }
    return flips, [fields]


WIDEST = 400
"""Characters of a list of bits."""


def _by_word(names: list[str]) -> list[str]:
    """Bits by name, those of one word together: `x[5]: 0, 3`."""
    words: dict[str, list[str]] = {}
    for name in names:
        word, bracket, bit = name.rpartition("[")
        words.setdefault(word if bracket else name, []).append(bit.rstrip("]") if bracket else "")
    return [f"{word}: {', '.join(bits)}" if bits != [""] else word for word, bits in words.items()]


def _memory(net: EmulatorNet, carry: EmulatorCarry) -> tuple[int, ...]:
    state = net.decode(carry)
    return () if state is None else state.memory


def _label(samples: Samples, number: int) -> int:
    return 2 * int(samples.y[number]) - 1
