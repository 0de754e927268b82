"""Section 3 and appendix B: circuits as ReLU networks, layer by layer."""

from fractions import Fraction

import numpy as np

from tapegrad.circuits.model import Gate
from tapegrad.targets.relu import corrections, gadgets
from tapegrad.verify import verify
from tapegrad_papers.claims.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.claims.wei.circuits import (
    adder,
    compiled_relu,
    dense,
    every_pattern,
    gate_layer,
    layered_of,
)
from tapegrad_papers.claims.wei.paper import PAPER


@PAPER.claim("Proposition B.2", "AND and OR as ReLU networks")
def proposition_b_2(long: bool) -> Outcome:
    right = {}
    for kind, wanted in ((Gate.AND, lambda a, b: a & b), (Gate.OR, lambda a, b: a | b)):
        gadget = gadgets.GADGETS[kind]
        right[kind.name] = sum(_gadget(gadget, a, b) == wanted(a, b) for a in (0, 1) for b in (0, 1))
    one_unit = all(len(gadgets.GADGETS[kind].hidden) == 1 for kind in (Gate.AND, Gate.OR))
    rows = (
        gadgets.GADGETS[Gate.AND].hidden[0],
        gadgets.GADGETS[Gate.OR].hidden[0],
        gadgets.GADGETS[Gate.OR].out,
    )
    checks = {
        "right on all four inputs": right == {"AND": 4, "OR": 4},
        "one hidden unit each": one_unit,
        "with the printed weights": rows == ((1, 1, -1), (-1, -1, 1), (-1, 0, 1)),
    }
    return holds(
        checks,
        stated="AND = relu(x1 + x2 - 1), OR = 1 - relu(1 - x1 - x2)",
        measured=f"{sum(right.values())} of 8 values right, on the weights that nets are built from",
        right=right,
    )


def _gadget(gadget: gadgets.Gadget, a: int, b: int) -> float:
    hidden = [max(0.0, row.first * a + row.second * b + row.bias) for row in gadget.hidden]
    first, second = [*hidden, 0.0, 0.0][:2]
    return max(0.0, gadget.out.first * first + gadget.out.second * second + gadget.out.bias)


@PAPER.claim("Lemma B.1", "A circuit layer is two ReLU layers with 1-norm proportional to its gates")
def lemma_b_1(long: bool) -> Outcome:
    random = np.random.default_rng(0)
    exact, layers, largest, diagonal = True, 0, 0.0, True
    for bits in (1, 2, 3, 6) if long else (1, 2, 3):
        compiled, net = compiled_relu(adder(bits), correction="none")
        circuit = layered_of(compiled)
        for number in range(1, net.circuit_layers + 1):
            (W1, b1), (W2, b2) = dense(net, 2 * number - 2), dense(net, 2 * number - 1)
            h = random.integers(2, size=(64, W1.shape[1]))  # any bits, not only those that occur
            found = np.maximum(np.maximum(h @ W1.T + b1, 0) @ W2.T + b2, 0)
            exact &= np.array_equal(found, gate_layer(circuit, number, h))
            norm = sum(np.abs(part).sum() for part in (W1, b1, W2, b2))
            largest = max(largest, float(norm) / len(b2))
            diagonal &= bool(set(np.unique(W2)) <= {-1, 0, 1} and (np.count_nonzero(W2, axis=1) == 1).all())
            layers += 1
    checks = {
        "f(h) = G_i(h) on random bits of every layer": exact,
        "1-norm at most 5 for each gate": largest <= 5,
        "W_2 is diagonal with entries -1, 0, 1": diagonal,
    }
    return holds(
        checks,
        stated="f(h, theta) = G_i(h), |theta|_1 = O(r_i)",
        measured=f"{layers} layers of adders, exact; 1-norm at most {largest:.2f} r_i",
        layers=layers,
        norm_over_gates=largest,
    )


@PAPER.claim("Lemma 3.2", "The layers one after the other compute the circuit, at every layer")
def lemma_3_2(long: bool) -> Outcome:
    agreed, two_each, right, patterns = True, True, True, 0
    for bits in (1, 2, 3, 5) if long else (1, 2, 3):
        compiled, net = compiled_relu(adder(bits), correction="none")
        report = verify(compiled)
        agreed &= report.agreed and report.complete
        two_each &= net.depth == 2 * layered_of(compiled).depth
        inputs = every_pattern(2 * bits)
        outputs = (net.outputs(inputs) + 1) / 2
        weights = 2 ** np.arange(bits + 1)
        sums = inputs[:, :bits] @ weights[:bits] + inputs[:, bits:] @ weights[:bits]
        right &= np.array_equal(outputs @ weights, sums)
        patterns += len(inputs)
    checks = {
        "f_i o ... o f_1 = g_i o ... o g_1 after every layer": agreed,
        "the output is a + b, as Python computes it": right,
        "two ReLU layers for each circuit layer": two_each,
    }
    return holds(
        checks,
        stated="f_i o ... o f_1 (x) = g_i o ... o g_1 (x) for all i and x",
        measured=f"adders, all {patterns} inputs, every layer",
        patterns=patterns,
    )


@PAPER.claim("Proposition 3.4", "Rounding is the difference of two ReLUs")
def proposition_3_4(long: bool) -> Outcome:
    third = Fraction(1, 3)

    def built(z: Fraction) -> Fraction:
        return 3 * max(Fraction(0), z - third) - 3 * max(Fraction(0), z - 2 * third)

    def stated(z: Fraction) -> Fraction:
        return Fraction(0) if z < third else 3 * z - 1 if z < 2 * third else Fraction(1)

    grid = [Fraction(k, 720) for k in range(-1440, 1441)]
    exact = all(built(z) == stated(z) for z in grid)
    chosen = corrections.CORRECTIONS["thirds"]
    assert chosen is not None
    cuts, difference = chosen.rows("float64")
    worst = 0.0
    for z in grid:
        cut = [max(0.0, row.first * float(z) + row.bias) for row in cuts]
        found = max(0.0, difference.first * cut[0] + difference.second * cut[1] + difference.bias)
        worst = max(worst, abs(found - float(stated(z))))
    radius = all(stated(bit + d) == bit for bit in (0, 1) for d in grid if abs(d) < third)
    checks = {
        "3 relu(z - 1/3) - 3 relu(z - 2/3) is the stated function, in exact arithmetic": exact,
        "so are the nets' own units, up to rounding": worst < 1e-14,
        "everything within 1/3 of a bit goes to that bit": radius,
    }
    return holds_corrected(
        checks,
        stated="0 below 1/3, 3x - 1 up to 2/3, 1 above",
        measured=f"{len(grid):,} rational points exact; in double precision off by {worst:.1g}",
        correction="The middle case is 3 z - 1; the print says 3 x - 1.",
        rounding=worst,
    )
