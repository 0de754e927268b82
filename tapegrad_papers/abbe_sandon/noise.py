"""Definition 7, Lemmas 4 to 6, Theorem 5, Remarks 12 and 13: the network that tolerates noise."""

from decimal import Decimal, localcontext
from itertools import product

import numpy as np

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.circuits import Gate
from tapegrad.errors import Refused
from tapegrad.learners import best_of, dictator, majority, parity
from tapegrad.targets.emulator.constants import AFTER, BEFORE, DIGITS, NOISE, PATH, RATE, READ, power
from tapegrad.targets.emulator.graph import THRESHOLDS
from tapegrad.targets.emulator.paper_nets import NoisyNet
from tapegrad_papers.abbe_sandon import PAPER
from tapegrad_papers.ledger import Outcome, asymptotic, holds, holds_corrected

HALVES = Decimal("-1.5")


def _chain(weights: tuple[Decimal, ...]) -> tuple[Decimal, Decimal, Decimal]:
    """Outputs of v_1 and v_2, and what v_4 gets from v_3, by the formula x^3."""
    v1 = weights[0] ** 3
    v2 = (weights[1] * v1) ** 3
    return v1, v2, weights[3] * (weights[2] * v2) ** 3


def _same(a: Decimal, b: Decimal) -> bool:
    return abs(a / b - 1) < Decimal(10) ** (10 - DIGITS)


@PAPER.claim("Definition 7", "The memory component M', written once")
def definition_7(long: bool) -> Outcome:
    with localcontext(prec=DIGITS):
        checks = {
            "weights 3^(-t/2)/4, 128, -2^-81 3^-9 and -2^-41 3^-9": all(
                _same(PATH[t], Decimal(3) ** (Decimal(-t) / 2) / 4) for t in range(5)
            )
            and READ == 128
            and _same(BEFORE, -(Decimal(2) ** -81) * Decimal(3) ** -9)
            and _same(AFTER, -(Decimal(2) ** -41) * Decimal(3) ** -9)
        }
        for name, factor, v2, control in (
            ("before", 1, -24, BEFORE),
            ("doubled", 2, -12, AFTER),
            ("times -2", -2, -12, AFTER),
        ):
            found = _chain(tuple(factor * w for w in PATH))
            checks[f"{name}: v_2 gives 2^{v2} 3^(-3/2)"] = _same(found[1], power(v2, HALVES))
            checks[f"{name}: a control of 2 closes v_4"] = _same(found[2], -2 * control)
            checks[f"{name}: v_r is 2 with the sign of v_1"] = abs(READ * found[0]) >= Decimal("1.5")
    return holds(
        checks,
        stated="v_2 gives about 2^-24 3^(-3/2), or 2^-12 3^(-3/2) once written",
        measured=f"all of it to {DIGITS - 10} digits",
    )


@PAPER.claim("Lemma 4", "Noisy SGD writes the component once, within the stated ranges")
def lemma_4(long: bool) -> Outcome:
    learner, noise = majority(1, 3), float(NOISE["decimal"])
    net = NoisyNet.of(learner, 3, "decimal", noise)
    in_range = label_kept = doubled = still = True
    output_off = Decimal(0)
    with localcontext(prec=DIGITS):
        before, after = (power(-25, HALVES), power(-23, HALVES)), (power(-13, HALVES), power(-11, HALVES))
        for label in (0, 1):
            carry = net.step(net.start(learner.start([[1]], [label], 1, False)))
            output_off = max(output_off, abs(Decimal(carry.output) - Decimal("0.5")))
            factor = 2 if label else -2
            edges = [e for e, weight in enumerate(net.weights) if weight == PATH[0]]
            values = net._values(carry.weights, np.ones(3, np.int8))
            changed = 0
            for component, edge in enumerate(edges):
                v1 = net.graph.inputs + 5 * component
                v2, vr = values[v1 + 1], values[v1 + 2]
                ratio = carry.weights[edge] / PATH[0]
                written = abs(ratio - 1) > Decimal("0.5")
                changed += written
                low, high = after if written else before
                in_range &= low < v2 < high
                label_kept &= vr == (-2 if written and not label else 2)
                doubled &= abs(ratio - (factor if written else 1)) < Decimal(10) ** -40
            still &= changed == 2  # the bit of x and the random bit, one component each
        contribution = power(-80, -9) ** 3 * PATH[4]
    checks = {
        "v_2 within [2^-25, 2^-23] 3^(-3/2), or [2^-13, 2^-11] 3^(-3/2) once written": in_range,
        "v_r is -2 where it was written with label -1, and 2 elsewhere": label_kept,
        "weights double, or are multiplied by -2, up to 10^-40": doubled,
        "only the components of the present sample are written": still,
        "written, the path gives 2^-242 3^-29 to the output": _same(contribution, power(-242, -29)),
        "the output is 1/2 meanwhile": output_off < Decimal("1e-12"),
    }
    return holds(
        checks,
        stated="with noise of 2^-134 3^-11 in all on each edge: as intended, within the ranges given",
        measured=f"both labels, noise {noise:.1e} on every weight, {DIGITS} digits",
        note="The bound is far from tight: five samples still work with 10^4 times as much noise (the "
        "tests), and double precision needs a wider dead zone.",
        noise=noise,
    )


def _least_input(kind: Gate, noise: float) -> float:
    """The total input nearest to 0 of a gate's vertex, over all inputs and all signs of the noise."""
    weights = [w for w in THRESHOLDS[kind] if w]
    constant = THRESHOLDS[kind][2] != 0
    least = np.inf
    for values in product((-2, 2), repeat=len(weights) - constant):
        sources = [*values, *([1] if constant else [])]
        wanted = np.sign(np.dot(weights, sources))
        for signs in product((-1, 1), repeat=len(weights)):
            disturbed = [w + s * noise for w, s in zip(weights, signs, strict=True)]
            least = min(least, wanted * float(np.dot(disturbed, sources)))
    return least


@PAPER.claim("Lemma 5", "The computation component tolerates noise of 1/12 on every edge")
def lemma_5(long: bool) -> Outcome:
    gates = (Gate.NOT, Gate.AND, Gate.OR)
    least = {gate.name: _least_input(gate, 1 / 12) for gate in gates}
    louder = min(_least_input(gate, 1 / 3) for gate in gates)
    low, high = 0.2, 0.7
    reads = [4 / (high - low) * y - 2 * (high + low) / (high - low) for y in (low - 0.1, low, high, high + 1)]
    checks = {
        "with noise 1/12 of any sign, total inputs of NOT, AND and OR stay at least 3/2 in size": min(
            least.values()
        )
        >= 1.5,
        "with four times as much they do not": louder < 1.5,
        "the vertex of an input is at most -2 below y0 and at least 2 above y1": max(reads[:2]) <= -2 + 1e-9
        and min(reads[2:]) >= 2 - 1e-9,
        "each of the 24 values that the network of 12 components reads has a vertex": _reading_vertices()
        == 24,
    }
    return holds_corrected(
        checks,
        stated="at most b new vertices; derivatives 0 and outputs right if the noise on an edge is below "
        "1/12 in sum",
        measured=f"least total inputs: {', '.join(f'{k} {v:.3f}' for k, v in least.items())} (flat from 1.5)",
        correction="The proof adds a vertex for each input besides one for each gate: at most b + m new "
        "vertices.",
        least=least,
    )


def _reading_vertices() -> int:
    """Vertices of the noise-tolerant network that read an input or a component, one each."""
    net = NoisyNet.of(majority(1, 3), 3, "decimal")
    with localcontext(prec=DIGITS):
        low, high = power(-21, HALVES), power(-15, HALVES)
        gain = 4 / (high - low)
        return sum(1 for weight in net.weights if _same(weight, gain))


CASE = ([[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0]], [1, 1, 0, 0, 1, 1])


@PAPER.claim("Lemma 6", "A net that memorises t samples by noisy SGD and computes any function of them")
def lemma_6(long: bool) -> Outcome:
    noise = float(NOISE["decimal"])
    compiled = compile(
        parity(2), "emulator", memory="noise-tolerant", samples=3, arithmetic="decimal", noise=noise
    )
    report = verify(compiled, [(*CASE, 1, False)])
    carry = compiled.start(*CASE, 1, False)
    off_half, off_answer = 0.0, 0.0
    for t, y in enumerate(CASE[1]):
        carry = compiled.net.step(carry)
        if t < 3:
            off_half = max(off_half, abs(carry.output - 0.5))
        else:
            off_answer = max(off_answer, abs(carry.output - (2 * y - 1)))
    with localcontext(prec=DIGITS):
        from_n = 2**67 * 3**6
        enough = Decimal(1) / Decimal(from_n) ** 2 <= power(-134, -11)
        limit = (power(-123, -12) - 2 * power(-134, -11)) * power(201, 27)
    checks = {
        "memory and answers are the learner's after every step": report.agreed,
        "the output is 1/2 while it memorises": off_half < 1e-12,
        "then within 1/2 of the answer: 1 - (49/50)^3": off_answer < 0.5
        and abs(off_answer - (1 - 0.98**3)) < 1e-9,
        "noise of 1/(n^2 t) is within Lemma 4 from n = 2^67 3^6 on, as printed": enough,
        "the printed 2^-201 3^-27 n + 2 epsilon <= epsilon'/3 ends at some n below 2^79 3^15": Decimal(from_n)
        < limit
        < power(79, 15),
    }
    return asymptotic(
        checks,
        stated="output within 1/2 of 2h - 1 with noise of 1/(n^2 t) on every weight, for large n",
        measured=f"parity of 2 bits from 3 samples, noise {noise:.1e}: output off by {off_answer:.3f}; as "
        f"printed the argument covers {from_n:.1e} < n < {limit:.1e}",
        instead="Small n with Lemma 4's own noise, since 1/n^2 falls below it only from n = 10^23 on. For "
        "still larger n the contributions of n components must be bounded by the actual noise, 1/n^2, not "
        "by 2^-201 3^-27 each.",
        off=off_answer,
    )


@PAPER.claim("Theorem 5", "Noisy SGD learns as well as any efficient algorithm")
def theorem_5(long: bool) -> Outcome:
    x = np.random.default_rng(1).integers(0, 2, (14, 2))
    learner, y = dictator(2, 2), x[:, 1]
    states = list(learner.run(learner.start(x, y, 1, False)))
    needed = next(t for t, s in enumerate(states) if learner.respond(s.memory, [0, 0], 0, 0).finished)
    noise = float(NOISE["double"])
    compiled = compile(learner, "emulator", memory="noise-tolerant", samples=needed, noise=noise)
    report = verify(compiled, [(x, y, 1, False)])
    carry, right = compiled.start(x, y, 1, False), 0
    for t in range(len(x)):
        carry = compiled.net.step(carry)
        right += t >= needed and (carry.output > 0) == bool(y[t])
    own = sum(s.answer == y[t] for t, s in enumerate(states[1:]) if t >= needed)
    broken = compile(learner, "emulator", memory="noise-tolerant", samples=needed, noise=1e-3)
    checks = {
        "a randomised learner, in double precision, with noise: its memory after every step": report.agreed,
        "as many right answers as the learner itself": right == own > 0,
        "with noise of 10^-3 it does not work": not verify(broken, [(x, y, 1, False)]).agreed,
    }
    return asymptotic(
        checks,
        stated="accuracy alpha - o(1) with noise of 1/(n^2 t) on every weight and t_n samples",
        measured=f"dictator of 2 bits from {needed} samples: {right} of {len(x) - needed} later answers "
        f"right, the learner {own}",
        instead=f"One small learner with noise {noise:.1e} in all on each weight.",
        right=right,
    )


@PAPER.claim("Remark 12", "The metaalgorithm with noise; but the number of samples must be known")
def remark_12(long: bool) -> Outcome:
    learner = best_of([majority(1, 2), parity(1)], 2, 2)
    x, y = [[1], [0], [1], [0], [1], [0]], [1, 0, 1, 0, 1, 0]
    compiled = compile(learner, "emulator", memory="noise-tolerant", samples=4, noise=float(NOISE["double"]))
    report = verify(compiled, [(x, y, 1, False)])
    refused = ""
    try:
        compile(learner, "emulator", memory="noise-tolerant")
    except Refused as refusal:
        refused = refusal.what
    carry = compiled.start(x, y, 1, False)
    for _ in x:
        carry = compiled.net.step(carry)
    checks = {
        "the best of two learners, with noise: its memory after every step": report.agreed,
        "and the better one (parity) answers in the end": carry.answer == 0,
        "without a number of samples the network is refused": "fixed number of samples" in refused,
    }
    return holds(
        checks,
        stated="a metaalgorithm can be emulated with noise; there is no easy way without a bound on the "
        "samples",
        measured=f"best of majority and parity from 4 samples; without a number: {refused}",
    )


@PAPER.claim("Remark 13", "No weight ever exceeds the constant 2^242 3^25")
def remark_13(long: bool) -> Outcome:
    compiled = compile(parity(2), "emulator", memory="noise-tolerant", samples=3, arithmetic="decimal")
    carry, largest = compiled.start(*CASE, 1, False), Decimal(0)
    first = max(abs(w) for w in carry.weights)
    with localcontext(prec=DIGITS):
        for _ in CASE[1]:
            carry = compiled.net.step(carry)
            largest = max(largest, *(abs(w) for w in carry.weights))
        bound = power(242, 25)
        change = 24 * RATE
        checks = {
            "24 gamma < 2^242 3^25": change < bound,
            "the largest weight of the run is below it": largest < bound,
            "and far above all weights at the start: the edges of the output controls do move": largest
            > 1000 * first,
            "by at most 24 gamma": largest <= change + 1,
        }
    return holds(
        checks,
        stated="none of the edge weights goes above 2^242 3^25",
        measured=f"largest weight {largest:.2e}, 24 gamma = {change:.2e}, bound {bound:.2e}",
        largest=float(largest),
    )
