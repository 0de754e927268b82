"""Sections 6.1 to 6.3: functions that ordinary training does not learn, and compiled networks do."""

import numpy as np

from tapegrad_papers.claims.abbe_sandon.paper import PAPER
from tapegrad_papers.claims.ledger import Outcome, asymptotic, holds, holds_corrected
from tapegrad_papers.experiments.arithmetic import arithmetic
from tapegrad_papers.experiments.connectivity import connectivity
from tapegrad_papers.experiments.images import images
from tapegrad_papers.theory.cross_predictability import estimated, exact
from tapegrad_papers.theory.hidden_digits import (
    all_inputs,
    centred,
    consistent,
    draw_inputs,
    hidden_digit_sums,
    matches,
    meanings,
)
from tapegrad_papers.theory.random_graphs import papers_parameters


@PAPER.claim("Section 6.1", "An ordinary network learns the images by heart and their parity not at all")
def section_6_1(long: bool) -> Outcome:
    seeds = range(3 if long else 1)
    found = [images(seed=seed) for seed in seeds]
    train, test = ([getattr(f.perceptron, part) for f in found] for part in ("train", "test"))
    checks = {
        "the training error goes to 0": max(train) <= 0.01,
        "the test error stays at 1/2": all(abs(error - 0.5) < 0.08 for error in test),
        "the compiled network is right on every test image": all(f.emulator.accuracy == 1 for f in found),
        "from about 2n samples": all(1.5 * 169 < f.emulator.samples < 2.7 * 169 for f in found),
    }
    return holds(
        checks,
        stated="13 x 13 images, 1000 to train on, 3 layers of 128, SGD 0.1, 80 epochs: no better than "
        "guessing",
        measured=f"training error {max(train):.3f}, test error {np.mean(test):.3f}; compiled network "
        f"{found[0].emulator.accuracy:.0%} from {found[0].emulator.samples} samples",
        note="The paper does not give the size of the batches; here it is 10.",
        train=train,
        test=test,
    )


@PAPER.claim("Section 6.2", "One random graph against two halves of one: not learned, but computed")
def section_6_2(long: bool) -> Outcome:
    plain = connectivity(40, 8, 3) if long else connectivity()
    pruned = connectivity(24, 7, 4, count=400, epochs=20)
    first_pruned = next(n for n in range(3, 20_000) if papers_parameters(n)[1] > 3)
    checks = {
        "the perceptron is near guessing on new graphs": abs(plain.perceptron.test - 0.5) < 0.1,
        "though it knows its training graphs": plain.perceptron.train < 0.05,
        "the compiled search tells the kinds apart": plain.compiled > 0.95,
        "and says what depth-first search says": plain.agrees and pruned.agrees,
    }
    return asymptotic(
        checks,
        stated="descent will not distinguish AER(n, 10 ln n, sqrt(ln n)) from two halves (a belief); search "
        "does",
        measured=f"{plain.vertices} vertices: perceptron {1 - plain.perceptron.test:.1%}, compiled "
        f"{plain.compiled:.1%} ({plain.circuit:,} gates), number of edges alone {plain.edges:.1%}",
        instead=f"Small graphs with r = 3. With the paper's r = sqrt(ln n) no cycle is removed below n = "
        f"{first_pruned:,} either. Where triangles are removed from small graphs, the number of edges gives "
        f"the kind away ({pruned.edges:.1%} by it alone), and the perceptron gets "
        f"{1 - pruned.perceptron.test:.1%}.",
        perceptron=1 - plain.perceptron.test,
        compiled=plain.compiled,
        first_pruned=first_pruned,
    )


@PAPER.claim("Section 6.3", "Sums in unknown symbols: low cross-predictability, and solvable from samples")
def section_6_3(long: bool) -> Outcome:
    rng = np.random.default_rng(0)
    every = all_inputs(3)
    table = [centred(matches(every, 3, m), 3) for m in meanings(3)]
    of_three = exact(table)
    others = {n: estimated(hidden_digit_sums(n), 2000 if long else 400, 2000, rng) for n in (3, 4, 5)}
    sums = arithmetic(4 if long else 3)
    left, after = {}, {}
    for n in (3, 4, 5):
        meaning = meanings(n)[1]
        x = draw_inputs(n, 1500, rng)
        x[:, -2] = 0
        right = x[matches(x, n, meaning)]
        left[n] = len(consistent(right, matches(right, n, meaning), n))
        x = draw_inputs(n, 1500, rng)
        after[n] = len(consistent(x, matches(x, n, meaning), n))
    checks = {
        "outputs have mean 0 and mean square 1": all(
            abs(v.mean()) < 1e-9 and abs((v**2).mean() - 1) < 1e-9 for v in table
        ),
        "the estimate for base 3 agrees with the exact value": others[3].agrees_with(of_three),
        "cross-predictability falls as n grows": others[3].value > others[4].value > others[5].value,
        "the perceptron is near guessing": abs(sums.perceptron.test - 0.5) < 0.06,
        "the compiled learner is right": sums.emulator.accuracy == 1,
        "correct sums with the last digit left leave phi(n) meanings, not one": left == {3: 2, 4: 2, 5: 4},
        "samples with other digits left leave one": set(after.values()) == {1},
    }
    return holds_corrected(
        checks,
        stated="the class has a low CP; correct samples with the last digit left determine the digits mod n",
        measured=f"CP {of_three:.4f} (base 3, exact), {others[4].value:.3f} +- {others[4].error:.3f}, "
        f"{others[5].value:.3f} +- {others[5].error:.3f}; perceptron {1 - sums.perceptron.test:.1%}, "
        f"compiled {sums.emulator.accuracy:.0%} from {sums.emulator.samples} samples; meanings left by last "
        f"digits {left}",
        correction="Equations for the last digit are homogeneous: with a meaning, all its multiples by "
        "units mod n solve them. The carries seen at the other digits decide between these.",
        cross_predictability=[of_three, others[4].value, others[5].value],
        left=list(left.values()),
    )
