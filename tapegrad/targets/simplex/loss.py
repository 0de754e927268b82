"""The loss (13) on the simplex of configurations: it falls by one level with every step of the machine."""

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jax.lax import stop_gradient
from jax.nn import relu
from jaxtyping import Array, Float, Int

from tapegrad.targets.descent.loss import LEAST, Arrays, Scalar, corner, edge, in_room


class SimplexLoss(eqx.Module):
    """sum_v w_v l_v + sum_vw w_vw l_vw over unordered pairs, written with B taken out:

        B + sum_v (w_v - B) l_v + sum over edges (w_vw - B) l_vw.

    On every corner S_v the functions l_v, l_vw sum to 1, so there (where the iterates and their one-sided
    derivatives live) this is (13) exactly, satisfies (11) and (12), and needs no unit for the pairs that no
    step joins: size linear in the vertices instead of quadratic.
    """

    vertex_weight: Float[Arrays, " vertices"]
    edge_from: Int[Arrays, " edges"]
    edge_to: Int[Arrays, " edges"]
    edge_weight: Float[Arrays, " edges"]
    outside: Scalar

    def __call__(
        self,
        s: Float[Arrays, " vertices"],
        T: Float[Arrays, "cells tapes"],
        H: Float[Arrays, "cells tapes"],
    ) -> Float[Array, ""]:
        vertices = jnp.sum((self.vertex_weight - self.outside) * corner(s, 1 / 2))
        joined = edge(s[self.edge_from], s[self.edge_to])
        return self.outside + vertices + jnp.sum((self.edge_weight - self.outside) * joined)

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """Padding weighs B, so that it counts 0."""
        outside = float(self.outside)
        return type(self)(
            in_room(self.vertex_weight, fill=outside, least=vertices),
            in_room(self.edge_from, least=edges),
            in_room(self.edge_to, least=edges),
            in_room(self.edge_weight, fill=outside, least=edges),
            self.outside,
        )


class ChosenLoss(eqx.Module):
    """The loss (13) of a machine that is to run on data which are not known when training starts. All its
    first configurations are one vertex; from there an edge leads to the second configuration for each of the
    data, and weighs as in (10) if those are the data, else B, as a pair does that no step joins. So it is the
    data, and with them the labels in z, that choose the first edge, under a stop-gradient."""

    runs: SimplexLoss
    """Everything but the first steps."""
    start: Int[Arrays, ""]
    first_to: Int[Arrays, " data"]
    first_weight: Float[Arrays, " data"]
    codes: Float[Arrays, "data bits"]
    """For each of the data its bits, as signs."""

    def __call__(
        self,
        s: Float[Arrays, " vertices"],
        T: Float[Arrays, "bits one"],
        H: Float[Arrays, "cells tapes"],
    ) -> Float[Array, ""]:
        agree = self.codes @ stop_gradient(T[:, 0])
        chosen = relu(agree - (self.codes.shape[1] - 1))  # 1 where all bits agree, else 0
        joined = edge(jnp.broadcast_to(s[self.start], chosen.shape), s[self.first_to])
        weight = chosen * (self.first_weight - self.runs.outside)
        return self.runs(s, H, H) + jnp.sum(weight * joined)  # which looks at s alone

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """The numbers of vertices stay as they are."""
        return replace(self, runs=self.runs.in_room(cells, vertices, edges))
