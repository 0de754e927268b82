"""The loss (21): its gradient descent runs a machine whose tapes and heads are weights."""

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int

from tapegrad.targets.descent.loss import LEAST, Arrays, Scalar, corner, directed, in_room
from tapegrad.targets.tape.build import GAMMA, Constants, Graph


class TapeLoss(eqx.Module):
    """l(s, T, H) of (21), with the slips of the print mended: the first least-squares term aims at the
    symbol to write, the last has no `diag`, and a head that moves by +1 shifts its indicator by +1."""

    down: Float[Arrays, "vertices tapes"]
    written: Float[Arrays, "vertices tapes"]
    right: Float[Arrays, "vertices tapes"]
    left: Float[Arrays, "vertices tapes"]
    still: Float[Arrays, "vertices tapes"]
    vertex_weight: Float[Arrays, " vertices"]
    edge_from: Int[Arrays, " edges"]
    edge_to: Int[Arrays, " edges"]
    edge_weight: Float[Arrays, " edges"]
    b: Scalar
    c: Scalar
    cells: Int[Arrays, ""] | None = None
    """How many rows of T and H, from the first, are cells; any others are padding. None: all are."""

    @classmethod
    def of(cls, graph: Graph, constants: Constants) -> Self:
        """The loss with the maps and weights of a graph."""
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
            b=np.float64(constants.b),
            c=np.float64(constants.c),
        )

    def __call__(
        self,
        s: Float[Arrays, " vertices"],
        T: Float[Arrays, "cells tapes"],
        H: Float[Arrays, "cells tapes"],
    ) -> Float[Array, ""]:
        moved = stop_gradient(self.shifted(s, H))
        under_heads = jnp.sum(T * stop_gradient(H), axis=0)
        read_next = stop_gradient(jnp.sum(T * moved, axis=0))
        write = _squared(under_heads - stop_gradient(s @ self.written))
        read = _squared(read_next - s @ self.down)
        move = _squared(moved - H)
        return self.c + self.on_simplex(s) + GAMMA * (write + 4 * self.b**2 * read + move)

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """Padding weighs 0 and leads nowhere; no head comes to stand there."""
        padded = {
            name: in_room(array, least=edges if name.startswith("edge") else vertices)
            for name, array in vars(self).items()
            if np.ndim(array)
        }
        return replace(self, **padded, cells=np.asarray(cells))

    def on_simplex(self, s: Float[Arrays, " vertices"]) -> Float[Array, ""]:
        """l_S of (19): weights on vertices and on directed edges."""
        vertices = jnp.sum(self.vertex_weight * corner(s, 1 / 4))
        return vertices + jnp.sum(self.edge_weight * directed(s[self.edge_from], s[self.edge_to]))

    def shifted(
        self, s: Float[Arrays, " vertices"], H: Float[Arrays, "cells tapes"]
    ) -> Float[Arrays, "cells tapes"]:
        """S(s) H, linear in both: the head indicators where the heads go next. What is pushed over the end
        of the tape is gone; the net notices."""
        nothing = jnp.zeros_like(H[:1])
        to_right = jnp.concatenate([nothing, H[:-1]])
        to_left = jnp.concatenate([H[1:], nothing])
        if self.cells is not None:
            to_right = jnp.where(jnp.arange(len(H))[:, None] < self.cells, to_right, 0.0)
        return (s @ self.right) * to_right + (s @ self.left) * to_left + (s @ self.still) * H


def _squared(difference: Float[Arrays, "..."]) -> Float[Array, ""]:
    return jnp.sum(difference**2) / 2
