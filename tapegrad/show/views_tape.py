"""The target `tape` at work: the state on its simplex, tapes and heads as weights, and the loss."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel, Simplex
from tapegrad.machines.kind import rule_words
from tapegrad.machines.model import Configuration
from tapegrad.show.drawing.scene import HERE, NEXT, Drawing, Node, Picture
from tapegrad.show.drawing.states import BETWEEN, StateDiagram, drawn_machine, state_diagram, state_meant
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.tape.net import TapeNet, state_of, symbols

FIRST_STEP = "The first gradient step reads the labels; every later one is a step of the machine."
BEGINNING = (
    "Training is about to begin. The first gradient step only copies the labels into the network; "
    "the machine stands still."
)
LEGEND = (
    ("here", "the state the machine is in, and the weight of s that is 1"),
    ("next", "the weight that the gradient is steepest towards"),
    ("taken", "the rule that this gradient step carries out"),
)
MOST_SLOPES = 20_000
"""Edges of a net up to which the gradient is computed for every frame."""


class TapeView:
    """s as dots in the states of the machine and as a point among the vertices; T and H of each tape, cell by
    cell."""

    step_name = "gradient step"
    curve_name = "loss"
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: Descent) -> None:
        net = compiled.net
        assert isinstance(net, TapeNet)
        self.net = net
        self.notes = [FIRST_STEP]
        self.drawn = drawn_machine(compiled)
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
        self.panels: list[Panel] = [*tapes, simplex]
        self.diagram: StateDiagram | None = None
        if self.drawn is not None:
            self.diagram, self.dots = self._diagram()
            self.panels.insert(
                0,
                Drawing(
                    "The machine, and the weights that mean its states",
                    self.diagram.nodes,
                    self.diagram.edges,
                    self.diagram.arrangements,
                    LEGEND,
                ),
            )

    def _diagram(self) -> tuple[StateDiagram, dict[int, int]]:
        """The diagram with a dot for each vertex, and the node of each vertex."""
        assert self.drawn is not None
        machine, passes = self.drawn
        owners: dict[str, list[int]] = {}
        meant = {state: state_meant(state, passes, self.net.tapes) or BETWEEN for state in self.net.states}
        for vertex in range(len(self.net.graph.down)):
            owners.setdefault(meant[state_of(self.net, vertex)], []).append(vertex)
        dots = {
            state: [Node(self._name(v), self.net.explain(f"s/{v}"), "dot") for v in own]
            for state, own in owners.items()
        }
        diagram = state_diagram(machine, dots)
        order = [v for state in diagram.box for v in owners.get(state, ())]
        first = len(diagram.nodes) - len(order)
        return diagram, {} if first < len(diagram.box) else {v: first + i for i, v in enumerate(order)}

    def frame(self, carry: Descent) -> tuple[list[Any], float | None]:
        s, H, T = np.asarray(carry.weights.s), np.asarray(carry.weights.H), self.net.all_tapes(carry)
        shown: list[Any] = [] if self.diagram is None else [self._picture(carry, s)]
        for tape in range(self.net.tapes):
            cells = [
                (row, int(cell) + self.net.first_cell, float(weights[cell]))
                for row, weights, default in ((0, T[:, tape], -1.0), (1, H[:, tape], 0.0))
                for cell in np.flatnonzero(weights != default)
            ]
            head = int(H[:, tape].argmax()) + self.net.first_cell
            shown.append(CellsFrame(cells, [(0, head), (1, head)]))
        shown.append([(int(v), float(s[v])) for v in np.flatnonzero(s)])
        return shown, self.net.loss(carry)

    def _picture(self, carry: Descent, s: np.ndarray) -> Picture:
        assert self.drawn is not None
        assert self.diagram is not None
        machine, passes = self.drawn
        meant: Configuration | None = self.net.decode(carry)
        for rewriting in reversed(passes):
            meant = None if meant is None else rewriting.decode(meant)
        rule = None if meant is None else machine.rules.get((meant.state, machine.read(meant)))
        nodes, edges = ([], []) if meant is None else self.diagram.lit(meant.state, rule)
        vertex, towards = int(s.argmax()), self._steepest(carry)
        nodes += [(self.dots[v], float(s[v]), HERE) for v in np.flatnonzero(s).tolist() if v in self.dots]
        if towards is not None and towards != vertex and towards in self.dots:
            nodes.append((self.dots[towards], 0.0, NEXT))
        return Picture(self._caption(carry, meant, rule, towards), nodes, edges)

    def _caption(self, carry: Descent, meant: Configuration | None, rule: Any, towards: int | None) -> str:
        if carry.steps == 0:
            return BEGINNING
        if self.net.done(carry):
            where = "" if meant is None else f" in state {meant.state}"
            return (
                f"The loss has dropped under its threshold: the machine has halted{where}, and training ends."
            )
        steepest = "" if towards is None else f"The gradient is steepest towards {self._name(towards)}: "
        if meant is None or rule is None:
            return f"{steepest}the network is on its way between two steps of the machine."
        assert self.drawn is not None
        reads = " ".join(self.drawn[0].read(meant))
        return _sentence(f"{steepest}in {meant.state}, reading {reads}, the machine will {rule_words(rule)}.")

    def _steepest(self, carry: Descent) -> int | None:
        """The vertex that the next gradient step moves s to; None where it moves nothing, or costs too much
        to find."""
        if carry.steps == 0 or len(self.net.graph.edge_from) > MOST_SLOPES or self.net.done(carry):
            return None
        vertex, _, heads = self.net.one_hot(carry)
        places = heads + self.net.graph.moves[vertex]
        if (places < 0).any() or (places >= self.net.cells).any():
            return None  # the next step leaves the tape, and will say so
        return int(self.net.fast_gradient(carry).s.argmin())

    def _name(self, vertex: int) -> str:
        return f"{state_of(self.net, vertex)} {symbols(self.net, self.net.graph.down[vertex])}"

    def _word(self, tape: int, row: int, cell: int) -> str:
        inside = self.net.first_cell <= cell < self.net.first_cell + self.net.cells
        if not inside:
            return f"Cell {cell} is beyond the end of the tape."
        if row == 0 and tape < self.net.read_only:
            return f"Read-only tape {tape + 1}, cell {cell}: filled by the data, no weight."
        return self.net.explain(f"{'TH'[row]}/{tape}/{cell}")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
