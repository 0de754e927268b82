"""Section 3 and appendix B: circuits as ReLU networks, layer by layer; their margins with and without
corrections, and the samples that these save."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled, compile
from tapegrad._verify import verify
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.layered import LayeredCircuit
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.targets.relu import ReluNet, build
from tapegrad_papers.ledger import Outcome, holds, holds_corrected, holds_in_part
from tapegrad_papers.wei import PAPER
from tapegrad_papers.wei.attack import attack, perturbation_test
from tapegrad_papers.wei.chains import relu_chain
from tapegrad_papers.wei.margins import layerwise_bound, margin_constants, uncorrected_log10
from tapegrad_papers.wei.problems import relu_problem
from tapegrad_papers.wei.samples import rademacher_bound, relu_norm, relu_parameters, width_rows
from tapegrad_papers.wei.samples import theorem_3_1 as theorem_3_1_samples
from tapegrad_papers.wei.tight import claim_3_5 as chain_margins


def adder(bits: int) -> Circuit:
    """a + b of AND, OR and NOT: the sum bit is (x or y) and not (x and y), twice."""
    make = CircuitBuilder()
    a = [make.input(f"a{i}") for i in range(bits)]
    b = [make.input(f"b{i}") for i in range(bits)]

    def exclusive(x, y):
        return make.and_(make.or_(x, y), make.not_(make.and_(x, y)))

    carry = None
    for i in range(bits):
        half, both = exclusive(a[i], b[i]), make.and_(a[i], b[i])
        make.output(f"s{i}", half if carry is None else exclusive(half, carry))
        carry = both if carry is None else make.or_(both, make.and_(half, carry))
    assert carry is not None
    make.output(f"s{bits}", carry)
    return make.circuit(f"{bits}-bit adder")


def every_pattern(bits: int) -> NDArray[np.int64]:
    """All inputs, one row each."""
    return np.arange(2**bits)[:, None] >> np.arange(bits) & 1


def compiled_relu(circuit: Circuit, correction: str = "thirds", **options: int) -> tuple[Compiled, ReluNet]:
    """The network of a circuit, in double precision."""
    compiled = compile(circuit, "relu", form="paper", correction=correction, dtype="float64", **options)
    assert isinstance(compiled.net, ReluNet)
    return compiled, compiled.net


def layered_of(compiled: Compiled) -> LayeredCircuit:
    """The layered circuit that the network was built from."""
    assert isinstance(compiled.lowered, LayeredCircuit)
    return compiled.lowered


def gate_layer(circuit: LayeredCircuit, number: int, bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """g_i on any bits of the layer before: bit 2a + b of a gate's kind is its value at (a, b)."""
    layer = circuit.layer(number)
    left, right = bits[:, layer.left], bits[:, layer.right]
    return layer.kinds.astype(int) >> (2 * left + right) & 1


def dense(net: ReluNet, layer: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """W_i and b_i."""
    weight, bias = net.dense_layer(layer)
    return np.asarray(weight, float), np.asarray(bias, float)


@PAPER.claim("Proposition B.2", "AND and OR as ReLU networks")
def proposition_b_2(long: bool) -> Outcome:
    right = {}
    for kind, wanted in ((Gate.AND, lambda a, b: a & b), (Gate.OR, lambda a, b: a | b)):
        gadget = build.GADGETS[kind]
        right[kind.name] = sum(_gadget(gadget, a, b) == wanted(a, b) for a in (0, 1) for b in (0, 1))
    one_unit = all(len(build.GADGETS[kind].hidden) == 1 for kind in (Gate.AND, Gate.OR))
    rows = (
        build.GADGETS[Gate.AND].hidden[0],
        build.GADGETS[Gate.OR].hidden[0],
        build.GADGETS[Gate.OR].out,
    )
    checks = {
        "right on all four inputs": right == {"AND": 4, "OR": 4},
        "one hidden unit each": one_unit,
        "with the printed weights": rows == ((1, 1, -1), (-1, -1, 1), (-1, 0, 1)),
    }
    return holds(
        checks,
        stated="AND = relu(x1 + x2 - 1), OR = 1 - relu(1 - x1 - x2)",
        measured=f"{sum(right.values())} of {2 * 2**2} values right, on the weights that nets are built from",
        right=right,
    )


def _gadget(gadget: build.Gadget, a: int, b: int) -> float:
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
        "the -1 of NOT is in the column of its input; on the diagonal, as printed, it negates another": (
            _row_of_not()
        ),
    }
    return holds(
        checks,
        stated="f(h, theta) = G_i(h), |theta|_1 = O(r_i)",
        measured=f"{layers} layers of adders, exact; 1-norm at most {largest:.2f} r_i",
        note="The proof puts the -1 of NOT on the diagonal of W_1; it belongs in the column of its input.",
        layers=layers,
        norm_over_gates=largest,
    )


def _row_of_not() -> bool:
    """Whether the network of (not b, a) has the row (0, -1) first in W_1, where the diagonal has (-1, 0)."""
    make = CircuitBuilder()
    a, b = make.input("a"), make.input("b")
    make.output("not b", make.not_(b))
    make.output("a", a)
    _, net = compiled_relu(make.circuit("not b"), correction="none")
    (W1, b1), every = dense(net, 0), every_pattern(2)
    printed = 1 - every[:, 0]
    ours = np.maximum(every @ W1[0] + b1[0], 0)
    return bool((W1[0] == (0, -1)).all() and (ours == 1 - every[:, 1]).all() and (printed != ours).any())


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
    chosen = build.CORRECTIONS["thirds"]
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


def _one_gate(kind: str) -> Circuit:
    make = CircuitBuilder()
    a, b = make.input("a"), make.input("b")
    make.output("y", make.and_(a, b) if kind == "and" else make.or_(a, b))
    return make.circuit(kind)


@PAPER.claim("Lemma 3.3", "With corrections between the layers the all-layer margin is at least 1 / poly(s)")
def lemma_3_3(long: bool) -> Outcome:
    rows = []
    for bits in (1, 2, 4, 8, 16) if long else (1, 2, 4, 8):
        compiled, net = compiled_relu(adder(bits))
        bare = compiled_relu(adder(bits), correction="none")[1]
        rows.append(
            {
                "gates": layered_of(compiled).size,
                "layers": net.circuit_layers,
                "margin": margin_constants(relu_chain(net)).bound,
                "layerwise": layerwise_bound(relu_chain(net)),
                "uncorrected_log10": uncorrected_log10(relu_chain(bare)),
            }
        )
    first, last = rows[0], rows[-1]
    power = -math.log(last["margin"] / first["margin"]) / math.log(last["gates"] / first["gates"])
    decay = (last["uncorrected_log10"] - first["uncorrected_log10"]) / (last["layers"] - first["layers"])
    deep = compiled_relu(adder(1), depth=4 * 40)[1]
    deep_margin = margin_constants(relu_chain(deep)).bound
    brackets = {}
    for name, circuit in (("AND", _one_gate("and")), ("OR", _one_gate("or")), ("adder", adder(1))):
        net = compiled_relu(circuit)[1]
        problem = relu_problem(net, every_pattern(2))
        lower, upper = layerwise_bound(relu_chain(net)), attack(problem).radius
        noise = perturbation_test(problem, 0.999 * lower, trials=20)
        brackets[name] = (lower, upper, noise.changed)
    checks = {
        "the margin falls no faster than 1 / s": 0 <= power <= 1,
        "40 layers have the margin of a few": math.isclose(deep_margin, first["margin"], rel_tol=1e-9),
        "layer by layer, the argument gives more": all(r["margin"] <= r["layerwise"] for r in rows),
        "without corrections what is proved falls by a factor for each layer": decay < math.log10(1 / 1.5),
        "one gate: what is proved and what an attack needs are within 1.2; for the adder within 1.95": all(
            1 <= upper / lower < (1.95 if name == "adder" else 1.2)
            for name, (lower, upper, _) in brackets.items()
        ),
        "noise of the proved norm, random or guided, changes no output bit": all(
            changed == 0 for _, _, changed in brackets.values()
        ),
    }
    return holds_in_part(
        checks,
        stated="rho >= 1 / poly(s) for all x",
        measured="; ".join(f"s = {r['gates']}: rho >= {r['margin']:.2g}" for r in rows)
        + f"; like s^-{power:.2f}; without corrections 10^{decay:.2f} for each layer; "
        "layer by layer, and by attack: "
        + ", ".join(
            f"{name} {lower:.4f} <= rho <= {upper:.4f}" for name, (lower, upper, _) in brackets.items()
        ),
        part="At the sizes that were run; the unnamed constants and the limit are not shown. "
        "Theorem D.6 on adders of growing size, each with its own constants; the exponent is fitted. "
        "The "
        "factor is right where it can be seen: on small nets, by the same argument with each layer's own "
        "constants.",
        rows=rows,
        exponent=power,
        uncorrected_decades_per_layer=decay,
        brackets={name: list(values) for name, values in brackets.items()},
        margin_of_40_layers=deep_margin,
    )


@PAPER.claim("Claim 3.5", "Rounding between the weights of a chain keeps its margin above 1/3")
def claim_3_5(long: bool) -> Outcome:
    depths = (1, 2, 4, 8, 16, 32, 64) if long else (1, 2, 4, 8)
    rows = chain_margins(depths)
    same = all(_chain(depth, rounding) == 0.5 for depth in depths for rounding in (False, True))
    falls = [row.without_rounding * math.sqrt(row.depth) for row in rows]
    checks = {
        "both chains give 1/2 at weights 1": same,
        "with rounding the margin is at least 1/3 at every depth": min(r.with_rounding for r in rows)
        >= 1 / 3,
        "no attack does better than the dynamic programme": all(
            r.with_rounding_attacked >= r.with_rounding - 1e-3 for r in rows
        ),
        "nor better than the closed form without rounding": all(
            r.without_rounding_attacked >= r.without_rounding - 1e-6 for r in rows
        ),
        "without rounding it is at most 3 / sqrt(d), the paper's change": max(falls) <= 3,
        "and attacks come close to it": all(
            r.without_rounding_attacked <= 1.1 * r.without_rounding for r in rows
        ),
    }
    return holds(
        checks,
        stated="rho >= 1/3 with rounding; rho <~ 1 / sqrt(d) without",
        measured="; ".join(f"d = {r.depth}: {r.with_rounding:.3f} / {r.without_rounding:.3f}" for r in rows)
        + f" (without: tends to ln 2 / sqrt(d) = {math.log(2):.3f} / sqrt(d))",
        rows=[row.to_json() for row in rows],
    )


def _chain(depth: int, rounding: bool) -> float:
    """The chain at weights 1, written out."""
    value = 1.0
    for _ in range(depth):
        value = float(np.clip(3 * value - 1, 0, 1)) if rounding else value
    return value - 0.5


GATE_NORMS = {Gate.AND: 4, Gate.OR: 5, Gate.NAND: 5, Gate.NOR: 4, Gate.NOT: 3, Gate.ID: 2}
"""Absolute values of all weights and biases, counted: `relu(relu(x1 + x2 - 1))` has 4, `relu(1 - relu(1 -
x1 - x2))` and `relu(1 - relu(x1 + x2 - 1))` 5, `relu(relu(1 - x1 - x2))` 4, `relu(relu(1 - x))` 3,
`relu(relu(x))` 2."""
CORRECTION_NORM = 9
"""Of `3 relu(z - 1/3) - 3 relu(z - 2/3)`: 1 + 1/3, 1 + 2/3, 3 and 3."""


def counted_norm(circuit: LayeredCircuit, outputs: int) -> float:
    """alpha, counted on the circuit: its gates, a correction for each, and `2 z - 1` for every output."""
    kinds = np.concatenate([circuit.layer(number).kinds for number in range(1, circuit.depth + 1)])
    gates = sum(GATE_NORMS[Gate(kind)] for kind in kinds.tolist())
    return gates + CORRECTION_NORM * len(kinds) + 3 * outputs


@PAPER.claim("Theorem 3.1", "Circuits are learnt with poly(s) samples, however wide the network")
def theorem_3_1(long: bool) -> Outcome:
    rows = []
    for bits in (1, 2, 4, 8):
        compiled, net = compiled_relu(adder(bits))
        circuit = layered_of(compiled)
        rows.append(
            {
                "size": circuit.size,
                "norm_over_size": relu_norm(net) / circuit.size,
                "norm_over_count": relu_norm(net) / counted_norm(circuit, len(net.output_names)),
                "depth_over_layers": net.depth / circuit.depth,
                "width_over_layer": net.width / int(np.diff(circuit.bounds).max()),
            }
        )
    net = compiled_relu(adder(2))[1]
    padded = compiled_relu(adder(2), width=2 * net.width)[1]
    written = sum(part.size for number in range(padded.depth + 1) for part in dense(padded, number))
    decades = 1 if long else 3
    powers = range(3, 13, decades)
    widths = width_rows(net, powers)
    per_decade = max(row.ratio for row in widths[1:]) ** (1 / decades)
    growth = widths[-1].samples / widths[0].samples
    given, gamma = theorem_3_1_samples(net), margin_constants(relu_chain(net)).bound
    n = given.samples
    back = 4 * rademacher_bound(n, relu_norm(net), gamma, relu_parameters(net, net.width)) + 2 * math.sqrt(
        math.log(200) / n
    )
    checks = {
        "alpha is what the gates and corrections of the circuit count up to": all(
            math.isclose(r["norm_over_count"], 1, rel_tol=1e-9) for r in rows
        ),
        "alpha / s stays between constants": max(r["norm_over_size"] for r in rows)
        <= 1.5 * min(r["norm_over_size"] for r in rows),
        "depth is 4 ReLU layers for each circuit layer": all(r["depth_over_layers"] == 4 for r in rows),
        "width is at most twice the widest circuit layer": all(r["width_over_layer"] <= 2 for r in rows),
        "p is the number of entries of a net that is padded and written out": written
        == relu_parameters(net, padded.width),
        "with these alpha, gamma and p the samples make (A.1) and Lemma 2.3 give epsilon": math.isclose(
            back, given.epsilon, rel_tol=1e-9
        ),
        "ten times the width costs at most 1.4 times the samples": per_decade <= 1.4,
        "9 decades of width cost 3 to 5 times the samples, as log p grows": 3 < growth < 5,
    }
    return holds_in_part(
        checks,
        stated="poly(s) O~(log(w d) / epsilon^2) samples, alpha ~ s, d ~ q",
        measured=f"alpha = {rows[0]['norm_over_size']:.1f} to {rows[-1]['norm_over_size']:.1f} s; from width "
        f"10^{powers[0]} to 10^{powers[-1]} the samples grow {growth:.2f} times, to {widths[-1].samples:.2g}",
        part="At the sizes that were run; the unnamed constants and the limit are not shown. "
        "Norm, depth and width of adders against s, q and r; the bound of Lemma 2.3 with the margin "
        "of Theorem D.6, as the width grows by powers of ten. `tapegrad bench margins` learns circuits by "
        "the margin "
        "loss.",
        sizes=rows,
        widths=[row.to_json() for row in widths],
    )
