"""The target `simplex` at work: the point s, the vertex that it stands at, and the loss, which falls."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Fields, Panel
from tapegrad.machines.kind import rule_words
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.show.drawing.configurations import RingOfConfigurations
from tapegrad.show.drawing.scene import Picture
from tapegrad.show.drawing.states import drawn_machine, state_decoded
from tapegrad.show.views import Heights
from tapegrad.show.views_tape import BEGINNING, FIRST_STEP
from tapegrad.targets.descent.loss import LONE_FINAL_LOSS
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.simplex.net import SimplexNet

STEEPEST = "The gradient is steepest towards weight {} ({}), so the 1 goes there{}. The loss falls."
HALTED = "This configuration leads nowhere: the machine has halted in state {}."
"""Captions; the page fills them in as well."""
MOST_LIVE_VERTICES = 2_000
"""Vertices of a net up to which the page can run it."""


class SimplexView:
    """s among the vertices, each of which is a configuration of the machine."""

    step_name = "gradient step"
    curves = ("loss",)
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: Descent) -> None:
        net = compiled.net
        assert isinstance(net, SimplexNet)
        self.net, self.compiled = net, compiled
        self.notes = [FIRST_STEP]
        self.drawn = drawn_machine(compiled)
        first = int(np.argmax(carry.weights.s))
        self.ring = RingOfConfigurations(
            self.drawn[0],
            net.vertices.successor,
            first,
            self._name,
            net.explain,
        )
        self.panels: list[Panel] = [
            self.ring.drawing,
            Fields("Vertex", words={"leads to": "The vertex that the gradient of the loss (13) points to."}),
        ]

    def frame(self, carry: Descent) -> tuple[list[Any], Heights]:
        s = np.asarray(carry.weights.s)
        vertex = int(s.argmax())
        after = int(self.net.vertices.successor[vertex])
        fields = {
            "s is largest at": f"s/{vertex} = {s[vertex]:.4g}",
            "configuration": self._name(vertex),
            "leads to": f"s/{after}" if after != vertex else "nowhere: the machine halts here",
        }
        return [self._picture(carry, vertex), fields], (self.net.loss(carry),)

    def _picture(self, carry: Descent, vertex: int) -> Picture:
        if carry.steps == 0:
            return self.ring.lit(BEGINNING, vertex, None, (None, None))
        meant, rule = self._meant(vertex)
        if self.net.done(carry):
            return self.ring.lit(HALTED.format(meant and meant.state), vertex, None, (meant, None))
        # The gradient, not the table of successors, says where s goes.
        towards = int(self.net.fast_gradient(carry).s.argmin())
        caption = STEEPEST.format(towards, self._name(towards), self._says(rule))
        return self.ring.lit(caption, vertex, towards, (meant, rule))

    def _meant(self, vertex: int) -> tuple[Configuration | None, Rule | None]:
        """The configuration of the drawn machine that a vertex stands for, and the rule that applies."""
        machine, passes = self.drawn
        meant = state_decoded(self.net.configuration(vertex), passes)
        return meant, None if meant is None else machine.rules.get((meant.state, machine.read(meant)))

    def _says(self, rule: Rule | None) -> str:
        return "" if rule is None else f": the machine will {rule_words(rule)}"

    def _name(self, vertex: int) -> str:
        shown = self.net.configuration(vertex)
        heads = ", ".join(map(str, shown.heads))
        return f"{shown.state}, head at {heads}"

    def live(self) -> dict[str, Any] | None:
        """The weights of the loss, what each vertex means, and at which of them an input begins."""
        net, machine = self.net, self.compiled.source
        if not isinstance(machine, TuringMachine) or self.compiled.passes or machine.tapes != 1:
            return None
        if net.vertex_count > MOST_LIVE_VERTICES or any(len(symbol) != 1 for symbol in machine.alphabet):
            return None
        loss, ring, diagram = net.machine, self.ring, self.ring.diagram
        first_node, first_edge = 2 * len(ring.order), len(ring.order) - 1
        vertices, tapes = [], []
        starts: dict[str, int] = {}
        for vertex in range(net.vertex_count):
            own, rule = self._meant(vertex)
            assert own is not None
            inner = [-1, -1, -1]
            if diagram is not None:
                inner[0] = first_node + diagram.box[own.state]
                if rule is not None:
                    inner[1] = first_edge + diagram.way[own.state, rule.state]
                    inner[2] = first_node + diagram.box[rule.state]
            says = own.state if rule is None else self._says(rule)
            vertices.append([ring.place.get(vertex, -1), *inner, says])
            row = "".join(machine.alphabet[symbol] for symbol in net.vertices.cells[vertex, 0])
            tapes.append([own.heads[0], row])
            word = (row[-net.vertices.first_cell :] if net.vertices.first_cell <= 0 else "").rstrip(
                machine.blank
            )
            if machine.start(word) == own:
                starts[word] = vertex
        ends = zip(loss.edge_from, loss.edge_to, loss.edge_weight, strict=True)
        return {
            "kind": "simplex",
            "example": max(starts, default=""),
            "symbols": list(machine.alphabet),
            "blank": machine.blank,
            "starts": starts,
            "first": net.vertices.first_cell,
            "tapes": tapes,
            "weight": loss.vertex_weight.tolist(),
            "edges": [[int(a), int(b), float(weight)] for a, b, weight in ends],
            "outside": float(net.levels.outside),
            "low": float(net.levels.low),
            "idle": LONE_FINAL_LOSS,
            "vertices": vertices,
            "names": [self._name(vertex) for vertex in range(net.vertex_count)],
            "labels": ring.names,
            "labelled": ring.labelled,
            "captions": {"begin": BEGINNING, "steepest": STEEPEST, "halted": HALTED},
        }
