"""The target `tape` at work: the state on its simplex, tapes and heads as weights, and the loss."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Cells, CellsFrame, Panel, Simplex
from tapegrad.machines.kind import rule_words
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.show.drawing.neighbourhood import COLOURS as AROUND_COLOURS
from tapegrad.show.drawing.neighbourhood import LEGEND as AROUND_LEGEND
from tapegrad.show.drawing.neighbourhood import Neighbourhood, Room
from tapegrad.show.drawing.scene import HERE, NEXT, Drawing, Node, Picture
from tapegrad.show.drawing.states import (
    BETWEEN,
    MOST_BOXES,
    TALL,
    WIDE,
    StateDiagram,
    drawn_machine,
    state_decoded,
    state_diagram,
    state_meant,
)
from tapegrad.show.views import Heights
from tapegrad.targets.descent.loss import LONE_FINAL_LOSS
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.tape.net import TapeNet, state_of, symbols

TITLE = "The machine, and the weights that mean its states"
FIRST_STEP = "The first gradient step reads the labels; every later one is a step of the machine."
BEGINNING = (
    "Training is about to begin. The first gradient step only copies the labels into the network; "
    "the machine stands still."
)
STEEPEST = "The gradient is steepest towards the weight {}: {}."
HALTED = "The loss has dropped under its threshold: the machine has halted{}, and training ends."
ON_THE_WAY = "the network is on its way between two steps of the machine"
"""Captions; the page fills them in as well."""
LEGEND = (
    ("here", "the state the machine is in, and the weight of s that is 1"),
    ("next", "the weight that the gradient is steepest towards"),
    ("taken", "the rule that this gradient step carries out"),
)
MOST_LIVE_EDGES = 4_000
"""Edges of a net up to which the page can run it."""
MOST_BY_REFERENCE = 20_000
"""Edges of a net up to which the loss is computed by the reference engine, for every frame."""
MOST_DOTS = 16
"""Weights that are drawn of a state with its neighbours."""


class TapeView:
    """s as dots in the states of the machine and as a point among the vertices; T and H of each tape, cell by
    cell."""

    step_name = "gradient step"
    curves = ("loss",)
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: Descent) -> None:
        net = compiled.net
        assert isinstance(net, TapeNet)
        self.net, self.compiled = net, compiled
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
        self.diagram: StateDiagram | None = None
        self.around: Neighbourhood | None = None
        if len(self.drawn[0].states) <= MOST_BOXES:
            self.diagram, self.dots = self._diagram()
            diagram = self.diagram
            drawing = Drawing(TITLE, diagram.nodes, diagram.edges, diagram.arrangements, LEGEND)
        else:
            room = Room(dots=min(MOST_DOTS, 2**net.tapes))
            self.around, self.dots = Neighbourhood(self.drawn[0], room, (WIDE[0], TALL[0])), {}
            nodes, arranged = self.around.nodes, self.around.arrangements
            drawing = Drawing(TITLE, nodes, (), arranged, AROUND_LEGEND, self.around.note, AROUND_COLOURS)
        self.panels: list[Panel] = [drawing, *tapes, simplex]

    def _diagram(self) -> tuple[StateDiagram, dict[int, int]]:
        """The diagram with a dot for each vertex, and the node of each vertex."""
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
        return diagram, {v: first + i for i, v in enumerate(order)}

    def frame(self, carry: Descent) -> tuple[list[Any], Heights]:
        s, H, T = np.asarray(carry.weights.s), np.asarray(carry.weights.H), self.net.all_tapes(carry)
        shown: list[Any] = [self._picture(carry, s)]
        for tape in range(self.net.tapes):
            cells = [
                (row, int(cell) + self.net.first_cell, float(weights[cell]))
                for row, weights, default in ((0, T[:, tape], -1.0), (1, H[:, tape], 0.0))
                for cell in np.flatnonzero(weights != default)
            ]
            head = int(H[:, tape].argmax()) + self.net.first_cell
            shown.append(CellsFrame(cells, [(0, head), (1, head)]))
        shown.append([(int(v), float(s[v])) for v in np.flatnonzero(s)])
        large = len(self.net.graph.edge_from) > MOST_BY_REFERENCE
        return shown, (self.net.fast_loss(carry) if large else self.net.loss(carry),)

    def _picture(self, carry: Descent, s: np.ndarray) -> Picture:
        machine, passes = self.drawn
        meant = state_decoded(self.net.decode(carry), passes)
        rule = None if meant is None else machine.rules.get((meant.state, machine.read(meant)))
        vertex, towards = int(s.argmax()), self._steepest(carry)
        caption = self._caption(carry, meant, rule, towards)
        if self.around is not None:
            around, arcs = self.around.lit(None if meant is None else meant.state, rule)
            return Picture(caption, [*around, *self._dots_around(s, vertex)], (), arcs)
        assert self.diagram is not None
        nodes, edges = ([], []) if meant is None else self.diagram.lit(meant.state, rule)
        nodes += [(self.dots[v], float(s[v]), HERE) for v in np.flatnonzero(s).tolist() if v in self.dots]
        if towards is not None and towards != vertex and towards in self.dots:
            nodes.append((self.dots[towards], 0.0, NEXT))
        return Picture(caption, nodes, edges)

    def _dots_around(self, s: np.ndarray, vertex: int) -> list[tuple[int, float, int]]:
        """The weights of the state that the vertex belongs to, one for each combination of symbols; of many
        those near the vertex."""
        assert self.around is not None
        count, shown = 2**self.net.tapes, self.around.room.dots
        first = vertex // count * count + vertex % count // shown * shown
        node = self.around.first["dots"]
        return [(node + i, float(s[first + i]), HERE) for i in range(shown) if s[first + i]]

    def _caption(
        self, carry: Descent, meant: Configuration | None, rule: Rule | None, towards: int | None
    ) -> str:
        if carry.steps == 0:
            return BEGINNING
        if self.net.done(carry):
            return HALTED.format("" if meant is None else f" in state {meant.state}")
        return STEEPEST.format("nowhere" if towards is None else self._name(towards), self._says(meant, rule))

    def _says(self, meant: Configuration | None, rule: Rule | None) -> str:
        if meant is None or rule is None:
            return ON_THE_WAY
        reads = " ".join(self.drawn[0].read(meant))
        return f"in {meant.state}, reading {reads}, the machine will {rule_words(rule)}"

    def _steepest(self, carry: Descent) -> int | None:
        """The vertex that the next gradient step moves s to; None where it moves nothing."""
        if carry.steps == 0 or self.net.done(carry):
            return None
        vertex, _, heads = self.net.one_hot(carry)
        places = heads + self.net.graph.moves[vertex]
        if (places < 0).any() or (places >= self.net.cells).any():
            return None  # the next step leaves the tape, and will say so
        return int(self.net.fast_gradient(carry).s.argmin())

    def live(self) -> dict[str, Any] | None:
        """The graph, what each vertex means, and how symbols stand on the tapes, if cell by cell."""
        net, graph = self.net, self.net.graph
        if self.diagram is None or len(graph.edge_from) > MOST_LIVE_EDGES or net.read_only:
            return None
        symbols = cellwise(self.compiled)
        if symbols is None:
            return None
        first = self.compiled.encode(self.compiled.source.start())
        c = net.constants
        ends = zip(graph.edge_from.tolist(), graph.edge_to.tolist(), graph.edge_weight.tolist(), strict=True)
        machine = self.compiled.source
        assert isinstance(machine, TuringMachine)
        return {
            "kind": "tape",
            "example": "".join(symbol for symbol in symbols if symbol != machine.blank)[:8],
            "down": graph.down.tolist(),
            "written": graph.written.tolist(),
            "moves": graph.moves.tolist(),
            "weight": graph.vertex_weight.tolist(),
            "edges": [list(edge) for edge in ends],
            "b": c.b,
            "c": c.c,
            "low": c.low,
            "idle": LONE_FINAL_LOSS,
            "start": net.states.index(first.state),
            "symbols": symbols,
            "meant": {"".join("1" if sign > 0 else "0" for sign in signs): s for s, signs in symbols.items()},
            "blank": machine.blank,
            "vertices": [self._vertex_meant(v, symbols) for v in range(net.vertex_count)],
            "names": [self._name(v) for v in range(net.vertex_count)],
            "captions": {"begin": BEGINNING, "steepest": STEEPEST, "halted": HALTED},
        }

    def _vertex_meant(self, vertex: int, symbols: dict[str, list[int]]) -> list[Any]:
        """The nodes of its dot and its state, the edge of its rule, the node that leads to, and what is said:
        of a machine that halts, where."""
        assert self.diagram is not None
        machine, passes = self.drawn
        under = [{0: self.net.symbols[-1]} if sign > 0 else {} for sign in self.net.graph.down[vertex]]
        lowered = Configuration(state_of(self.net, vertex), tuple(under), (0,) * self.net.tapes)
        known = self.net.graph.down[vertex].tolist() in symbols.values()  # else they stand for no symbol
        meant = state_decoded(lowered, passes) if known else None
        rule = None if meant is None else machine.rules.get((meant.state, machine.read(meant)))
        box = -1 if meant is None else self.diagram.box[meant.state]
        if meant is None or rule is None:
            halted = self.net.graph.vertex_weight[vertex] < 0
            said = ("" if meant is None else f" in state {meant.state}") if halted else ON_THE_WAY
            return [self.dots[vertex], box, -1, -1, said]
        edge, then = self.diagram.way[meant.state, rule.state], self.diagram.box[rule.state]
        return [self.dots[vertex], box, edge, then, self._says(meant, rule)]

    def _name(self, vertex: int) -> str:
        return f"{state_of(self.net, vertex)} {symbols(self.net, self.net.graph.down[vertex])}"

    def _word(self, tape: int, row: int, cell: int) -> str:
        inside = self.net.first_cell <= cell < self.net.first_cell + self.net.cells
        if not inside:
            return f"Cell {cell} is beyond the end of the tape."
        if row == 0 and tape < self.net.read_only:
            return f"Read-only tape {tape + 1}, cell {cell}: filled by the data, no weight."
        return self.net.explain(f"{'TH'[row]}/{tape}/{cell}")


def cellwise(compiled: Compiled) -> dict[str, list[int]] | None:
    """For each symbol of a machine with one tape the signs that stand for it on the tapes of the lowered
    machine, if a word is encoded symbol by symbol, each in its own cell; None otherwise."""
    machine, lowered = compiled.source, compiled.lowered
    if not (isinstance(machine, TuringMachine) and isinstance(lowered, TuringMachine)) or machine.tapes != 1:
        return None
    if any(len(symbol) != 1 for symbol in machine.alphabet) or any(p.covers for p in compiled.passes):
        return None
    signs = {}
    for symbol in machine.alphabet:
        alone = compiled.encode(machine.start(symbol))
        signs[symbol] = [1 if tape.get(0, lowered.blank) != lowered.blank else -1 for tape in alone.tapes]
    word = "".join(machine.alphabet) * 2
    whole, empty = compiled.encode(machine.start(word)), compiled.encode(machine.start())
    expected = tuple(
        {place for place, symbol in enumerate(word) if signs[symbol][tape] > 0}
        for tape in range(lowered.tapes)
    )
    fits = tuple(map(set, whole.tapes)) == expected and not any(empty.tapes)
    still = whole.heads == empty.heads == (0,) * lowered.tapes and whole.state == empty.state
    return signs if fits and still else None
