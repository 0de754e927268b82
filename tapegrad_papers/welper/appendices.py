"""Appendix A, the piecewise linear functions as the paper prints them, in exact rational arithmetic, beside
those of the networks; appendices B and C: numbers to bits and back, and a vector orthogonal to the labels."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.backends.numpy import applied
from tapegrad.networks.builder import Value, network_of
from tapegrad.targets.descent import loss as functions
from tapegrad.targets.descent.layers import layers_of
from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint, NumberFormat, bits_of
from tapegrad_papers.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.welper import PAPER
from tapegrad_papers.welper.runs import PERPENDICULAR

Point = tuple[Fraction, ...]


def vertex(m: int, v: int) -> Point:
    """e_v."""
    return tuple(Fraction(int(u == v)) for u in range(m))


def between(m: int, v: int, w: int, mu: Fraction) -> Point:
    """e_vw^mu = (1 - mu) e_v + mu e_w."""
    return combined([1 - mu, mu], [vertex(m, v), vertex(m, w)])


def combined(shares: Sequence[Fraction], points: Sequence[Point]) -> Point:
    """The convex combination of points."""
    return tuple(dot(shares, column) for column in zip(*points, strict=True))


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    """The scalar product."""
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def shares(m: int, total: int) -> Iterator[Point]:
    """Barycentric coordinates: all points of a grid with this many parts."""

    def parts(left: int, places: int) -> Iterator[list[int]]:
        if places == 1:
            yield [left]
            return
        for first in range(left + 1):
            yield from ([first, *rest] for rest in parts(left - first, places - 1))

    for row in parts(total, m):
        yield tuple(Fraction(part, total) for part in row)


def corner_vertices(m: int, v: int, mu: Fraction) -> list[Point]:
    """The vertices of S_v^mu."""
    return [vertex(m, v)] + [between(m, v, w, mu) for w in range(m) if w != v]


def corner(x: Point, v: int, mu: Fraction) -> Fraction:
    """Lemma A.1: max{0, n^T x - d}."""
    m = len(x)
    normal = [Fraction(m - 1 if u == v else -1) / (mu * m) for u in range(m)]
    return max(Fraction(0), dot(normal, x) - ((1 - mu) * m - 1) / (mu * m))


def edge_plane(x: Point, v: int, w: int) -> Fraction:
    """Lemma A.2: n_vw x - c."""
    m = len(x)
    normal = [4 * (Fraction(int(u in (v, w)), 2) - Fraction(1, m)) for u in range(m)]
    return dot(normal, x) - (1 - Fraction(4, m))


def edge(x: Point, v: int, w: int) -> Fraction:
    """Lemma A.2."""
    half = Fraction(1, 2)
    return max(Fraction(0), edge_plane(x, v, w)) - corner(x, v, half) - corner(x, w, half)


def skew(x: Point, v: int, w: int, mu: Fraction) -> Fraction:
    """Lemma A.3: the affine function that is 1 at e_v, 0 at (1 - mu) e_v + mu e_w and 0 at
    (e_v + e_u) / 2 has the values 1 - 1/mu at e_w and -1 at every other e_u; cut off below 0."""
    at_vertices = [Fraction(1) if u == v else 1 - 1 / mu if u == w else Fraction(-1) for u in range(len(x))]
    return max(Fraction(0), dot(at_vertices, x))


def directed(x: Point, v: int, w: int) -> Fraction:
    """(34)."""
    return edge(x, v, w) + corner(x, v, Fraction(1, 2)) - skew(x, v, w, Fraction(1, 4))


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def _sizes(long: bool) -> tuple[int, ...]:
    return (3, 4, 5, 6) if long else (3, 4, 5)


def _grid(m: int) -> list[Point]:
    return list(shares(m, 8))


def _linear_on(corners: list[Point], function: Callable[[Point], Fraction]) -> bool:
    """Whether a function is the affine one that its values at the corners give, on a grid of the simplex
    between them."""
    values = [function(c) for c in corners]
    return all(function(combined(share, corners)) == dot(share, values) for share in shares(len(corners), 3))


def _deviation(ours: Callable[..., Value], theirs: Callable[..., Fraction], m: int, *rest: Fraction) -> float:
    """The largest difference between the net's function of coordinates 0 and 1 and the printed one."""
    points = _grid(m)
    x = np.array([[float(c) for c in p] for p in points])
    columns = (x[:, 0],) if ours is functions.corner else (x[:, 0], x[:, 1])
    found = applied(lambda *own: ours(*own, *map(float, rest)), *columns)
    expected = [float(theirs(p, 0, *([] if ours is functions.corner else [1]), *rest)) for p in points]
    return float(np.abs(found - expected).max())


@PAPER.claim("Lemma A.1", "The hat function of a corner is one ReLU unit")
def lemma_a_1(long: bool) -> Outcome:
    linear = values = outside = True
    worst = 0.0
    for m in _sizes(long):
        for mu in (QUARTER, HALF, Fraction(3, 4), Fraction(1)):
            corners = corner_vertices(m, 0, mu)
            linear &= _linear_on(corners, lambda x, mu=mu: corner(x, 0, mu))
            values &= [corner(c, 0, mu) for c in corners] == [1] + [0] * (m - 1)
            outside &= all(corner(x, 0, mu) == 0 for x in _grid(m) if x[0] < 1 - mu)
            worst = max(worst, _deviation(functions.corner, corner, m, mu))
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
        values &= all(edge(p, 0, 1) == (p == middle) for p in both)
        for u in range(m):
            corners = corner_vertices(m, u, HALF)
            linear &= _linear_on(corners, lambda x: edge(x, 0, 1))
            elsewhere &= u < 2 or all(edge(c, 0, 1) == 0 for c in corners)
        on_plane[m] = len({p for p in both if edge_plane(p, 0, 1) == 0})
        worst = max(worst, _deviation(functions.edge, edge, m))
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
    worst = max(_deviation(functions.skew, lambda p, v, w: skew(p, v, w, QUARTER), m) for m in _sizes(long))
    for m in _sizes(long):
        for mu in (QUARTER, HALF, Fraction(3, 4), Fraction(1)):
            corners = [vertex(m, 0), between(m, 0, 1, mu)] + [between(m, 0, u, HALF) for u in range(2, m)]
            linear &= _linear_on(corners, lambda x, mu=mu: skew(x, 0, 1, mu))
            values &= [skew(c, 0, 1, mu) for c in corners] == [1] + [0] * (m - 1)
            # Barycentric coordinates in the unsymmetric corner: x is outside if e_v's would be negative.
            outside &= all(skew(x, 0, 1, mu) == 0 for x in _grid(m) if 1 - x[1] / mu - 2 * sum(x[2:]) <= 0)
            as_printed[str(mu)] = skew(between(m, 0, 1, HALF), 0, 1, mu)
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
            values &= directed(between(m, t, u, QUARTER), 0, 1) == expected
        vertices &= all(directed(vertex(m, u), 0, 1) == 0 for u in range(m))
        linear &= all(
            _linear_on(corner_vertices(m, u, QUARTER), lambda x: directed(x, 0, 1)) for u in range(m)
        )
        worst = max(worst, _deviation(functions.directed, directed, m))
    in_corner = skew(vertex(3, 1), 0, 1, QUARTER) > 0
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


MISPRINTS = ("x for |x|", "line 3", "line 4", "line 9", "line 13", "psi_epsilon")
"""Of the algorithm in appendix B, each of which can be put back alone. To correct line 4 by asking for a
leading digit of 1 as well is `normalised`."""


def floating(x: int, mantissa: int, exponent: int, printed: str = "") -> tuple[int, int, int]:
    """Appendix B's algorithm, corrected but for one place: sign, digits and exponent of a whole number, with
    the digits a_0 to a_mantissa and the exponent's b_0 to b_exponent. The first e for which the digits are
    enough, in rising order, is the right one: x is a multiple of it."""
    sign, size, digits, found = int(x <= 0), x if printed == "x for |x|" else abs(x), 0, 0
    for b in range(2 ** (exponent if printed == "line 3" else exponent + 1)):
        e = 2**b
        least = {"line 4": e, "normalised": 2**mantissa * e}.get(printed, 0)
        if (2 * e if printed == "line 4" else 2 ** (mantissa + 1) * e) > size >= least:
            found = b
            for i in reversed(range(mantissa + 1)):
                above = size - 2**i * e
                if above > 0 if printed == "psi_epsilon" else above >= 0:
                    digits += 2**i
                    if printed != "line 9":
                        size -= 2**i * e
            return sign, digits, found
        if printed == "line 13":
            break
    return sign, digits, found


def numbers_of(mantissa: int, exponent: int) -> list[int]:
    """Every number that appendix B's format has."""
    sizes = {a * 2**b for a, b in product(range(2 ** (mantissa + 1)), range(2 ** (exponent + 1)))}
    return sorted(sizes | {-size for size in sizes})


def wrong_numbers(mantissa: int, exponent: int, printed: str = "") -> list[int]:
    """Those of which the algorithm makes something else."""
    every = {x: floating(x, mantissa, exponent, printed) for x in numbers_of(mantissa, exponent)}
    return [x for x, (sign, digits, b) in every.items() if (-1) ** sign * digits * 2**b != x]


def _mistakes(form: NumberFormat, numbers: NDArray[np.float64], bits: NDArray[np.float64]) -> int:
    """Numbers whose bits come out wrong, and rows of bits whose number does."""
    there, back = bits_of(form, numbers), applied(form.dequantise, bits)
    return int((there != bits).any(axis=1).sum() + (back[:, 0] != numbers).sum())


@PAPER.claim("Appendix B", "Networks turn numbers into bits and bits into numbers, exactly")
def appendix_b(long: bool) -> Outcome:
    wrong, numbers = 0, 0
    for fixed, continuous in product(((8, 4), (10, 2)) if long else ((8, 4),), (False, True)):
        form = FixedPoint(*fixed, continuous)
        count = 2**form.width
        whole = np.arange(count)
        value = np.where(whole >= count // 2, whole - count, whole) / 2.0**form.fraction
        bits = (whole[:, None] >> np.arange(form.width) & 1).astype(float)
        wrong += _mistakes(form, value, bits)
        numbers += count
    for continuous in (False, True):
        form = FloatingPoint(5, 10, continuous)  # NumPy's half precision
        patterns = np.arange(0, 2**16, 1 if long else 13, dtype=np.uint16)
        half = patterns.view(np.float16).astype(float)
        kept = np.isfinite(half) & (half != 0)
        bits = (patterns[:, None].astype(int) >> np.arange(16) & 1).astype(float)
        wrong += _mistakes(form, half[kept], bits[kept])
        numbers += int(kept.sum())
    formats = [(4, 1), (3, 2), *([(7, 3)] if long else [])]
    of_all, lost = {}, {}
    for form in formats:
        of_all[form] = len(numbers_of(*form))
        lost[form] = {name: len(wrong_numbers(*form, name)) for name in ("", "normalised", *MISPRINTS)}
    example, first = 3, formats[0]
    printed = floating(example, *first, "line 4")
    checks = {
        "the algorithm, corrected, is right on every number of each format": all(
            count[""] == 0 for count in lost.values()
        ),
        "each misprint alone, put back, makes some of the same numbers wrong": all(
            count[name] > 0 for count in lost.values() for name in MISPRINTS
        ),
        "and so does 2^m e as the lower end of line 4, by which a number below 2^m has no exponent": all(
            count["normalised"] > 0 for count in lost.values()
        ),
        "3 becomes 2 with line 4 as printed, and stays 3 as corrected": printed[1] * 2 ** printed[2] == 2
        and floating(example, *first) == (0, 3, 0),
        "both networks are exact on every number tried, with steps and with ramps": wrong == 0,
        "half precision agrees with NumPy's own bits": wrong == 0 and numbers > 5000,
    }
    return holds_corrected(
        checks,
        stated="x -> sign, mantissa, exponent by Heaviside units, unchanged with ramps psi_epsilon",
        measured=f"{numbers:,} numbers there and back, {wrong} wrong; of {of_all[first]} numbers with "
        f"{first[0] + 1} digits and {first[1] + 1} of the exponent the algorithm loses "
        f"{lost[first]['']}, with one misprint left in it "
        + ", ".join(f"{lost[first][name]} ({name})" for name in MISPRINTS),
        correction="Line 3 runs through all exponents, in rising order: b is in {0, 1}^(n+1). Line 4 asks "
        "2^(m+1) e > |x| alone, and the first such e ends the loop: as printed, |x| < 2 e, so every digit "
        "above the first is 0. |x| stands for x in lines 4 to 9; line 9 changes it, not y; the return stands "
        "in the if. psi_epsilon is 1 from epsilon on, not from 1 on; and 0 at 0, where the step of line 7 "
        "is 1: that is 1 - psi_epsilon(-t).",
        numbers=numbers,
        wrong=wrong,
        lost={str(form): count for form, count in lost.items()},
    )


@PAPER.claim("Appendix C", "A unit vector orthogonal to the labels, also where they are nearly parallel to v")
def appendix_c(long: bool) -> Outcome:
    random = np.random.default_rng(0)
    worst_length = worst_angle = worst_bare = 0.0
    tried = 0
    for size in (2, 3, 10, 50):
        vectors = list(random.normal(size=(200 if long else 40, size)))
        for tiny in (0.0, 1e-17, 1e-12, 1e-9, 1e-6, 1e-3):
            nearly = np.eye(size)[0] + tiny * random.normal(size=size)
            vectors += [nearly, 1e3 * nearly, np.eye(size)[1] + tiny * random.normal(size=size)]
            worst_bare = max(worst_bare, _bare_angle(nearly))
        for z in vectors:
            least = float(min(z @ z, 1.0))
            found = applied(lambda own, least=least: functions.orthogonal(own, least), z)
            worst_length = max(worst_length, abs(np.linalg.norm(found) - 1))
            worst_angle = max(worst_angle, abs(found @ z) / np.linalg.norm(z))
            tried += 1
    network = network_of(lambda z: functions.orthogonal(z, 1.0), (3, 1))
    layers = len(layers_of(network))
    checks = {
        "f_perp: five layers of two operations": layers == 2 * PERPENDICULAR,
        "unit length to 1e-14": worst_length < 1e-14,
        "orthogonal to 1e-14": worst_angle < 1e-14,
        "without the second axis w, nearly parallel labels give a vector that is not orthogonal": worst_bare
        > 0.1,
        "it divides, which is not among the operations of (1)": any(
            node.operation == "divide" for node in network.nodes
        ),
    }
    return holds(
        checks,
        stated="|f_perp| = 1 and f_perp . z = 0 for all z; 5 layers",
        measured=f"{tried} vectors: length off by {worst_length:.1g}, cosine {worst_angle:.1g}; "
        f"{layers} non-linear operations in a row",
        note="Needs nm >= 2 label entries. The 5 layers are groups: one non-linearity at a time, with guards "
        f"against division by 0, there are {layers}. Division is missing from the list (1): "
        "what ReLU, roots and products make of a number is integral over it, as 1/|z| is not.",
        length_error=worst_length,
        cosine=worst_angle,
        cosine_without_second_axis=worst_bare,
        nonlinear_depth=layers,
    )


def _bare_angle(z: np.ndarray) -> float:
    """The cosine between z and the normalised projection of v = e_1 alone; 1 where that is 0 / 0."""
    projected = np.eye(len(z))[0] - z[0] / (z @ z) * z
    length = np.linalg.norm(projected)
    return float(abs(projected @ z) / length / np.linalg.norm(z)) if length else 1.0
