"""The independent checker of `emulator` nets with exact memory: Definition 6 and the constants of Lemma 3.

Weights are monomials r 2^a p^b m0^c. What the paper says about them is re-derived from p and m0 alone.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.emulator_flat import check_graph, edges_of, flat_margin, require

Monomial = tuple[Fraction, tuple[Fraction, Fraction, Fraction]]


def check_exact(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> list[str]:
    """What was re-derived, in sentences."""
    p, m0 = Fraction(config["p"]), int(config["m0"])
    given, m = 1 + int(config["inputs"]) + 2, len(arrays["cells"])
    require(p > 1 and m0 >= m, "the exponent or the number of components is out of range")
    check_graph(arrays, given)
    constants = _Constants(p, m0)
    sizes = [(Fraction(r), (Fraction(a), Fraction(b), Fraction(c))) for r, a, b, c in config["sizes"]]
    is_size = {
        name: np.array([constants.equal(size, wanted) for size in sizes])[arrays["kinds"]]
        for name, wanted in constants.wanted.items()
    }
    _components(arrays, given, m, is_size)
    plain = [float(r) if not any(e) else np.nan for r, e in sizes]
    weights = np.array(plain)[arrays["kinds"]] * arrays["signs"]
    require(weights[0] == 2 and arrays["sources"][0] == 0, "v_0 is not at 2")
    last = given + len(arrays["offsets"]) - 2
    first_component = last - 11 * (2 * m + 1)
    computing = np.arange(given + 1 + 3 * m + 1, first_component)
    margin = flat_margin(arrays, given, weights, computing)
    require(margin >= 0.5, "a vertex that computes is not flat")
    return [
        f"each of {len(computing):,} vertices that compute is flat on all Boolean inputs, by {margin:g}",
        f"all {2 * m + 1:,} components are M_s of Definition 6 with p = {p}, c = 1/m0 and m0 = {m0}",
        "the rate turns the weights of an open path into their negatives, and a control at 2 closes a path",
    ]


class _Constants:
    """Every size of Definition 6, by the exponents of 2, p and m0."""

    def __init__(self, p: Fraction, m0: int) -> None:
        self.generators = (Fraction(2), p, Fraction(m0))
        total = sum((p**j for j in range(6)), Fraction(0))
        shift = sum((j * p**j / 2 for j in range(6)), Fraction(0))
        s = (-(p**5) / total, -shift / total, -1 / total)
        path = {t: (s[0], s[1] + Fraction(6 - t, 2), s[2]) for t in range(1, 7)}
        require(_log(self.generators, (path[1][0] + 1, *path[1][1:])) < 0, "the input 2 w_1 is not below 1")
        value = (Fraction(1), Fraction(0), Fraction(0))  # v_0 is 2
        at = []
        for t in range(1, 6):
            value = tuple(p * (x + y) for x, y in zip(value, path[t], strict=True))
            at.append(value)
        share = tuple(x + y for x, y in zip(at[-1], path[6], strict=True))
        require(share == (0, 0, -1), "an open path does not give 1/m0 to the output")
        # rate * 4 p * (share p^(6-t) / w_t) = 2 w_t with rate = s^2 m0 / (2 p), exponent by exponent.
        for t in range(1, 7):
            left = (2 * s[0] + 1, 2 * s[1] + (6 - t), 2 * s[2])
            right = (2 * path[t][0] + 1, 2 * path[t][1], 2 * path[t][2])
            require(left == right, "the rate does not flip a path")
        control = tuple(x + y for x, y in zip(at[2], path[4], strict=True))
        self.wanted: dict[str, Monomial] = {f"path {t}": (Fraction(1), e) for t, e in path.items()}
        self.wanted["control"] = (Fraction(1, 2), (control[0], control[1], control[2]))
        self.wanted["reader"] = (Fraction(2), (-at[0][0], -at[0][1], -at[0][2]))

    def equal(self, a: Monomial, b: Monomial) -> bool:
        """Whether two monomials are the same number: exponents may differ by whole numbers."""
        ratio = a[0] / b[0]
        for x, y, generator in zip(a[1], b[1], self.generators, strict=True):
            if (x - y).denominator != 1:
                return False
            ratio *= generator ** int(x - y)
        return ratio == 1


def _log(generators: tuple[Fraction, ...], exponents: tuple[Fraction, ...]) -> Decimal:
    """The logarithm of a monomial, to 200 digits: the paper's m0 is the smallest that will do."""
    with localcontext(prec=200):
        logs = [Decimal(g.numerator).ln() - Decimal(g.denominator).ln() for g in generators]
        pairs = zip(exponents, logs, strict=True)
        return sum((Decimal(e.numerator) / e.denominator * log for e, log in pairs), Decimal(0))


def _components(
    arrays: dict[str, NDArray[Any]], given: int, m: int, is_size: dict[str, NDArray[Any]]
) -> None:
    """Every edge of every component comes from where Definition 6 says and has the weight it says."""
    sources, signs = arrays["sources"], arrays["signs"]
    count = 2 * m + 1
    v1 = given + 1 + np.arange(count)
    last = given + len(arrays["offsets"]) - 2
    base = last - 11 * (count - np.arange(count))

    def expect(vertices: NDArray[Any], place: int, of: int, source: NDArray[Any], name: str) -> NDArray[Any]:
        edges = edges_of(arrays, given, vertices, of)[:, place]
        require((sources[edges] == source).all(), f"{name}: an edge comes from elsewhere")
        require(is_size[name].take(edges).all(), f"{name}: an edge has another weight")
        return edges

    require((expect(v1, 0, 1, np.full(count, given), "path 1")[:m] == arrays["cells"]).all(), "cells differ")
    read = expect(v1[:m] + count, 0, 1, v1[:m], "reader")
    require((signs[read] < 0).all(), "a positive weight is not read as 0")
    expect(base, 0, 1, v1, "path 2")
    output = edges_of(arrays, given, np.array([last]), 2 * count)[0].reshape(count, 2)
    for side in (0, 1):
        closed = base + 1 + 5 * side
        expect(closed + 2, 0, 1, base, "path 3")
        expect(closed + 3, 0, 2, closed + 2, "path 4")
        closing = expect(closed + 3, 1, 2, closed + 1, "control")
        require((signs[closing] < 0).all(), "a control opens its path instead of closing it")
        expect(closed + 4, 0, 1, closed + 3, "path 5")
        edges = output[:, side]
        require((sources[edges] == closed + 4).all(), "the output reads another vertex")
        require(is_size["path 6"].take(edges).all(), "path 6: an edge has another weight")
        require((signs[edges] == (1, -1)[side]).all(), "the two paths do not have opposite signs")
    require((arrays["copied"] == output[-1]).all(), "copies are not those of the last component")
