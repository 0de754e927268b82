"""Theorem 5 and Remark 12: learners of all kinds, trained by SGD with noise on every weight at every step."""

from math import sqrt
from typing import NamedTuple

import numpy as np

from tapegrad._compile import compile
from tapegrad.errors import Refused
from tapegrad.learners import FunctionLearner, dictator
from tapegrad.learners.programs import metaalgorithm
from tapegrad.targets.emulator.constants import NOISE
from tapegrad.targets.emulator.net import EmulatorCarry
from tapegrad.targets.emulator.noise import Noise, error
from tapegrad.targets.emulator.paper_nets import NoisyNet
from tapegrad_papers.abbe_sandon import PAPER
from tapegrad_papers.abbe_sandon.cross_predictability import all_bits
from tapegrad_papers.abbe_sandon.noisy_parity import setting, trained
from tapegrad_papers.ledger import Outcome, holds_in_part

BITS, STEPS = 64, 2000
MOST_NOISE = float(NOISE["decimal"])
"""What Lemma 4 allows on a weight in all."""


@PAPER.claim("Theorem 5", "Noisy SGD learns as well as any efficient algorithm")
def theorem_5(long: bool) -> Outcome:
    steps = 2 * STEPS if long else STEPS
    task = setting(BITS, steps)
    cells, constants, opened = task.learner.cells, task.constants, task.opened
    most = task.bound("relative", True)
    at_bound = trained(task, Noise(relative=most))
    beyond = 10_000
    far_beyond = trained(task, Noise(relative=beyond * most))
    # The bound once more, term by term, from the numbers in `noise.py`'s lines.
    rho, rounding = most + steps * 2.0**-53, 10 * (6 * cells + 1) * 2.0**-53
    u = constants.gate
    growth = 20 * (6 * cells + 1) / u + 41 + 28 / u**2
    drift = sqrt(cells) * steps**2 / 2 * constants.w0**2 * growth
    own = most + opened.steps * (19 * rho + rounding) + 1.1 * drift
    own /= 1 - 0.55 * u * opened.together * opened.steps
    tight = own if most * task.load < 1.999 else 0.25
    small = _randomised()
    checks = {
        f"parity of {BITS} bits: memory and answers are elimination's after each of {steps:,} steps": (
            at_bound.right
        ),
        "every test input is answered rightly": at_bound.accuracy == 1,
        "the noise changes every weight at every step": at_bound.least_changed > 0.9999,
        "it is all that the bound allows, by its formula": abs(tight - 0.25) < 1e-3
        and abs(error(Noise(relative=most), cells, steps, constants, opened=opened) / own - 1) < 1e-9,
        "no cell is off by more than the bound says": at_bound.error <= own,
        f"with {beyond:,} times as much it does not work": not far_beyond.right and far_beyond.accuracy < 0.7,
        "the paper's own network, a randomised learner: the learner's memory after every step": small.agreed,
        "and as many right answers": small.right == small.learner > 0,
        "its noise, too, changes every weight at every step, but for those that are at 10^84 by then": (
            small.changed
        ),
    }
    return holds_in_part(
        checks,
        stated="accuracy alpha - o(1) with noise of 1/(n^2 t) on every weight and t_n samples",
        measured=f"{steps:,} steps with noise of {most / steps:.1e} times the weight at each, "
        f"{most:.1e} in all: accuracy {at_bound.accuracy:.3f}, {at_bound.least_changed:.1%} of "
        f"{len(task.net(Noise()).weights):,} weights change at every step, cells off by "
        f"{at_bound.error:.1e} of their size; with {beyond:,} times as much {far_beyond.accuracy:.3f}",
        part="Noise in proportion to the weights, on the practical network, for a learner that opens no bit "
        f"more than {opened.steps} times and {opened.together} at once; any learner of this size is proved "
        f"to bear {task.bound('relative', False):.1e}, or {task.bound('absolute', False):.1e} on every "
        f"weight alike. 1/(n^2 t) = {1 / (BITS**2 * steps):.1e} on every weight alike needs the paper's own "
        f"network and n of {2**67 * 3**6:.1e} (Lemma 6); that network is run in decimals with Lemma 4's "
        f"noise of {MOST_NOISE:.1e}.",
        noise=most,
        accuracy=at_bound.accuracy,
        changed=at_bound.least_changed,
    )


class _Run(NamedTuple):
    """Lemma 6's network with noise: whether its memory is right at every step, how many of its later answers
    are and how many of the learner's own, and whether the noise changes every weight at every step."""

    agreed: bool
    right: int
    learner: int
    changed: bool


def _randomised() -> _Run:
    """A randomised learner, in decimals."""
    x = np.random.default_rng(1).integers(0, 2, (14, 2))
    learner, y = dictator(2, 2), x[:, 1]
    states = list(learner.run(learner.start(x, y, 1, False)))
    needed = next(t for t, s in enumerate(states) if learner.respond(s.memory, [0, 0], 0, 0).finished)
    net, quiet = _noisy(learner, needed, MOST_NOISE), _noisy(learner, needed, 0.0)
    carry, right, agreed, changed = net.start(learner.start(x, y, 1, False)), 0, True, True
    for t in range(len(x)):
        changed &= t >= needed or _all_disturbed(net, quiet, carry)
        carry = net.advance(carry, 1, "fast")
        agreed &= net.decode(carry) == states[t + 1]
        right += t >= needed and (carry.output > 0) == bool(y[t])
    own = sum(s.answer == y[t] for t, s in enumerate(states[1:]) if t >= needed)
    return _Run(agreed, right, own, changed)


def _noisy(learner: FunctionLearner, samples: int, noise: float) -> NoisyNet:
    return NoisyNet.of(learner, samples, "decimal", noise)


def _all_disturbed(net: NoisyNet, quiet: NoisyNet, carry: EmulatorCarry) -> bool:
    """Whether the next step leaves every weight elsewhere than it would without noise; but for the edges of
    output controls, one for each step, that are at 10^84, of which 80 digits end far above the noise."""
    pairs = zip(net.advance(carry, 1, "fast").weights, quiet.advance(carry, 1, "fast").weights, strict=True)
    return sum(a == b for a, b in pairs) <= carry.steps + 1


@PAPER.claim("Remark 12", "The metaalgorithm with noise; but the number of samples must be known")
def remark_12(long: bool) -> Outcome:
    n, bits, train, compare = 2, 6, 4, 4
    learner = metaalgorithm(n, bits, train, compare)
    every = all_bits(n)
    x = np.tile(every, (3, 1))  # once to train on, once to compare by, once to answer
    samples = train + compare
    net, quiet = _noisy(learner, samples, MOST_NOISE), _noisy(learner, samples, 0.0)
    found, agreed, held, changed = {}, True, 0.0, True
    for name, y in {"x1": x[:, 1], "x0": x[:, 0], "1": np.ones(len(x), int)}.items():
        states = list(learner.run(learner.start(x, y, 1, False)))
        carry, answers = net.start(learner.start(x, y, 1, False)), []
        for t in range(len(x)):
            changed &= t >= samples or _all_disturbed(net, quiet, carry)
            carry = net.advance(carry, 1, "fast")
            agreed &= net.decode(carry) == states[t + 1]
            if t < samples:
                held = max(held, abs(carry.output - 0.5))
            else:
                answers.append(int(carry.output > 0))
        found[name] = float(np.mean(np.array(answers) == y[samples:]))
    disturbed = _noisy(learner, samples, 1e6 * MOST_NOISE)
    last = disturbed.advance(disturbed.start(learner.start(x, x[:, 1], 1, False)), samples, "fast")
    states = list(learner.run(learner.start(x, x[:, 1], 1, False)))
    refused = ""
    try:
        compile(learner, "emulator", form="noise-tolerant")
    except Refused as refusal:
        refused = refusal.what
    checks = {
        f"all programs of at most {bits} bits, with noise: memory and answers are theirs after every step": (
            agreed
        ),
        "the noise changes every weight at every step, but for those that are at 10^84 by then": changed,
        "the output is 1/2 while samples are memorised": held < 1e-9,
        "each of three functions is found, and answered rightly on all inputs": set(found.values()) == {1.0},
        "with 10^6 times as much noise it does not work": disturbed.decode(last) != states[samples],
        "without a number of samples the network is refused": "fixed number of samples" in refused,
    }
    return holds_in_part(
        checks,
        stated="a metaalgorithm can be emulated with noise; there is no easy way without a bound on the "
        "samples",
        measured=f"{learner.name}, {samples} samples, noise {MOST_NOISE:.1e} on each of "
        f"{net.graph.edges:,} weights, in decimals: accuracies {found}; without a number: {refused}",
        part=f"The metaalgorithm with noise, for programs of at most {bits} bits. That there is no easy way "
        "without the number of samples is not shown; the construction needs it, and is refused.",
        accuracy=list(found.values()),
    )
