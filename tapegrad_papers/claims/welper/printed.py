"""The functions of appendix A as the paper prints them, in exact rational arithmetic."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

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
