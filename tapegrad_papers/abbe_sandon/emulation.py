"""Theorem 4, Remark 10, Corollary 1, Remark 11, section 4.3: learners of all kinds, emulated by plain SGD."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.learners import FunctionLearner, best_of, conjunction, dictator, doubling, majority, parity
from tapegrad.targets.emulator.constants import ExactConstants
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tapegrad.targets.emulator.target import practical_size
from tapegrad_papers.abbe_sandon import PAPER
from tapegrad_papers.abbe_sandon.cross_predictability import all_bits
from tapegrad_papers.abbe_sandon.memory import counter
from tapegrad_papers.abbe_sandon.rivals import practical
from tapegrad_papers.ledger import Outcome, asymptotic, holds

Concept = Callable[[np.ndarray], np.ndarray]


def _accuracy(net: PracticalNet, carry: EmulatorCarry, concept: Concept) -> float:
    """The share of all inputs on which the trained network is right."""
    every = all_bits(net.inputs)
    return float(np.mean((net.outputs(carry, every) > 0) == concept(every).astype(bool)))


def _until_done(learner: FunctionLearner, x: np.ndarray, y: np.ndarray, seed: int) -> tuple[int, int, float]:
    """Samples used, samples learned from (where the network was wrong), and accuracy on all inputs."""
    net = practical(learner)
    carry, learned = net.start(learner.start(x, y, seed)), 0
    while carry.answer is None and not net.done(carry):
        carry = net.advance(carry, 1, "fast")
        learned += carry.answer is None and (carry.output > 0) != bool(y[carry.steps - 1])
    return carry.steps, learned, _accuracy(net, carry, _concept)


def _concept(x: np.ndarray) -> np.ndarray:
    return (x[:, 0] ^ x[:, -1]).astype(bool)


@PAPER.claim("Theorem 4", "Trained on samples with two random bits, the net learns as well as the algorithm")
def theorem_4(long: bool) -> Outcome:
    runs, n, used, learned, accuracy = 40 if long else 15, 8, [], [], []
    for seed in range(runs):
        x = np.random.default_rng(seed).integers(0, 2, (120, n))
        found = _until_done(parity(n), x, _concept(x).astype(int), seed)
        used.append(found[0])
        learned.append(found[1])
        accuracy.append(found[2])
    learner, count = counter(12, inputs=3), 4000
    x = np.random.default_rng(1).integers(0, 2, (count, 3))
    y = (x.sum(axis=1) > 1).astype(int)
    net = practical(learner)
    carry, kept = net.start(learner.start(x, y, 2)), []
    for t in range(count):
        carry = net.advance(carry, 1, "fast")
        if (carry.output > 0) != bool(y[t]):
            kept.append(int(x[t] @ [1, 2, 4]))
    expected = len(kept) / 8
    spread = np.abs(np.bincount(kept, minlength=8) - expected).max() / np.sqrt(expected)
    ratio = sum(used) / sum(learned)
    checks = {
        "the accuracy is that of elimination: right on all inputs": min(accuracy) == 1,
        "about half of the samples are learned from": 1.7 < ratio < 2.4,
        "those learned from are distributed as all are (4 deviations)": spread < 4,
    }
    return asymptotic(
        checks,
        stated="accuracy alpha - o(1) from polynomially many samples; samples learned from have the same "
        "distribution",
        measured=f"parity of {n} bits, {runs} runs: accuracy 1, {ratio:.2f} samples for each one learned "
        f"from; frequencies of the 8 inputs among {len(kept)} learned within {spread:.1f} deviations",
        instead="One n, all inputs; the practical network. (The exact one: Lemma 3.)",
        ratio=ratio,
        spread=float(spread),
    )


@PAPER.claim("Remark 10", "The net has theta(m) vertices and gamma is theta(m^(362/364))")
def remark_10(long: bool) -> Outcome:
    sizes = (4, 8, 16, 32, 64) if long else (4, 8, 16, 32)
    per_gate = [practical_size(parity(n)).vertices / parity(n).circuit.size for n in sizes]
    rates = [ExactConstants.of(Fraction(3), 10**80 * k).rate for k in (1, 2)]
    exponent = rates[0].exponents[2]
    learner = dictator(3, 3)
    x = np.random.default_rng(3).integers(0, 2, (200, 3))
    report = verify(compile(learner, "emulator"), [(x, x[:, 1], 5)], engine="fast")
    checks = {
        "vertices for each gate stay within a constant range": max(per_gate) < 2 * min(per_gate),
        "gamma is m0^(362/364) times a constant, exactly": exponent == Fraction(362, 364)
        and rates[0].exponents == rates[1].exponents,
        "one random bit serves randomised algorithms (dictator)": report.agreed,
    }
    return asymptotic(
        checks,
        stated="theta(m) vertices, gamma = theta(m^(362/364)), about twice as many samples",
        measured=f"parity of {list(sizes)} bits: {', '.join(f'{v:.2f}' for v in per_gate)} vertices for "
        f"each gate; exponent of m0 in gamma {exponent}; for the samples see Theorem 4",
        instead="Vertices of the practical network. In the exact one m0 >= 10^79 dominates, and choosing "
        "which spare components flip takes m^2 gates here.",
        vertices_per_gate=per_gate,
    )


@PAPER.claim("Corollary 1", "One net learns whatever any of a list of algorithms learns: the metaalgorithm")
def corollary_1(long: bool) -> Outcome:
    members = [majority(3, 8), parity(3), conjunction(3, 10)]
    learner = best_of(members, 14, 10)
    concepts = {
        "parity": lambda x: x[:, 0] ^ x[:, 2],
        "conjunction": lambda x: x[:, 0] & x[:, 1],
        "constant": lambda x: np.ones(len(x), int),
    }
    x = np.random.default_rng(4).integers(0, 2, (90, 3))

    def accuracies(member: FunctionLearner) -> dict[str, float]:
        net, found = practical(member), {}
        for name, concept in concepts.items():
            carry = net.advance(net.start(member.start(x, concept(x), 2)), len(x), "fast")
            found[name] = _accuracy(net, carry, concept)
        return found

    reports = [verify(compile(learner, "emulator"), [(x, c(x), 2)], engine="fast") for c in concepts.values()]
    accuracy = accuracies(learner)
    worst_alone = [min(accuracies(member).values()) for member in members]
    checks = {
        "the network is the metaalgorithm at every step": all(report.agreed for report in reports),
        "it learns all three kinds of functions": min(accuracy.values()) == 1,
        "no member alone does": max(worst_alone) < 1,
    }
    return asymptotic(
        checks,
        stated="a net that learns every efficiently learnable distribution, for the right c",
        measured=f"majority, parity and conjunction, 14 samples to train and 10 to compare: accuracies "
        f"{accuracy}; the members alone, at worst: {worst_alone}",
        instead="A list of three learners in the place of all programs of log log n bits.",
        accuracy=list(accuracy.values()),
    )


@PAPER.claim(
    "Remark 11", "Without knowing how many samples are needed: doubling, and learning ever more rarely"
)
def remark_11(long: bool) -> Outcome:
    base = parity(3)
    learner, count = doubling(base, 4), 1500 if long else 600
    x = np.random.default_rng(6).integers(0, 2, (count, 3))
    y = x[:, 0] ^ x[:, 2] ^ (np.random.default_rng(7).random(count) < 0.3)  # noise: mistakes go on for ever
    report = verify(compile(learner, "emulator"), [(x[:60], (x[:, 0] ^ x[:, 2])[:60], 3)], engine="fast")
    net = practical(learner)
    carry, mistakes, learned_at = net.start(learner.start(x, y, 3)), 0, []
    for t in range(count):
        learning = not _finished(learner, net.decode(carry).memory)
        carry = net.advance(carry, 1, "fast")
        if (carry.output > 0) != bool(y[t]):
            if learning:
                learned_at.append(mistakes)
            mistakes += 1
    clean = net.advance(net.start(learner.start(x, x[:, 0] ^ x[:, 2], 3)), count, "fast")
    accuracy = _accuracy(net, clean, _concept)
    checks = {
        "the network is the learner at every step": report.agreed,
        "it learns after 0, 1, 4, 9, ... mistakes": learned_at == [k * k for k in range(len(learned_at))],
        "and often enough to show it": len(learned_at) > 5,
        "it has learned the function": accuracy == 1,
    }
    return asymptotic(
        checks,
        stated="learn whenever the number of mistakes is a perfect square; train on 1, 2, 4, ... samples",
        measured=f"learned after {learned_at[:6]} ... mistakes ({len(learned_at)} times in {mistakes}); "
        f"without noise accuracy {accuracy}",
        instead="The scheme around one learner, elimination; the polynomial bounds are not measured.",
        learned=len(learned_at),
        mistakes=mistakes,
    )


def _finished(learner: FunctionLearner, memory: tuple[int, ...]) -> bool:
    return bool(learner.respond(memory, [0] * learner.inputs, 0, 0).finished)


@PAPER.claim("Section 4.3", "A more reasonable network: small weights that change, large ones behind them")
def section_4_3(long: bool) -> Outcome:
    steps = 100_000 if long else 20_000
    y = np.random.default_rng(0).integers(0, 2, steps)
    counted, flips = [], 0
    for precision in ("float64", "float32"):
        learner = counter(16)
        net = practical(learner, precision=precision)
        first = learner.start(np.zeros((steps, 1)), y, 2)
        carry = net.advance(net.start(first), steps, "fast")
        flips = int((first.samples.guess != y).sum())
        counted.append(sum(bit << i for i, bit in enumerate(net.decode(carry).memory)) == flips)
    x = np.random.default_rng(1).integers(0, 2, (40, 4))
    report = verify(compile(parity(4), "emulator"), [(x, x[:, 0] ^ x[:, 1], 1)])
    net = practical(parity(4))
    after = net.advance(net.start(parity(4).start(x, x[:, 0] ^ x[:, 1], 1)), 40, "fast")
    changed = set(np.flatnonzero(after.weights != net.weights).tolist())
    constants = net.constants
    checks = {
        "hard tanh, one rate, every weight trained by autodiff: memory right at every step": report.agreed,
        "only weights that are memory have changed": len(changed) > 0 and changed <= set(net.cells.tolist()),
        "they start tiny and have large weights behind them": constants.w0 < 1e-6 < 1e6 < constants.gain,
        f"a counter flips {flips:,} times without an error, in float64 and float32": all(counted),
    }
    return holds(
        checks,
        stated="weights that are to change start very low, with high weights after them",
        measured=f"w0 = {constants.w0:.2g}, gain {constants.gain:.2g}, rate {constants.rate:.2g}; {steps:,} "
        "steps",
        note="The first idea of the section. Memory that settles slowly from a local maximum, steps without "
        "learning and an output that takes over gradually are not built.",
        w0=constants.w0,
        rate=constants.rate,
    )
