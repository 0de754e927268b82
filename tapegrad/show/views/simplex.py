"""The target `simplex` at work: the point s, which vertex it stands at, and the loss, which falls."""

from typing import Any

import numpy as np

from tapegrad._panels import Fields, Panel, Simplex
from tapegrad.show.views.tape import FIRST_STEP
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.simplex.net import SimplexNet


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


VIEW = SimplexView
