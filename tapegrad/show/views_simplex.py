"""The target `simplex` at work: the point s, the vertex that it stands at, and the loss, which falls."""

from typing import Any

import numpy as np

from tapegrad._compile import Compiled
from tapegrad._panels import Fields, Panel
from tapegrad.machines.kind import rule_words
from tapegrad.machines.model import Configuration
from tapegrad.show.drawing.configurations import RingOfConfigurations
from tapegrad.show.drawing.scene import Picture
from tapegrad.show.drawing.states import drawn_machine
from tapegrad.show.views_tape import BEGINNING, FIRST_STEP
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.simplex.net import SimplexNet


class SimplexView:
    """s among the vertices, each of which is a configuration of the machine."""

    step_name = "gradient step"
    curve_name = "loss"
    sees_every_step = False

    def __init__(self, compiled: Compiled, carry: Descent) -> None:
        net = compiled.net
        assert isinstance(net, SimplexNet)
        self.net = net
        self.notes = [FIRST_STEP]
        self.drawn = drawn_machine(compiled)
        first = int(np.argmax(carry.weights.s))
        self.ring = RingOfConfigurations(
            None if self.drawn is None else self.drawn[0],
            net.vertices.successor,
            first,
            self._name,
            net.explain,
        )
        self.panels: list[Panel] = [
            self.ring.drawing,
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
        return [self._picture(carry, vertex), fields], self.net.loss(carry)

    def _picture(self, carry: Descent, vertex: int) -> Picture:
        if carry.steps == 0:
            return Picture(BEGINNING, *self.ring.lit(vertex, None, None, None))
        meant: Configuration | None = self.net.configuration(vertex)
        rule = None
        if self.drawn is not None:
            machine, passes = self.drawn
            for rewriting in reversed(passes):
                meant = None if meant is None else rewriting.decode(meant)
            rule = None if meant is None else machine.rules.get((meant.state, machine.read(meant)))
        if self.net.done(carry):
            caption = (
                f"This configuration leads nowhere: the machine has halted in state {meant and meant.state}."
            )
            return Picture(caption, *self.ring.lit(vertex, None, meant, None))
        # The gradient, not the table of successors, says where s goes.
        towards = int(self.net.fast_gradient(carry).s.argmin())
        where = f"The gradient is steepest towards s/{towards}, which is {self._name(towards)}"
        said = "" if rule is None else f": the machine will {rule_words(rule)}"
        return Picture(f"{where}{said}. The loss falls.", *self.ring.lit(vertex, towards, meant, rule))

    def _name(self, vertex: int) -> str:
        shown = self.net.configuration(vertex)
        heads = ", ".join(map(str, shown.heads))
        return f"{shown.state}, head at {heads}"
