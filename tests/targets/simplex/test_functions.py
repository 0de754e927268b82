"""Appendix A: the closed forms against the paper's own definitions, and the interpolation they promise."""

from itertools import permutations

import jax
import numpy as np
import pytest

from tapegrad._precision import in_double
from tapegrad.networks.backends.jax import function_of
from tapegrad.targets.descent import loss
from tapegrad.targets.descent.loss import SLOPE_BACKWARD, SLOPE_FORWARD

SIZES = (3, 4, 6)
edge, skew, directed = map(function_of, (loss.edge, loss.skew, loss.directed))


def corner(x, mu):
    return function_of(lambda x_v: loss.corner(x_v, mu))(x)


def unit(m, v):
    return np.eye(m)[v]


def between(m, v, w, mu):
    return (1 - mu) * unit(m, v) + mu * unit(m, w)


def points(m, seed=0):
    """Points all over the simplex, many of them near vertices and edges."""
    random = np.random.default_rng(seed)
    return np.concatenate([random.dirichlet(np.full(m, a), 60) for a in (0.1, 0.5, 1.0)] + [np.eye(m)])


def paper_corner(x, v, mu):
    """Lemma A.1: max(0, n^T x - d)."""
    m = len(x)
    n = sum(unit(m, v) - unit(m, w) for w in range(m) if w != v) / (mu * m)
    return max(0.0, n @ x - ((1 - mu) * m - 1) / (mu * m))


def paper_edge(x, v, w):
    """Lemma A.2."""
    m = len(x)
    n = 4 * ((unit(m, v) + unit(m, w)) / 2 - np.full(m, 1 / m))
    return max(0.0, n @ x - (1 - 4 / m)) - paper_corner(x, v, 1 / 2) - paper_corner(x, w, 1 / 2)


def paper_skew(x, v, w):
    """Lemma A.3 with mu = 1/4: the affine function that is 1 at e_v and 0 at the other vertices of the
    unsymmetric corner, found by solving for it, cut off below 0."""
    m = len(x)
    vertices = [unit(m, v), between(m, v, w, 1 / 4)]
    vertices += [between(m, v, u, 1 / 2) for u in range(m) if u not in (v, w)]
    values = np.array([1.0] + [0.0] * (m - 1))
    return max(0.0, np.linalg.solve(np.array(vertices), values) @ x)


def paper_directed(x, v, w):
    """(34)."""
    return paper_edge(x, v, w) + paper_corner(x, v, 1 / 2) - paper_skew(x, v, w)


def close(found, expected):
    return np.allclose(np.asarray(found), expected, rtol=0, atol=1e-12)


@in_double
@pytest.mark.parametrize("m", SIZES)
def test_closed_forms_equal_the_papers_definitions_on_the_simplex(m):
    v, w, x = 0, m - 1, points(m)
    for mu in (1 / 4, 1 / 2, 1.0):
        assert close(corner(x[:, v], mu), [paper_corner(row, v, mu) for row in x])
    for ours, papers in ((edge, paper_edge), (skew, paper_skew), (directed, paper_directed)):
        assert close(ours(x[:, v], x[:, w]), [papers(row, v, w) for row in x])


@in_double
@pytest.mark.parametrize("m", SIZES)
def test_lemma_a1_values(m):
    for mu in (1 / 4, 1 / 2):
        cut = np.array([between(m, 0, w, mu) for w in range(1, m)])
        assert np.array_equal(corner(np.eye(m)[:, 0], mu), unit(m, 0))
        assert not np.any(corner(cut[:, 0], mu))


@in_double
@pytest.mark.parametrize("m", SIZES)
def test_lemma_a2_values(m):
    pairs = list(permutations(range(m), 2))
    middles = np.array([between(m, t, u, 1 / 2) for t, u in pairs])
    for v, w in pairs:
        expected = [float({t, u} == {v, w}) for t, u in pairs]
        assert np.array_equal(edge(middles[:, v], middles[:, w]), expected)
        assert not np.any(edge(np.eye(m)[:, v], np.eye(m)[:, w]))


@in_double
@pytest.mark.parametrize("m", SIZES)
def test_34_values(m):
    pairs = list(permutations(range(m), 2))
    quarters = np.array([between(m, t, u, 1 / 4) for t, u in pairs])
    for v, w in pairs:
        expected = [{(v, w): 1.0, (w, v): 0.5}.get(pair, 0.0) for pair in pairs]
        assert np.array_equal(directed(quarters[:, v], quarters[:, w]), expected)
        assert not np.any(directed(np.eye(m)[:, v], np.eye(m)[:, w]))


@in_double
def test_all_are_linear_on_every_corner():
    """On the corner S_u^(1/4) a function that is linear is known from the corner's vertices."""
    m, random = 5, np.random.default_rng(1)
    for u in range(m):
        vertices = np.array([unit(m, u)] + [between(m, u, w, 1 / 4) for w in range(m) if w != u])
        shares = random.dirichlet(np.ones(m), 20)
        x = shares @ vertices
        for v, w in permutations(range(m), 2):
            for function in (edge, directed):
                linear = shares @ np.asarray(function(vertices[:, v], vertices[:, w]))
                assert close(function(x[:, v], x[:, w]), linear)


@in_double
def test_automatic_differentiation_at_a_vertex_gives_the_one_sided_slopes():
    m = 4

    def slope(v, w, at, towards):
        gradient = jax.grad(lambda x: directed(x[v], x[w]))(unit(m, at))
        return float(gradient @ (unit(m, towards) - unit(m, at)))

    assert slope(0, 1, 0, 1) == SLOPE_FORWARD
    assert slope(0, 1, 1, 0) == SLOPE_BACKWARD
    for at, towards in permutations(range(m), 2):
        if {at, towards} != {0, 1}:
            assert slope(0, 1, at, towards) == 0


@in_double
@pytest.mark.parametrize("seed", range(5))
def test_lemma_41_the_steepest_direction_is_the_vertex_that_8_names(seed):
    """l = random weights on corners and directed edges, plus 1/2 |A x - y|^2. Formula (8) picks a vertex from
    values of l alone; the best of many directions, and of all vertices, must not be better."""
    random = np.random.default_rng(seed)
    m, v, mu = 5, int(random.integers(5)), 1 / 4
    weight, matrix, y = random.normal(size=(m, m)), random.normal(size=(3, m)), random.normal(size=3)

    first, second = np.array(list(permutations(range(m), 2))).T

    @jax.jit
    @jax.vmap
    def value(x):
        along_edges = weight[first, second] @ directed(x[first], x[second])
        return along_edges + np.diag(weight) @ corner(x, mu)

    start, h = unit(m, v), 1e-6
    pull = (matrix @ start - y) @ matrix
    candidates = np.concatenate([np.eye(m), random.dirichlet(np.ones(m), 60)])
    at_start = np.asarray(value(start[None]))
    rise = (np.asarray(value(start + h * (candidates - start))) - at_start) / h
    derivatives = rise + (candidates - start) @ pull
    corners = np.array([between(m, v, u, mu) for u in range(m)])
    named = int(np.argmin(np.asarray(value(corners)) + mu * pull))
    assert derivatives.min() >= derivatives[named] - 1e-6
