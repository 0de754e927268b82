"""The piecewise linear functions on a simplex of Welper's appendix A, in barycentric coordinates.

The paper writes each as ReLU(n^T x - d) with a normal n that involves every coordinate. On the simplex, where
the coordinates sum to 1, they reduce to the forms below, which name only the coordinates they are about; the
two differ by a multiple of (sum x - 1), which no direction inside the simplex can see. None has a kink at a
vertex, so automatic differentiation there gives the one-sided derivatives that the proofs use.
"""

import jax
from jax import Array

from tapegrad.targets.descent.numbers import Numbers

relu = jax.nn.relu


def corner(x_v: Numbers, mu: float) -> Array:
    """Lemma A.1: 1 at e_v, 0 beyond the corner of size mu."""
    return relu(1 - (1 - x_v) / mu)


def edge(x_v: Numbers, x_w: Numbers) -> Array:
    """Lemma A.2: 1 in the middle between e_v and e_w, 0 at every vertex and every other such middle."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_v, 1 / 2) - corner(x_w, 1 / 2)


def skew(x_v: Numbers, x_w: Numbers) -> Array:
    """Lemma A.3 with mu = 1/4: 1 at e_v, 0 from a quarter of the way to e_w on, and from half the way to any
    other vertex on."""
    return relu(2 * x_v - 2 * x_w - 1)


def directed(x_v: Numbers, x_w: Numbers) -> Array:
    """(34): on the edge from e_v to e_w it is 1 after a quarter and 1/2 after three quarters of the way; 0 on
    every other edge. Leaving e_v towards e_w it rises with slope 4, leaving e_w towards e_v with slope 2.
    This is `edge + corner(x_v, 1/2) - skew` with the corner that appears twice left out."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_w, 1 / 2) - skew(x_v, x_w)


SLOPE_FORWARD, SLOPE_BACKWARD = 4.0, 2.0
"""The two slopes of `directed` at the ends of its edge, as the fast engine and the certificate use them."""
