"""The loss (13) on the simplex of configurations: it falls by one level with every step of the machine."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from tapegrad.networks.builder import Value
from tapegrad.networks.network import Network
from tapegrad.targets.descent.loss import LEAST, corner, edge, in_room


@dataclass(frozen=True, eq=False)
class SimplexLoss:
    """sum_v w_v l_v + sum_vw w_vw l_vw over unordered pairs, written with B taken out:

        B + sum_v (w_v - B) l_v + sum over edges (w_vw - B) l_vw.

    On every corner S_v the functions l_v, l_vw sum to 1, so there (where the iterates and their one-sided
    derivatives live) this is (13) exactly, satisfies (11) and (12), and needs no unit for the pairs that no
    step joins: size linear in the vertices instead of quadratic.
    """

    vertex_weight: Float[np.ndarray, " vertices"]
    edge_from: Int[np.ndarray, " edges"]
    edge_to: Int[np.ndarray, " edges"]
    edge_weight: Float[np.ndarray, " edges"]
    outside: float

    def __call__(self, s: Value, T: Value | None, H: Value | None) -> Value:
        build, outside = s.builder, self.outside
        vertex_weight = build.constant(self.vertex_weight - outside, "vertex_weight", "w_v - B")
        edge_weight = build.constant(self.edge_weight - outside, "edge_weight", "w_vw - B")
        ends = build.take(s, self.edge_from, "edge_from"), build.take(s, self.edge_to, "edge_to")
        vertices = (vertex_weight * corner(s, 1 / 2)).total()
        b = build.constant(np.asarray(outside), "outside", "B")
        return b + vertices + (edge_weight * edge(*ends)).total()

    @classmethod
    def of(cls, network: Network) -> Self:
        """The numbers of a network that has such a loss."""
        outside = float(network.constant("outside"))
        return cls(
            network.constant("vertex_weight") + outside,
            network.index("edge_from"),
            network.index("edge_to"),
            network.constant("edge_weight") + outside,
            outside,
        )

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """Padding weighs B, so that it counts 0."""
        outside = self.outside
        return type(self)(
            in_room(self.vertex_weight, fill=outside, least=vertices),
            in_room(self.edge_from, least=edges),
            in_room(self.edge_to, least=edges),
            in_room(self.edge_weight, fill=outside, least=edges),
            self.outside,
        )


@dataclass(frozen=True, eq=False)
class ChosenLoss:
    """The loss (13) of a machine that is to run on data which are not known when training starts. All its
    first configurations are one vertex; from there an edge leads to the second configuration for each of the
    data, and weighs as in (10) if those are the data, else B, as a pair does that no step joins. So it is the
    data, and with them the labels in z, that choose the first edge, under a stop-gradient."""

    runs: SimplexLoss
    """Everything but the first steps."""
    start: int
    first_to: Int[np.ndarray, " data"]
    first_weight: Float[np.ndarray, " data"]
    codes: Float[np.ndarray, "data bits"]
    """For each of the data its bits, as signs."""

    def __call__(self, s: Value, T: Value | None, H: Value | None) -> Value:
        assert T is not None
        build, bits = s.builder, self.codes.shape[1]
        agree = (build.constant(self.codes, "codes") @ T.detach()).total()  # T is a column
        chosen = (agree - (bits - 1)).relu()  # 1 where all bits agree, else 0
        joined = edge(build.take(s, [self.start]), build.take(s, self.first_to, "first_to"))
        weight = chosen * build.constant(self.first_weight - self.runs.outside, "first_weight")
        return self.runs(s, None, None) + (weight * joined).total()

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """The numbers of vertices stay as they are."""
        return replace(self, runs=self.runs.in_room(cells, vertices, edges))
