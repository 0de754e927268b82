"""The loss (21): its gradient descent runs a machine whose tapes and heads are weights."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from tapegrad.networks.builder import Value
from tapegrad.networks.network import Network
from tapegrad.targets.descent.loss import LEAST, corner, directed, in_room
from tapegrad.targets.tape.build import GAMMA, Constants, Graph


@dataclass(frozen=True, eq=False)
class TapeLoss:
    """l(s, T, H) of (21), with the slips of the print mended: the first least-squares term aims at the
    symbol to write, the last has no `diag`, and a head that moves by +1 shifts its indicator by +1."""

    down: Float[np.ndarray, "vertices tapes"]
    written: Float[np.ndarray, "vertices tapes"]
    right: Float[np.ndarray, "vertices tapes"]
    left: Float[np.ndarray, "vertices tapes"]
    still: Float[np.ndarray, "vertices tapes"]
    vertex_weight: Float[np.ndarray, " vertices"]
    edge_from: Int[np.ndarray, " edges"]
    edge_to: Int[np.ndarray, " edges"]
    edge_weight: Float[np.ndarray, " edges"]
    b: float
    c: float
    cells: int
    """How many rows of T and H, from the first, are cells."""
    rows: int
    """How many rows there are; any others are padding."""

    @classmethod
    def of(cls, graph: Graph, constants: Constants, cells: int) -> Self:
        """The loss with the maps and weights of a graph, for tapes of so many cells."""
        return cls(
            down=graph.down.astype(float),
            written=graph.written.astype(float),
            right=(graph.moves == 1).astype(float),
            left=(graph.moves == -1).astype(float),
            still=(graph.moves == 0).astype(float),
            vertex_weight=graph.vertex_weight,
            edge_from=graph.edge_from,
            edge_to=graph.edge_to,
            edge_weight=graph.edge_weight,
            b=float(constants.b),
            c=float(constants.c),
            cells=cells,
            rows=cells,
        )

    @staticmethod
    def graph_of(network: Network) -> Graph:
        """The maps and weights of a network that has such a loss."""
        down, written, right, left, vertex_weight, edge_weight = (
            network.constant(name)
            for name in ("down", "written", "right", "left", "vertex_weight", "edge_weight")
        )
        down, written, moves = (own.astype(np.int8) for own in (down, written, right - left))
        edge_from, edge_to = (network.index(name).astype(np.int32) for name in ("edge_from", "edge_to"))
        return Graph(down, written, moves, vertex_weight, edge_from, edge_to, edge_weight).checked()

    def __call__(self, s: Value, T: Value | None, H: Value | None) -> Value:
        assert T is not None
        assert H is not None
        build = s.builder
        moved = self.shifted(s, H).detach("moved", "where the heads go next")
        under_heads = (T * H.detach()).transpose().total()
        read_next = (T * moved).transpose().total().detach()
        write = _squared(under_heads - (s @ build.constant(self.written, "written", "T_next")).detach())
        read = _squared(read_next - s @ build.constant(self.down, "down", "T_down"))
        move = _squared(moved - H, axes=2)
        terms = write + build.constant(np.asarray(4 * self.b**2), "4 b^2") * read + move
        return build.constant(np.asarray(self.c), "c") + self.on_simplex(s) + GAMMA * terms

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """Padding weighs 0 and leads nowhere; no head comes to stand there."""
        padded = {
            name: in_room(array, least=edges if name.startswith("edge") else vertices)
            for name, array in vars(self).items()
            if np.ndim(array)
        }
        return replace(self, **padded, rows=len(in_room(np.zeros(cells))))

    def on_simplex(self, s: Value) -> Value:
        """l_S of (19): weights on vertices and on directed edges."""
        build = s.builder
        ends = build.take(s, self.edge_from, "edge_from"), build.take(s, self.edge_to, "edge_to")
        vertices = (build.constant(self.vertex_weight, "vertex_weight") * corner(s, 1 / 4)).total()
        return vertices + (build.constant(self.edge_weight, "edge_weight") * directed(*ends)).total()

    def shifted(self, s: Value, H: Value) -> Value:
        """S(s) H, linear in both: the head indicators where the heads go next. What is pushed over the end
        of the tape is gone; the net notices."""
        build, tapes = s.builder, self.down.shape[1]
        nothing = build.constant(np.zeros((1, tapes)))
        rows = build.join(H, nothing, axis=-2).transpose()
        place, end = np.arange(self.rows), self.rows  # where the row of zeros is
        inside = place < self.cells
        to_right = build.take(rows, np.where(inside & (place > 0), place - 1, end), "to_right").transpose()
        to_left = build.take(rows, np.where(place < self.rows - 1, place + 1, end), "to_left").transpose()
        right, left, still = (
            s @ build.constant(getattr(self, name), name) for name in ("right", "left", "still")
        )
        return right * to_right + left * to_left + still * H


def _squared(difference: Value, axes: int = 1) -> Value:
    return (difference * difference).total(axes) / 2
