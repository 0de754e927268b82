"""Theorem 4, Remarks 10 and 11, section 4.3: learners of all kinds, emulated by plain SGD."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.learners import FunctionLearner, dictator, doubling, parity
from tapegrad.targets.emulator.build import build_exact
from tapegrad.targets.emulator.constants import ExactConstants
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tapegrad_papers.abbe_sandon import PAPER, components
from tapegrad_papers.abbe_sandon.cross_predictability import all_bits
from tapegrad_papers.abbe_sandon.memory import changed_by_a_right_answer, counter
from tapegrad_papers.abbe_sandon.rivals import practical
from tapegrad_papers.ledger import Outcome, holds, holds_in_part

Concept = Callable[[np.ndarray], np.ndarray]


def _accuracy(net: PracticalNet, carry: EmulatorCarry, concept: Concept) -> float:
    """The share of all inputs on which the trained network is right."""
    every = all_bits(net.inputs)
    return float(np.mean((net.outputs(carry, every) > 0) == concept(every).astype(bool)))


@dataclass(frozen=True)
class _Learned:
    """A run on samples of n bits until the network has learned."""

    n: int
    shown: int
    rows: list[int]
    """The samples learned from, where the network was wrong, as numbers."""
    accuracy: float

    @property
    def as_elimination(self) -> bool:
        """The last sample learned from completes the rank, as elimination on these samples would have it."""
        return (_rank(self.rows), _rank(self.rows[:-1])) == (self.n, self.n - 1)


def _rank(rows: list[int]) -> int:
    """Over the field of two elements."""
    pivots: list[int] = []
    for row in rows:
        for pivot in pivots:
            row = min(row, row ^ pivot)
        if row:
            pivots.append(row)
    return len(pivots)


def _until_done(n: int, seed: int) -> _Learned:
    """Elimination for parities of n bits; of more than 10 bits some inputs are drawn for the accuracy."""
    learner, random = parity(n), np.random.default_rng(seed)
    x = random.integers(0, 2, (20 * n, n))
    y = _concept(x).astype(int)
    net = practical(learner)
    carry, rows = net.start(learner.start(x, y, seed)), []
    while carry.answer is None and not net.done(carry):
        carry = net.advance(carry, 1, "fast")
        if carry.answer is None and (carry.output > 0) != bool(y[carry.steps - 1]):
            rows.append(int("".join(map(str, x[carry.steps - 1])), 2))
    if n <= 10:
        return _Learned(n, carry.steps, rows, _accuracy(net, carry, _concept))
    drawn = random.integers(0, 2, (500, n))
    right = (net.outputs(carry, drawn) > 0) == _concept(drawn)
    return _Learned(n, carry.steps, rows, float(np.mean(right)))


def _concept(x: np.ndarray) -> np.ndarray:
    return (x[:, 0] ^ x[:, -1]).astype(bool)


ENOUGH = 4
"""So many samples for each bit: twice as many as elimination learns from, and as many again."""


@PAPER.claim("Theorem 4", "Trained on samples with two random bits, the net learns as well as the algorithm")
def theorem_4(long: bool) -> Outcome:
    runs, sizes = 40 if long else 15, (4, 8, 16, 32, 64) if long else (4, 8, 16, 32)
    found = {n: [_until_done(n, seed) for seed in range(runs)] for n in sizes}
    every = [run for own in found.values() for run in own]
    ratio = sum(run.shown for run in every) / sum(len(run.rows) for run in every)
    # A sample is new with probability 1 - 2^(r - n) where r are known: so many more than n on average.
    more = {n: np.mean([len(run.rows) for run in own]) - n for n, own in found.items()}
    expected = sum(1 / (2.0**j - 1) for j in range(1, 60))
    late = [np.mean([run.shown > ENOUGH * n for run in own]) for n, own in found.items()]
    vertices = [practical(parity(n)).graph.vertices for n in sizes]
    power = float(np.polyfit(np.log(sizes), np.log(vertices), 1)[0])
    learner, count = counter(12, inputs=3), 4000
    x = np.random.default_rng(1).integers(0, 2, (count, 3))
    y = (x.sum(axis=1) > 1).astype(int)
    net = practical(learner)
    carry, kept = net.start(learner.start(x, y, 2)), []
    for t in range(count):
        carry = net.advance(carry, 1, "fast")
        if (carry.output > 0) != bool(y[t]):
            kept.append(int(x[t] @ [1, 2, 4]))
    mean = len(kept) / 8
    spread = np.abs(np.bincount(kept, minlength=8) - mean).max() / np.sqrt(mean)
    checks = {
        "the accuracy is that of elimination: right on all inputs": min(run.accuracy for run in every) == 1,
        "it ends at the very sample at which elimination does, on those learned from": all(
            run.as_elimination for run in every
        ),
        "about half of the samples are learned from": 1.8 < ratio < 2.2,
        "at every n it learns from n + 1.6 samples, to 1": all(abs(m - expected) < 1 for m in more.values()),
        "the share of runs that need more than 4 n falls to 0": late[0] > 0
        and late[-1] == 0
        and all(b <= a for a, b in pairwise(late)),
        "the net has some n^2 vertices, as elimination has bits of memory": 1.5 < power < 2.1,
        "those learned from are distributed as all are (4 deviations)": spread < 4,
        "a right answer of 0 leaves all weights with the label 2 F(x) - 1, and not with F(x), as printed": (
            changed_by_a_right_answer(-1.0) == 0 < changed_by_a_right_answer(0.0)
        ),
    }
    return holds_in_part(
        checks,
        stated="accuracy alpha - o(1) from polynomially many samples; samples learned from have the same "
        "distribution",
        measured=f"parity of {list(sizes)} bits, {runs} runs each: accuracy 1, {ratio:.2f} samples for each "
        f"one learned from, of which n + {', '.join(f'{m:.1f}' for m in more.values())}; more than {ENOUGH} "
        f"n: {', '.join(f'{share:.0%}' for share in late)} of the runs; vertices ~ n^{power:.2f}; "
        f"frequencies of the 8 inputs among {len(kept)} learned within {spread:.1f} deviations",
        part="Elimination, for these n; the practical network. (The exact one, and any circuit in the place "
        "of elimination: Lemma 3.) Labels are 2 F(x) - 1, as in Lemma 3, where F(x) is printed.",
        ratio=ratio,
        spread=float(spread),
        late=late,
        vertices=vertices,
    )


@PAPER.claim("Remark 10", "The net has theta(m) vertices and gamma is theta(m^(362/364))")
def remark_10(long: bool) -> Outcome:
    sizes = (4, 8, 16, 32, 64) if long else (4, 8, 16, 32)
    gates, vertices, least = [], [], []
    for n in sizes:
        learner = parity(n)
        net = practical(learner)
        gates.append(learner.circuit.size)
        vertices.append(net.graph.vertices)
        least.append(9 * learner.cells + learner.inputs)
    few = (4, 8, 16)
    exact = [_exact_with_a_not_for_each_spare(n) for n in few]
    slope = np.polyfit(gates, vertices, 1)[0]
    per_gate = [v / g for v, g in zip(vertices, gates, strict=True)]
    first = 10**80  # above the printed m0, so that m counts
    gammas = {
        m: components.digits(ExactConstants.of(Fraction(3), m).rate) for m in (10, 40, first, 4 * first)
    }
    with localcontext(prec=components.PRECISION):
        s = ((Decimal(2) ** -243 * Decimal(3) ** (Decimal(-1641) / 2) / first).ln() / 364).exp()
        printed = Decimal(2) ** -244 * Decimal(3) ** (Decimal(-1643) / 2) * s**-362
        as_printed = abs(gammas[first] / printed - 1) < Decimal("1e-200")
        exponent = float((gammas[4 * first] / gammas[first]).ln() / Decimal(4).ln())
    ratio, bits_used = _samples_of_a_randomised_learner(40 if long else 20)
    checks = {
        "vertices grow in proportion to the gates: those for each gate change by less than a fifth": max(
            per_gate
        )
        < 1.2 * min(per_gate),
        "no part is counted twice: between 2 and 4 vertices for each further gate": 2 < slope < 4,
        "more than 8 for each bit of memory": all(v > k - 1 for v, k in zip(vertices, least, strict=True)),
        "so do those of the exact net, 10^79 copies apart, where spare i flips iff bit i does not": max(exact)
        < 1.2 * min(exact),
        "gamma = 2^-244 3^(-1643/2) s^-362 with the printed s": as_printed,
        "for m above 10^79, gamma grows as m^(362/364)": abs(exponent - 362 / 364) < 1e-9,
        "a theta of large m: below 10^79 m0, and so gamma, is a constant": gammas[10] == gammas[40],
        "a randomised learner needs twice the samples that it learns from or draws bits from": abs(ratio - 2)
        < 0.25,
    }
    return holds_in_part(
        checks,
        stated="theta(m) vertices, gamma = theta(m^(362/364)), about twice as many samples",
        measured=f"parity of {list(sizes)} bits: {', '.join(f'{v:.2f}' for v in per_gate)} vertices for each "
        f"gate, {', '.join(f'{v:.2f}' for v in exact)} of the exact net for {list(few)}; "
        f"gamma ~ m^{exponent:.6f} from m = 10^{len(str(first)) - 1} on; dictator: {ratio:.2f} "
        f"samples for each of {bits_used:.0f} that it uses",
        part="Learners of parities and one randomised learner, for these sizes. The exact net that is built "
        "chooses by m^2 gates which of m spare components flip, and carries the others as one; m gates are "
        "enough, a NOT for each.",
        vertices_per_gate=per_gate,
        exponent=exponent,
    )


def _exact_with_a_not_for_each_spare(n: int) -> float:
    """Vertices for each gate of the exact net for parities of n bits, had it a NOT for each of the m spare
    components beside those that always flip, instead of the m^2 gates that count: as many flip in all."""
    learner = parity(n)
    built = build_exact(learner, ExactConstants.of(Fraction(3), learner.cells)).graph.vertices
    return (built - learner.cells**2 + learner.cells) / learner.circuit.size


def _samples_of_a_randomised_learner(runs: int) -> tuple[float, float]:
    """Samples shown for each one that the learner used, as sample or for its random bit, until it was done;
    and how many it used on average."""
    learner, shown, used = dictator(3, 3), 0, 0
    net = practical(learner)
    for seed in range(runs):
        x = np.random.default_rng(seed).integers(0, 2, (400, 3))
        first = learner.start(x, x[:, 1], seed)
        carry, states = net.start(first), learner.run(first)
        state = next(states)
        while not net.has_finished(carry) and carry.steps < len(x):
            carry, state = net.advance(carry, 1, "fast"), next(states)
            if net.decode(carry) != state:
                return 0.0, 0.0
            used += int(first.samples.guess[carry.steps - 1] != first.samples.y[carry.steps - 1])
        shown += carry.steps
    return shown / used, used / runs


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
    settled = {n: [_until_settled(n, seed) for seed in range(6 if long else 2)] for n in (2, 4, 8)}
    every = [run for own in settled.values() for run in own]
    taught, shown = ([float(np.mean([run[i] for run in own])) for own in settled.values()] for i in (0, 2))
    power = float(np.polyfit(np.log(taught), np.log(shown), 1)[0])
    ratio = sum(run[2] for run in every) / sum(run[1] for run in every)
    checks = {
        "the network is the learner at every step": report.agreed,
        "it learns after 0, 1, 4, 9, ... mistakes": learned_at == [k * k for k in range(len(learned_at))],
        "and often enough to show it": len(learned_at) > 5,
        "it has learned the function": accuracy == 1,
        "parities of 2, 4 and 8 bits: right at the end of a round, 2^j - 1 samples learned from": all(
            math.log2(k + 1).is_integer() for k, _, _ in every
        ),
        "the last of k comes with mistake (k - 1)^2 + 1": all(m == (k - 1) ** 2 + 1 for k, m, _ in every),
        "and with about twice as many samples: k^2 in place of k": 1.7 < ratio < 2.3 and 1.7 < power < 2.3,
    }
    return holds_in_part(
        checks,
        stated="learn whenever the number of mistakes is a perfect square; train on 1, 2, 4, ... samples; "
        "where n^c samples are needed, about n^(2c) are",
        measured=f"learned after {learned_at[:6]} ... mistakes ({len(learned_at)} times in {mistakes}); "
        f"without noise accuracy {accuracy}; parities of 2, 4, 8 bits from "
        f"{', '.join(f'{k:g}' for k in taught)} samples on average, in {', '.join(f'{s:g}' for s in shown)}: "
        f"power {power:.2f}",
        part="The scheme around one learner, elimination, up to 8 bits; an algorithm that takes more time "
        "than the network gives it for a sample is not tried.",
        learned=len(learned_at),
        mistakes=mistakes,
        settled=settled,
    )


def _until_settled(n: int, seed: int) -> tuple[int, int, int]:
    """Until the scheme around elimination for parities of n bits is right on all inputs: samples learned
    from, mistakes, samples."""
    learner, random = doubling(parity(n), 6), np.random.default_rng(seed)
    x = random.integers(0, 2, (6000, n))
    y = _concept(x)
    net = practical(learner)
    carry, learned, mistakes = net.start(learner.start(x, y.astype(int), seed)), 0, 0
    while carry.steps < len(x):
        learning = not _finished(learner, net.decode(carry).memory)
        carry = net.advance(carry, 1, "fast")
        if (carry.output > 0) == y[carry.steps - 1]:
            continue
        mistakes, learned = mistakes + 1, learned + learning
        if learning and _accuracy(net, carry, _concept) == 1:
            break
    return learned, mistakes, carry.steps


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
    large_behind_tiny = constants.w0 < 1e-6 < 1e6 < constants.gain
    checks = {
        "hard tanh, one rate, every weight trained by autodiff: memory right at every step": report.agreed,
        "only weights that are memory have changed": len(changed) > 0 and changed <= set(net.cells.tolist()),
        f"a counter flips {flips:,} times without an error, in float64 and float32": all(counted),
    }
    ideas = {
        "weights that change start tiny and have large weights behind them": large_behind_tiny,
        "a series of circuits, each from the memory before to the memory after": False,
        "memory that begins at a local maximum and settles over many steps": False,
        "most steps learn nothing, so that memory can settle": False,
        "estimates that take over the output gradually": False,
    }
    return holds(
        checks,
        parts=ideas,
        stated="; ".join(ideas),
        measured=f"w0 = {constants.w0:.2g}, gain {constants.gain:.2g}, rate {constants.rate:.2g}; {steps:,} "
        "steps",
        note=f"Of {len(ideas)} ideas {sum(ideas.values())} is built. A bit of memory is set in one step, by "
        "one circuit that is the same at every step, so that nothing has to settle.",
        w0=constants.w0,
        rate=constants.rate,
    )
