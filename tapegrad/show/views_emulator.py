"""The targets that compute by training, at work: `tape`, `simplex` and `emulator`."""

from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Fields, Panel, Simplex
from tapegrad.circuits.kind import MOST_BITS
from tapegrad.learners.kind import BITS_IN_A_ROW, bit_rows, bit_widths
from tapegrad.learners.model import Samples
from tapegrad.source import shortened
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.emulator import fast
from tapegrad.targets.emulator.net import EmulatorCarry, EmulatorNet, PracticalNet, input_rows
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.net import TapeNet, state_of, symbols

# The target `tape`: the state on its simplex, tapes and heads as weights, and the loss.

FIRST_STEP = "The first gradient step reads the labels; every later one is a step of the machine."


class TapeView:
    """s as a point among the vertices; T and H of each tape, cell by cell."""

    step_name = "gradient step"
    curve_name = "loss"
    sees_every_step = False

    def __init__(self, net: TapeNet, carry: Descent) -> None:
        self.net = net
        self.notes = [FIRST_STEP]
        edges = zip(net.graph.edge_from.tolist(), net.graph.edge_to.tolist(), strict=True)
        simplex = Simplex(
            "State weights s", len(net.graph.down), list(edges), self._name, lambda v: net.explain(f"s/{v}")
        )
        last = net.first_cell + net.cells - 1
        tapes = [
            Cells(
                f"Weights of tape {tape + 1}",
                "signed",
                rows=("T", "H"),
                default=(-1, 0),
                note=f"The net has cells {net.first_cell:,} to {last:,}; those in use are shown.",
                explain=lambda row, cell, tape=tape: self._word(tape, row, cell),
                room=2,
            )
            for tape in range(net.tapes)
        ]
        self.panels: list[Panel] = [simplex, *tapes]

    def frame(self, carry: Descent) -> tuple[list[Any], float | None]:
        s, H, T = np.asarray(carry.weights.s), np.asarray(carry.weights.H), self.net.all_tapes(carry)
        shown: list[Any] = [[(int(v), float(s[v])) for v in np.flatnonzero(s)]]
        for tape in range(self.net.tapes):
            cells = [
                (row, int(cell) + self.net.first_cell, float(weights[cell]))
                for row, weights, default in ((0, T[:, tape], -1.0), (1, H[:, tape], 0.0))
                for cell in np.flatnonzero(weights != default)
            ]
            head = int(H[:, tape].argmax()) + self.net.first_cell
            shown.append(CellsFrame(cells, [(0, head), (1, head)]))
        return shown, self.net.loss(carry)

    def _name(self, vertex: int) -> str:
        return f"{state_of(self.net, vertex)} {symbols(self.net, self.net.graph.down[vertex])}"

    def _word(self, tape: int, row: int, cell: int) -> str:
        inside = self.net.first_cell <= cell < self.net.first_cell + self.net.cells
        if not inside:
            return f"Cell {cell} is beyond the end of the tape."
        if row == 0 and tape < self.net.read_only:
            return f"Read-only tape {tape + 1}, cell {cell}: filled by the data, no weight."
        return self.net.explain(f"{'TH'[row]}/{tape}/{cell}")


# The target `simplex`: the point s, which vertex it stands at, and the loss, which falls.


class SimplexView:
    """s among the vertices, each of which is a configuration of the machine."""

    step_name = "gradient step"
    curve_name = "loss"
    sees_every_step = False

    def __init__(self, net: SimplexNet, carry: Descent) -> None:
        self.net = net
        self.notes = [FIRST_STEP]
        successor = net.vertices.successor.tolist()
        self.panels: list[Panel] = [
            Simplex(
                "Weights s",
                len(successor),
                list(enumerate(successor)),
                self._name,
                lambda v: net.explain(f"s/{v}"),
            ),
            Fields("Vertex", words={"leads to": "The vertex that the gradient of the loss (13) points to."}),
        ]

    def frame(self, carry: Descent) -> tuple[list[Any], float | None]:
        s = np.asarray(carry.weights.s)
        vertex = int(s.argmax())
        after = int(self.net.vertices.successor[vertex])
        fields = {
            "s is largest at": f"s/{vertex} = {s[vertex]:.4g}",
            "configuration": self._name(vertex),
            "leads to": f"s/{after}" if after != vertex else "nowhere: the machine halts here",
        }
        return [[(int(v), float(s[v])) for v in np.flatnonzero(s)], fields], self.net.loss(carry)

    def _name(self, vertex: int) -> str:
        shown = self.net.configuration(vertex)
        heads = ", ".join(map(str, shown.heads))
        return f"{shown.state}, head at {heads}"


# The target `emulator`: the weights that are the learner's memory, and the loss on each sample.


class EmulatorView:
    """Each memory cell as a weight in units of its size w0 where the net has one weight for a cell, else as
    the bit it decodes to; the output beside the label; and what the gradient of the next step touches."""

    step_name = "SGD step"
    curve_name = "loss (output - label)²"
    sees_every_step = False

    def __init__(self, net: EmulatorNet, carry: EmulatorCarry) -> None:
        self.net = net
        self.practical = net if isinstance(net, PracticalNet) else None
        cells = len(_memory(net, carry)) if self.practical is None else len(self.practical.cells)
        self.count = min(cells, MOST_BITS)
        self.notes = [] if cells <= MOST_BITS else [f"{MOST_BITS} of {cells:,} memory cells are shown."]
        self.panels: list[Panel] = [
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

    def frame(self, carry: EmulatorCarry) -> tuple[list[Any], float | None]:
        fields, loss = {"output": "·", "label": "·", "loss": "·"}, None
        if carry.steps:
            label = _label(carry.samples, carry.steps - 1)
            loss = (float(carry.output) - label) ** 2
            fields = {"output": f"{float(carry.output):+.4f}", "label": f"{label:+d}", "loss": f"{loss:.4g}"}
        values = enumerate(self._values(carry))
        cells = [(*divmod(number, BITS_IN_A_ROW), value) for number, value in values if value != 1]
        flips, gradient = ([], []) if self.practical is None else _next_step(self.practical, carry)
        marks = [divmod(cell, BITS_IN_A_ROW) for cell in flips if cell < self.count]
        return [fields, CellsFrame(cells, marks, widths=bit_widths(self.count)), *gradient], loss

    def _values(self, carry: EmulatorCarry) -> list[float]:
        if self.practical is not None:
            shown = self.practical.cells[: self.count]
            return (np.asarray(carry.weights)[shown] / self.practical.constants.w0).tolist()
        return [1.0 - 2.0 * bit for bit in _memory(self.net, carry)[: self.count]]

    def _word(self, row: int, column: int) -> str:
        cell = row * BITS_IN_A_ROW + column
        name = f"cell {cell}"
        return f"{name}: {self.net.explain(name)}" if cell < self.count else name


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
