"""Appendix A: the piecewise linear functions, as printed in exact arithmetic and as the nets compute them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np

from tapegrad.precision import in_double
from tapegrad.targets.descent import loss as functions
from tapegrad_papers.claims.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.claims.welper import printed
from tapegrad_papers.claims.welper.paper import PAPER
from tapegrad_papers.claims.welper.printed import Point, between, corner_vertices, vertex

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def _sizes(long: bool) -> tuple[int, ...]:
    return (3, 4, 5, 6) if long else (3, 4, 5)


def _grid(m: int) -> list[Point]:
    return list(printed.shares(m, 8))


def _linear_on(corners: list[Point], function: Callable[[Point], Fraction]) -> bool:
    """Whether a function is the affine one that its values at the corners give, on a grid of the simplex
    between them."""
    values = [function(c) for c in corners]
    return all(
        function(printed.combined(share, corners)) == printed.dot(share, values)
        for share in printed.shares(len(corners), 3)
    )


@in_double
def _deviation(ours: Callable[..., object], theirs: Callable[..., Fraction], m: int, *rest: object) -> float:
    """The largest difference between the net's function of coordinates 0 and 1 and the printed one."""
    points = _grid(m)
    x = np.array([[float(c) for c in p] for p in points])
    columns = (x[:, 0],) if ours is functions.corner else (x[:, 0], x[:, 1])
    found = np.asarray(ours(*columns, *map(float, rest)))  # type: ignore[arg-type]
    expected = [float(theirs(p, 0, *([] if ours is functions.corner else [1]), *rest)) for p in points]
    return float(np.abs(found - expected).max())


@PAPER.claim("Lemma A.1", "The hat function of a corner is one ReLU unit")
def lemma_a_1(long: bool) -> Outcome:
    linear = values = outside = True
    worst = 0.0
    for m in _sizes(long):
        for mu in (QUARTER, HALF, Fraction(3, 4), Fraction(1)):
            corners = corner_vertices(m, 0, mu)
            linear &= _linear_on(corners, lambda x, mu=mu: printed.corner(x, 0, mu))
            values &= [printed.corner(c, 0, mu) for c in corners] == [1] + [0] * (m - 1)
            outside &= all(printed.corner(x, 0, mu) == 0 for x in _grid(m) if x[0] < 1 - mu)
            worst = max(worst, _deviation(functions.corner, printed.corner, m, mu))
    checks = {
        "linear on S_v^mu, on a grid of rational points": linear,
        "1 at e_v and 0 at every e_vw^mu, exactly": values,
        "0 on the rest of the simplex": outside,
        "the net's relu(1 - (1 - x_v) / mu) is the same function on the simplex": worst < 1e-12,
    }
    return holds(
        checks,
        stated="l(e_v) = 1, l(e_vw) = 0, 0 outside S_v^mu, for 0 < mu <= 1",
        measured=f"all exact for m in {_sizes(long)}, mu in 1/4, 1/2, 3/4, 1; "
        f"the net's form differs by {worst:.1g}",
        net_deviation=worst,
    )


@PAPER.claim("Lemma A.2", "The function of an edge is 1 in its middle and 0 at all other nodes")
def lemma_a_2(long: bool) -> Outcome:
    linear = values = elsewhere = True
    on_plane, worst = {}, 0.0
    for m in _sizes(long):
        both = corner_vertices(m, 0, HALF) + corner_vertices(m, 1, HALF)
        middle = between(m, 0, 1, HALF)
        values &= all(printed.edge(p, 0, 1) == (p == middle) for p in both)
        for u in range(m):
            corners = corner_vertices(m, u, HALF)
            linear &= _linear_on(corners, lambda x: printed.edge(x, 0, 1))
            elsewhere &= u < 2 or all(printed.edge(c, 0, 1) == 0 for c in corners)
        on_plane[m] = len({p for p in both if printed.edge_plane(p, 0, 1) == 0})
        worst = max(worst, _deviation(functions.edge, printed.edge, m))
    checks = {
        "linear on every corner S_u": linear,
        "1 at e_vw and 0 at all other vertices of S_v and S_w": values,
        "0 on the corners S_u, u not in {v, w}": elsewhere,
        "the plane holds 2|V| - 4 of those vertices": all(n == 2 * m - 4 for m, n in on_plane.items()),
        "and not 2|V| - 3, as printed": all(n != 2 * m - 3 for m, n in on_plane.items()),
        "the net's form is the same function on the simplex": worst < 1e-12,
    }
    return holds_corrected(
        checks,
        stated="l(e_vw) = 1, l = 0 at the other nodes; the plane n x = c contains 2|V| - 3 vertices",
        measured=f"values exact; vertices on the plane {on_plane}; the net's form differs by {worst:.1g}",
        correction="The plane contains 2|V| - 4 vertices: e_vu and e_wu for each of the |V| - 2 others u.",
        vertices_on_plane=on_plane,
        net_deviation=worst,
    )


@PAPER.claim("Lemma A.3", "The unsymmetric corner is one ReLU unit as well")
def lemma_a_3(long: bool) -> Outcome:
    linear = values = outside = True
    as_printed = {}
    worst = max(
        _deviation(functions.skew, lambda p, v, w: printed.skew(p, v, w, QUARTER), m) for m in _sizes(long)
    )
    for m in _sizes(long):
        for mu in (QUARTER, HALF, Fraction(3, 4), Fraction(1)):
            corners = [vertex(m, 0), between(m, 0, 1, mu)] + [between(m, 0, u, HALF) for u in range(2, m)]
            linear &= _linear_on(corners, lambda x, mu=mu: printed.skew(x, 0, 1, mu))
            values &= [printed.skew(c, 0, 1, mu) for c in corners] == [1] + [0] * (m - 1)
            # Barycentric coordinates in the unsymmetric corner: x is outside if e_v's would be negative.
            outside &= all(
                printed.skew(x, 0, 1, mu) == 0 for x in _grid(m) if 1 - x[1] / mu - 2 * sum(x[2:]) <= 0
            )
            as_printed[str(mu)] = printed.skew(between(m, 0, 1, HALF), 0, 1, mu)
    checks = {
        "linear on S_vw^mu": linear,
        "1 at e_v, 0 at (1 - mu) e_v + mu e_w and at (e_v + e_u) / 2": values,
        "0 on the rest of the simplex": outside,
        "as printed, at (e_v + e_w) / 2, it is not 0 for mu = 3/4": as_printed["3/4"] == Fraction(1, 3),
        "the net's form is the same function for mu = 1/4": worst < 1e-12,
    }
    return holds_corrected(
        checks,
        stated="l = 0 at (e_v + e_w) / 2, third condition, for 0 < mu <= 1",
        measured=f"0 at (e_v + e_u) / 2; at (e_v + e_w) / 2 and mu = 3/4 it is {as_printed['3/4']}",
        correction="The third condition is at (e_v + e_u) / 2 for u not in {v, w}.",
        printed_condition={mu: float(found) for mu, found in as_printed.items()},
        net_deviation=worst,
    )


@PAPER.claim("Function (34)", "The directed edge: 1 after a quarter of the way, 1/2 after three quarters")
def function_34(long: bool) -> Outcome:
    values = linear = vertices = True
    worst = 0.0
    for m in _sizes(long):
        for t, u in permutations(range(m), 2):
            expected = {(0, 1): Fraction(1), (1, 0): HALF}.get((t, u), Fraction(0))
            values &= printed.directed(between(m, t, u, QUARTER), 0, 1) == expected
        vertices &= all(printed.directed(vertex(m, u), 0, 1) == 0 for u in range(m))
        linear &= all(
            _linear_on(corner_vertices(m, u, QUARTER), lambda x: printed.directed(x, 0, 1)) for u in range(m)
        )
        worst = max(worst, _deviation(functions.directed, printed.directed, m))
    in_corner = printed.skew(vertex(3, 1), 0, 1, QUARTER) > 0
    checks = {
        "1 at e_vw^(1/4), 1/2 at e_vw^(3/4), 0 at the quarters of all other edges": values,
        "0 at every vertex": vertices,
        "linear on every corner S_u^(1/4)": linear,
        "the net's form is the same function on the simplex": worst < 1e-12,
        "S_w^(1/4) is not inside S_vw^(1/4): e_w is not": not in_corner,
    }
    return holds(
        checks,
        stated="values 1, 1/2 and 0 at the quarters of edges, linear on S_u^(1/4)",
        measured=f"all exact for m in {_sizes(long)}; the net's form differs by {worst:.1g}",
        note="The sentence after (34) means S_v^(1/4), which is inside the unsymmetric corner; S_w is not.",
        net_deviation=worst,
    )
