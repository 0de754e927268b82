"""Exact memory, the paper's Definition 6 and Lemma 3, checked edge by edge.

Weights are monomials r 2^a p^b m0^c, and what the paper says of them is re-derived from p and m0 alone. The
vertices that compute are those of the learner's circuit, and of a counter that flips m0 components at each
wrong answer.
"""

import re
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import TRUE, Nodes
from tapegrad_check.fields import array, text, texts, whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.sources import Learner
from tapegrad_check.targets.vertices import Computation, Graph, given_vertices

FLAT_FROM = 1.5
"""The paper's own activation is 2 or -2 beyond 3/2 (Lemma 1)."""
MOST_DIGITS = 4000
MOST_POWERS = 1 << 14
"""Exponents of one number that is written in two ways differ by less than this."""

Monomial = tuple[Fraction, tuple[Fraction, Fraction, Fraction]]


def _fraction(value: Any, digits: int = MOST_DIGITS) -> Fraction:
    """A fraction as it is written down; `1e999999` is none."""
    written = text(value, "a number of the exact memory")
    fits = re.fullmatch(r"-?[0-9]+(/[0-9]+)?", written, re.ASCII) and len(written) <= digits
    require(fits, "a number of the exact memory is not a fraction")
    return Fraction(written)


def check_exact(
    config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], learner: Learner | None
) -> Checked:
    """Every edge of every component, the vertices that compute, and the learner they are of."""
    require(config.keys() == EXACT_ENTRIES, "the net has other entries than one with exact memory")
    require(arrays.keys() == EXACT_ARRAYS.keys(), "the net has other arrays than one with exact memory")
    for name, dtype in EXACT_ARRAYS.items():
        array(arrays, name, dtype, (None,))
    p, m0 = _fraction(config["p"], 13), int(_fraction(config["m0"]))
    claimed = {
        "memory": "exact",
        "cells": len(arrays["cells"]),
        "p": str(p),
        "m0": str(m0),
        "flat_margin": 0.5,
    }
    require(claims == claimed and (str(p), str(m0)) == (config["p"], config["m0"]), "the claims are others")
    given, m = given_vertices(config, arrays, 2), len(arrays["cells"])
    require(1 < p <= 4 and m0 >= m, "the exponent or the number of components is out of range")
    sizes = [_monomial(row) for row in config["sizes"]]
    kinds, signs = arrays["kinds"], arrays["signs"]
    require(((kinds >= 0) & (kinds < len(sizes))).all(), "an edge has a weight that is not in the list")
    require(len(kinds) == len(signs) and (np.abs(signs) == 1).all(), "the signs are not -1 and 1")
    # The net computes with fractions: one that is no double is not any of the weights looked for below.
    plain = [float(r) if not any(e) and Fraction(float(r)) == r else np.nan for r, e in sizes]
    graph = Graph.of(arrays, given, np.array(plain)[kinds] * signs)
    constants = _Constants(p, m0)
    is_size = {
        name: np.array([constants.equal(size, wanted) for size in sizes])[kinds]
        for name, wanted in constants.wanted.items()
    }
    begin, end = given + 1 + 3 * m + 1, graph.last - 11 * (2 * m + 1)
    require(begin <= end, "the network lacks vertices")
    answer, flips = _components(arrays, graph, m, is_size)
    computing = np.arange(begin, end)
    margin = graph.flat_margin(computing, FLAT_FROM)
    require(margin >= 0.5, "a vertex that computes is not flat")
    nodes = graph.nodes()
    variables = nodes.variables(m + given - 1)
    known = {begin - m + cell: variables[cell] for cell in range(m)}
    compute = Computation(graph, nodes, known | {1 + i: bit for i, bit in enumerate(variables[m:])})
    compute.run(range(begin, end))
    finished = compute[whole(config["finished"], "finished")]
    seen = [compute[answer], finished, *(compute[flip] for flip in flips.tolist())]
    names = texts(config["names"], "the names of inputs")
    require(len(names) == len(variables), "there are more or fewer names than inputs")
    statements = [
        f"each of {len(computing):,} vertices that compute is flat on all Boolean inputs, by {margin:g}",
        f"all {2 * m + 1:,} components are M_s of Definition 6 with p = {p}, c = 1/m0 and m0 = {_short(m0)}",
        "the rate turns the weights of an open path into their negatives, and a control at 2 closes a path",
    ]
    if learner is not None:
        same = learner.bits == given - 3 and names == learner.circuit.inputs and len(learner.first) == m
        require(same, "the learner has other inputs, or other names for them")
        minus = signs[arrays["cells"]] < 0
        require((minus == np.array(learner.first, bool)).all(), "the first memory is not the learner's")
        said, done, *memory = nodes.outputs(learner.circuit, variables)
        turned = [nodes.xor(old, new) for old, new in zip(variables, memory, strict=False)]
        wanted = [said, done, *turned, *_spare(nodes, turned), TRUE]
        nodes.require_same(seen, wanted, "the net does not compute what the learner does")
        statements.append(
            "answer, finished and flips are the functions of the learner's circuit, and m0 components flip "
            "at each wrong answer; names and first memory are the learner's"
        )
    return Checked(statements)


EXACT_ENTRIES = {"memory", "inputs", "p", "m0", "finished", "names", "sizes"}
EXACT_ARRAYS = {
    "offsets": np.int64,
    "sources": np.int32,
    "kinds": np.int32,
    "signs": np.int8,
    "cells": np.int64,
    "copied": np.int64,
}


def _short(m0: int) -> str:
    digits = str(m0)
    return digits if len(digits) < 20 else f"{digits[0]}.{digits[1:4]}e+{len(digits) - 1}"


def _monomial(row: Any) -> Monomial:
    require(isinstance(row, list) and len(row) == 4, "a weight is not given by four numbers")
    r, a, b, c = map(_fraction, row)
    require(r > 0, "a weight has no positive size")
    return r, (a, b, c)


def _spare(nodes: Nodes, flips: list[int]) -> list[int]:
    """Whether the last m spare components flip: number i does if at most m - i bits of the memory do. Counted
    in unary, bit by bit: at least j + 1 do if they did before, or if j did before and this one does."""
    at_least: list[int] = []
    for bit in flips:
        raised = [bit, *(nodes.and_(one, bit) for one in at_least)]
        at_least = [*(nodes.or_(a, b) for a, b in zip(at_least, raised, strict=False)), raised[-1]]
    return [one ^ 1 for one in reversed(at_least)]


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
            if (x - y).denominator != 1 or abs(x - y) > MOST_POWERS:
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
    arrays: Arrays, graph: Graph, m: int, is_size: dict[str, NDArray[Any]]
) -> tuple[int, NDArray[Any]]:
    """Every edge of every component comes from where Definition 6 says and has the weight and the sign it
    says; gives the vertex of the answer, and for each component the one that says whether it flips."""
    sources, signs = graph.sources, arrays["signs"]
    count = 2 * m + 1
    v0, v1 = graph.given, graph.given + 1 + np.arange(count)
    base = graph.last - 11 * (count - np.arange(count))

    def expect(vertices: NDArray[Any], place: int, of: int, source: Any, name: str) -> NDArray[Any]:
        edges = graph.edges(vertices, of)[:, place]
        require((sources[edges] == source).all(), f"{name}: an edge comes from elsewhere")
        require(is_size[name].take(edges).all(), f"{name}: an edge has another weight")
        return edges

    def plain(vertices: NDArray[Any], place: int, of: int, source: Any, weight: float) -> None:
        edges = graph.edges(vertices, of)[:, place]
        same = (sources[edges] == source).all() and (graph.weights[edges] == weight).all()
        require(same, "a control is not opened and closed as it should be")

    plain(np.array([v0]), 0, 1, 0, 2.0)
    first = expect(v1, 0, 1, v0, "path 1")
    require((first[:m] == arrays["cells"]).all(), "cells differ")
    require((signs[first[m:]] > 0).all(), "a spare component begins with another sign")
    read = expect(v1[:m] + count, 0, 1, v1[:m], "reader")
    require((signs[read] < 0).all(), "a positive weight is not read as 0")
    second = expect(base, 0, 1, v1, "path 2")
    require((signs[second] == signs[first]).all(), "the first two weights of a path have different signs")
    output = graph.edges(np.array([graph.last]), 2 * count)[0].reshape(count, 2)
    closing = graph.edges(base + 1, 3)
    flips, answer = sources[closing[:, 0]], int(sources[closing[0, 1]])
    for side, said in ((0, 1), (1, -1)):
        closed = base + 1 + 5 * side
        for place, (source, weight) in enumerate(((flips, -1.0), (answer, -said), (0, 2.0))):
            plain(closed, place, 3, source, weight)
        plain(closed + 1, 0, 2, closed, 0.5)
        plain(closed + 1, 1, 2, 0, 1.0)
        third = expect(closed + 2, 0, 1, base, "path 3")
        fourth = expect(closed + 3, 0, 2, closed + 2, "path 4")
        control = expect(closed + 3, 1, 2, closed + 1, "control")
        fifth = expect(closed + 4, 0, 1, closed + 3, "path 5")
        positive = all((signs[edges] > 0).all() for edges in (third, fourth, fifth))
        require(positive and (signs[control] < 0).all(), "a path has another sign, or a control opens it")
        edges = output[:, side]
        require((sources[edges] == closed + 4).all(), "the output reads another vertex")
        require(is_size["path 6"].take(edges).all(), "path 6: an edge has another weight")
        require((signs[edges] == said).all(), "the two paths do not have opposite signs")
    require(np.array_equal(arrays["copied"], output[-1]), "copies are not those of the last component")
    return answer, flips
