"""One gate turned into another, in the nets with exact and with noise-tolerant memory: for every vertex that
computes, the check refuses the change, or all inputs (of many bits: thousands) show that nothing changes."""

from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from tapegrad.learners import conjunction, majority, parity
from tapegrad_check.folder import CheckError
from tests.check.altering import Net, net_of

TURNED = {(1, 1, -2): 2, (1, 1, 2): -2, (-1, -1, 2): -2, (-1, -1, -2): 2}
"""AND, OR, NAND, NOR by their weights; another weight of the constant turns AND into OR and back."""
FEW_BITS = 12
NETS = {
    "exact, parity": (parity(2), {"form": "paper"}),
    "exact, majority": (majority(2, 3), {"form": "paper"}),
    "noise-tolerant, conjunction": (conjunction(1, 2), {"form": "noise-tolerant", "samples": 2}),
    "noise-tolerant, parity": (parity(1), {"form": "noise-tolerant", "samples": 2}),
}


class Saved(NamedTuple):
    """A saved net, read here without the checker: weights of plain size (others are NaN), bits that are
    given, and vertices whose values matter."""

    net: Net
    given: int
    weights: np.ndarray
    bits: list[int]
    seen: list[int]

    def edges(self, vertex: int) -> range:
        first = self.net.arrays["offsets"][vertex - self.given]
        return range(first, self.net.arrays["offsets"][vertex - self.given + 1])

    def gates(self) -> list[int]:
        """The last edge, that of the constant, of every vertex that is one of the four gates."""
        vertices = range(self.given, self.given + len(self.net.arrays["offsets"]) - 1)
        rows = [list(self.edges(v)) for v in vertices]
        return [row[-1] for row in rows if tuple(self.weights[row]) in TURNED]

    def values(self, weights: np.ndarray) -> np.ndarray:
        """The vertices that matter, for values of the bits that are given, by threshold alone."""
        if len(self.bits) <= FEW_BITS:
            patterns = np.array(list(product((-1, 1), repeat=len(self.bits)))).T
        else:
            patterns = np.random.default_rng(0).choice((-1, 1), (len(self.bits), 1 << FEW_BITS))
        known = {0: np.ones(patterns.shape[1], np.int8)}
        known |= {v: bits * (1 if v < self.given else 2) for v, bits in zip(self.bits, patterns, strict=True)}
        sources = self.net.arrays["sources"]
        for v in range(self.given, max(self.seen) + 1):
            own = list(self.edges(v))
            computes = not np.isnan(weights[own]).any() and all(int(s) in known for s in sources[own])
            if computes and v not in known:
                total = sum(weights[e] * known[int(sources[e])] for e in own)
                known[v] = 2 * np.sign(total).astype(np.int8)
        return np.array([known[v] for v in self.seen])


def saved(name: str) -> Saved:
    learner, options = NETS[name]
    net = net_of(learner, "emulator", options)
    arrays = net.arrays
    if options["form"] == "paper":
        given, m = 1 + net.config["inputs"] + 2, len(arrays["cells"])
        plain = [
            float(Fraction(r)) if (a, b, c) == ("0", "0", "0") else np.nan
            for r, a, b, c in net.config["sizes"]
        ]
        weights = np.array(plain)[arrays["kinds"]] * arrays["signs"]
        readers = given + 1 + 2 * m + 1
        end = given + len(arrays["offsets"]) - 2 - 11 * (2 * m + 1)
        one = Saved(net, given, weights, [*range(1, given), *range(readers, readers + m)], [])
        closing = [arrays["sources"][list(one.edges(end + 11 * k + 1))] for k in range(2 * m + 1)]
        return one._replace(seen=[int(s[0]) for s in closing] + [int(closing[0][1]), net.config["finished"]])
    given = 1 + net.config["inputs"] + 1
    components = 2 * (given - 1) * len(arrays["written"])
    readers = [given + 5 * k + place for k in range(components) for place in (3, 4)]
    last = given + len(arrays["offsets"]) - 2
    path = last - 4 - len(arrays["written"]) - 6 * components
    writes = [path + 6 * k + place for k in range(components) for place in (0, 1)]
    parts = np.concatenate([arrays[part].ravel() for part in ("written", "memories", "answers")])
    seen = [*parts.tolist(), *writes, last - 4, last - 2]
    return Saved(net, given, arrays["weights"], [*range(1, given), *readers], seen)


def turn(one: Saved, edge: int) -> np.ndarray:
    """Turns a gate in the arrays as they would be saved; gives the weights as they are then."""
    weights = one.weights.copy()
    weights[edge] = -weights[edge]
    if "signs" in one.net.arrays:
        one.net.put("signs", edge, -one.net.arrays["signs"][edge])
    else:
        kinds = [float(weight) for weight in one.net.config["weights"]]
        if weights[edge] not in kinds:
            one.net.config["weights"] = [*one.net.config["weights"], str(weights[edge])]
            kinds.append(weights[edge])
        one.net.put("kinds", edge, kinds.index(weights[edge]))
        one.net.put("weights", edge, weights[edge])
    return weights


@pytest.mark.parametrize("name", NETS)
def test_every_gate_that_matters_is_the_learners(name: str) -> None:
    one = saved(name)
    honest = one.values(one.weights)
    refused = unseen = 0
    config, arrays = dict(one.net.config), dict(one.net.arrays)
    for edge in one.gates():
        one.net.config, one.net.arrays = dict(config), dict(arrays)
        weights = turn(one, edge)
        try:
            one.net.verdict("emulator")
        except CheckError:
            refused += 1
            continue
        assert np.array_equal(one.values(weights), honest), f"edge {edge}: another function is accepted"
        unseen += 1
    assert refused > unseen
